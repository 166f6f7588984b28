//! Real programs, cell by cell against tmux: the same bytes, the same size, several cuts each.
//!
//! Where we differ from tmux 3.3 on purpose, found by feeding both random output (no recording has any of it):
//! - bold and dim together: vt100 keeps one of them, so dim is not compared on bold cells;
//! - blink, hidden, strike, overline and underline colours have no place in our cells;
//! - invalid UTF-8 shows as U+FFFD, in tmux as nothing; ZWJ clusters take a pair of cells per emoji;
//! - a pending wrap is dropped by LF, RI, IL, DL, SU, SD, VPA, EL 1/2, ED 1/2 and a change of screen, as in
//!   xterm; tmux wraps later, on a line that has nothing to do with it;
//! - IL and DL outside the scroll region do nothing, as in xterm; tmux shifts the whole rest of the screen;
//! - DECSTBM in origin mode homes to the region's top, as in xterm; in tmux to the screen's;
//! - CHT works; in insert mode also the character that wraps is inserted;
//! - erasing or overwriting half of a wide character leaves blanks; tmux leaves the other half standing.

use shared::screen::{Color, Screen, Size};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Clone, PartialEq, Debug)]
struct Seen {
    text: String,
    fg: Color,
    bg: Color,
    attributes: Vec<&'static str>,
}

