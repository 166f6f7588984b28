//! Any bytes in any pieces: no panic, the same screen, and keyframes that go on exactly.

use super::support::{Random, assert_same, fed, feed, size};
use shared::screen::{Keyframe, Screen};

#[test]
fn nothing_makes_it_panic() {
    let mut faults = 0;
    for seed in 0..2500 {
        let mut random = Random::new(seed);
        let small = seed % 3 == 0;
        let mut screen = Screen::new(size(80, 24));
        for _ in 0..6 {
            let pieces = 5 + random.below(120);
            feed(&mut screen, &random.output(pieces));
            let (cols, rows) = if small { (7, 5) } else { (250, 60) };
            screen.resize(size(1 + random.below(cols) as u16, 1 + random.below(rows) as u16));
        }
        faults += screen.faults();
        let cursor = screen.cursor();
        assert!(cursor.row < screen.size().rows && cursor.col < screen.size().cols);
    }
    assert_eq!(faults, 0, "the emulator crate panicked and was rebuilt");
}

#[test]
fn cuts_do_not_matter() {
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let bytes = random.output(80);
        let window = size(2 + random.below(40) as u16, 2 + random.below(14) as u16);
        let whole = fed(window, &bytes);
        let mut pieces = Screen::new(window);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = (1 + random.below(9)).min(rest.len());
            feed(&mut pieces, &rest[..length]);
            rest = &rest[length..];
        }
        assert_same(&whole, &pieces, &format!("seed {seed}"));
    }
}

#[test]
fn a_keyframe_goes_on_exactly() {
    for seed in 0..2500 {
        let mut random = Random::new(seed + 100_000);
        let window = size(2 + random.below(40) as u16, 2 + random.below(14) as u16);
        let before = random.output(60);
        let after = random.output(40);
        let cut = before.len() - random.below(4).min(before.len());
        let mut whole = fed(window, &before[..cut]);
        if seed % 4 == 0 {
            whole.resize(size(2 + random.below(40) as u16, 2 + random.below(14) as u16));
        }
        let keyframe = whole.keyframe();
        let stored = Keyframe::from_bytes(&keyframe.to_bytes());
        assert_eq!(stored.as_ref(), Some(&keyframe));
        let mut restored = Screen::restore(&keyframe);
        let what = format!("seed {seed}");
        assert_same(&whole, &restored, &format!("{what} at once"));
        for rest in [&before[cut..], &after, b"\x18\x1b[?1049l", b"\x1b[?47h\x1b8z\x1b[3b"] {
            feed(&mut whole, rest);
            feed(&mut restored, rest);
            assert_same(&whole, &restored, &what);
        }
    }
}

#[test]
fn garbage_is_no_keyframe() {
    let good = fed(size(20, 5), b"\x1b[22tabc\x1b[31m").keyframe().to_bytes();
    for cut in 0..good.len() {
        assert_eq!(Keyframe::from_bytes(&good[..cut]), None);
    }
    for seed in 0..5000 {
        let mut random = Random::new(seed);
        let mut bytes = good.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        if let Some(keyframe) = Keyframe::from_bytes(&bytes) {
            Screen::restore(&keyframe);
        }
    }
}
