//! webhook: who is told of events over HTTP, and how that goes. Prints, nothing else.

use clap::{Args, Subcommand};
use shared::message::{Failure, Request};
use shared::paths::Paths;
use shared::text::{columns, count, pad, visible};
use shared::webhook::{Delivery, DeliveryState, Hears, LIFE, Webhook};

use super::table::ago;
use super::{print, print_json, session};
use crate::connect;

pub const EXAMPLES: &str = "\
Examples:
  sessions-tui webhook add https://example.com/hook
  sessions-tui webhook add http://localhost:3000/hook --event complete,error --thread api
  sessions-tui webhook test https://example.com/hook
  sessions-tui webhook log https://example.com/hook

Each delivery is a POST with a JSON body, signed as https://www.standardwebhooks.com has it.
What fails is tried again, in order, for a day; a restart of the daemon loses nothing.";

#[derive(Subcommand)]
pub enum WebhookCommand {
    /// Tell a URL of events from now on; prints the secret to check signatures with
    #[command(
        after_help = "Without --event: start, pause, resume, complete, error, timeout and lost.\nThe secret is shown only here.\n\nExamples:\n  sessions-tui webhook add https://example.com/hook\n  sessions-tui webhook add https://example.com/all --event '*' --user mo\n  sessions-tui webhook add http://10.0.0.5:8080/hook --insecure"
    )]
    Add(AddArgs),
    /// List webhooks and how they are doing
    #[command(after_help = "Example:\n  sessions-tui webhook ls --json")]
    Ls {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a webhook with everything that waits for it
    #[command(after_help = "Example:\n  sessions-tui webhook rm https://example.com/hook")]
    Rm {
        /// The webhook: its URL, its id, or the beginning of its id
        #[arg(value_name = "ID")]
        webhook: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell a webhook again that was disabled because it answered 410 (gone)
    #[command(after_help = "Example:\n  sessions-tui webhook enable https://example.com/hook")]
    Enable {
        /// The webhook: its URL, its id, or the beginning of its id
        #[arg(value_name = "ID")]
        webhook: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Make one delivery now, and say how it went
    #[command(
        after_help = "Its event is `test`. Exits 1 when it did not arrive.\n\nExample:\n  sessions-tui webhook test https://example.com/hook"
    )]
    Test {
        /// The webhook: its URL, its id, or the beginning of its id
        #[arg(value_name = "ID")]
        webhook: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What was delivered, waits, or was given up; the newest first
    #[command(after_help = "Example:\n  sessions-tui webhook log https://example.com/hook --limit 200")]
    Log {
        /// The webhook: its URL, its id, or the beginning of its id
        #[arg(value_name = "ID")]
        webhook: String,
        /// At most this many
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub struct AddArgs {
    /// Where to send: an https URL, or an http one of this machine
    url: String,
    /// Only events of these types, separated by commas; * for all
    #[arg(long = "event", value_name = "EVENT", value_delimiter = ',')]
    events: Vec<String>,
    /// Only of the thread with this name
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Only of sessions of this mode
    #[arg(long)]
    mode: Option<String>,
    /// Only of this user's
    #[arg(long)]
    user: Option<String>,
    /// Only of this channel's
    #[arg(long)]
    channel: Option<String>,
    /// Sign with this instead of a new one: whsec_ and 24 to 64 bytes in base64
    #[arg(long)]
    secret: Option<String>,
    /// Plain http to another machine is meant, though it can be read on the way
    #[arg(long)]
    insecure: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub async fn perform(paths: &Paths, command: WebhookCommand) -> Result<(), Failure> {
    match command {
        WebhookCommand::Add(args) => add(paths, args).await,
        WebhookCommand::Ls { json } => ls(paths, json).await,
        WebhookCommand::Rm { webhook, json } => rm(paths, webhook, json).await,
        WebhookCommand::Enable { webhook, json } => enable(paths, webhook, json).await,
        WebhookCommand::Test { webhook, json } => test(paths, webhook, json).await,
        WebhookCommand::Log { webhook, limit, json } => log(paths, webhook, limit, json).await,
    }
}

async fn add(paths: &Paths, args: AddArgs) -> Result<(), Failure> {
    let filter = Hears {
        events: args.events,
        thread: args.thread,
        mode: args.mode,
        user: args.user,
        channel: args.channel,
        insecure: args.insecure,
    };
    let request = Request::AddWebhook { url: args.url, filter, secret: args.secret };
    let webhook: Webhook = connect::call(paths, request).await?;
    if args.json {
        return print_json(&webhook);
    }
    let secret = webhook.secret.as_deref().unwrap_or_default();
    print(&format!(
        "{} hears of {}\n  id      {}\n  secret  {secret}\nKeep the secret: it is not shown again. `sessions-tui webhook test {}` tries it.\n",
        visible(&webhook.url),
        hears(&webhook.filter),
        webhook.id,
        webhook.id
    ))
}

async fn ls(paths: &Paths, json: bool) -> Result<(), Failure> {
    let webhooks: Vec<Webhook> = connect::call(paths, Request::Webhooks).await?;
    if json {
        return print_json(&webhooks);
    }
    if webhooks.is_empty() {
        eprintln!("no webhooks yet: add one with `sessions-tui webhook add https://HOST/PATH`");
        return Ok(());
    }
    print(&webhooks_table(&webhooks, session::width(), jiff::Timestamp::now()))
}

async fn rm(paths: &Paths, webhook: String, json: bool) -> Result<(), Failure> {
    let webhook: Webhook = connect::call(paths, Request::RemoveWebhook { webhook }).await?;
    if json {
        return print_json(&webhook);
    }
    let lost = match webhook.pending {
        0 => String::new(),
        waiting => format!(", with {} that waited", deliveries(waiting)),
    };
    print(&format!("{} is removed{lost}\n", visible(&webhook.url)))
}

async fn enable(paths: &Paths, webhook: String, json: bool) -> Result<(), Failure> {
    let webhook: Webhook = connect::call(paths, Request::EnableWebhook { webhook }).await?;
    if json { print_json(&webhook) } else { print(&format!("{} is told of events again\n", visible(&webhook.url))) }
}

async fn test(paths: &Paths, webhook: String, json: bool) -> Result<(), Failure> {
    let delivery: Delivery = connect::call(paths, Request::TestWebhook { webhook }).await?;
    if json {
        print_json(&delivery)?;
    }
    if delivery.state != DeliveryState::Delivered {
        return Err(Failure::failed(format!("it did not arrive: {}", delivery.error.as_deref().unwrap_or("no reason is known"))));
    }
    if json { Ok(()) } else { print(&format!("it arrived: answered {}\n", delivery.answer.unwrap_or_default())) }
}

async fn log(paths: &Paths, webhook: String, limit: Option<u32>, json: bool) -> Result<(), Failure> {
    let deliveries: Vec<Delivery> = connect::call(paths, Request::Deliveries { webhook: webhook.clone(), limit }).await?;
    if json {
        return print_json(&deliveries);
    }
    if deliveries.is_empty() {
        eprintln!("nothing was told to it yet: try it with `sessions-tui webhook test {}`", visible(&webhook));
        return Ok(());
    }
    print(&deliveries_table(&deliveries, session::width(), jiff::Timestamp::now()))
}

fn webhooks_table(webhooks: &[Webhook], width: Option<usize>, now: jiff::Timestamp) -> String {
    let ids: Vec<String> = webhooks.iter().map(|webhook| webhook.id.to_string()).collect();
    let shown = distinct_length(&ids);
    let rows: Vec<[String; 5]> = webhooks
        .iter()
        .zip(&ids)
        .map(|(webhook, id)| {
            let waiting = match webhook.dropped {
                0 => webhook.pending.to_string(),
                dropped => format!("{} (+{dropped} dropped)", webhook.pending),
            };
            [id[..shown].to_owned(), visible(&webhook.url), waiting, hears(&webhook.filter), state(webhook, now)]
        })
        .collect();
    table(["ID", "URL", "WAITING", "HEARS", "LAST"], &rows, width)
}

fn deliveries_table(deliveries: &[Delivery], width: Option<usize>, now: jiff::Timestamp) -> String {
    let rows: Vec<[String; 5]> = deliveries
        .iter()
        .map(|delivery| {
            let attempts = count(delivery.attempts as usize, "attempt");
            [ago(delivery.created_at, now), visible(&delivery.event), mark(delivery.state).to_owned(), attempts, outcome(delivery)]
        })
        .collect();
    table(["AGE", "EVENT", "STATE", "TRIED", "ANSWER"], &rows, width)
}

/// The last column takes what is left; of the others the widest is cut first, so that every one stays readable.
fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]], width: Option<usize>) -> String {
    let natural = |column: usize| rows.iter().map(|row| columns(&row[column])).chain([columns(titles[column])]).max().unwrap_or(0);
    let mut widths: [usize; N] = std::array::from_fn(natural);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(2 * (N - 1)));
    while widths.iter().sum::<usize>() > room {
        // the first column names the row: without all of it the others are of no use
        let Some(widest) = (1..N).max_by_key(|column| widths[*column]).filter(|column| widths[*column] > NARROWEST) else { break };
        widths[widest] -= 1;
    }
    let line = |cells: [&str; N]| {
        let cells: Vec<String> = (0..N).map(|column| pad(cells[column], widths[column])).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut out = line(titles);
    out.extend(rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str()))));
    out
}

