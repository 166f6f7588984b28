//! Webhooks: add, list, remove, enable, test, and the log of deliveries.

use serde_json::json;
use shared::message::Failure;
use shared::text::{fit, visible};
use shared::webhook::{Delivery, DeliveryState, Hears, Webhook};

use crate::context::Context;
use crate::store::NewWebhook;
use crate::webhook::body::Body;
use crate::webhook::send::Outcome;
use crate::webhook::{Attempt, address, sign};

/// Deliveries that are listed when nobody says how many.
const DEFAULT_LIMIT: u32 = 50;

/// Longer words are no event's type and nobody's name.
const MAX_WORD: usize = 256;

/// The type of a delivery that only tries whether it arrives.
const TEST: &str = "test";

/// The answer is the only place that ever tells the secret.
pub async fn add(context: &Context, url: String, mut filter: Hears, secret: Option<String>) -> Result<Webhook, Failure> {
    address::check_url(&url, filter.insecure).map_err(Failure::usage)?;
    check_filter(&filter).map_err(Failure::usage)?;
    for label in [&mut filter.thread, &mut filter.mode, &mut filter.user, &mut filter.channel].into_iter().flatten() {
        // labels of sessions are stored in this form
        *label = shared::text::composed(label);
    }
    let secret = match secret {
        Some(secret) => {
            sign::check_secret(&secret).map_err(Failure::usage)?;
            secret
        }
        None => sign::new_secret().map_err(Failure::failed)?,
    };
    let webhook = context.store.add_webhook(NewWebhook { url, filter, secret: secret.clone() }).await?;
    Ok(Webhook { secret: Some(secret), ..webhook })
}

fn check_filter(filter: &Hears) -> Result<(), String> {
    for event in &filter.events {
        if event != "*" && !shared::event::is_type(event) {
            return Err(format!(
                "{:?} is not an event's type: write words like start,complete, or * for all",
                fit(&visible(event), MAX_WORD / 4)
            ));
        }
    }
    for (what, word) in [("thread", &filter.thread), ("mode", &filter.mode), ("user", &filter.user), ("channel", &filter.channel)] {
        if word.as_ref().is_some_and(|word| word.is_empty() || word.len() > MAX_WORD) {
            return Err(format!("the {what} to hear of must be a word of at most {MAX_WORD} bytes: leave it out to hear of all"));
        }
        if word.as_ref().is_some_and(|word| !shared::text::is_visible(word)) {
            return Err(format!("the {what} to hear of cannot contain control or invisible characters"));
        }
    }
    Ok(())
}

pub async fn list(context: &Context) -> Result<Vec<Webhook>, Failure> {
    Ok(context.store.webhooks().await?)
}

pub async fn remove(context: &Context, word: String) -> Result<Webhook, Failure> {
    let id = context.store.find_webhook_exact(word).await?;
    Ok(context.store.remove_webhook(id).await?)
}

pub async fn enable(context: &Context, word: String) -> Result<Webhook, Failure> {
    let id = context.store.find_webhook(word).await?;
    Ok(context.store.enable_webhook(id).await?)
}

/// One delivery, now, whatever waits. One that fails is an answer too: it says how.
pub async fn test(context: &Context, word: String) -> Result<Delivery, Failure> {
    let webhook = context.store.find_webhook(word).await?;
    let created_at = jiff::Timestamp::now();
    let data = json!({"message": "a test of this webhook: nothing has happened"});
    let body = Body { event: TEST, session: None, timestamp: created_at, data: &data }.text();
    let message = context.store.message_to(webhook, body).await?;
    let id = message.id.clone();
    let (state, answer, error) = match context.post.send(message, Attempt::First, context.config().webhooks.timeout.duration()).await {
        Outcome::Delivered { answer } => (DeliveryState::Delivered, Some(answer), None),
        Outcome::Gone { answer, error } => (DeliveryState::Expired, Some(answer), Some(error)),
        Outcome::Failed { answer, error, .. } => (DeliveryState::Expired, answer, Some(error)),
    };
    let attempted_at = Some(jiff::Timestamp::now());
    let delivery = Delivery { id, event: TEST.to_owned(), seq: None, state, created_at, attempts: 1, attempted_at, answer, error };
    context.store.log_delivery(webhook, delivery.clone()).await?;
    Ok(delivery)
}

pub async fn deliveries(context: &Context, word: String, limit: Option<u32>) -> Result<Vec<Delivery>, Failure> {
    let webhook = context.store.find_webhook(word).await?;
    Ok(context.store.deliveries(webhook, limit.unwrap_or(DEFAULT_LIMIT)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_words() {
        let with = |events: &[&str]| Hears { events: events.iter().map(|&event| event.to_owned()).collect(), ..Hears::default() };
        for events in [&[][..], &["*"], &["start", "complete"], &["ci.build-2"], &["größe"]] {
            check_filter(&with(events)).unwrap_or_else(|error| panic!("{events:?}: {error}"));
        }
        for events in [&[""][..], &["two words"], &["start", "a\x1b[2J"], &["zero\u{200b}width"]] {
            let error = check_filter(&with(events)).expect_err("not a type");
            assert!(shared::text::is_visible(&error), "{error}");
        }
        assert!(check_filter(&Hears { user: Some(String::new()), ..Hears::default() }).is_err());
    }
}
