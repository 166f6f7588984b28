//! Recordings of real programs: cuts do not matter, and a keyframe at any cut goes on exactly.

use super::support::{assert_same, fed, feed, recordings};
use proptest::prelude::*;
use shared::screen::{Keyframe, Scanner, Screen, Size};

/// Beyond this, not every offset is cut but as many spread ones.
const CUTS: usize = 160;

#[test]
fn a_keyframe_at_any_cut_goes_on_exactly() {
    for (name, bytes, size) in recordings() {
        let whole = fed(size, &bytes);
        let mut left = fed(size, &bytes);
        feed(&mut left, b"\x18\x1b[?1049l\x1b[0mdone");
        let step = (bytes.len() / CUTS).max(1) | 1;
        let mut live = Screen::new(size);
        let mut at = 0;
        for cut in (0..=bytes.len()).step_by(step) {
            feed(&mut live, &bytes[at..cut]);
            at = cut;
            let keyframe = live.keyframe();
            let stored = Keyframe::from_bytes(&keyframe.to_bytes()).expect("it was just written");
            assert_eq!(stored, keyframe);
            let mut restored = Screen::restore(&stored);
            assert_eq!(restored.keyframe(), keyframe, "{name} at {cut}");
            // Playing on from each cut is slow; every eighth one does it.
            if (cut / step).is_multiple_of(8) {
                feed(&mut restored, &bytes[cut..]);
                assert_same(&whole, &restored, &format!("{name} from {cut}"));
                feed(&mut restored, b"\x18\x1b[?1049l\x1b[0mdone");
                assert_same(&left, &restored, &format!("{name} from {cut}, left"));
            }
        }
    }
}

#[test]
fn the_paint_alone_gives_the_same_picture() {
    for (name, bytes, size) in recordings() {
        for part in 1..=7 {
            let screen = fed(size, &bytes[..bytes.len() * part / 7]);
            let painted = fed(size, &screen.keyframe().paint);
            assert_eq!(super::support::visible(&screen), super::support::visible(&painted), "{name} part {part}");
        }
    }
}

#[test]
fn the_scanner_sees_the_same_modes_and_events() {
    for (name, bytes, size) in recordings() {
        let mut screen = Screen::new(size);
        let mut scanner = Scanner::new();
        for chunk in bytes.chunks(777) {
            let (mut seen, mut cheap) = (Vec::new(), Vec::new());
            screen.feed(chunk, &mut seen);
            scanner.feed(chunk, &mut cheap);
            assert_eq!(seen.len(), cheap.len(), "{name}");
            for (a, b) in seen.iter().zip(&cheap) {
                assert_eq!((a.start, a.end), (b.start, b.end), "{name}");
            }
        }
        let mut modes = screen.modes().clone();
        // Tab stops need the cursor.
        modes.tabs.clone_from(&scanner.modes().tabs);
        assert_eq!(&modes, scanner.modes(), "{name}");
        assert_eq!(screen.scanner().pending(), scanner.pending());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cuts_do_not_matter(
        which in 0usize..1000,
        lengths in proptest::collection::vec(1usize..600, 1..60),
        sizes in proptest::collection::vec((1u16..140, 1u16..50), 0..3),
    ) {
        let all = recordings();
        let (name, bytes, size) = &all[which % all.len()];
        let run = |lengths: &[usize]| {
            let mut screen = Screen::new(*size);
            let (mut at, mut next) = (0, 0);
            let mut resized = 0;
            while at < bytes.len() {
                // Resizes happen at fixed offsets, whatever the pieces.
                let stop = (bytes.len() * (resized + 1) / (sizes.len() + 1)).max(at + 1);
                let end = (at + lengths[next % lengths.len()]).min(stop).min(bytes.len());
                feed(&mut screen, &bytes[at..end]);
                (at, next) = (end, next + 1);
                if at == stop && resized < sizes.len() {
                    let (cols, rows) = sizes[resized];
                    screen.resize(Size { cols, rows });
                    resized += 1;
                }
            }
            screen
        };
        assert_same(&run(&lengths), &run(&[usize::MAX / 2]), name);
    }
}
