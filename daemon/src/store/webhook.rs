//! Webhooks and their outbox: a delivery is queued in the transaction of the event it tells, and stays until it is made or
//! given up; how that went stays a while longer. The only SQL about them; sends nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, Row, params};
use shared::event::Event;
use shared::id::{DeliveryId, WebhookId};
use shared::message::{Code, Failure};
use shared::webhook::{Delivery, DeliveryState, Hears, Webhook};
use tokio::sync::Notify;

use super::{Change, Durability, Error, Result, StoreHandle, broken, json, micros, timestamp};
use crate::clock::Steady;
use crate::webhook::body::{Body, Subject};
use crate::webhook::send::Message;

/// Waiting deliveries per endpoint: days of events; usually some megabytes, at worst 64 KiB each.
const MAX_PENDING: i64 = 10_000;

/// Deliveries per endpoint whose outcome is kept: for looking back, not for ever.
const KEPT: i64 = 1000;

/// How many candidates an ambiguous word shows.
const CANDIDATES: usize = 5;

/// An endpoint to be added, everything checked.
pub struct NewWebhook {
    pub url: String,
    pub filter: Hears,
    pub secret: String,
}

/// The oldest delivery that waits for an endpoint: the next one to be made.
pub struct Head {
    pub webhook: WebhookId,
    pub number: i64,
    pub message: Message,
    /// So far.
    pub attempts: u32,
    pub queued_at: Steady,
    pub next_attempt_at: Steady,
}

/// How an attempt at a head went, and what follows from it.
#[derive(Clone, Debug)]
pub enum Settled {
    Delivered {
        answer: u16,
    },
    /// The endpoint is told nothing any more.
    Disabled {
        answer: u16,
        error: String,
    },
    Failed {
        answer: Option<u16>,
        error: String,
        /// When this one is tried again, if it is not given up.
        own_retry_at: Steady,
        /// When the endpoint is tried again with the next one, if this one is given up.
        retry_at: Steady,
        /// What was queued up to then is given up.
        expire_queued_until: Steady,
    },
}

const DELIVERY: &str = "SELECT id, event, seq, state, created_at, attempts, attempted_at, answer, error FROM deliveries";

