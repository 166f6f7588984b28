//! search: everything that was printed, run, told and asked for. Hits are printed as they come.

use std::fmt::Write;
use std::io::IsTerminal;

use clap::Args;
use jiff::Timestamp;
use shared::event::Author;
use shared::message::{Code, Failure, Push, Request};
use shared::paths::Paths;
use shared::replay::Of;
use shared::search::{Hit, Kind, Pattern, SearchQuery, SearchSummary};
use shared::text::{count, fit, visible};

use super::filter::FilterArgs;
use super::{json_line, parse, print_on, table};
use crate::client::Incoming;
use crate::{connect, replay, tty};

pub const HELP: &str = "\
Searched are the output of programs and calls (as it was seen: without colours and other sequences, line by line), the code of
calls, events, and the name, task, result and error of sessions. Hits of all sessions come newest first, as soon as nothing newer
can come. A line that a program draws again and again is one hit, its latest (\u{d7}3: seen three times).

--exit-code finds the code and output of calls that ended with it, and the output of programs that did; --author finds events,
and the code and output of calls. The exit code is 0 if something was found, 1 if not, 2 if the pattern is wrong.

Examples:
  sessions-tui search 'connection refused'
  sessions-tui search -i error -s api --after 2h -C 2
  sessions-tui search --regex 'took \\d{4,} ms' --kind output --json
  sessions-tui search assert --kind code,output --exit-code 1";

#[derive(Args)]
pub struct SearchArgs {
    /// The text to look for, or with --regex a pattern
    pattern: String,
    /// PATTERN is a regular expression
    #[arg(long)]
    regex: bool,
    /// Upper and lower case are the same
    #[arg(long, short)]
    ignore_case: bool,
    /// Only this session: a name with all its sessions, an id, or the beginning of either
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Only these: output, code, event, task, command (of shells that mark them); separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kind: Vec<Kind>,
    /// Only what happened since then (2026-11-16, 2026-11-16T09:30, or 2h, 7d ago)
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    after: Option<Timestamp>,
    /// Only what happened before
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    before: Option<Timestamp>,
    /// Only calls and programs that ended with this code
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// Only what this author did: human, agent, api or daemon
    #[arg(long, value_parser = author)]
    author: Option<Author>,
    /// Lines around each hit (20 at most)
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    context: u32,
    /// At most this many hits (10000 at most)
    #[arg(long, value_name = "N", default_value_t = shared::search::DEFAULT_LIMIT)]
    limit: u32,
    /// One JSON object a line, as they are found
    #[arg(long)]
    json: bool,
    /// Print nothing: play the recording of the newest hit, from there
    #[arg(long, conflicts_with = "json")]
    open: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

fn kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| format!("{text:?} is not a kind: output, code, command, event or task"))
}

fn author(text: &str) -> Result<Author, String> {
    Author::parse(text).ok_or_else(|| format!("{text:?} is not an author: human, agent, api or daemon"))
}

pub async fn search(paths: &Paths, args: SearchArgs) -> Result<(), Failure> {
    let (json, open) = (args.json, args.open);
    if args.limit == 0 {
        return Err(Failure::usage("--limit 0 would find nothing: give 1 or more"));
    }
    let query = SearchQuery {
        pattern: Pattern { text: args.pattern, regex: args.regex, ignore_case: args.ignore_case },
        name: args.session,
        filter: args.filter.filter()?,
        after: args.after,
        before: args.before,
        kinds: args.kind,
        exit_code: args.exit_code,
        author: args.author,
        limit: Some(if open { 1 } else { args.limit }),
        context: args.context,
    };
    query.pattern.check()?;
    let mut shown = Shown { json, open, colours: colours(), progress: std::io::stderr().is_terminal(), first: None, count: 0 };
    let outcome = follow(paths, query.clone(), &mut shown).await;
    shown.clear_progress();
    let Some(summary) = outcome? else { return Ok(()) };
    if let Some(hit) = shown.first.filter(|_| open) {
        return open_replay(paths, hit, &query).await;
    }
    say_what_is_missing(&summary);
    if summary.hits == 0 {
        return Err(Failure::new(Code::Failed, nothing(&query, &summary)));
    }
    if !json {
        eprintln!("{}", closing(&summary));
    }
    Ok(())
}

