//! Views as snapshots, at the sizes people have.

mod list;

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shared::attention::Attention;
use shared::event::Author;
use shared::exec::{HistoryEntry, Language, Stage, Verb};
use shared::id::{ExecId, RuntimeId, SessionId, ThreadId};
use shared::live::{Calendar, Day, Pulse, Sight};
use shared::message::Attached;
use shared::screen::{Screen, Size};
use shared::search::{Hit, Kind, SearchSummary};
use shared::session::{Session, Status};
use shared::stats::{Disk, DiskUse, SessionDisk, Stats};

use super::draw;
use crate::dashboard::app::App;
use crate::dashboard::app::tests::{app, press};
use crate::dashboard::event::{Asked, Effect, Event, PaneNews, PaneOrder, Reply};
use crate::dashboard::state::tests::{needing, session};

const SIZES: [(u16, u16); 3] = [(80, 24), (40, 15), (160, 50)];

/// Where a text begins, by column and row.
pub fn find(app: &App, text: &str) -> Option<(u16, u16)> {
    drawn(app).lines().enumerate().find_map(|(row, line)| {
        let at = line.find(text)?;
        Some((shared::text::columns(&line[..at]) as u16, row as u16))
    })
}

pub fn drawn(app: &App) -> String {
    let (width, height) = (app.area.width, app.area.height);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
    terminal.draw(|frame| draw(app, frame)).expect("draws");
    let buffer = terminal.backend().buffer().clone();
    let row = |y| {
        let mut text = String::new();
        let mut skip = 0;
        for x in 0..width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = shared::text::columns(symbol).saturating_sub(1);
            text.push_str(symbol);
        }
        text.trim_end().to_owned()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

/// Ids are made anew each time: their digits are no part of a picture.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() > 12 && word.as_bytes()[8] == b'-' && word.bytes().take(8).all(|byte| byte.is_ascii_hexdigit());
    let zeros = |word: &str| word.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect::<String>();
    let line =
        |line: &str| line.split(' ').map(|word| if is_id(word) { zeros(word) } else { word.to_owned() }).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn snapshot(name: &str, mut make: impl FnMut(u16, u16) -> App) {
    for (width, height) in SIZES {
        let text = without_ids(&drawn(&make(width, height)));
        for line in text.lines() {
            assert!(shared::text::columns(line) <= usize::from(width), "{name} at {width}: {line}");
        }
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), text);
    }
}

fn sessions() -> Vec<Session> {
    let mut api = session("api", Status::Active);
    api.command = vec!["npm".into(), "run".into(), "dev".into()];
    api.workspace = "/home/me/src/api".into();
    let mut agent = needing("agent-login", Attention::WaitingApproval);
    agent.task = Some("Fix the login of users whose cache is cold".into());
    agent.iterations = 47;
    agent.mode = Some("developer".into());
    let mut wide = session("größe-世界", Status::Paused);
    wide.status_reason = Some("the office closes".into());
    let mut evil = session("evil\x1b[31m", Status::Failed);
    evil.status_reason = Some("exit code 3".into());
    evil.ended_at = Some(jiff::Timestamp::UNIX_EPOCH);
    let done = needing("docs", Attention::DoneUnseen);
    vec![api, agent, wide, evil, done]
}

fn sight(text: &str) -> Sight {
    use base64::Engine;
    let mut screen = Screen::new(Size { cols: 60, rows: 12 });
    screen.feed(text.as_bytes(), &mut Vec::new());
    Sight { at: 9, keyframe: Some(base64::engine::general_purpose::STANDARD.encode(screen.keyframe().to_bytes())), is_live: true }
}