/// Columns below which a cell says nothing.
const NARROWEST: usize = 8;

/// As many characters as tell all ids apart, and at least eight.
fn distinct_length(ids: &[String]) -> usize {
    let longest = ids.iter().map(String::len).min().unwrap_or(0);
    (8..longest)
        .find(|length| {
            let mut beginnings: Vec<&str> = ids.iter().map(|id| &id[..*length]).collect();
            beginnings.sort_unstable();
            beginnings.windows(2).all(|pair| pair[0] != pair[1])
        })
        .unwrap_or(longest)
}

/// `complete, error of thread api`
fn hears(filter: &Hears) -> String {
    let mut out = match filter.events.as_slice() {
        [] => LIFE.join(", "),
        events if events.iter().any(|event| event == "*") => "everything".to_owned(),
        events => events.join(", "),
    };
    for (what, word) in [("thread", &filter.thread), ("mode", &filter.mode), ("user", &filter.user), ("channel", &filter.channel)] {
        if let Some(word) = word {
            out.extend([" of ", what, " ", word]);
        }
    }
    visible(&out)
}

fn state(webhook: &Webhook, now: jiff::Timestamp) -> String {
    match (&webhook.disabled, &webhook.last) {
        (Some(reason), _) => format!("disabled: {}", visible(reason)),
        (None, Some(last)) => {
            let when = last.attempted_at.map(|at| format!("{} ago: ", ago(at, now))).unwrap_or_default();
            format!("{when}{}", outcome(last))
        }
        (None, None) => "nothing yet".to_owned(),
    }
}

