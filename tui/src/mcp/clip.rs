//! Output in the size of a model's attention: the beginning and the end, and between them how much was left out and how
//! to get it. All of it stays with the daemon.

use std::fmt::Write;

use base64::Engine;
use serde_json::{Map, Value};
use shared::exec::{ExecResult, OutputPage, Stream};
use shared::id::ExecId;
use shared::message::{Failure, Request};
use shared::model_text::for_model;

use super::server::Call;

/// Bytes of one stream in a result; a client cuts what is much longer without saying where.
pub const LIMIT: u64 = 64 << 10;

/// Of which at the beginning, where a command says what it does; the rest is for the end, where it says what came of it.
const HEAD: u64 = 16 << 10;
const TAIL: u64 = LIMIT - HEAD;

/// A command in a list of commands.
const COMMAND: usize = 2 << 10;

/// Any other text in a state: values of variables, names.
const VALUE: usize = 1 << 10;

/// Names, imports, variables in a state.
const NAMES: usize = 300;

/// A history in all.
const HISTORY: usize = 48 << 10;

/// Makes a result fit; what the streams lost is asked for at the daemon.
pub async fn fit_result(call: &Call, result: &mut ExecResult) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        let (text, truncated, bytes) = match stream {
            Stream::Stdout => (&mut result.stdout, &mut result.truncated.stdout, result.bytes.stdout),
            Stream::Stderr => (&mut result.stderr, &mut result.truncated.stderr, result.bytes.stderr),
        };
        if !*truncated {
            continue;
        }
        match both_ends(call, result.exec_id, stream, bytes).await {
            Ok(ends) => *text = ends,
            // the beginning is better than nothing
            Err(failure) => *text = format!("{}\n[the end could not be read: {failure}]\n", clip(text, LIMIT as usize)),
        }
    }
    for text in [&mut result.error, &mut result.value].into_iter().flatten() {
        *text = clip(text, LIMIT as usize);
    }
    if result.json.as_ref().is_some_and(|json| json.to_string().len() > LIMIT as usize) {
        result.json = None;
        add_note(&mut result.note, "the value is too large to be given as JSON: ask for parts of it");
    }
}

pub fn add_note(note: &mut Option<String>, more: &str) {
    *note = Some(match note.take() {
        Some(note) => format!("{note}; {more}"),
        None => more.to_owned(),
    });
}

async fn both_ends(call: &Call, exec: ExecId, stream: Stream, bytes: u64) -> Result<String, Failure> {
    let page = async |offset, limit| call.ask::<OutputPage>(Request::Output { exec, stream, offset, limit: Some(limit) }).await;
    let tail = page(bytes.saturating_sub(TAIL), TAIL).await?;
    // never empty: only a stream that is longer than both is asked for like this
    let head = page(0, HEAD.min(tail.offset).max(1)).await?;
    Ok(join(exec, stream, (head.offset, &decode(&head)?), (tail.offset, &decode(&tail)?)))
}

fn decode(page: &OutputPage) -> Result<Vec<u8>, Failure> {
    base64::engine::general_purpose::STANDARD
        .decode(&page.base64)
        .map_err(|error| Failure::failed(format!("the daemon's page of output is not base64: {error}")))
}

/// Two parts of a stream, each with the offset it begins at, and what is to be known of the bytes between them.
fn join(exec: ExecId, stream: Stream, head: (u64, &[u8]), tail: (u64, &[u8])) -> String {
    let (head_at, mut head) = head;
    let (mut tail_at, mut tail) = tail;
    // neither part ends or begins within a character
    if let Err(error) = std::str::from_utf8(head)
        && error.error_len().is_none()
    {
        head = &head[..error.valid_up_to()];
    }
    let within = tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    if tail_at > 0 {
        tail = &tail[within..];
        tail_at += within as u64;
    }
    let head_end = head_at + head.len() as u64;
    let (head, head_end) = if head_at < tail_at { (head, head_end) } else { (&b""[..], 0) };
    let mut text = String::from_utf8_lossy(head).into_owned();
    let left_out = tail_at.saturating_sub(head_end);
    if left_out > 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let stream = stream.as_str();
        let _ = writeln!(
            text,
            "[… {left_out} bytes of {stream} left out: `sessions-tui result {exec} --stream {stream} --offset {head_end} --limit {left_out}` prints them …]"
        );
    }
    text + &String::from_utf8_lossy(tail)
}