impl StoreHandle {
    /// Woken after each commit that queued something, or made something due.
    pub fn deliveries_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.deliveries_changed)
    }

    pub async fn add_webhook(&self, new: NewWebhook) -> Result<Webhook> {
        self.has_webhooks.store(true, Ordering::Relaxed);
        self.write(Durability::Power, move |change| {
            let id = WebhookId::new();
            change.execute(
                "INSERT INTO webhooks (id, url, secret, filter, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id.to_string(), new.url, new.secret, json(&new.filter)?, micros(jiff::Timestamp::now())],
            )?;
            load(&change.sql, id)
        })
        .await
    }

    /// Oldest first, with how they are doing.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.read(|connection| {
            let ids: Vec<String> = connection
                .prepare("SELECT id FROM webhooks ORDER BY created_at, id")?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            ids.iter().map(|id| load(connection, parse_id(id)?)).collect()
        })
        .await
    }

    /// The endpoint a user means: its exact URL, or an unambiguous beginning of its id.
    pub async fn find_webhook(&self, word: String) -> std::result::Result<WebhookId, Failure> {
        self.read(move |connection| find(connection, &word)).await.map_err(|error| Failure::failed(error.to_string()))?
    }

    /// As `find_webhook`, by its whole id: for removal.
    pub async fn find_webhook_exact(&self, word: String) -> std::result::Result<WebhookId, Failure> {
        let id = self.find_webhook(word.clone()).await?;
        let webhook = self.read(move |connection| load(connection, id)).await.map_err(|error| Failure::failed(error.to_string()))?;
        if webhook.url == word || id.to_string().eq_ignore_ascii_case(&word) {
            return Ok(id);
        }
        let shown = shared::text::visible(&word);
        Err(Failure::new(
            Code::NotFound,
            format!(
                "there is no webhook {shown}: this needs the exact URL or id; did you mean {id} ({})?",
                shared::text::visible(&webhook.url)
            ),
        ))
    }

    /// Takes the endpoint away with everything that waits for it; gives it as it was.
    pub async fn remove_webhook(&self, id: WebhookId) -> Result<Webhook> {
        let (webhook, is_last) = self
            .write(Durability::Power, move |change| {
                let webhook = load(&change.sql, id)?;
                change.execute("DELETE FROM webhooks WHERE id = ?1", [id.to_string()])?;
                change.deliveries_changed = true;
                Ok((webhook, change.query_row("SELECT NOT EXISTS (SELECT 1 FROM webhooks)", [], |row| row.get(0))?))
            })
            .await?;
        if is_last {
            self.has_webhooks.store(false, Ordering::Relaxed);
        }
        Ok(webhook)
    }

    pub async fn enable_webhook(&self, id: WebhookId) -> Result<Webhook> {
        self.write(Durability::Power, move |change| {
            change.execute("UPDATE webhooks SET disabled_reason = NULL WHERE id = ?1", [id.to_string()])?;
            change.deliveries_changed = true;
            load(&change.sql, id)
        })
        .await
    }

    /// An endpoint with a delivery for it that is not in the outbox.
    pub async fn message_to(&self, id: WebhookId, body: String) -> Result<Message> {
        self.read(move |connection| {
            let row: Option<(String, String, String)> = connection
                .query_row("SELECT url, secret, filter FROM webhooks WHERE id = ?1", [id.to_string()], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let (url, secret, filter) = row.ok_or(Error::WebhookGone)?;
            Ok(Message { url, insecure: filter_of(&filter)?.insecure, secret, id: new_message_id(), body })
        })
        .await
    }

    /// Remembers a delivery that did not go through the outbox.
    pub async fn log_delivery(&self, webhook: WebhookId, delivery: Delivery) -> Result<()> {
        self.write(Durability::Process, move |change| {
            // an endpoint that was removed meanwhile has no log either
            change.execute(
                "INSERT INTO deliveries (id, webhook_id, event, seq, body, state, created_at, attempts, queued_at, next_attempt_at,
                    attempted_at, answer, error)
                 SELECT ?1, id, ?3, ?4, '', ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11 FROM webhooks WHERE id = ?2",
                params![
                    delivery.id,
                    webhook.to_string(),
                    delivery.event,
                    delivery.seq,
                    state_word(delivery.state),
                    micros(delivery.created_at),
                    delivery.attempts,
                    change.clock.now(),
                    delivery.attempted_at.map(micros),
                    delivery.answer,
                    delivery.error
                ],
            )?;
            change.forget_old_deliveries(webhook, change.sql.last_insert_rowid())
        })
        .await
    }

    /// Newest first.
    pub async fn deliveries(&self, webhook: WebhookId, limit: u32) -> Result<Vec<Delivery>> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(&format!("{DELIVERY} WHERE webhook_id = ?1 ORDER BY number DESC LIMIT ?2"))?;
            let mut rows = statement.query(params![webhook.to_string(), limit])?;
            let mut deliveries = Vec::new();
            while let Some(row) = rows.next()? {
                deliveries.push(read_delivery(row)?);
            }
            Ok(deliveries)
        })
        .await
    }

    /// Of each enabled endpoint the delivery that must be made next, the longest due first.
    pub async fn heads(&self) -> Result<Vec<Head>> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT webhooks.id, url, secret, filter, head.number, head.id, body, attempts, queued_at, next_attempt_at
                 FROM webhooks JOIN deliveries AS head ON head.number =
                    (SELECT min(number) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')
                 WHERE disabled_reason IS NULL ORDER BY next_attempt_at",
            )?;
            let mut rows = statement.query([])?;
            let mut heads = Vec::new();
            while let Some(row) = rows.next()? {
                let (webhook, filter): (String, String) = (row.get(0)?, row.get(3)?);
                heads.push(Head {
                    webhook: parse_id(&webhook)?,
                    number: row.get(4)?,
                    message: Message {
                        url: row.get(1)?,
                        secret: row.get(2)?,
                        insecure: filter_of(&filter)?.insecure,
                        id: row.get(5)?,
                        body: row.get(6)?,
                    },
                    attempts: row.get(7)?,
                    queued_at: row.get(8)?,
                    next_attempt_at: row.get(9)?,
                });
            }
            Ok(heads)
        })
        .await
    }

    /// Writes down how the attempt at an endpoint's head went.
    pub async fn settle_delivery(&self, webhook: WebhookId, number: i64, settled: Settled) -> Result<()> {
        self.write(Durability::Process, move |change| change.settle_delivery(webhook, number, settled)).await
    }
}

