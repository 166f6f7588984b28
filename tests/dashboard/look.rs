//! What is seen: live screens in a preview and in tiles, colours or none, any size.

use shared::screen::Color;

use super::{ESC, cursor_row, find, open, quit, size_of, wait_cursor, wait_place};
use crate::support::term::{DETACH, Habits};
use crate::support::{BASH, Root, Term, process, wait_until};

/// Prints in colours, waits for a line, and prints more. In a file, so that the command that is shown does not say it too.
const PAINTER: &str =
    r"printf '\e[38;2;10;20;30;48;5;52mRGB\e[0m \e[1;3;4;31mATTRIBUTES\e[0m\r\n'; read line; printf '\e[2Jsecond %s' $line; sleep 1000";

#[test]
fn a_preview_is_exact_and_live_and_leaves_the_program_alone() {
    let root = Root::new();
    std::fs::write(root.work().join("paint"), PAINTER).expect("writes");
    root.start("painter", &["bash", "paint"]);
    root.wait_screen("painter", "ATTRIBUTES");
    let (size, kinds) = (size_of(&root, "painter"), root.kinds("painter"));
    let mut term = open(&root);
    let (row, col) = wait_place(&term, "RGB");
    term.look(|screen| {
        let cell = screen.cell(row, col).expect("a cell");
        assert_eq!((cell.fg, cell.bg), (Color::Rgb(10, 20, 30), Color::Indexed(52)));
        let cell = screen.cell(row, col + 4).expect("a cell");
        assert_eq!((cell.fg, cell.bold, cell.italic, cell.underline), (Color::Indexed(1), true, true, true));
        let plain = screen.cell(row, col + 3).expect("a cell");
        assert_eq!((plain.fg, plain.bold, plain.inverse), (Color::Default, false, false));
        // the program's cursor, where the program has it
        assert!(screen.cell(row + 1, col).expect("a cell").inverse, "the cursor's cell");
        assert!(!screen.cursor().visible, "the terminal's own is hidden");
    });
    root.run(&["send", "painter", "--enter", "time"]).ok();
    let (row, col) = wait_place(&term, "second time");
    term.wait_for("the old picture gone", |screen| find(screen, "RGB").is_none());
    assert!(term.look(|screen| screen.cell(row, col + 11).expect("a cell").inverse));
    // in tiles, and with the preview away
    term.send(b"t");
    term.wait_for("a tile", |screen| find(screen, "┏").is_some() && find(screen, "second time").is_some());
    term.send(b"t");
    wait_cursor(&term, "painter");
    term.send(b"v");
    term.wait_for("no preview", |screen| find(screen, "second time").is_none());
    term.resize(160, 40);
    term.wait_for("the new size", |screen| {
        find(screen, "by who needs you").is_some_and(|(_, col)| col > 100) && find(screen, "q quit").is_some_and(|(row, _)| row == 39)
    });
    quit(&mut term);
    assert_eq!(size_of(&root, "painter"), size, "never resized");
    let after: Vec<String> = root.kinds("painter").into_iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(!after.iter().any(|kind| matches!(kind.as_str(), "attach" | "detach" | "control")), "{after:?}");
}

#[test]
fn many_live_tiles_and_enter_zooms() {
    let root = Root::new();
    for name in ["one", "two", "three", "four"] {
        root.start(name, BASH);
        root.run(&["send", name, "--enter", &format!("echo tile-of-{name}")]).ok();
    }
    let mut term = open(&root);
    term.send(b"t");
    for name in ["one", "two", "three", "four"] {
        term.wait_for_text(&format!("tile-of-{name}"));
    }
    root.run(&["send", "three", "--enter", "echo more-$((40+2))"]).ok();
    term.wait_for_text("more-42");
    // the last tile: right and down
    term.send(b"g");
    term.send(b"lj");
    let thick = |name: &str| {
        let name = name.to_owned();
        move |screen: &shared::screen::Screen| {
            (0..30)
                .map(|row| screen.row_text(row))
                .any(|row| row.split(['┏', '┓']).nth(1).is_some_and(|part| part.contains(&format!(" {name} "))))
        }
    };
    let chosen = |screen: &shared::screen::Screen| ["one", "two", "three", "four"].into_iter().find(|name| thick(name)(screen));
    let first = {
        let mut name = None;
        term.wait_for("a tile in the lower half", |screen| {
            name = chosen(screen);
            find(screen, "┏").is_some_and(|(row, col)| row > 5 && col > 5) && name.is_some()
        });
        name.expect("one")
    };
    term.send(b"\r");
    wait_until("a client", || root.session(first)["clients"] == 1);
    term.send(b"stty size\r");
    term.wait_for_text("30 100");
    term.send(DETACH);
    term.wait_for(&format!("{first} again"), |screen| chosen(screen) == Some(first));
    quit(&mut term);
    // the same tiles the next time
    let mut term = Term::open(&root, 100, 30, &[]);
    term.wait_for(&format!("{first} again"), |screen| chosen(screen) == Some(first));
    term.send(b"t");
    wait_cursor(&term, first);
    quit(&mut term);
}

