//! Seeking is exact: the screen of any moment is the one that was live there, whichever way one gets to it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};
use shared::screen::{Keyframe, Screen, Size};

use crate::support::wire::Wire;
use crate::support::{Root, Term, wait_until};

/// Everything that is to be seen, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    size: Size,
    cursor: (u16, u16, bool),
    alternate: bool,
    title: String,
    rows: Vec<String>,
}

fn look(screen: &Screen) -> Look {
    let (size, cursor) = (screen.size(), screen.cursor());
    Look {
        size,
        cursor: (cursor.row, cursor.col, cursor.visible),
        alternate: screen.is_alternate(),
        title: screen.title().to_owned(),
        rows: (0..size.rows).map(|row| String::from_utf8_lossy(&screen.row_ansi(row)).into_owned()).collect(),
    }
}

struct Machine {
    wire: Wire,
    runtime: String,
    next: u64,
}

impl Machine {
    fn new(root: &Root, name: &str) -> Self {
        let runtime = root.runtime(name)["id"].as_str().expect("an id").to_owned();
        Self { wire: Wire::greeted(&root.socket()), runtime, next: 0 }
    }

    #[track_caller]
    fn ask(&mut self, mut request: Value) -> Value {
        self.next += 1;
        request["runtime"] = json!(self.runtime);
        let answer = self.wire.call(self.next, request);
        assert!(answer["failure"].is_null(), "{answer}");
        answer["ok"].clone()
    }

    /// Where a seek ends, and what is to be seen there.
    #[track_caller]
    fn seek(&mut self, to: Value) -> (u64, Look) {
        let mut request = to;
        request["request"] = json!("seek");
        let moment = self.ask(request);
        let bytes = BASE64.decode(moment["keyframe"].as_str().expect("a keyframe")).expect("base64");
        let keyframe = Keyframe::from_bytes(&bytes).expect("a keyframe");
        (moment["at"]["offset"].as_u64().expect("an offset"), look(&Screen::restore(&keyframe)))
    }

    /// What was to be seen at an offset behind this moment, before the next one.
    fn inside(&mut self, (end, _, look_then): &(u64, u64, Look), offset: u64) -> Look {
        let after = self.ask(json!({"request": "records", "from": end, "most": 1}));
        let next = &after["records"][0];
        let Some(bytes) = next["base64"].as_str().filter(|_| next["what"] == "output") else { return look_then.clone() };
        let bytes = BASE64.decode(bytes).expect("base64");
        let rest = (next["end"].as_u64().expect("an end") - offset) as usize;
        let Some(count) = bytes.len().checked_sub(rest).filter(|_| offset > *end) else { return look_then.clone() };
        let moment = self.ask(json!({"request": "seek", "to": "offset", "offset": end}));
        let keyframe = BASE64.decode(moment["keyframe"].as_str().expect("a keyframe")).expect("base64");
        let mut screen = Screen::restore(&Keyframe::from_bytes(&keyframe).expect("a keyframe"));
        screen.feed(&bytes[..count], &mut Vec::new());
        look(&screen)
    }

    /// All that was recorded: where each record ends, its time, and what is to be seen then. Played from the very beginning, byte
    /// by byte, without any keyframe.
    fn played(&mut self, size: Size) -> Vec<(u64, u64, Look)> {
        let mut screen = Screen::new(size);
        screen.set_skipping(false);
        let (mut from, mut moments) = (0, Vec::new());
        loop {
            let answer = self.ask(json!({"request": "records", "from": from, "most": 100_000}));
            for record in answer["records"].as_array().expect("records") {
                match record["what"].as_str().expect("a kind") {
                    "output" => screen.feed(&BASE64.decode(record["base64"].as_str().expect("bytes")).expect("base64"), &mut Vec::new()),
                    "resize" => screen.resize(serde_json::from_value(record["size"].clone()).expect("a size")),
                    _ => {}
                }
                from = record["end"].as_u64().expect("an end");
                moments.push((from, record["time"].as_u64().expect("a time"), look(&screen)));
            }
            if answer["at_end"] == true {
                return moments;
            }
        }
    }
}

/// Prints files in pieces that cut everything anywhere.
const CUT: &str = r#"
import os, random, sys, time
random.seed(5)
for name in sys.argv[1:]:
    data = open(name, "rb").read()
    while data:
        n = random.choice((1, 2, 3, 7, 40, 200, 900))
        os.write(1, data[:n])
        data = data[n:]
        time.sleep(0.0003)
    os.write(1, b"\x1b[?1049l\x1b[0m\x1b[r\r\n")
