//! The list: its columns, what they say, and the line above.

use super::*;

/// The titles of the columns.
fn titles(app: &App) -> String {
    let line = drawn(app).lines().nth(1).unwrap_or_default().to_owned();
    line.split('│').next().unwrap_or_default().to_owned()
}

#[test]
fn columns_stay_where_they_are_while_one_scrolls() {
    let mut list: Vec<Session> = (0..100).map(|n| session(&format!("s{n:03}"), Status::Active)).collect();
    list[60].name = "a-name-that-is-much-longer-than-all-the-others".into();
    list[61].status_reason = Some("a reason that is longer than any other".into());
    list[62].workspace = "/somewhere/far/below/everything/else".into();
    for (width, height) in [(40, 15), (80, 24), (200, 50)] {
        let mut app = app(width, height, list.clone());
        press(&mut app, "S g");
        let before = titles(&app);
        for _ in 0..99 {
            press(&mut app, "j");
            assert_eq!(titles(&app), before);
        }
    }
}

#[test]
fn a_wide_window_has_every_column_beside_the_preview() {
    let shown = titles(&alive(200, 50));
    for title in ["name", "status", "runs", "iter", "activity", "cpu", "mem", "idle", "age", "workspace"] {
        assert!(shown.contains(title), "{title}: {shown}");
    }
    // a long name is cut where there is little room, and seen where there is much
    let mut list: Vec<Session> = (0..20).map(|n| session(&format!("s{n:03}"), Status::Active)).collect();
    list[0].name = "a-name-that-is-longer".into();
    for (width, is_whole) in [(80, false), (140, true)] {
        let mut app = app(width, 24, list.clone());
        press(&mut app, "v");
        assert_eq!(find(&app, "a-name-that-is-longer").is_some(), is_whole, "{}", drawn(&app));
    }
}

#[test]
fn the_column_says_what_runs() {
    let foreground = "sh -c 'i=0; sleep 1'";
    let task = "Fix the login";
    let ended = |mut session: Session, reason: &str| {
        session.command = vec!["make".into(), "all".into()];
        session.status_reason = Some(reason.into());
        session
    };
    let mut failed = ended(needing("a", Attention::DoneUnseen), "exit code 3");
    failed.status = Status::Failed;
    failed.needs.as_mut().expect("news").why = "failed: exit code 3".into();
    let mut with_task = session("a", Status::Active);
    with_task.task = Some(task.into());
    let mut never_ran = with_task.clone();
    never_ran.command.clear();
    let cases = [
        ("an ended one its command", failed, None, "failed: exit code 3      make all"),
        ("a live one its foreground", session("a", Status::Active), Some(foreground), "active                   sh -c 'i=0; sleep 1'  "),
        ("and its task", with_task.clone(), Some(foreground), "active                   sh -c 'i=0; sleep 1' · Fix the login"),
        ("not known yet", with_task, None, "active                   bash · Fix the login"),
        ("nothing runs", never_ran, None, "active                   Fix the login"),
    ];
    for (what, session, foreground, expected) in cases {
        // as wide as a status can be
        let mut other = self::session("z", Status::Paused);
        other.status_reason = Some("because somebody else said so".into());
        let id = session.id;
        let mut app = app(130, 24, vec![session, other]);
        press(&mut app, "v");
        let pulse = Pulse {
            session: id,
            output: 0,
            cpu_ms: None,
            memory: None,
            processes: None,
            foreground: foreground.map(str::to_owned),
            title: None,
            unreachable: None,
        };
        app.update(Event::Answer(Asked::Pulse(1), Box::new(Reply::Pulses(vec![pulse]))));
        assert!(drawn(&app).contains(expected), "{what}:\n{}", drawn(&app));
    }
}

/// The first line, of so many sessions.
fn header(width: u16, count: usize, keys: &str) -> String {
    let mut list: Vec<Session> = (1..count).map(|n| session(&format!("web-{n:03}"), Status::Active)).collect();
    list.push(needing("asks", Attention::WaitingAnswer));
    let mut app = app(width, 15, list);
    press(&mut app, keys);
    drawn(&app).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_is_left_out_of_the_first_line_is_left_out_whole() {
    let cases = [
        (40, 4, "j", " sessions  1 needs you  4 active"),
        (80, 4, "j", " sessions  1 needs you  4 active                               by who needs you"),
        (40, 330, "j", " sessions  1 needs you      1–12 of 330"),
        (40, 330, "/ a s k enter", " sessions  1 needs you    /ask 1 of 330"),
        (40, 330, "space / a s k enter", " sessions    1 selected · /ask 1 of 330"),
        (20, 330, "space / a s k enter", "  1 selected · /ask"),
        (80, 330, "G", " sessions  1 needs you  330 active            319–330 of 330 · by who needs you"),
    ];
    for (width, count, keys, expected) in cases {
        assert_eq!(header(width, count, keys), expected, "{width} {keys}");
    }
}

#[test]
fn how_many_more_there_are_hides_nothing() {
    let list: Vec<Session> = (0..40).map(|n| session(&format!("s{n:03}"), Status::Active)).collect();
    let app = app(80, 24, list);
    let rows: Vec<String> = drawn(&app).lines().filter(|line| line.contains(" s0")).map(str::to_owned).collect();
    assert!(rows.iter().all(|row| row.ends_with("1m   1m   /src") || row.contains("──")), "{rows:#?}");
}