impl Change<'_> {
    /// Queues an event for every endpoint that hears of it, with the session as it is after the change.
    pub(super) fn queue_deliveries(&mut self, event: &Event) -> Result<()> {
        let endpoints: Vec<(String, Hears)> = {
            let mut statement = self.sql.prepare_cached("SELECT id, filter FROM webhooks WHERE disabled_reason IS NULL")?;
            let mut rows = statement.query([])?;
            let mut endpoints = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, filter): (String, String) = (row.get(0)?, row.get(1)?);
                // a filter that is not readable is told of by `webhook ls`; no session stops for it
                if let Ok(filter) = filter_of(&filter)
                    && filter.hears_type(&event.kind)
                {
                    endpoints.push((id, filter));
                }
            }
            endpoints
        };
        if endpoints.is_empty() {
            return Ok(());
        }
        let about = About::load(&self.sql, event)?;
        let mut body = None;
        for (id, filter) in endpoints {
            if !about.is_heard_by(&filter, &event.name) {
                continue;
            }
            if self.has_no_room(&id)? {
                self.sql.prepare_cached("UPDATE webhooks SET dropped = dropped + 1 WHERE id = ?1")?.execute([&id])?;
                continue;
            }
            let now = self.clock.now();
            self.sql
                .prepare_cached(
                    "INSERT INTO deliveries (id, webhook_id, event, seq, body, state, created_at, queued_at, next_attempt_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?7, ?7)",
                )?
                .execute(params![
                    new_message_id(),
                    id,
                    event.kind,
                    event.seq,
                    *body.get_or_insert_with(|| about.body(event)),
                    micros(event.at),
                    now
                ])?;
            self.deliveries_changed = true;
        }
        Ok(())
    }

    fn has_no_room(&self, webhook: &str) -> Result<bool> {
        // numbers only rise: as long as the span is short there is nothing to count, which takes time when many wait
        let span: i64 = self
            .sql
            .prepare_cached(
                "SELECT coalesce((SELECT max(number) FROM deliveries WHERE webhook_id = ?1 AND state = 'pending')
                    - (SELECT min(number) FROM deliveries WHERE webhook_id = ?1 AND state = 'pending') + 1, 0)",
            )?
            .query_row([webhook], |row| row.get(0))?;
        if span < MAX_PENDING {
            return Ok(false);
        }
        let pending: i64 = self
            .sql
            .prepare_cached("SELECT count(*) FROM deliveries WHERE webhook_id = ?1 AND state = 'pending'")?
            .query_row([webhook], |row| row.get(0))?;
        Ok(pending >= MAX_PENDING)
    }

    fn settle_delivery(&mut self, webhook: WebhookId, number: i64, settled: Settled) -> Result<()> {
        let key = webhook.to_string();
        let (answer, error) = match &settled {
            Settled::Delivered { answer } => (Some(*answer), None),
            Settled::Disabled { answer, error } => (Some(*answer), Some(error)),
            Settled::Failed { answer, error, .. } => (*answer, Some(error)),
        };
        self.sql
            .prepare_cached("UPDATE deliveries SET attempts = attempts + 1, attempted_at = ?2, answer = ?3, error = ?4 WHERE number = ?1")?
            .execute(params![number, micros(jiff::Timestamp::now()), answer, error])?;
        match settled {
            Settled::Delivered { .. } => {
                self.sql.prepare_cached("UPDATE deliveries SET state = 'delivered', body = '' WHERE number = ?1")?.execute([number])?;
            }
            Settled::Disabled { error, .. } => {
                self.execute("UPDATE webhooks SET disabled_reason = ?2 WHERE id = ?1", params![key, error])?;
                self.execute(
                    "UPDATE deliveries SET state = 'expired', body = '', error = ?2 WHERE webhook_id = ?1 AND state = 'pending'",
                    params![key, format!("the endpoint was disabled: {error}")],
                )?;
            }
            Settled::Failed { own_retry_at, retry_at, expire_queued_until, .. } => {
                self.sql
                    .prepare_cached(
                        "UPDATE deliveries SET state = 'expired', body = '',
                            error = 'given up, too old' || coalesce(': ' || error, ' when its turn came')
                         WHERE webhook_id = ?1 AND state = 'pending' AND queued_at <= ?2",
                    )?
                    .execute(params![key, expire_queued_until])?;
                let is_waiting = self
                    .sql
                    .prepare_cached("UPDATE deliveries SET next_attempt_at = ?2 WHERE number = ?1 AND state = 'pending'")?
                    .execute(params![number, own_retry_at])?;
                if is_waiting == 0 {
                    // giving one up is no reason to hurry to an endpoint that has just failed again
                    self.sql
                        .prepare_cached(
                            "UPDATE deliveries SET next_attempt_at = max(next_attempt_at, ?2) WHERE number =
                                (SELECT min(number) FROM deliveries WHERE webhook_id = ?1 AND state = 'pending')",
                        )?
                        .execute(params![key, retry_at])?;
                }
            }
        }
        self.forget_old_deliveries(webhook, number)
    }

    /// Of what was settled up to `number`, only the newest stay.
    fn forget_old_deliveries(&self, webhook: WebhookId, number: i64) -> Result<()> {
        self.sql
            .prepare_cached(
                "DELETE FROM deliveries WHERE webhook_id = ?1 AND state <> 'pending' AND number <
                    (SELECT number FROM deliveries WHERE webhook_id = ?1 AND number <= ?2 ORDER BY number DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute(params![webhook.to_string(), number, KEPT - 1])?;
        Ok(())
    }
}

/// What an endpoint is told of a session.
struct About {
    session: String,
    mode: Option<String>,
    status: String,
    task: Option<String>,
    user: Option<String>,
    channel: Option<String>,
}

impl About {
    fn load(connection: &Connection, event: &Event) -> Result<Self> {
        let session = event.session.to_string();
        let row = connection
            .prepare_cached(
                "SELECT mode, status, task, user, channel FROM sessions JOIN threads ON threads.id = thread_id WHERE sessions.id = ?1",
            )?
            .query_row([&session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
        let (mode, status, task, user, channel) = row;
        Ok(Self { session, mode, status, task, user, channel })
    }

    fn is_heard_by(&self, filter: &Hears, thread: &str) -> bool {
        let agrees = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        agrees(&filter.thread, Some(thread))
            && agrees(&filter.mode, self.mode.as_deref())
            && agrees(&filter.user, self.user.as_deref())
            && agrees(&filter.channel, self.channel.as_deref())
    }

    fn body(&self, event: &Event) -> String {
        let session = Subject {
            id: &self.session,
            name: &event.name,
            mode: self.mode.as_deref(),
            status: &self.status,
            task: self.task.as_deref(),
            user: self.user.as_deref(),
            channel: self.channel.as_deref(),
        };
        // as finely as it is stored: the same moment in `events` and here
        let at = timestamp(micros(event.at));
        Body { event: &event.kind, session: Some(session), timestamp: at, data: &event.data }.text()
    }
}

/// The `webhook-id` header of a new delivery.
fn new_message_id() -> String {
    format!("msg_{}", DeliveryId::new().compact())
}

fn load(connection: &Connection, id: WebhookId) -> Result<Webhook> {
    let key = id.to_string();
    let row = connection
        .query_row(
            "SELECT url, filter, created_at, disabled_reason, dropped,
                (SELECT count(*) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')
             FROM webhooks WHERE id = ?1",
            [&key],
            |row| {
                let counts = (row.get::<_, i64>(4)?, row.get::<_, i64>(5)?);
                Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?, counts))
            },
        )
        .optional()?;
    let (url, filter, created_at, disabled, (dropped, pending)) = row.ok_or(Error::WebhookGone)?;
    let mut statement = connection.prepare_cached(&format!(
        "{DELIVERY} WHERE webhook_id = ?1 AND attempted_at IS NOT NULL ORDER BY attempted_at DESC, number DESC LIMIT 1"
    ))?;
    let mut rows = statement.query([&key])?;
    let last = rows.next()?.map(read_delivery).transpose()?;
    Ok(Webhook {
        id,
        url,
        filter: filter_of(&filter)?,
        created_at: timestamp(created_at),
        disabled,
        pending: pending as u64,
        dropped: dropped as u64,
        last,
        secret: None,
    })
}

fn find(connection: &Connection, word: &str) -> Result<std::result::Result<WebhookId, Failure>> {
    if word.is_empty() {
        return Ok(Err(Failure::usage("a webhook's id or URL is needed, not an empty word")));
    }
    let mut statement = connection.prepare_cached(
        "SELECT id, url FROM webhooks WHERE url = ?1 OR substr(id, 1, length(?1)) = lower(?1) ORDER BY created_at, id LIMIT ?2",
    )?;
    let found: Vec<(String, String)> = statement
        .query_map(params![word, CANDIDATES as i64 + 1], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let shown = shared::text::visible(word);
    match found.as_slice() {
        [] => Ok(Err(Failure::new(
            Code::NotFound,
            format!("there is no webhook {shown}: `sessions-tui webhook ls` shows their ids and URLs"),
        ))),
        [(id, _)] => Ok(Ok(parse_id(id)?)),
        many => {
            let mut names: Vec<String> = many.iter().take(CANDIDATES).map(|(id, url)| format!("{id} ({url})")).collect();
            if many.len() > CANDIDATES {
                names.push("…".into());
            }
            let message = format!("more than one webhook is {shown}: {}; write more of its id", names.join(", "));
            Ok(Err(Failure::new(Code::NotFound, message)))
        }
    }
}

fn read_delivery(row: &Row<'_>) -> Result<Delivery> {
    let state: String = row.get(3)?;
    Ok(Delivery {
        id: row.get(0)?,
        event: row.get(1)?,
        seq: row.get(2)?,
        state: parse_state(&state).ok_or_else(|| broken("delivery state", &state))?,
        created_at: timestamp(row.get(4)?),
        attempts: row.get(5)?,
        attempted_at: row.get::<_, Option<i64>>(6)?.map(timestamp),
        answer: row.get(7)?,
        error: row.get(8)?,
    })
}

fn state_word(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Expired => "expired",
    }
}

fn parse_state(text: &str) -> Option<DeliveryState> {
    [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::Expired].into_iter().find(|state| state_word(*state) == text)
}

fn parse_id(text: &str) -> Result<WebhookId> {
    WebhookId::parse(text).ok_or_else(|| broken("webhook id", text))
}

fn filter_of(text: &str) -> Result<Hears> {
    serde_json::from_str(text).map_err(|_| broken("filter of a webhook", text))
}