os.write(1, b"\r\nALL-PRINTED")
time.sleep(1000)
"#;

fn programs() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("recordings of real programs")
        .filter_map(|entry| entry.expect("an entry").path().to_str().map(str::to_owned))
        .filter(|path| path.ends_with(".80x24.raw"))
        .collect();
    files.sort();
    assert!(files.len() > 8, "vim, htop, less, colours, unicode and others");
    files
}

#[test]
fn every_moment_of_real_programs_is_the_screen_that_was_live_there() {
    let root = Root::new();
    let files = programs();
    let mut argv = vec!["sh", "-c", "stty raw -echo; exec python3 -c \"$0\" \"$@\"", CUT];
    argv.extend(files.iter().map(String::as_str));
    root.start("mixed", &argv);
    let term = Term::open(&root, 80, 24, &["attach", "mixed"]);
    let mut widths = [100, 60, 80, 132, 80].into_iter();
    while !root.screen("mixed").contains("ALL-PRINTED") {
        if let Some(cols) = widths.next() {
            term.resize(cols, 24);
        }
    }
    drop(term);
    let mut machine = Machine::new(&root, "mixed");
    let moments = machine.played(Size { cols: 80, rows: 24 });
    assert!(moments.len() > 120, "{} records", moments.len());
    assert!(moments.iter().any(|(_, _, look)| look.alternate) && moments.iter().any(|(_, _, look)| look.size.cols != 80));
    // by offset, anywhere, in any order: forwards, backwards, inside of a record
    let mut runner = TestRunner::new(Config { cases: 250, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..Config::default() });
    let last = moments.last().expect("moments").0;
    let machine = std::cell::RefCell::new(machine);
    runner
        .run(&(0..=last), |offset| {
            let (at, seen) = machine.borrow_mut().seek(json!({"to": "offset", "offset": offset}));
            let Some(before) = moments.iter().rposition(|(end, _, _)| *end <= offset) else { return Ok(()) };
            prop_assert_eq!(at, moments[before].0, "sought {}", offset);
            let expected = machine.borrow_mut().inside(&moments[before], offset);
            prop_assert_eq!(&seen, &expected, "at {}", offset);
            Ok(())
        })
        .expect("all equal");
    let mut machine = machine.into_inner();
    for (_, time, _) in moments.iter().step_by(41) {
        let expected = moments.iter().rev().find(|(_, at, _)| at <= time).expect("itself");
        assert_eq!(machine.seek(json!({"to": "time", "time": time})), (expected.0, expected.2.clone()), "at {time} µs");
    }
    steps(&mut machine, &moments);
    // the same after kill -9 of the daemon, by another one
    root.kill_daemon();
    root.run(&["ls"]).ok();
    let mut machine = Machine::new(&root, "mixed");
    for (end, _, expected) in moments.iter().step_by(97) {
        assert_eq!(machine.seek(json!({"to": "offset", "offset": end})).1, *expected);
    }
}

/// A step goes to the nearest record after which something else is to be seen, and back again.
#[track_caller]
fn steps(machine: &mut Machine, moments: &[(u64, u64, Look)]) {
    let visible = |look: &Look| (look.size, look.cursor, look.rows.clone());
    let mut at = moments.len() / 3;
    for _ in 0..25 {
        let here = &moments[at];
        let next = moments[at + 1..].iter().position(|moment| visible(&moment.2) != visible(&here.2)).map(|n| at + 1 + n).expect("more");
        let (end, seen) = machine.seek(json!({"to": "next_change", "from": here.0}));
        assert_eq!((end, &seen), (moments[next].0, &moments[next].2));
        let before = moments[..next].iter().rposition(|moment| visible(&moment.2) != visible(&moments[next].2)).expect("less");
        let (end, seen) = machine.seek(json!({"to": "previous_change", "from": moments[next].0}));
        assert_eq!((end, &seen), (moments[before].0, &moments[before].2));
        at = next;
    }
}