/// With screens and pulses of all that are looked at.
fn alive(width: u16, height: u16) -> App {
    let mut app = app(width, height, sessions());
    let ids: Vec<SessionId> = app.list.all.iter().map(|session| session.id).collect();
    let pulse = |n: u64, session: SessionId, output: u64| Pulse {
        session,
        output,
        cpu_ms: Some(output / 10),
        memory: Some((n * 40) << 20),
        processes: Some(3),
        foreground: Some("node server.js".into()),
        title: None,
        unreachable: None,
    };
    for at in 0..4u64 {
        let pulses = ids.iter().enumerate().map(|(n, id)| pulse(n as u64, *id, at * at * 700 * n as u64)).collect();
        app.update(Event::Answer(Asked::Pulse(1), Box::new(Reply::Pulses(pulses))));
        let later = app.at + jiff::SignedDuration::from_secs(2);
        app.update(Event::Time { now: app.now + Duration::from_secs(2), at: later });
    }
    for id in ids {
        let text = "\x1b[32m➜\x1b[0m listening on \x1b[1m:8080\x1b[0m\r\n10:00:01 GET /login 200\r\n世界 ünïcode\r\n$ ";
        app.update(Event::Answer(Asked::Look(id), Box::new(Reply::Sight(sight(text)))));
    }
    app
}

#[test]
fn the_first_run_teaches() {
    snapshot("empty", |width, height| app(width, height, Vec::new()));
}

#[test]
fn sessions_with_a_live_preview() {
    snapshot("sessions", alive);
}

#[test]
fn grouped_selected_and_filtered() {
    snapshot("grouped", |width, height| {
        let mut app = alive(width, height);
        press(&mut app, "B space space / a");
        app
    });
}

#[test]
fn tiles() {
    snapshot("grid", |width, height| {
        let mut app = alive(width, height);
        press(&mut app, "t");
        alive_tiles(&mut app);
        app
    });
}

/// What code printed in two sessions.
fn printed() -> crate::dashboard::state::output::Output {
    use crate::dashboard::state::output::{Output, tests::result};
    let mut output = Output::new(0, "cargo test");
    let lines = (1..=30).map(|n| format!("test unit::number_{n} ... ok")).collect::<Vec<_>>().join("\n");
    output.take(1, &result("api", &lines, "warning: unused variable\n", 0));
    output.take(2, &result("web", "", "error: no such command: `test`\n", 101));
    output
}

#[test]
fn d3_what_code_printed_is_a_page() {
    snapshot("output", |width, height| {
        let mut app = alive(width, height);
        app.output = Some(printed());
        press(&mut app, "o");
        app
    });
    let mut app = alive(80, 24);
    app.output = Some(printed());
    press(&mut app, "o G");
    assert!(find(&app, "error: no such command").is_some(), "{}", drawn(&app));
    press(&mut app, "g");
    assert!(find(&app, "number_1 ").is_some(), "{}", drawn(&app));
    press(&mut app, "esc");
    assert!(app.shows_sessions());
}

#[test]
fn a11_a_holder_that_cannot_be_reached_is_seen() {
    let unreachable = |width, height| {
        let mut list = sessions();
        list[0].unreachable = Some("its holder (pid 4711) is stopped: `kill -CONT 4711` lets it go on".into());
        app(width, height, list)
    };
    snapshot("unreachable", unreachable);
    let mut app = unreachable(120, 40);
    press(&mut app, "/ a p i enter i");
    assert!(find(&app, "unreachable").is_some() && find(&app, "kill -CONT 4711").is_some(), "{}", drawn(&app));
}

fn alive_tiles(app: &mut App) {
    let ids: Vec<SessionId> = app.list.all.iter().map(|session| session.id).collect();
    for id in ids {
        app.update(Event::Answer(Asked::Look(id), Box::new(Reply::Sight(sight("tile\r\n$ ")))));
    }
}

#[test]
fn a_terminal_beside_the_list() {
    snapshot("split", |width, height| {
        let mut app = alive(width, height);
        press(&mut app, "/ a p i enter");
        let opened = press(&mut app, "tab");
        let turn = opened.iter().find_map(|effect| match effect {
            Effect::Pane(PaneOrder::Open { turn, .. }) => Some(*turn),
            _ => None,
        });
        let turn = turn.unwrap_or_else(|| panic!("{opened:?}"));
        let attached = Attached {
            session: SessionId::new(),
            name: "api".into(),
            control: true,
            direct: false,
            ended: None,
            runtime: None,
            taken: None,
        };
        app.update(Event::Pane(turn, PaneNews::Attached(Box::new(attached))));
        app.update(Event::Pane(turn, PaneNews::Output(b"$ vim\r\n\x1b[7m-- INSERT --\x1b[0m".to_vec())));
        app
    });
}