fn mark(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "○ waits",
        DeliveryState::Delivered => "✓ delivered",
        DeliveryState::Expired => "✗ given up",
    }
}

fn outcome(delivery: &Delivery) -> String {
    match (&delivery.error, delivery.answer) {
        (Some(error), _) => visible(error),
        (None, Some(answer)) => format!("answered {answer}"),
        (None, None) => String::new(),
    }
}

fn deliveries(number: u64) -> String {
    if number == 1 { "1 delivery".to_owned() } else { format!("{number} deliveries") }
}

#[cfg(test)]
mod tests {
    use shared::id::WebhookId;

    use super::*;

    fn webhook(url: &str) -> Webhook {
        Webhook {
            id: WebhookId::new(),
            url: url.to_owned(),
            filter: Hears::default(),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            disabled: None,
            pending: 3,
            dropped: 0,
            last: None,
            secret: None,
        }
    }

    #[test]
    fn the_table_fits_and_tells_ids_apart() {
        let webhooks = [webhook("https://example.com/a/rather/long/path/to/a/hook/of/mine"), webhook("http://localhost:3000/\x1b[2J")];
        for width in [80, 120, 300] {
            let text = webhooks_table(&webhooks, Some(width), jiff::Timestamp::UNIX_EPOCH);
            assert!(text.lines().all(|line| columns(line) <= width) && !text.contains('\x1b'), "{width}:\n{text}");
            let ids: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
            assert_ne!(ids[0], ids[1]);
            for (shown, webhook) in ids.iter().zip(&webhooks) {
                assert!(webhook.id.to_string().starts_with(shown) && shown.len() >= 8, "{shown}");
            }
        }
    }

    #[test]
    fn without_a_width_nothing_is_cut() {
        let url = format!("https://example.com/{}", "x".repeat(300));
        assert!(webhooks_table(&[webhook(&url)], None, jiff::Timestamp::UNIX_EPOCH).contains(&url));
    }

    #[test]
    fn filters_in_words() {
        assert_eq!(hears(&Hears::default()), "start, pause, resume, complete, error, timeout, lost");
        let filter = Hears { events: vec!["*".into()], thread: Some("api".into()), user: Some("mo".into()), ..Hears::default() };
        assert_eq!(hears(&filter), "everything of thread api of user mo");
    }
}