#[test]
fn a_hit_in_a_piece_of_many_screens_is_on_the_screen() {
    let root = Root::new();
    let text: String = (0..3000).map(|n| if n % 1000 == 500 { format!("needle {n}\r\n") } else { format!("line {n}\r\n") }).collect();
    let cast = root.work().join("flood.cast");
    let events = [json!([0.1, "o", text]), json!([0.2, "o", "the end"])];
    std::fs::write(&cast, format!("{}\n{}\n{}\n", json!({"version": 2, "width": 80, "height": 24}), events[0], events[1])).expect("writes");
    root.run(&["import", cast.to_str().expect("a path")]).ok();
    let mut machine = Machine::new(&root, "flood");
    let (_, end) = machine.seek(json!({"to": "end"}));
    let found = root.run(&["search", "needle", "--kind", "output", "--json"]).ok();
    let hits: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        hits.iter().map(|hit| hit["line"].as_str().expect("a line")).collect::<Vec<_>>(),
        ["needle 2500", "needle 1500", "needle 500"]
    );
    for hit in &hits {
        let moment = machine.ask(json!({"request": "seek", "to": "offset", "offset": hit["offset"]}));
        let keyframe = BASE64.decode(moment["keyframe"].as_str().expect("a keyframe")).expect("base64");
        let mut screen = Screen::restore(&Keyframe::from_bytes(&keyframe).expect("a keyframe"));
        assert_eq!(screen.row_text(screen.cursor().row), hit["line"].as_str().expect("a line"), "the last that is to be seen");
        // going on from there, nothing is drawn twice
        let mut drawn = moment["inside"]["drawn"].as_u64().expect("inside of a frame") as usize;
        let after = machine.ask(json!({"request": "records", "from": moment["at"]["offset"]}));
        for record in after["records"].as_array().expect("records").iter().filter(|record| record["what"] == "output") {
            let bytes = BASE64.decode(record["base64"].as_str().expect("bytes")).expect("base64");
            screen.feed(&bytes[std::mem::take(&mut drawn)..], &mut Vec::new());
        }
        assert_eq!(look(&screen), end);
    }
    // one after the other in the player
    let term = Term::open(&root, 80, 26, &["replay", "flood", "--at", "start"]);
    term.wait_for_text("the end");
    term.send(b"g/needle\r");
    for (key, line) in [(&b""[..], "needle 500"), (b"n", "needle 1500"), (b"n", "needle 2500"), (b"N", "needle 1500")] {
        term.send(key);
        term.wait_for(line, |screen| screen.row_text(23) == line);
    }
    term.send(b" ");
    term.wait_for("the rest", |screen| screen.row_text(23) == "the end" && screen.row_text(22) == "line 2999");
}

#[test]
fn packed_segments_seek_and_search_like_plain_ones() {
    let root = Root::new();
    // 40 MB: two segments are closed while it goes on
    let script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); printf 'chapter %s \\033[3%smcoloured\\033[0m begins\\r\\n' $i $((i%8)); \
                  yes \"$i: 0123456789 the quick brown fox jumps over the lazy dog\" | head -c 1000000; done; echo; echo WRITTEN; exec sleep 1000";
    root.start_script("long", script);
    root.run(&["wait", "long", "--for", "text=WRITTEN", "--timeout", "60s"]).ok();
    let dir = root.recording("long");
    let count = |kind: &str| {
        let names =
            std::fs::read_dir(&dir).expect("a folder").filter_map(|entry| entry.expect("an entry").path().to_str().map(str::to_owned));
        names.filter(|name| name.ends_with(kind)).count()
    };
    wait_until("two segments to be packed", || count(".recz") == 2);
    assert_eq!((count(".rec"), count(".index")), (1, 2));
    let mut machine = Machine::new(&root, "long");
    let outline = machine.ask(json!({"request": "replay", "name": "long"}));
    let end = outline["end"]["offset"].as_u64().expect("an end");
    assert!(end > 40_000_000);
    for part in [1, 9, 3, 7, 2, 8, 5] {
        let target = end * part / 10;
        let (at, seen) = machine.seek(json!({"to": "offset", "offset": target}));
        assert!(at <= target && target - at < 100_000, "{at} of {target}");
        // each line begins with the number of its chapter
        let chapter = seen.rows.iter().rev().find_map(|row| row.split_once(':')?.0.parse::<u64>().ok()).expect("a line");
        assert!(chapter.abs_diff(target * 40 / end) <= 2, "chapter {chapter} at {part}/10");
    }
    let found = root.run(&["search", "chapter 7 coloured begins", "--json"]).ok();
    let hit: Value = serde_json::from_str(found.lines().next().expect("a hit")).expect("JSON");
    let (_, seen) = machine.seek(json!({"to": "offset", "offset": hit["offset"]}));
    assert!(seen.rows.iter().any(|row| row.contains("chapter 7")), "the hit is on the screen: {:?}", seen.rows);
    // the program is undisturbed, and so is what it says next
    assert!(root.screen("long").contains("WRITTEN"));
    let disk = root.json(&["stats", "--disk", "--json"]);
    assert!(disk["total"]["packed"].as_u64().expect("packed") < 8_000_000, "{disk}");
}

