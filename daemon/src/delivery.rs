//! Takes what is due from the outbox of webhooks and sends it, per endpoint one at a time and in order. Sleeps until the next is
//! due or something is queued; a session never waits for it, and it never touches SQL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use shared::id::WebhookId;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::store::{Head, Settled};
use crate::webhook::Attempt;
use crate::webhook::retry;
use crate::webhook::send::Outcome;

/// When the database takes no outcome (a full disk) the next try is after this: sending on would only repeat deliveries.
const STORE_PAUSE: Duration = Duration::from_secs(10);

/// Starts delivering: first what an earlier daemon has left.
pub fn start(context: &Context) {
    tokio::spawn(deliver(Arc::clone(context)));
}

async fn deliver(context: Context) {
    let changed = context.store.deliveries_changed();
    let mut attempts = JoinSet::new();
    let mut busy: HashMap<tokio::task::Id, WebhookId> = HashMap::new();
    loop {
        let heads = context.store.heads().await;
        let now = context.clock.now();
        let mut wake_at = None;
        match heads {
            Ok(heads) => {
                for head in heads {
                    if busy.values().any(|webhook| *webhook == head.webhook) {
                        continue;
                    }
                    if head.next_attempt_at <= now {
                        let webhook = head.webhook;
                        busy.insert(attempts.spawn(attempt(Arc::clone(&context), head)).id(), webhook);
                    } else {
                        wake_at = Some(wake_at.map_or(head.next_attempt_at, |at: i64| at.min(head.next_attempt_at)));
                    }
                }
            }
            Err(error) => {
                context.log.warn(&format!("webhooks: reading what is due: {error}"));
                wake_at = Some(now + STORE_PAUSE.as_micros() as i64);
            }
        }
        let due = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(context.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            Some(ended) = attempts.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => {
                        context.log.warn(&format!("webhooks: an attempt ended with a panic: {error}"));
                        error.id()
                    }
                };
                busy.remove(&id);
            }
            () = due => {}
        }
    }
}

/// Sends the oldest that waits for an endpoint, and writes down how that went.
async fn attempt(context: Context, head: Head) {
    let (webhook, number) = (head.webhook, head.number);
    let attempts = head.attempts + 1;
    let queued_at = head.queued_at;
    let attempt = if head.attempts > 0 { Attempt::Again } else { Attempt::First };
    let outcome = context.post.send(head.message, attempt, context.config().webhooks.timeout.duration()).await;
    let config = &context.config().webhooks;
    let now = context.clock.now();
    let settled = match outcome {
        Outcome::Delivered { answer } => Settled::Delivered { answer },
        Outcome::Gone { answer, error } => {
            context.log.warn(&format!("webhook {webhook} is disabled: {error}"));
            Settled::Disabled { answer, error }
        }
        Outcome::Failed { answer, error, retry_after } => {
            let asked = retry_after.map(|wait| wait.as_micros() as i64);
            let retry_at = retry::next_attempt(config, attempts, now, asked, chance());
            let max_age = config.max_age.micros();
            // the last attempt is made when its time is over, not up to an hour before or after
            let own_retry_at = retry_at.min(queued_at + max_age);
            Settled::Failed { answer, error, own_retry_at, retry_at, expire_queued_until: now - max_age }
        }
    };
    while let Err(error) = context.store.settle_delivery(webhook, number, settled.clone()).await {
        context.log.warn(&format!("webhook {webhook}: writing down how an attempt went: {error}"));
        tokio::time::sleep(STORE_PAUSE).await;
    }
}

/// Between 0 and 1. Without a source of randomness retries are merely even.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
