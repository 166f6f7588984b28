//! What a dashboard lives on: how busy sessions are, what is on their screens, who needs somebody, how much happened when, and
//! going from one session to the next.

use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};
use shared::screen::{Keyframe, Screen};

use crate::support::term::{DETACH, Habits, contains};
use crate::support::wire::Wire;
use crate::support::{BASH, Root, Term, process, wait_for, wait_until};

const NEXT: &[u8] = b"\x02n";
const PREVIOUS: &[u8] = b"\x02p";

/// Far longer than anything here takes, far shorter than a test waits.
const LONG_MS: u64 = 20_000;

fn id(session: &Value) -> String {
    session["id"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn call(wire: &mut Wire, number: u64, request: Value) -> Value {
    let answer = wire.call(number, request);
    assert!(answer["failure"].is_null(), "{answer}");
    answer["ok"].clone()
}

/// The text of a sight.
#[track_caller]
fn text(sight: &Value) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(sight["keyframe"].as_str().expect("a keyframe")).expect("base64");
    let screen = Screen::restore(&Keyframe::from_bytes(&bytes).expect("a keyframe"));
    let rows: Vec<String> = (0..screen.size().rows).map(|row| screen.row_text(row)).collect();
    rows.join("\n").trim_end().to_owned()
}

#[test]
fn a_pulse_tells_how_busy_a_session_is_and_what_it_runs() {
    let root = Root::new();
    let busy = id(&root.start("busy", BASH));
    let over = id(&root.start_script("over", "true"));
    root.wait_status("over", "completed");
    root.run(&["send", "busy", "--enter", "printf '\\e]2;my title\\a'; sleep 1000 | sleep 1001"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    let unknown = "01a1e427-07d0-7244-bda9-cb777c2d6ba2";
    let pulse = wait_for("the command in the foreground", || {
        let all = call(&mut wire, 1, json!({"request": "pulse", "sessions": [busy, unknown, over]}));
        assert_eq!(all.as_array().map(Vec::len), Some(2), "{all}");
        assert_eq!((&all[1]["session"], &all[1]["output"], &all[1]["cpu_ms"]), (&json!(over), &json!(0), &Value::Null));
        (all[0]["processes"] == 3 && all[0]["foreground"] == "sleep 1000").then(|| all[0].clone())
    });
    assert_eq!(pulse["title"], "my title");
    assert!(pulse["memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{pulse}");
    assert!(pulse["cpu_ms"].is_u64(), "{pulse}");
    // a control character in a command line is only seen
    root.start("odd", &["bash", "-c", "exec -a $'x\\e[31m\\ny' sleep 1000"]);
    let odd = id(&root.session("odd"));
    wait_until("its own name", || call(&mut wire, 2, json!({"request": "pulse", "sessions": [odd]}))[0]["foreground"] == "'x·[31m·y' 1000");
}

#[test]
fn a_pulse_that_waits_is_answered_by_output_by_an_end_and_by_time() {
    let root = Root::new();
    let one = id(&root.start("one", &["cat"]));
    let two = id(&root.start("two", &["sleep", "1000"]));
    let mut wire = Wire::greeted(&root.socket());
    let ask = |seen: u64, wait: u64| json!({"request": "pulse", "sessions": [one, two], "seen": seen, "wait_ms": wait});
    let sum = |all: &Value| all.as_array().expect("pulses").iter().map(|pulse| pulse["output"].as_u64().expect("bytes")).sum::<u64>();
    let seen = sum(&call(&mut wire, 1, ask(u64::MAX, LONG_MS)));
    let began = Instant::now();
    let same = sum(&call(&mut wire, 2, ask(seen, 200)));
    assert!(same == seen && began.elapsed() >= Duration::from_millis(200), "silence is waited out");
    let mut request = ask(seen, LONG_MS);
    request["id"] = json!(3);
    wire.say(&request);
    root.run(&["send", "one", "--enter", "hello"]).ok();
    let more = sum(&wire.line().expect("an answer")["ok"]);
    assert!(more > seen);
    // cat may say it in two parts
    let settled = wait_for("silence", || {
        let first = sum(&call(&mut wire, 4, ask(0, 1)));
        (sum(&call(&mut wire, 5, ask(first, 300))) == first).then_some(first)
    });
    let mut request = ask(settled, LONG_MS);
    request["id"] = json!(6);
    wire.say(&request);
    root.run(&["kill", "two"]).ok();
    let began = Instant::now();
    assert_eq!(wire.line().expect("an answer")["id"], 6);
    assert!(began.elapsed() < Duration::from_secs(10), "an end is news");
}

#[test]
fn looking_shows_the_screen_and_changes_nothing() {
    let root = Root::new();
    root.start("one", BASH);
    root.run(&["send", "one", "--enter", "printf '\\e[31mred\\e[0m'; stty size"]).ok();
    root.wait_screen("one", "24 80");
    let term = Term::open(&root, 80, 24, &["attach", "one"]);
    term.wait_for_text("24 80");
    let (before, events) = (root.session("one"), root.kinds("one"));
    let mut wire = Wire::greeted(&root.socket());
    let first = call(&mut wire, 1, json!({"request": "look", "name": "one"}));
    assert_eq!(text(&first), root.screen("one").trim_end());
    assert_eq!(first["is_live"], true);
    let same = call(&mut wire, 2, json!({"request": "look", "name": "one", "after": first["at"], "wait_ms": 100}));
    assert_eq!(same, json!({"at": first["at"], "keyframe": null, "is_live": true}));
    // what is typed at the attached terminal comes to whoever looks
    wire.say(&json!({"id": 3, "request": "look", "name": "one", "after": first["at"], "wait_ms": LONG_MS}));
    term.send(b"clear; echo typed-$((40 + 2))\r");
    let mut sight = wire.line().expect("an answer")["ok"].clone();
    let mut number = 4;
    while !text(&sight).contains("typed-42") {
        sight = call(&mut wire, number, json!({"request": "look", "name": id(&before), "after": sight["at"], "wait_ms": LONG_MS}));
        number += 1;
    }
    let after = root.session("one");
    assert_eq!((&after["clients"], &after["size"]), (&json!(1), &json!({"cols": 80, "rows": 24})));
    assert_eq!(before["clients"], after["clients"]);
    assert_eq!(root.kinds("one"), events, "looking is no event");
    term.send(b"stty size\r");
    term.wait_for_text("24 80");
    // the size changes while nothing is printed: that is another sight too
    root.start("silent", &["sleep", "1000"]);
    let first = call(&mut wire, 100, json!({"request": "look", "name": "silent"}));
    wire.say(&json!({"id": 101, "request": "look", "name": "silent", "after": first["at"], "wait_ms": LONG_MS}));
    let _second = Term::open(&root, 100, 30, &["attach", "silent"]);
    let sight = wire.line().expect("an answer")["ok"].clone();
    let bytes = base64::engine::general_purpose::STANDARD.decode(sight["keyframe"].as_str().expect("a keyframe")).expect("base64");
    assert_eq!(Keyframe::from_bytes(&bytes).expect("a keyframe").size.cols, 100);
}

#[test]
fn looking_works_without_a_recording_after_the_end_and_at_interpreters() {
    let root = Root::new();
    root.json(&["new", "-d", "--json", "--no-record", "-n", "secret", "--", "cat"]);
    let mut wire = Wire::greeted(&root.socket());
    let first = call(&mut wire, 1, json!({"request": "look", "name": "secret"}));
    wire.say(&json!({"id": 2, "request": "look", "name": "secret", "after": first["at"], "wait_ms": LONG_MS}));
    root.run(&["send", "secret", "--enter", "unwritten"]).ok();
    let mut sight = wire.line().expect("an answer")["ok"].clone();
    let mut number = 3;
    while text(&sight) != "unwritten\nunwritten" {
        sight = call(&mut wire, number, json!({"request": "look", "name": "secret", "after": sight["at"], "wait_ms": LONG_MS}));
        number += 1;
    }
    // and its output counts in a pulse, recorded or not
    let secret = id(&root.session("secret"));
    let pulse = call(&mut wire, 90, json!({"request": "pulse", "sessions": [secret]}));
    assert!(pulse[0]["output"].as_u64().is_some_and(|bytes| bytes >= 20), "{pulse}");

    // an end is told to whoever waits; what stays is shown, and not built again for somebody who has it
    root.start_script("over", "echo last words; read");
    root.wait_screen("over", "last words");
    let live = call(&mut wire, 100, json!({"request": "look", "name": "over"}));
    wire.say(&json!({"id": 101, "request": "look", "name": "over", "after": live["at"], "wait_ms": LONG_MS}));
    root.run(&["kill", "over"]).ok();
    let last = wire.line().expect("an answer")["ok"].clone();
    assert_eq!((last["is_live"].as_bool(), text(&last).as_str()), (Some(false), "last words"), "{last}");
    let same = call(&mut wire, 102, json!({"request": "look", "name": "over", "after": last["at"]}));
    assert_eq!(same, json!({"at": last["at"], "keyframe": null, "is_live": false}));
    root.kill_daemon();
    root.run(&["ls"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    assert_eq!(call(&mut wire, 1, json!({"request": "look", "name": "over", "after": last["at"]})), same);
    assert_eq!(text(&call(&mut wire, 2, json!({"request": "look", "name": "over"}))), "last words");
    // until it goes on
    wire.say(&json!({"id": 3, "request": "look", "name": "over", "after": last["at"], "wait_ms": LONG_MS}));
    root.start("over", &["sleep", "1000"]);
    assert_eq!(wire.line().expect("an answer")["ok"]["is_live"], true);

    root.record("calls", &[]);
    root.run(&["exec", "-s", "calls", "-l", "python", "print('from ' + 'python')"]).ok();
    let sight = call(&mut wire, 4, json!({"request": "look", "name": "calls"}));
    assert!(text(&sight).contains("from python"), "{}", text(&sight));
    let sight = call(&mut wire, 5, json!({"request": "look", "name": "calls", "language": "python"}));
    assert!(text(&sight).contains("from python"));
    root.json(&["new", "--no-run", "--json", "-n", "record"]);
    let refused = wire.call(6, json!({"request": "look", "name": "record"}));
    assert_eq!(refused["failure"]["code"], "status", "{refused}");
}

#[test]
fn looking_at_floods_starves_nobody() {
    let root = Root::new();
    let sessions: Vec<String> = (0..4).map(|n| id(&root.start(&format!("flood{n}"), &["yes", "a line that is repeated"]))).collect();
    root.start("quiet", &["cat"]);
    let mut wire = Wire::greeted(&root.socket());
    let mut number = 0;
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(3) {
        for session in &sessions {
            number += 1;
            let asked = Instant::now();
            let sight = call(&mut wire, number, json!({"request": "look", "name": session}));
            slowest = slowest.max(asked.elapsed());
            assert!(text(&sight).contains("a line that is repeated"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(slowest < Duration::from_secs(2), "a look took {slowest:?}");
    let asked = Instant::now();
    root.run(&["send", "quiet", "--enter", "still here"]).ok();
    root.wait_screen("quiet", "still here\nstill here");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(root.session("flood0")["clients"], 0);
    root.run(&["kill", "flood0"]).ok();
}

fn needs(root: &Root, name: &str) -> (String, String) {
    let needs = root.session(name)["needs"].clone();
    (needs["state"].as_str().unwrap_or("none").to_owned(), needs["why"].as_str().unwrap_or_default().to_owned())
}

#[track_caller]
fn wait_needs(root: &Root, name: &str, state: &str) {
    wait_until(&format!("{name} to be {state}, not {:?}", needs(root, name)), || needs(root, name).0 == state);
}

#[test]
fn what_a_program_says_of_itself_is_evidence() {
    let root = Root::new();
    let script = "say() { printf '\\e]7501;%s\\a' \"$1\"; }; while read -r line; do say \"$line\"; done";
    root.start_script("agent", script);
    assert_eq!(needs(&root, "agent"), ("unknown".into(), "nothing has said anything".into()));
    let tell = |report: &str| root.run(&["send", "agent", "--enter", report]).ok();
    tell("state=working:app=codex");
    wait_needs(&root, "agent", "working");
    tell("state=blocked:app=codex:kind=permission:msg=YXBwcm92ZSBCYXNo");
    root.run(&["wait", "agent", "--for", "attention=waiting_approval", "--timeout", "20s"]).ok();
    assert_eq!(needs(&root, "agent"), ("waiting_approval".into(), "approve Bash".into()));
    assert!(root.run(&["ls"]).ok().lines().any(|line| line.starts_with("agent  ?")));
    wait_until("the event that tells of it", || {
        root.events("agent").iter().any(|event| event["type"] == "status" && event["data"]["state"] == "waiting_approval")
    });
    // a daemon that comes later finds it in the recording
    root.kill_daemon();
    assert_eq!(needs(&root, "agent"), ("waiting_approval".into(), "approve Bash".into()));
    let told = root.events("agent").len();
    // being looked at answers no question; being typed into does
    let mut wire = Wire::greeted(&root.socket());
    call(&mut wire, 1, json!({"request": "seen", "name": "agent"}));
    assert_eq!(needs(&root, "agent").0, "waiting_approval");
    assert_eq!(root.events("agent").len(), told, "nothing is told again");
    tell("state=done:app=codex");
    wait_needs(&root, "agent", "done_unseen");
    call(&mut wire, 2, json!({"request": "seen", "name": "agent"}));
    assert_eq!(needs(&root, "agent"), ("idle".into(), "codex is done".into()));
    root.kill_daemon();
    assert_eq!(needs(&root, "agent"), ("idle".into(), "codex is done".into()), "what was seen stays seen");
    let failure = root.run(&["wait", "agent", "--for", "attention=bored"]).refused(2);
    assert!(failure.contains("waiting_approval"), "{failure}");
}

#[test]
fn notifications_bells_and_shells_are_heard_but_not_too_often() {
    let root = Root::new();
    root.start_script("loud", "read; printf '\\e]9;look at this\\a'; read; for n in $(seq 2000); do printf '\\a'; done; read; read");
    root.run(&["send", "loud", "--enter", ""]).ok();
    wait_needs(&root, "loud", "waiting_answer");
    assert_eq!(needs(&root, "loud").1, "look at this");
    wait_until("the event", || {
        root.events("loud").iter().any(|event| event["type"] == "notification" && event["data"]["text"] == "look at this")
    });
    // a look is no answer, and neither is an attachment
    let mut wire = Wire::greeted(&root.socket());
    call(&mut wire, 1, json!({"request": "seen", "name": "loud"}));
    assert_eq!(needs(&root, "loud").0, "waiting_answer");
    let mut looks = Term::open(&root, 80, 24, &["attach", "loud"]);
    wait_until("the client", || root.session("loud")["clients"] == 1);
    looks.send(DETACH);
    looks.wait_exit();
    wait_needs(&root, "loud", "waiting_answer");
    // typing is
    let mut term = Term::open(&root, 80, 24, &["attach", "loud"]);
    wait_until("the client", || root.session("loud")["clients"] == 1);
    assert_eq!(needs(&root, "loud").0, "unknown", "somebody is there");
    term.send(b"\r");
    term.send(DETACH);
    term.wait_exit();
    wait_until("bells", || root.kinds("loud").iter().any(|kind| kind == "bell"));
    let bells = root.kinds("loud").iter().filter(|kind| *kind == "bell").count();
    assert!(bells <= 3, "{bells} events of bells");
    root.start_script("shell", "printf '\\e]133;A\\a$ '; read; printf '\\e]133;C\\a'; read; printf '\\e]133;D;0\\a\\e]133;A\\a'; read");
    wait_needs(&root, "shell", "idle");
    root.run(&["send", "shell", "--enter", ""]).ok();
    wait_needs(&root, "shell", "working");
    root.run(&["send", "shell", "--enter", ""]).ok();
    wait_needs(&root, "shell", "idle");
    let refused = root.run(&["event", "shell", "notification"]).refused(2);
    assert!(refused.contains("only told by the daemon"), "{refused}");
}

#[test]
fn what_has_ended_is_news_until_somebody_has_looked() {
    let root = Root::new();
    for name in ["looked", "attached", "watched"] {
        root.start_script(name, "read; exit 3");
    }
    root.start_script("good", "true");
    root.wait_status("good", "completed");
    assert_eq!(needs(&root, "good"), ("done_unseen".into(), "completed".into()));
    for name in ["looked", "attached"] {
        root.run(&["send", name, "--enter", ""]).ok();
        root.wait_status(name, "failed");
        assert_eq!(needs(&root, name), ("done_unseen".into(), "failed: exit code 3".into()));
    }
    assert!(root.run(&["ls"]).ok().lines().any(|line| line.starts_with("looked    *")));
    // somebody who is there when it ends sees it
    let mut term = Term::open(&root, 80, 24, &["attach", "watched"]);
    wait_until("the client", || root.session("watched")["clients"] == 1);
    term.send(b"\r");
    term.wait_exit();
    wait_until("its end to be seen", || root.session("watched")["needs"].is_null());
    Wire::greeted(&root.socket()).call(1, json!({"request": "seen", "name": "looked"}));
    let mut term = Term::open(&root, 80, 24, &["attach", "attached"]);
    assert_ne!(term.wait_exit(), 0);
    root.kill_daemon();
    for name in ["looked", "attached", "watched"] {
        assert!(root.session(name)["needs"].is_null(), "{name}");
    }
    assert_eq!(needs(&root, "good").0, "done_unseen");
    // whoever ends it knows; one that waits or is paused needs nobody
    root.start("killed", &["sleep", "1000"]);
    root.run(&["pause", "killed"]).ok();
    assert!(root.session("killed")["needs"].is_null());
    root.run(&["resume", "killed"]).ok();
    assert_eq!(needs(&root, "killed").0, "unknown");
    root.run(&["kill", "killed"]).ok();
    assert!(root.session("killed")["needs"].is_null());
    let missing = Wire::greeted(&root.socket()).call(1, json!({"request": "seen", "name": "nobody"}));
    assert_eq!(missing["failure"]["code"], "not_found", "{missing}");
}

#[test]
fn a_calendar_counts_sessions_by_day_and_events_by_hour() {
    let root = Root::new();
    for name in ["a", "b"] {
        root.record(name, &["--mode", name]);
    }
    root.run(&["complete", "a"]).ok();
    // three days ago, at this very time
    root.sql("UPDATE sessions SET created_at = created_at - 3 * 86400000000 WHERE mode = 'b'");
    let mut wire = Wire::greeted(&root.socket());
    let ask = |more: Value| {
        let mut request = json!({"request": "calendar", "days": 7});
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        request
    };
    let calendar = call(&mut wire, 1, ask(json!({})));
    let days = calendar["days"].as_array().expect("days");
    assert_eq!(days.len(), 7);
    assert_eq!(
        (&days[6]["by_status"], &days[3]["by_status"], &days[5]["by_status"]),
        (&json!({"completed": 1}), &json!({"active": 1}), &json!({}))
    );
    let today: String = root.database().query_row("SELECT date('now', 'localtime')", [], |row| row.get(0)).expect("a date");
    assert_eq!(days[6]["date"], today);
    let sum = |calendar: &Value| -> u64 {
        let hours = calendar["hours"].as_array().expect("hours");
        assert!(hours.len() == 7 && hours.iter().all(|day| day.as_array().map(Vec::len) == Some(24)));
        hours.iter().flat_map(|day| day.as_array().expect("a day")).map(|count| count.as_u64().expect("a count")).sum()
    };
    let all = (root.events("a").len() + root.events("b").len()) as u64;
    assert_eq!(sum(&calendar), all);
    assert_eq!(sum(&call(&mut wire, 2, ask(json!({"mode": "a"})))), root.events("a").len() as u64);
    // what comes later is counted once, whoever is the daemon
    root.run(&["event", "b", "deployed"]).ok();
    assert_eq!(sum(&call(&mut wire, 3, ask(json!({})))), all + 1);
    root.kill_daemon();
    root.run(&["event", "b", "deployed"]).ok();
    let mut wire = Wire::greeted(&root.socket());
    assert_eq!(sum(&call(&mut wire, 4, ask(json!({})))), all + 2);
    for (days, expected) in [(0, 1), (1, 1), (100_000, 366)] {
        let calendar = call(&mut wire, 5, json!({"request": "calendar", "days": days}));
        assert_eq!(calendar["days"].as_array().map(Vec::len), Some(expected));
    }
    // what is removed takes its sums with it
    root.run(&["rm", "a"]).ok();
    let left = root.events("b").len() as u64;
    assert_eq!(sum(&call(&mut wire, 6, ask(json!({})))), left);
}

#[test]
fn keys_go_from_session_to_session() {
    let root = Root::new();
    for name in ["one", "two", "three"] {
        root.start_script(name, &format!("echo this is {name}; exec cat"));
        root.wait_screen(name, &format!("this is {name}"));
    }
    root.start_script("over", "true");
    root.wait_status("over", "completed");
    root.record("record", &[]);
    let habits = Habits { keeps_history: true, ..Habits::default() };
    let mut term = Term::open_with(&root, 80, 24, &["attach", "one"], habits);
    term.wait_for_text("this is one");
    for (keys, name) in [(NEXT, "two"), (NEXT, "three"), (NEXT, "one"), (PREVIOUS, "three"), (PREVIOUS, "two")] {
        term.send(keys);
        term.wait_for(&format!("{name} alone"), |screen| screen.row_text(0) == format!("this is {name}") && screen.row_text(1).is_empty());
        wait_until("one client, in the right place", || {
            ["one", "two", "three"].iter().all(|other| root.session(other)["clients"] == u64::from(*other == name))
        });
    }
    term.send(b"typed here\r");
    root.wait_screen("two", "typed here\ntyped here");
    assert!(!contains(&term.bytes(), b"[detached"), "the shell is never seen in between");
    let scrolled = term.history().iter().filter(|line| line.contains("this is three")).count();
    assert_eq!(scrolled, 0, "what was only switched away from does not fill the scrollback");
    term.send(b"\x02?");
    term.wait_for_text("n/p other session");
    term.send(DETACH);
    assert_eq!(term.wait_exit(), 0);
    assert!(term.text().contains("[detached from two]"), "{}", term.text());
    assert!(term.is_cooked());
}

#[test]
fn switching_survives_the_daemon_and_stays_where_there_is_no_other() {
    let root = Root::new();
    root.start_script("vi", "printf '\\e[?1049h\\e[?1000h\\e[2J\\e[Hfull screen'; exec cat");
    root.wait_screen("vi", "full screen");
    let mut term = Term::open(&root, 80, 24, &["attach", "vi"]);
    term.wait_for_text("full screen");
    assert!(term.is_alternate());
    term.send(NEXT);
    term.send(b"alone\r");
    root.wait_screen("vi", "alone");
    term.wait_for_text("alone");
    assert!(term.is_alternate());
    root.start_script("plain", "echo plain; exec cat");
    root.wait_screen("plain", "plain");
    term.send(NEXT);
    term.wait_for("the other, on the main screen", |screen| screen.row_text(0) == "plain" && !screen.is_alternate());
    let pid = root.kill_daemon();
    wait_until("another daemon", || root.daemons().iter().any(|daemon| *daemon != pid && process::is_alive(*daemon)));
    wait_until("the client to be back", || root.session("plain")["clients"] == 1);
    term.send(PREVIOUS);
    term.wait_for("the first again", |screen| screen.is_alternate() && screen.row_text(0).contains("full screen"));
    term.send(DETACH);
    assert_eq!(term.wait_exit(), 0);
    assert!(!term.is_alternate());
}