#[test]
fn overlays() {
    for (name, keys) in [("help", "?"), ("new", "n"), ("palette", ": k i l"), ("confirm", "x"), ("prompt", "j j s h i")] {
        snapshot(name, |width, height| {
            let mut app = alive(width, height);
            press(&mut app, keys);
            app
        });
    }
}

#[test]
fn detail_pages() {
    for (name, keys) in
        [("detail_layers", "i"), ("detail_events", "i tab"), ("detail_commands", "i tab tab"), ("detail_context", "i tab tab tab")]
    {
        snapshot(name, |width, height| {
            let mut list = sessions();
            list[1].context = serde_json::json!({"next": {"step": "write the missing test", "files": ["a.rs", "b.rs"]}, "tries": 3});
            list[1].runtime = Some(RuntimeId::new());
            let id = list[1].id;
            let mut app = app(width, height, list);
            press(&mut app, keys);
            let event = |seq: i64, kind: &str| shared::event::Event {
                seq,
                n: 1,
                session: id,
                thread: ThreadId::new(),
                name: "agent-login".into(),
                at: jiff::Timestamp::UNIX_EPOCH,
                author: Author::Agent,
                kind: kind.into(),
                data: serde_json::json!({"phase": "analysis", "evil": "\x1b]0;x\x07"}),
            };
            let events = vec![event(3, "error"), event(2, "iteration"), event(1, "start")];
            app.update(Event::Answer(Asked::Events(id), Box::new(Reply::Events(events))));
            let call = HistoryEntry {
                exec_id: ExecId::new(),
                command: "pytest -q\nand more".into(),
                verb: Verb::Exec,
                language: Language::Bash,
                stage: Stage::Finished,
                exit_code: Some(1),
                duration: Some(1234.0),
                started_at: jiff::Timestamp::UNIX_EPOCH,
                author: Author::Agent,
                session: id,
            };
            app.update(Event::Answer(Asked::Calls(id), Box::new(Reply::Calls(vec![call]))));
            app
        });
    }
}

#[test]
fn searching() {
    snapshot("search", searched);
}

/// Hits of a search, in the order in which they came.
fn searched(width: u16, height: u16) -> App {
    let mut app = app(width, height, sessions());
    press(&mut app, "ctrl-s");
    press(&mut app, "r e f u s e d");
    let later = app.at + jiff::SignedDuration::from_secs(1);
    let begun = app.update(Event::Time { now: app.now + Duration::from_secs(1), at: later });
    let turn = begun.iter().find_map(|effect| if let Effect::Search(turn, _) = effect { Some(*turn) } else { None });
    let turn = turn.unwrap_or_else(|| panic!("{begun:?}"));
    for n in 0..30 {
        let line = format!("{} connect ECONNREFUSED: connection refused by 10.0.0.{n}\x1b[31m", "very long ".repeat(n % 7));
        let start = line.find("refused").unwrap_or(0);
        let hit = Hit {
            session: SessionId::new(),
            name: "api".into(),
            thread: ThreadId::new(),
            kind: Kind::Output,
            part: None,
            at: jiff::Timestamp::UNIX_EPOCH,
            runtime: None,
            offset: None,
            exec: None,
            language: None,
            exit_code: None,
            author: None,
            line,
            ranges: vec![(start, start + 7)],
            perceived: None,
            before: vec![],
            after: vec![],
            times: 1 + n as u64 % 3,
        };
        app.update(Event::Hit(turn, Box::new(hit)));
    }
    let summary = SearchSummary { hits: 30, sessions: 1, searched_bytes: 5_000_000, took_ms: 12.0, ..SearchSummary::default() };
    app.update(Event::Found(turn, Ok(summary)));
    press(&mut app, "enter down");
    app
}

#[test]
fn statistics() {
    snapshot("statistics", counted);
}