const WITHOUT_COLOURS: [&[(&str, &str)]; 3] = [&[("NO_COLOR", "1")], &[("TERM", "dumb")], &[("TERM", "vt100")]];

#[test]
fn without_colours_there_are_none() {
    let root = Root::new();
    root.start("api", &["sleep", "1000"]);
    root.record("task", &["--task", "A task with words"]);
    root.start_script("done", "exit 1");
    root.wait_status("done", "failed");
    for variables in WITHOUT_COLOURS {
        let habits = Habits { variables, ..Habits::default() };
        let mut term = Term::open_with(&root, 120, 30, &[], habits);
        term.wait_for_text("2 active");
        // everything that has colours otherwise
        for (keys, shows) in [
            (&b"?"[..], "attach, only to watch"),
            (b"q", "2 active"),
            (b" ", "1 selected"),
            (b"t", "┏"),
            (b"t", "iter"),
            (b":", "❯"),
            (b"\x03", "iter"),
            (b"T", "by status"),
            (b"q", "iter"),
            (b"m", "messages"),
            (b"q", "iter"),
            (b"i", "layers"),
            (b"q", "iter"),
        ] {
            term.send(keys);
            term.wait_for_text(shows);
        }
        term.send(b"n");
        term.wait_for_text("new session");
        term.send(b"\t\t/nowhere\r");
        term.wait_for_text("/nowhere");
        term.send(ESC);
        term.wait_for("the form gone", |screen| find(screen, "new session").is_none());
        quit(&mut term);
        let bytes = String::from_utf8_lossy(&term.bytes()).into_owned();
        let coloured: Vec<&str> = bytes
            .split("\x1b[")
            .skip(1)
            .filter_map(|part| part.split_once('m'))
            .map(|(code, _)| code)
            .filter(|code| is_colour(code))
            .collect();
        assert!(coloured.is_empty(), "{variables:?}: {coloured:?}");
    }
}

/// Whether the numbers of an SGR sequence set a colour; the default ones are none.
fn is_colour(code: &str) -> bool {
    code.chars().all(|c| c.is_ascii_digit() || c == ';' || c == ':')
        && code.split(';').any(|number| matches!(number.parse::<u16>(), Ok(30..=38 | 40..=48 | 90..=107)))
}

#[test]
fn a_storm_of_sizes_ends_in_a_correct_screen() {
    let root = Root::new();
    for name in ["api", "web"] {
        root.start(name, BASH);
    }
    let mut term = open(&root);
    term.wait_for_text("2 active");
    // in the list, in tiles, in the detail, with a form open, in the split
    let mut random = 12345_u32;
    let mut storm = |term: &Term, count: usize| {
        for _ in 0..count {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (cols, rows) = (1 + (random >> 8) % 300, 1 + (random >> 20) % 80);
            term.resize(cols as u16, rows as u16);
        }
        term.resize(1, 1);
        term.resize(300, 80);
        term.resize(100, 30);
    };
    // crossterm reads a key that comes in the very moment of a new size only with the next key
    let settled = |term: &Term| {
        wait_until("nothing more to be drawn", || {
            let before = term.bytes().len();
            std::thread::sleep(std::time::Duration::from_millis(100));
            term.bytes().len() == before
        });
    };
    storm(&term, 60);
    settled(&term);
    wait_cursor(&term, "api");
    for (keys, shows) in [
        (&b"t"[..], "┏"),
        (b"t", "idle"),
        (b"i", "layers"),
        (b"q", "idle"),
        (b"n", "new session"),
        (b"\x03", "idle"),
        (b"?", "attach, only to watch"),
        (b"q", "idle"),
        (b"T", "by status"),
        (b"q", "idle"),
    ] {
        term.send(keys);
        term.wait_for_text(shows);
        storm(&term, 20);
        settled(&term);
        term.wait_for_text(shows);
    }
    term.send(b"\t");
    term.wait_for_text("ctrl-b d list");
    storm(&term, 60);
    // typed at once: neither the last size nor a key is lost
    term.send(b": ");
    wait_until("the size of the pane", || size_of(&root, "api")["cols"] == 70);
    term.send(b"; stty size\r");
    term.wait_for_text("27 70");
    term.send(b"\x02q");
    term.wait_for_text("quit");
    // a fresh window of the same size shows the same
    let other = open(&root);
    let pictures = || (steady(&term), steady(&other));
    wait_until("the same picture", || {
        let (one, two) = pictures();
        one == two
    });
    term.resize(19, 4);
    term.wait_for_text("too small");
    term.resize(100, 30);
    wait_cursor(&term, "api");
    drop(other);
    quit(&mut term);
    assert!(process::is_alive(root.program("api")));
}

/// The picture without what changes with time.
fn steady(term: &Term) -> Vec<String> {
    term.look(|screen| {
        let cursor = cursor_row(screen);
        let rows = (0..30).map(|row| screen.row_text(row)).filter(|row| Some(row) != cursor.as_ref());
        rows.filter(|row| !row.contains("active") && !row.contains(" iter ")).map(|row| row.replace("now", "").replace("5s", "")).collect()
    })
}
