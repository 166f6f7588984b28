//! What code that was run from the dashboard printed: all of it, to be scrolled. Pure.

use shared::exec::ExecResult;
use shared::text::{columns, visible};

use crate::dashboard::event::Turn;

/// Bytes of each stream that are asked for, the most a result can carry.
pub const LIMIT: u64 = shared::exec::MAX_OUTPUT;

/// Columns of a tab stop.
const TAB: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Which session, and how it ended.
    Heading,
    Stdout,
    Stderr,
    Value,
    Note,
}

/// The results of one line of code, one for each session it was run in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The first turn of it: later ones belong to it.
    pub from: Turn,
    pub code: String,
    results: Vec<(Turn, Vec<(Kind, String)>)>,
    /// The first row that is seen.
    pub top: usize,
}

impl Output {
    pub fn new(from: Turn, code: &str) -> Self {
        Self { from, code: code.to_owned(), ..Self::default() }
    }

    pub fn owns(&self, turn: Turn) -> bool {
        turn >= self.from
    }

    /// Takes a result; a later one of the same call takes the place of the earlier.
    pub fn take(&mut self, turn: Turn, result: &ExecResult) {
        let lines = lines_of(result);
        match self.results.iter_mut().find(|(of, _)| *of == turn) {
            Some((_, before)) => *before = lines,
            None => self.results.push((turn, lines)),
        }
    }

    /// Rows for a width; what is longer goes on in the next row.
    pub fn rows(&self, width: usize) -> Vec<(Kind, String)> {
        let mut rows = Vec::new();
        for (n, (_, lines)) in self.results.iter().enumerate() {
            if n > 0 {
                rows.push((Kind::Note, String::new()));
            }
            rows.extend(lines.iter().flat_map(|(kind, line)| folded(line, width).into_iter().map(|row| (*kind, row))));
        }
        rows
    }

    pub fn scroll(&mut self, by: isize, width: usize, height: usize) {
        let most = self.rows(width).len().saturating_sub(height);
        self.top = self.top.min(most).saturating_add_signed(by).min(most);
    }

    /// As plain text, for the clipboard.
    pub fn text(&self) -> String {
        let lines = self.results.iter().flat_map(|(_, lines)| lines).filter(|(kind, _)| !matches!(kind, Kind::Heading | Kind::Note));
        lines.map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// How a call ended, in a few words.
pub fn how(result: &ExecResult) -> String {
    match (result.running, result.exit_code) {
        (true, _) => "still runs".to_owned(),
        (false, Some(0)) => "done".to_owned(),
        (false, Some(code)) => format!("exit code {code}"),
        (false, None) => "lost".to_owned(),
    }
}

/// The one line a result consists of, if it does.
pub fn only_line(result: &ExecResult) -> Option<String> {
    let lines: Vec<String> = lines_of(result).into_iter().filter(|(kind, _)| *kind != Kind::Heading).map(|(_, line)| line).collect();
    match lines.as_slice() {
        [] => Some(String::new()),
        [one] => Some(one.clone()),
        _ => None,
    }
}

fn lines_of(result: &ExecResult) -> Vec<(Kind, String)> {
    let heading = format!("{} in {}: {}", result.language, visible(&result.name), how(result));
    let mut lines = vec![(Kind::Heading, heading)];
    let mut add = |kind: Kind, text: &str| lines.extend(text.trim_end_matches('\n').lines().map(|line| (kind, shown(line))));
    add(Kind::Stdout, &result.stdout);
    add(Kind::Stderr, &result.stderr);
    add(Kind::Value, result.value.as_deref().unwrap_or_default());
    // the heading has the exit code
    let is_new = |error: &&str| *error != how(result) && !result.stderr.contains(*error);
    if let Some(error) = result.error.as_deref().filter(is_new) {
        add(Kind::Stderr, error);
    }
    add(Kind::Note, result.note.as_deref().unwrap_or_default());
    if result.truncated.stdout || result.truncated.stderr {
        let all = crate::words::bytes(result.bytes.stdout + result.bytes.stderr);
        add(Kind::Note, &format!("cut here; it printed {all} in all: sessions-tui result {} --stream stdout", result.exec_id));
    }
    lines
}

/// A line as a terminal would show it: tabs as spaces, nothing that acts on the terminal.
fn shown(line: &str) -> String {
    // what was overwritten by a carriage return is not seen
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let mut out = String::new();
    for part in line.split_inclusive('\t') {
        let text = visible(part.trim_end_matches('\t'));
        out += &text;
        if part.ends_with('\t') {
            out += &" ".repeat(TAB - columns(&out) % TAB);
        }
    }
    out
}

fn folded(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let wide = columns(c.encode_utf8(&mut [0; 4]));
        if used + wide > width && used > 0 {
            rows.push(String::new());
            used = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(c);
        }
        used += wide;
    }
    rows
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use shared::exec::{Language, PerStream};
    use shared::id::{ExecId, SessionId};

    pub fn result(name: &str, stdout: &str, stderr: &str, code: i32) -> ExecResult {
        ExecResult {
            success: code == 0,
            exit_code: Some(code),
            stdout: stdout.into(),
            stderr: stderr.into(),
            error: None,
            value: None,
            json: None,
            duration_ms: 3.0,
            cwd: None,
            exec_id: ExecId::new(),
            language: Language::Bash,
            session: SessionId::new(),
            name: name.into(),
            truncated: PerStream { stdout: false, stderr: false },
            lossy: PerStream { stdout: false, stderr: false },
            bytes: PerStream { stdout: stdout.len() as u64, stderr: stderr.len() as u64 },
            running: false,
            queued_behind: None,
            timed_out: false,
            interrupted: false,
            restarted: false,
            ended: false,
            note: None,
            missing_bytes: 0,
        }
    }

    #[test]
    fn all_of_it_is_there_and_nothing_acts_on_the_terminal() {
        let mut output = Output::new(3, "make");
        let all = (1..=100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let mut failed = result("api", &all, "a\tb\n10%\r20%\n\x1b[31mred\n", 2);
        failed.error = Some("exit code 2".into());
        output.take(3, &failed);
        let rows = output.rows(80);
        assert_eq!(rows.len(), 104, "{rows:?}");
        assert_eq!(rows[0], (Kind::Heading, "bash in api: exit code 2".into()));
        assert_eq!(rows[100], (Kind::Stdout, "line 100".into()));
        assert_eq!(rows[101], (Kind::Stderr, "a       b".into()));
        assert_eq!(rows[102], (Kind::Stderr, "20%".into()));
        assert!(!rows[103].1.contains('\x1b'), "{:?}", rows[103]);
        output.scroll(1000, 80, 10);
        assert_eq!(output.top, 94);
        output.scroll(-1000, 80, 10);
        assert_eq!(output.top, 0);
        output.take(4, &result("web", "x", "", 0));
        assert_eq!(output.rows(80).len(), 107, "each session has its part");
        output.take(4, &result("web", "x\ny", "", 0));
        assert_eq!(output.rows(80).len(), 108, "a later result takes the place of the earlier");
    }

    #[test]
    fn long_lines_are_folded_and_short_results_are_one_line() {
        assert_eq!(folded("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(folded("世界世界", 5), ["世界", "世界"]);
        assert_eq!(folded("", 5), [""]);
        assert_eq!(only_line(&result("a", "42\n", "", 0)).as_deref(), Some("42"));
        assert_eq!(only_line(&result("a", "", "", 0)).as_deref(), Some(""));
        assert_eq!(only_line(&result("a", "1\n2\n", "", 0)), None);
        assert_eq!(only_line(&result("a", "1\n", "warning\n", 0)), None);
    }
}