fn counted(width: u16, height: u16) -> App {
    let mut app = app(width, height, sessions());
    press(&mut app, "T");
    let stats = Stats {
        total: 120,
        by_status: [("active", 5), ("completed", 90), ("failed", 25)].map(|(status, count)| (status.to_owned(), count)).into(),
        by_mode: [("developer", 70), ("review", 20)].map(|(mode, count)| (mode.to_owned(), count)).into(),
        success_rate: Some(0.78),
        average_iterations: Some(7.5),
        average_duration_ms: Some(95_000.0),
        p95_duration_ms: Some(600_000),
        execs: 4321,
        recorded_bytes: 3 << 30,
        ..Stats::default()
    };
    app.update(Event::Answer(Asked::Stats, Box::new(Reply::Stats(Box::new(stats)))));
    let day = |n: u64| Day {
        date: format!("2026-11-{:02}", n + 1),
        by_status: [("completed".to_owned(), n % 7), ("failed".to_owned(), n % 3)].into(),
    };
    let hours =
        (0..7).map(|day| (0..24).map(|hour| if (8..18).contains(&hour) && day < 5 { hour * (day + 1) } else { 0 }).collect()).collect();
    let calendar = Calendar { days: (0..28).map(day).collect(), hours };
    app.update(Event::Answer(Asked::Calendar, Box::new(Reply::Calendar(calendar))));
    let of = |bytes| DiskUse { bytes, plain: bytes / 4, packed: bytes / 2, index: bytes / 4 };
    let disk = |name: &str, bytes| SessionDisk { session: SessionId::new(), name: name.into(), status: Status::Active, disk: of(bytes) };
    let disk = Disk {
        total: of(9 << 20),
        limit: Some(20 << 30),
        free: Some(50 << 30),
        sessions: vec![disk("api", 6 << 20), disk("docs", 3 << 20)],
        unknown: 0,
    };
    app.update(Event::Answer(Asked::Disk, Box::new(Reply::Disk(disk))));
    app
}

#[test]
fn messages_and_banners() {
    snapshot("messages", |width, height| {
        let mut app = alive(width, height);
        app.say("api is running");
        app.fail(
            "cannot pause: session docs is completed; nothing was changed, and this sentence is long enough to be wrapped in any window",
        );
        press(&mut app, "m");
        app
    });
    snapshot("lost", |width, height| {
        let mut app = alive(width, height);
        app.update(Event::Lost);
        app
    });
}

#[test]
fn a_narrow_search_says_how_to_go_on() {
    let mut app = app(40, 15, sessions());
    press(&mut app, "ctrl-s");
    assert!(find(&app, "enter to the hits").is_some() && find(&app, "esc back").is_some(), "{}", drawn(&app));
}

#[test]
fn statistics_scroll_to_their_end_and_back_at_once() {
    for (width, height) in SIZES {
        let mut app = counted(width, height);
        press(&mut app, "G");
        let end = drawn(&app);
        press(&mut app, "j");
        assert_eq!(drawn(&app), end, "there is no more");
        press(&mut app, "k");
        assert_eq!(drawn(&app) == end, height == 50, "only what does not fit scrolls");
        press(&mut app, "G");
        app.update(Event::Resized(ratatui::layout::Rect::new(0, 0, width, 20)));
        press(&mut app, "g");
        assert!(find(&app, "all sessions").is_some());
    }
}

#[test]
fn any_size_is_drawn() {
    for width in [1, 5, 19, 20, 33, 61, 109, 110, 300] {
        for height in [1, 4, 5, 7, 17, 20, 80] {
            for keys in ["?", "n", ":", "x", "t", "i", "T", "m", "ctrl-s", "tab", "B", "/ z z z", "/"] {
                let mut app = alive(width, height);
                press(&mut app, keys);
                drawn(&app);
            }
        }
    }
}