struct Tmux {
    socket: String,
}

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("tmux")
            .args(["-u", "-L", &self.socket, "-f", "/dev/null"])
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .output()
            .expect("tmux is installed");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The pane after `file` was written to it: its rows and the cursor.
    fn show(&self, file: &Path, size: Size) -> (Vec<Vec<u8>>, (u16, u16)) {
        let channel = format!("{}-done", self.socket);
        // tmux works in order: its answer to the last question means that all before it is on the screen.
        let script = format!(
            "stty raw -echo; cat '{}'; printf '\\033[5n'; \
             while IFS= read -r -d n part; do case \"$part\" in *'[0') break;; esac; done; \
             tmux -L {} wait-for -S {channel}; exec cat > /dev/null",
            file.display(),
            self.socket
        );
        let (cols, rows) = (size.cols.to_string(), size.rows.to_string());
        self.run(&["new-session", "-d", "-s", "show", "-x", &cols, "-y", &rows, "bash", "-c", &script]);
        self.run(&["wait-for", &channel]);
        self.look()
    }

    /// What tmux draws on a terminal that attaches: unlike the capture it has every background.
    fn drawn(&self, folder: &Path, size: Size) -> Screen {
        let file = folder.join("attached.raw");
        let attach = format!("stty cols {} rows {}; exec tmux -u -L {} attach -t show", size.cols, size.rows, self.socket);
        let mut client = Command::new("script")
            .args(["-qfec", &attach])
            .arg(&file)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("script is installed");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut last = Vec::new();
        while Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(30));
            let attached = !self.run(&["list-clients", "-t", "show"]).is_empty();
            let now = std::fs::read(&file).unwrap_or_default();
            if attached && now.len() > 200 && now == last {
                break;
            }
            last = now;
        }
        self.run(&["detach-client", "-s", "show"]);
        let _ = client.wait();
        // On leaving tmux clears the terminal, so what was drawn before counts.
        super::support::fed(size, &last)
    }

    fn forget(&self) {
        self.run(&["kill-session", "-t", "show"]);
    }

    fn look(&self) -> (Vec<Vec<u8>>, (u16, u16)) {
        let picture = self.run(&["capture-pane", "-p", "-e", "-N", "-t", "show"]);
        let cursor = self.run(&["display-message", "-p", "-t", "show", "#{cursor_y} #{cursor_x}"]);
        let cursor = String::from_utf8_lossy(&cursor).into_owned();
        let mut numbers = cursor.split_whitespace().map(|n| n.parse().expect("a number"));
        let cursor = (numbers.next().expect("row"), numbers.next().expect("column"));
        let rows = picture.strip_suffix(b"\n").unwrap_or(&picture).split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        (rows, cursor)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

/// The cells of a captured picture, and how many of each row tmux told: it leaves out erased cells at the
/// end of a row, whatever their background. SGR state runs on from row to row, as tmux writes it.
fn cells_of_capture(rows: &[Vec<u8>], size: Size) -> Vec<(Vec<Seen>, usize)> {
    let mut carried = Vec::new();
    rows.iter()
        .map(|row| {
            // Our own screen reads the row: it is only SGR, SO/SI and text, which other tests cover.
            let mut reader = Screen::new(Size { cols: size.cols, rows: 2 });
            let mut bytes = [b"\x1b)0", carried.as_slice()].concat();
            bytes.extend_from_slice(row);
            super::support::feed(&mut reader, &bytes);
            carried = bytes
                .split(|&byte| byte == 0x1b)
                .skip(1)
                .filter_map(|part| {
                    let end = part.iter().position(|&byte| byte == b'm')?;
                    part.starts_with(b"[").then(|| [b"\x1b", &part[..=end]].concat())
                })
                .collect::<Vec<_>>()
                .concat();
            let told =
                if reader.modes().autowrap() && wraps_next(&reader) { usize::from(size.cols) } else { usize::from(reader.cursor().col) };
            (cells(&reader, 0), told)
        })
        .collect()
}

/// Whether the row was written to its last column.
fn wraps_next(screen: &Screen) -> bool {
    let last = screen.cell(0, screen.size().cols - 1);
    last.is_some_and(|cell| !cell.text.is_empty() || cell.width == 0)
}

fn cells(screen: &Screen, row: u16) -> Vec<Seen> {
    (0..screen.size().cols)
        .map(|col| {
            let cell = screen.cell(row, col).expect("inside the screen");
            let text = match (cell.text, cell.width) {
                ("", 1) => " ",
                (text, _) => text,
            };
            let attributes = [
                (cell.bold, "bold"),
                (cell.dim && !cell.bold, "dim"),
                (cell.italic, "italic"),
                (cell.underline, "underline"),
                (cell.inverse, "inverse"),
            ];
            Seen {
                text: text.to_owned(),
                fg: if text == " " && !cell.inverse { Color::Default } else { cell.fg },
                bg: cell.bg,
                attributes: attributes.into_iter().filter_map(|(on, name)| on.then_some(name)).collect(),
            }
        })
        .collect()
}

/// Shows `bytes` in tmux and lists where that differs from `ours`.
struct Comparison {
    tmux: Tmux,
    folder: PathBuf,
    differences: Vec<String>,
    screens: usize,
}

impl Comparison {
    fn new(name: &str) -> Comparison {
        let unique = format!("screen-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&unique);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let tmux = Tmux { socket: unique };
        tmux.run(&["new-session", "-d", "-s", "keep", "-x", "10", "-y", "5", "cat > /dev/null"]);
        tmux.run(&["set-option", "-g", "default-terminal", "tmux-256color"]);
        tmux.run(&["set-option", "-g", "status", "off"]);
        tmux.run(&["set-option", "-as", "terminal-features", ",xterm-256color:RGB"]);
        Comparison { tmux, folder, differences: Vec::new(), screens: 0 }
    }

    fn compare(&mut self, name: &str, bytes: &[u8], ours: &Screen, backgrounds: Backgrounds) {
        let size = ours.size();
        let file = self.folder.join("part.raw");
        std::fs::write(&file, bytes).expect("a writable temporary folder");
        let (rows, cursor) = self.tmux.show(&file, size);
        self.screens += 1;
        for (row, (theirs, told)) in cells_of_capture(&rows, size).iter().enumerate() {
            let mine = cells(ours, row as u16);
            let differs = |col: &usize| mine[*col].text != theirs[*col].text || col < told && mine[*col] != theirs[*col];
            if let Some(col) = (0..mine.len()).find(differs) {
                self.note(name, row, col, &mine, theirs);
            }
        }
        if backgrounds == Backgrounds::All {
            let drawn = self.tmux.drawn(&self.folder, size);
            for row in 0..size.rows {
                let (mine, theirs) = (cells(ours, row), cells(&drawn, row));
                if let Some(col) = (0..mine.len()).find(|&col| mine[col] != theirs[col]) {
                    self.note(&format!("{name} drawn"), usize::from(row), col, &mine, &theirs);
                }
            }
        }
        self.tmux.forget();
        let at = ours.cursor();
        // tmux tells the column behind the last one while a wrap is pending.
        let theirs = (cursor.0, cursor.1.min(size.cols - 1));
        if (at.row, at.col) != theirs {
            self.differences.push(format!("{name} cursor: ours {at:?} tmux {cursor:?}"));
        }
    }

    fn note(&mut self, name: &str, row: usize, col: usize, ours: &[Seen], theirs: &[Seen]) {
        let text = |cells: &[Seen]| -> String { cells.iter().map(|seen| seen.text.as_str()).collect() };
        self.differences.push(format!(
            "{name} row {row} col {col}:\n  ours {:?} in {:?}\n  tmux {:?} in {:?}",
            ours[col],
            text(ours),
            theirs[col],
            text(theirs)
        ));
    }

    fn finish(self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        assert!(self.screens > 0);
        assert!(
            self.differences.is_empty(),
            "{} screens, {} rows differ\n{}",
            self.screens,
            self.differences.len(),
            self.differences.join("\n")
        );
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backgrounds {
    /// Only those that the capture tells.
    Captured,
    All,
}

#[test]
fn real_programs_look_as_in_tmux() {
    let mut comparison = Comparison::new("programs");
    for (recording, bytes, size) in super::support::recordings() {
        for part in 1..=5 {
            let cut = bytes.len() * part / 5;
            let backgrounds = if part == 5 || recording.starts_with("region") { Backgrounds::All } else { Backgrounds::Captured };
            let ours = super::support::fed(size, &bytes[..cut]);
            let name = format!("{recording} [..{cut}]");
            comparison.compare(&name, &bytes[..cut], &ours, backgrounds);
        }
    }
    comparison.finish();
}

/// A keyframe is also sent to people's own terminals: here tmux is one.
#[test]
fn a_keyframe_paints_the_same_picture_in_tmux() {
    let mut comparison = Comparison::new("keyframes");
    for (recording, bytes, size) in super::support::recordings() {
        for part in [2, 3] {
            let mut ours = super::support::fed(size, &bytes[..bytes.len() * part / 3]);
            let mut paint = ours.keyframe().paint;
            let name = format!("{recording} {part}/3");
            comparison.compare(&name, &paint, &ours, Backgrounds::All);
            if ours.is_alternate() {
                super::support::feed(&mut ours, b"\x18\x1b[?1049l");
                paint.extend_from_slice(b"\x1b[?1049l");
                comparison.compare(&format!("{name} left"), &paint, &ours, Backgrounds::Captured);
            }
        }
    }
    comparison.finish();
}