#[test]
fn what_is_left_of_a_recording_has_its_own_size() {
    let root = Root::new();
    root.start("wide", crate::support::BASH);
    let mut term = Term::open(&root, 140, 40, &["attach", "wide"]);
    wait_until("the new size", || root.session("wide")["size"]["cols"] == 140);
    term.close();
    root.run(&["forget", "wide"]).ok();
    root.run(&["send", "wide", "--enter", "clear; printf '%0120d\\n' 7"]).ok();
    root.wait_screen("wide", "0007");
    let mut machine = Machine::new(&root, "wide");
    let (_, seen) = machine.seek(json!({"to": "end"}));
    assert_eq!(seen.size, Size { cols: 140, rows: 40 });
    assert!(seen.rows.iter().any(|row| row.contains(&format!("{:0120}", 7))), "on one line: {:?}", seen.rows);
}

#[test]
fn a_recording_full_of_marks_opens_and_holds_up_nobody() {
    let root = Root::new();
    root.start_script(
        "marks",
        "python3 -c 'import os\nfor n in range(300): os.write(1, b\"\\x1b]133;C\\x07\" * 1000)\nprint(\"WRITTEN\")'; exec sleep 1000",
    );
    root.run(&["wait", "marks", "--for", "text=WRITTEN", "--timeout", "60s"]).ok();
    let mut machine = Machine::new(&root, "marks");
    let outline = machine.ask(json!({"request": "replay", "name": "marks"}));
    let marks = outline["marks"].as_array().expect("marks").len();
    assert!((1000..=10_000).contains(&marks), "{marks}");
    // marks without commands and ends without beginnings, many of each
    let mut cast = String::from("{\"version\":2,\"width\":80,\"height\":24}\n");
    for n in 0..30_000 {
        cast += if n < 15_000 { "[1,\"m\",\"x\"]\n" } else { "[2,\"o\",\"\\u001b]133;D;1\\u0007\"]\n" };
    }
    root.run_with_input(&["import", "-", "-n", "ends"], cast.as_bytes()).ok();
    assert!(root.run(&["export", "ends"]).ok().contains("133;D"));
    // whoever asks and leaves takes the work with them
    for _ in 0..20 {
        let mut wire = Wire::greeted(&root.socket());
        wire.say(&json!({"id": 1, "request": "replay", "name": "marks"}));
    }
    root.start_script("other", "echo here; exec sleep 1000");
    root.wait_screen("other", "here");
    assert!(root.run(&["export", "other", "--format", "text"]).ok().contains("here"));
}

#[test]
fn bad_requests_get_a_sentence_and_change_nothing() {
    let root = Root::new();
    root.start_script("fine", "echo fine; exec sleep 1000");
    root.wait_screen("fine", "fine");
    let runtime = root.runtime("fine")["id"].clone();
    let mut wire = Wire::greeted(&root.socket());
    for (n, request) in [
        json!({"request": "replay", "name": "nobody"}),
        json!({"request": "replay", "name": "fine", "language": "python"}),
        json!({"request": "seek", "runtime": "01a1e574-aaf3-705b-9ae0-480acbfa6957", "to": "end"}),
        json!({"request": "seek", "runtime": runtime, "to": "sideways"}),
        json!({"request": "seek", "runtime": runtime, "to": "offset", "offset": -1}),
        json!({"request": "seek", "runtime": "not an id", "to": "end"}),
        json!({"request": "records", "runtime": runtime}),
        json!({"request": "find", "runtime": runtime, "pattern": "", "from": 0}),
        json!({"request": "find", "runtime": runtime, "pattern": "a(", "regex": true, "from": 0}),
        json!({"request": "import", "step": "end", "exit_code": 0}),
        json!({"request": "import", "step": "fly"}),
        json!({"request": "forget"}),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = wire.call(n as u64 + 1, request.clone());
        let sentence = answer["failure"]["message"].as_str().unwrap_or_else(|| panic!("{request}: {answer}"));
        assert_eq!(sentence.lines().count(), 1, "{request}: {sentence}");
    }
    // far away is the nearest there is
    let mut machine = Machine::new(&root, "fine");
    let (end, seen) = machine.seek(json!({"to": "offset", "offset": u64::MAX}));
    assert!(seen.rows[0].contains("fine"));
    assert_eq!(machine.seek(json!({"to": "time", "time": u64::MAX})).0, end);
    assert_eq!(machine.seek(json!({"to": "next_change", "from": u64::MAX})).0, end);
    machine.seek(json!({"to": "previous_change", "from": 0}));
    let records = machine.ask(json!({"request": "records", "from": u64::MAX}));
    assert_eq!((&records["records"], &records["at_end"]), (&json!([]), &json!(true)));
}
