//! Floods are fast-forwarded exactly: the same screen, modes and events as without skipping.

use super::support::{Random, assert_same, size};
use proptest::prelude::*;
use shared::screen::{Located, Screen};

/// A log as programs write them: colours, unicode, long lines, now and then something odd.
fn log(random: &mut Random, lines: usize) -> Vec<u8> {
    let mut out = Vec::new();
    // In a calm log whatever was set long ago is still in force at the end.
    let kinds = if random.below(2) == 0 { 30 } else { 3000 };
    for line in 0..lines {
        match random.below(kinds) {
            0 => out.extend_from_slice(b"\x1b[44mblue\x1b[K"),
            1 => out.extend_from_slice(b"\x1b[0m"),
            2 => out.extend_from_slice("\u{4e2d}\u{6587} e\u{301} \u{1f600}".repeat(9).as_bytes()),
            3 => {
                out.extend_from_slice("long line without end ".repeat(random.below(30)).as_bytes());
            }
            4 => out.extend_from_slice(b"\x07\x1b]0;title\x07\x1b[c"),
            5 => out.extend_from_slice(b"50%\r60%\r\x1b[2K100%\t|\x08\x1b[5G!"),
            6 => out.extend_from_slice(b"\x1b(0lqk\x1b(B\x0eq\x0f"),
            7 if random.below(12) == 0 => out.extend_from_slice(&random.output(3)),
            8 => out.extend_from_slice(b"\x1b[?2004h\x1b[?25l\x1b[J\x1b[3@ab\x1b[2P"),
            14 => out.extend_from_slice(b"\x1b]0;lost\r\nlines\r\n\x1b[32mgreen"),
            15 => out.extend_from_slice(b"\x1bPmore\r\nlost\r\n\x18x\x1b_in\r\n\x1b\\"),
            16 => out.extend_from_slice(b"\x1b[3\r\n1mred\x1b[4\n4mblue"),
            9 => out.extend_from_slice(b"\xff\xe4\xb8 invalid"),
            10 if random.below(6) == 0 => out.extend_from_slice(b"\x1b[?7l"),
            11 if random.below(6) == 0 => out.extend_from_slice(b"\x1b[?7h"),
            12 => out.extend_from_slice(b"\n"),
            13 => out.extend_from_slice(b"\x1b[3b\x1b[1J"),
            30.. => out.extend_from_slice(b"a plain line of a calm log"),
            _ => out.extend_from_slice(format!("\x1b[3{}m{line}\x1b[0m INFO something happened here", random.below(8)).as_bytes()),
        }
        out.extend_from_slice(if random.below(40) == 0 { b"\n" } else { b"\r\n" });
    }
    out
}

fn run(bytes: &[u8], cuts: &[usize], window: (u16, u16), skipping: bool) -> (Screen, Vec<Located>) {
    let mut screen = Screen::new(size(window.0, window.1));
    screen.set_skipping(skipping);
    let mut all = Vec::new();
    let mut at = 0;
    for (index, &cut) in cuts.iter().chain([&bytes.len()]).enumerate() {
        let cut = cut.clamp(at, bytes.len());
        let mut events = Vec::new();
        screen.feed(&bytes[at..cut], &mut events);
        all.append(&mut events);
        at = cut;
        if index == 1 {
            screen.resize(size(window.0 / 2 + 3, window.1 + 2));
        }
    }
    (screen, all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipping_changes_nothing(
        seed in 0u64..1_000_000,
        lines in 200usize..1500,
        cols in 2u16..130,
        rows in 2u16..45,
        mut cuts in proptest::collection::vec(0usize..60_000, 0..4),
    ) {
        let bytes = log(&mut Random::new(seed), lines);
        cuts.sort_unstable();
        let mut bytes = bytes;
        // Sometimes the whole ends inside a string full of line feeds.
        if seed % 3 == 0 {
            bytes.extend_from_slice(b"\x1b]0;open");
            bytes.extend_from_slice(&b"\r\n".repeat(seed as usize % 200));
        }
        let (slow, slow_events) = run(&bytes, &cuts, (cols, rows), false);
        let (fast, fast_events) = run(&bytes, &cuts, (cols, rows), true);
        assert_same(&slow, &fast, &format!("seed {seed} lines {lines} {cols}x{rows} {cuts:?}"));
        prop_assert_eq!(slow_events, fast_events);
    }
}
