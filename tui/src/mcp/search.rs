//! A tool to find what was printed, run, told or asked for in any session.

use std::fmt::Write;

use rmcp::handler::server::tool::ToolRoute;
use schemars::JsonSchema;
use serde::Deserialize;
use shared::event::Author;
use shared::message::{Failure, Push, Request};
use shared::search::{Hit, Kind, Pattern, SearchQuery, SearchSummary};
use shared::text::{count, visible};

use super::daemon::{self, Away};
use super::server::{Call, Server, cancelled};
use super::tool::{self, About, Effect};
use crate::client::{Incoming, refusal_of};
use crate::connect;

/// Hits when no number is given, and at most.
const LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 200;

/// Bytes of a result; what does not fit is counted.
const MAX_TEXT: usize = 64 << 10;

pub fn tools() -> Vec<ToolRoute<Server>> {
    vec![tool::text::<SearchArguments, _, _>(
        &About {
            name: "search",
            title: "Search all sessions",
            description: "Find a text in what programs and calls printed (as it was printed, without colours; it may have been overwritten since), the code of calls, events, \
and names, tasks, results and errors of sessions. Hits of all sessions come newest first; each says its session, \
time and kind, then the line. Use it to find an earlier error, command, decision or session.",
            effect: Effect::Reads,
        },
        search,
    )]
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    Output,
    Code,
    Event,
    Task,
}

impl From<KindWord> for Kind {
    fn from(word: KindWord) -> Self {
        match word {
            KindWord::Output => Self::Output,
            KindWord::Code => Self::Code,
            KindWord::Event => Self::Event,
            KindWord::Task => Self::Task,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AuthorWord {
    Human,
    Agent,
    Api,
    Daemon,
}

impl From<AuthorWord> for Author {
    fn from(word: AuthorWord) -> Self {
        match word {
            AuthorWord::Human => Self::Human,
            AuthorWord::Agent => Self::Agent,
            AuthorWord::Api => Self::Api,
            AuthorWord::Daemon => Self::Daemon,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// What to look for, in one line: the text itself, or with regex a regular expression.
    pattern: String,
    /// The pattern is a regular expression.
    regex: Option<bool>,
    /// Upper and lower case are the same.
    ignore_case: Option<bool>,
    /// Only this session: a name with all its sessions, an id, or the beginning of either.
    session: Option<String>,
    /// Only these.
    kinds: Option<Vec<KindWord>>,
    /// Only what happened since then: 2026-11-16T09:30:00Z.
    after: Option<String>,
    /// Only what happened before.
    before: Option<String>,
    /// Only code and output of calls, and output of programs, that ended with this code.
    exit_code: Option<i32>,
    /// Only events, and code and output of calls, of this author.
    author: Option<AuthorWord>,
    /// Lines around each hit.
    #[schemars(range(min = 0, max = 20), extend("default" = 0))]
    context: Option<u32>,
    /// At most this many hits.
    #[schemars(range(min = 1, max = 200), extend("default" = 20))]
    limit: Option<u32>,
    /// Lines as they were printed, also what was concealed or is invisible. Without it that is marked instead.
    raw: Option<bool>,
}

async fn search(call: Call, given: SearchArguments) -> Result<String, Failure> {
    let is_raw = given.raw.unwrap_or_default();
    let query = SearchQuery {
        pattern: Pattern {
            text: given.pattern,
            regex: given.regex.unwrap_or_default(),
            ignore_case: given.ignore_case.unwrap_or_default(),
        },
        name: given.session,
        after: tool::moment("search", "after", given.after)?,
        before: tool::moment("search", "before", given.before)?,
        kinds: given.kinds.unwrap_or_default().into_iter().map(Kind::from).collect(),
        exit_code: given.exit_code,
        author: given.author.map(Author::from),
        limit: Some(given.limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT)),
        context: given.context.unwrap_or_default(),
        ..SearchQuery::default()
    };
    query.pattern.check()?;
    let (mut hits, summary) = follow(&call, query).await?;
    if !is_raw {
        for hit in &mut hits {
            hit.line = hit.perceived.take().unwrap_or_else(|| std::mem::take(&mut hit.line));
        }
    }
    Ok(words(&hits, &summary))
}

async fn follow(call: &Call, query: SearchQuery) -> Result<(Vec<Hit>, SearchSummary), Failure> {
    let went = || Failure::failed("the daemon went away during the search: search again, nothing is lost");
    let mut client = connect::connect(call.paths()).await?;
    let id = client.send(Request::Search(Box::new(query))).await.map_err(|error| refusal_of(&error).unwrap_or_else(went))?;
    let (mut hits, mut progress, mut said) = (Vec::new(), call.progress(), String::from("searching"));
    loop {
        let incoming = tokio::select! {
            incoming = daemon::next(&mut client) => incoming,
            () = progress.due() => {
                progress.tell(&said).await;
                continue;
            }
            // without us the daemon ends it too
            () = call.cancelled() => return Err(cancelled()),
        };
        match incoming {
            Ok(Incoming::Push(Push::Hit { hit, .. })) => hits.push(*hit),
            Ok(Incoming::Push(Push::SearchProgress { searched, total, .. })) => said = format!("searched {searched} of {total} bytes"),
            Ok(Incoming::Answer(answer)) if answer.id == id || answer.id == 0 => return Ok((hits, answer.understand()?)),
            Ok(_) => {}
            Err(Away::Stopped) => return Err(daemon::stopped()),
            Err(Away::Lost) => return Err(went()),
            Err(Away::Refused(refusal)) => return Err(refusal),
        }
    }
}

fn words(hits: &[Hit], summary: &SearchSummary) -> String {
    let mut out = format!("{} in {}", count(summary.hits as usize, "hit"), count(summary.sessions as usize, "session"));
    let _ = write!(out, "; searched {}", count(summary.searched_sessions as usize, "session"));
    out += if summary.more { "; there are more: raise limit, or narrow the search\n" } else { "\n" };
    if summary.damaged_bytes > 0 || !summary.damaged.is_empty() {
        let _ = writeln!(out, "not searched: {} bytes of damaged recordings", summary.damaged_bytes);
    }
    for (number, hit) in hits.iter().enumerate() {
        let text = hit_words(hit);
        if out.len() + text.len() > MAX_TEXT {
            let _ = writeln!(out, "\n[{} left out: too long]", count(hits.len() - number, "more hit"));
            break;
        }
        out += &text;
    }
    out
}

fn hit_words(hit: &Hit) -> String {
    let mut out = format!("\n{} ({}) · {} · {}", visible(&hit.name), hit.session, hit.at, hit.kind);
    if let Some(part) = &hit.part {
        let _ = write!(out, " {}", visible(part));
    }
    if let Some(language) = hit.language {
        let _ = write!(out, " · {language}");
    }
    if let Some(code) = hit.exit_code {
        let _ = write!(out, " · exit code {code}");
    }
    if let Some(author) = hit.author {
        let _ = write!(out, " · {author}");
    }
    if let Some(exec) = hit.exec {
        let _ = write!(out, " · exec {exec}");
    }
    if hit.times > 1 {
        let _ = write!(out, " · seen {} times", hit.times);
    }
    out.push('\n');
    // whoever gets this text marks what is hidden
    let clean = |text: &str| text.replace('\t', "    ");
    for line in &hit.before {
        let _ = writeln!(out, "  {}", clean(line));
    }
    let _ = writeln!(out, "> {}", clean(&hit.line));
    for line in &hit.after {
        let _ = writeln!(out, "  {}", clean(line));
    }
    out
}