/// The contrast of two colours, as WCAG computes it.
fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let light = |(red, green, blue): (u8, u8, u8)| {
        let linear = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// A colour of xterm's 256 beyond the first sixteen.
fn of_index(index: u8) -> (u8, u8, u8) {
    let level = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
    match index {
        232.. => (8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10),
        _ => (level((index - 16) / 36), level((index - 16) / 6 % 6), level((index - 16) % 6)),
    }
}

#[test]
fn every_text_has_enough_contrast_on_dark_and_light_terminals() {
    use crate::theme::Theme;
    use ratatui::style::{Color, Modifier};
    let grounds = [(Theme::dark(), DARK), (Theme::light(), LIGHT)];
    let mut checked = 0;
    for (theme, grounds) in grounds {
        for keys in ["j", "space j", "t", "t j", "?", "n", ":", "x", "s", "i", "T", "m", "/ a", "o", "hits", "!", "B", "R", "lost"] {
            let mut app = if keys == "hits" { searched(120, 40) } else { app(120, 40, sessions()) };
            app.output = Some(printed());
            app.theme = theme.clone();
            match keys {
                "hits" => {}
                "lost" => drop(app.update(Event::Lost)),
                keys => drop(press(&mut app, keys)),
            }
            let mut terminal = Terminal::new(TestBackend::new(120, 40)).expect("a backend");
            terminal.draw(|frame| draw(&app, frame)).expect("draws");
            let buffer = terminal.backend().buffer();
            for (at, cell) in buffer.content().iter().enumerate() {
                let is_text = cell.symbol().chars().any(|c| c.is_alphanumeric() || c.is_ascii_punctuation());
                if !is_text {
                    continue;
                }
                for (ground, usual) in grounds {
                    let colour = |colour: Color, reset| match colour {
                        Color::Reset => reset,
                        Color::Indexed(index) if index >= 16 => of_index(index),
                        other => panic!("{other:?} is not a colour of these themes"),
                    };
                    let (mut fg, mut bg) = (colour(cell.fg, usual), colour(cell.bg, ground));
                    if cell.modifier.contains(Modifier::REVERSED) {
                        std::mem::swap(&mut fg, &mut bg);
                    }
                    let ratio = contrast(fg, bg);
                    assert!(
                        ratio >= 4.5,
                        "{keys}: {:?} at {},{} has {ratio:.1}:1 ({:?} on {:?})",
                        cell.symbol(),
                        at % 120,
                        at / 120,
                        cell.fg,
                        cell.bg
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}

/// Backgrounds that terminals have, each with the colour of its text.
type Ground = ((u8, u8, u8), (u8, u8, u8));
const DARK: [Ground; 3] = [((0, 0, 0), (229, 229, 229)), ((30, 30, 30), (229, 229, 229)), ((0, 43, 54), (238, 232, 213))];
const LIGHT: [Ground; 3] = [((255, 255, 255), (0, 0, 0)), ((253, 246, 227), (7, 54, 66)), ((240, 240, 240), (30, 30, 30))];

#[test]
fn d1_every_style_of_text_has_enough_contrast_on_every_background_it_is_drawn_on() {
    use crate::theme::Theme;
    use ratatui::style::{Color, Style};
    for (theme, grounds) in [(Theme::dark(), DARK), (Theme::light(), LIGHT)] {
        // a style that is added has to be named here
        #[rustfmt::skip]
        let Theme {
            text, dim, strong, accent, good, warn, bad, note, cursor, selected, border: _, focus, banner, found, is_plain: _, has_colours: _,
        } = theme.clone();
        let mut texts = vec![
            ("text", text),
            ("dim", dim),
            ("strong", strong),
            ("accent", accent),
            ("good", good),
            ("warn", warn),
            ("bad", bad),
            ("note", note),
            ("focus", focus),
            ("banner", banner),
            ("found", found),
        ];
        texts.extend(Attention::ALL.map(|state| (state.as_str(), theme.attention(state))));
        texts.extend(Status::ALL.map(|status| (status.as_str(), theme.status(status))));
        for (name, style) in texts {
            for (under, over) in [("nothing", Style::new()), ("cursor", cursor), ("selected", selected), ("both", selected.patch(cursor))] {
                // what has a background of its own keeps it in every row
                let drawn = if style.bg.is_some() { style } else { style.patch(over) };
                for (ground, usual) in grounds {
                    let rgb = |colour: Option<Color>, reset| match colour {
                        None | Some(Color::Reset) => reset,
                        Some(Color::Indexed(index)) if index >= 16 => of_index(index),
                        Some(other) => panic!("{other:?} is not a colour of these themes"),
                    };
                    let ratio = contrast(rgb(drawn.fg, usual), rgb(drawn.bg, ground));
                    assert!(ratio >= 4.5, "{name} over {under} on {ground:?} has {ratio:.1}:1");
                }
            }
        }
    }
}