/// What has been shown, and how.
struct Shown {
    json: bool,
    open: bool,
    colours: bool,
    progress: bool,
    first: Option<Hit>,
    count: u64,
}

/// Until the search is over; `None` when nobody reads any more.
async fn follow(paths: &Paths, query: SearchQuery, shown: &mut Shown) -> Result<Option<SearchSummary>, Failure> {
    let mut client = connect::connect(paths).await?;
    let went = |error: std::io::Error| Failure::failed(format!("the daemon went away: {error}; search again, nothing is lost"));
    let call = client.send(Request::Search(Box::new(query))).await.map_err(went)?;
    loop {
        match client.receive().await.map_err(went)? {
            Incoming::Push(Push::Hit { hit, .. }) => {
                if !shown.hit(*hit)? {
                    return Ok(None);
                }
            }
            Incoming::Push(Push::SearchProgress { searched, total, .. }) => shown.show_progress(searched, total),
            Incoming::Push(Push::Stopping { restart: false }) => return Err(connect::no_daemon("the daemon was stopped".into())),
            Incoming::Answer(answer) if answer.id == call || answer.id == 0 => return answer.understand().map(Some),
            Incoming::Push(_) | Incoming::Answer(_) | Incoming::Output(_) => {}
        }
    }
}

impl Shown {
    /// `false` when nobody reads any more.
    fn hit(&mut self, hit: Hit) -> Result<bool, Failure> {
        self.clear_progress();
        let is_first = self.count == 0;
        self.count += 1;
        if self.open {
            self.first.get_or_insert(hit);
            return Ok(true);
        }
        if self.json {
            return print_on(&format!("{}\n", json_line(&hit)?));
        }
        let gap = if is_first { "" } else { "\n" };
        print_on(&format!("{gap}{}", words(&hit, self.colours)))
    }

    fn show_progress(&self, searched: u64, total: u64) {
        if self.progress {
            let width = tty::window().map_or(80, |size| usize::from(size.cols));
            let share = searched.saturating_mul(100).checked_div(total).unwrap_or(100).min(100);
            let text = format!("searched {} of {}, {share} %", table::bytes(searched), table::bytes(total));
            eprint!("\r\x1b[K{}", fit(&text, width.saturating_sub(1)));
        }
    }

    fn clear_progress(&self) {
        if self.progress {
            eprint!("\r\x1b[K");
        }
    }
}

fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A hit for people: whose it is and when, then the line.
fn words(hit: &Hit, colours: bool) -> String {
    let paint = |sgr: &str, text: &str| if colours { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() };
    let mut about = vec![hit.kind.to_string()];
    if hit.kind != Kind::Output || hit.part.as_deref() == Some("stderr") {
        about.extend(hit.part.as_deref().map(visible));
    }
    about.extend(hit.language.map(|language| language.to_string()));
    about.extend(hit.exit_code.map(|code| format!("exit code {code}")));
    about.extend(hit.author.map(|author| author.to_string()));
    about.extend((hit.times > 1).then(|| format!("\u{d7}{}", hit.times)));
    let mut out = format!("{} · {} · {}\n", paint("1", &visible(&hit.name)), hit.at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"), about.join(" · "));
    for line in &hit.before {
        let _ = writeln!(out, "  {}", paint("2", &clean(line)).trim_end());
    }
    let mut line = String::new();
    let mut from = 0;
    for (start, end) in &hit.ranges {
        let (Some(between), Some(matched)) = (hit.line.get(from..*start), hit.line.get(*start..*end)) else { break };
        line += &clean(between);
        line += &paint("1;31", &clean(matched));
        from = *end;
    }
    line += &clean(hit.line.get(from..).unwrap_or_default());
    let _ = writeln!(out, "  {}", line.trim_end());
    for line in &hit.after {
        let _ = writeln!(out, "  {}", paint("2", &clean(line)).trim_end());
    }
    out
}

/// Tabs as blanks, everything else that is not to be seen as a dot.
fn clean(text: &str) -> String {
    visible(&text.replace('\t', "    "))
}

fn closing(summary: &SearchSummary) -> String {
    let mut text = format!("{} in {}", count(summary.hits as usize, "hit"), count(summary.sessions as usize, "session"));
    let _ = write!(text, " · searched {} in {}", table::bytes(summary.searched_bytes), table::length(summary.took_ms));
    if summary.more {
        text += " · there may be more: --limit";
    }
    text
}

fn say_what_is_missing(summary: &SearchSummary) {
    if summary.damaged_bytes > 0 || !summary.damaged.is_empty() {
        eprintln!("not searched: {} of damaged recordings", table::bytes(summary.damaged_bytes));
        for which in &summary.damaged {
            eprintln!("  {}", visible(which));
        }
    }
    if summary.dropped_bytes > 0 {
        eprintln!("{} of old output had been dropped from these recordings before", table::bytes(summary.dropped_bytes));
    }
}

/// What was searched in vain, and what to try.
fn nothing(query: &SearchQuery, summary: &SearchSummary) -> String {
    let what = visible(&query.pattern.text);
    if summary.searched_sessions == 0 {
        return format!("{what} was not found: there is no session to search; `sessions-tui ls --all` shows what there is");
    }
    let mut hints = Vec::new();
    if !query.pattern.ignore_case && query.pattern.text.chars().any(char::is_alphabetic) {
        hints.push("-i takes no notice of case");
    }
    if !query.pattern.regex && query.pattern.text.contains(['*', '\\', '|', '[']) {
        hints.push("--regex takes it as a pattern");
    }
    let is_narrowed = query.after.is_some() || query.before.is_some() || query.exit_code.is_some() || query.author.is_some();
    if is_narrowed || !query.kinds.is_empty() || query.name.is_some() {
        hints.push("fewer filters search more");
    }
    let hints = if hints.is_empty() { String::new() } else { format!("; {}", hints.join(", ")) };
    let kinds = if query.kinds.is_empty() { &Kind::USUAL[..] } else { &query.kinds };
    let kinds: Vec<&str> = kinds.iter().filter(|kind| query.wants(**kind)).map(|kind| kind.as_str()).collect();
    format!(
        "{what} was not found: searched {} of {} and {} of recordings{hints}",
        if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") },
        count(summary.searched_sessions as usize, "session"),
        table::bytes(summary.searched_bytes)
    )
}

/// Plays the recording from where the hit is.
async fn open_replay(paths: &Paths, hit: Hit, query: &SearchQuery) -> Result<(), Failure> {
    let pattern =
        (!query.pattern.regex).then(|| replay::Pattern { text: query.pattern.text.clone(), ignore_case: query.pattern.ignore_case });
    // what is in no recording happened at some time
    let place = hit.offset.is_none().then_some(replay::Place::Near(hit.at));
    let start = replay::Start { place, offset: hit.offset, is_paused: true, pattern, ..replay::Start::default() };
    let of = Of { name: hit.session.to_string(), language: hit.language, runtime: hit.runtime };
    replay::replay(paths, of, &start).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::id::{SessionId, ThreadId};
    use shared::text::is_visible;

    fn hit(line: &str, ranges: &[(usize, usize)]) -> Hit {
        Hit {
            session: SessionId::new(),
            name: "a\u{202e}b".into(),
            thread: ThreadId::new(),
            kind: Kind::Output,
            part: None,
            at: Timestamp::UNIX_EPOCH,
            runtime: None,
            offset: None,
            exec: None,
            language: None,
            exit_code: Some(2),
            author: None,
            line: line.into(),
            ranges: ranges.to_vec(),
            perceived: None,
            before: vec!["one\ttab".into()],
            after: vec![],
            times: 3,
        }
    }

    #[test]
    fn hits_are_lines_for_people() {
        let text = words(&hit("größe\u{202e} x", &[(0, 7)]), false);
        assert_eq!(text, "a·b · 1970-01-01T00:00:00.000Z · output · exit code 2 · ×3\n  one    tab\n  größe· x\n");
        let text = words(&hit("abc", &[(1, 2)]), true);
        assert!(text.contains("a\x1b[1;31mb\x1b[0mc\n"), "{text:?}");
        // a range that does not fit is no reason to fail
        assert!(words(&hit("é", &[(1, 9)]), false).contains('é'));
    }

    #[test]
    fn json_is_clean_and_says_the_same() {
        let hit = hit("a\u{202e}b\u{9b}\u{7f}\tc", &[]);
        let text = json_line(&hit).expect("JSON");
        assert!(is_visible(&text), "{text:?}");
        assert_eq!(serde_json::from_str::<Hit>(&text).expect("the same"), hit);
    }
}