/// At most about `limit` bytes of a text, with a word on how much is missing.
pub fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}… ({} bytes more)", &text[..end], text.len() - end)
}

/// The last of a text that is too long, as with a screen.
pub fn clip_front(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - limit);
    let line = text[start..].find('\n').map_or(start, |end| start + end + 1);
    format!("[… {line} bytes before this left out …]\n{}", &text[line..])
}

/// Makes a list of calls fit, newest last: long commands are cut, and the oldest go. Tells how many went.
pub fn fit_history(entries: &mut Vec<Value>) -> usize {
    for entry in entries.iter_mut() {
        if let Some(Value::String(command)) = entry.get_mut("command") {
            *command = clip(command, COMMAND);
        }
    }
    let mut room = HISTORY;
    let fitting = entries
        .iter()
        .rev()
        .take_while(|entry| {
            let size = entry.to_string().len();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        })
        .count();
    let dropped = entries.len() - fitting;
    entries.drain(..dropped);
    dropped
}

/// Makes what a runtime says of itself fit. Tells whether anything went.
pub fn fit_state(state: &mut Map<String, Value>) -> bool {
    let mut cut = false;
    for (name, value) in state.iter_mut() {
        match value {
            Value::Array(entries) if name == "history" => cut |= fit_history(entries) > 0,
            Value::Array(names) => {
                cut |= names.len() > NAMES;
                names.truncate(NAMES);
            }
            Value::Object(variables) => {
                cut |= variables.len() > NAMES;
                *variables = std::mem::take(variables).into_iter().take(NAMES).collect();
                for value in variables.values_mut() {
                    if let Value::String(text) = value {
                        *text = clip(text, VALUE);
                    }
                }
            }
            _ => {}
        }
    }
    cut
}

/// The last line of output that has anything on it, without what colours and moves.
pub fn last_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    text.rsplit(['\n', '\r']).map(for_model).find(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ends_are_joined_with_the_count_of_what_is_missing() {
        let exec = ExecId::new();
        let text = join(exec, Stream::Stdout, (0, b"one\ntwo"), (107, b"last\n"));
        assert!(text.starts_with("one\ntwo\n[… 100 bytes of stdout left out"), "{text}");
        assert!(text.contains(&format!("sessions-tui result {exec} --stream stdout --offset 7 --limit 100`")), "{text}");
        assert!(text.ends_with("…]\nlast\n"), "{text}");
        // characters are not cut, and counted where they belong
        let text = join(exec, Stream::Stderr, (0, "aü".as_bytes().split_at(2).0), (10, &"üb".as_bytes()[1..]));
        assert!(text.starts_with("a\n[… 10 bytes of stderr") && text.ends_with("]\nb"), "{text}");
        // parts that touch are one
        assert_eq!(join(exec, Stream::Stdout, (0, b"ab"), (2, b"cd")), "abcd");
        // the beginning has been dropped
        let text = join(exec, Stream::Stdout, (50, b"x"), (50, b"yz"));
        assert!(text.starts_with("[… 50 bytes") && text.ends_with("]\nyz"), "{text}");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("aüb", 2), "a… (3 bytes more)");
        assert_eq!(clip_front("one\ntwo\nthree\n", 8), "[… 8 bytes before this left out …]\nthree\n");
        assert_eq!(clip_front("abc", 3), "abc");
    }

    #[test]
    fn histories_lose_the_oldest() {
        let mut entries: Vec<Value> = (0..100).map(|n| json!({"n": n, "command": "x".repeat(4000)})).collect();
        let dropped = fit_history(&mut entries);
        assert!(dropped > 0 && entries.len() == 100 - dropped);
        assert_eq!(entries.last().map(|entry| entry["n"].clone()), Some(json!(99)));
        assert!(entries[0]["command"].as_str().is_some_and(|command| command.ends_with("(1952 bytes more)")));
    }

    #[test]
    fn the_last_line_is_the_one_with_something_on_it() {
        assert_eq!(last_line(b"one\ntwo\n\n").as_deref(), Some("two"));
        assert_eq!(last_line(b"10%\r20%\r").as_deref(), Some("20%"));
        assert_eq!(last_line(b"\x1b[31mred\x1b[0m\n").as_deref(), Some("red"));
        assert_eq!(last_line(b"\n\n"), None);
    }
}
