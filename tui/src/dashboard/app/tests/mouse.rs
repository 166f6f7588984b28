//! The mouse, where it is pressed, dragged and let go.

use super::*;
use crate::dashboard::view::overlay;

fn at(kind: MouseEventKind, column: u16, row: u16, modifiers: KeyModifiers) -> Event {
    Event::Mouse(MouseEvent { kind, column, row, modifiers })
}

fn down(column: u16, row: u16) -> Event {
    at(MouseEventKind::Down(MouseButton::Left), column, row, KeyModifiers::NONE)
}

fn drag(column: u16, row: u16) -> Event {
    at(MouseEventKind::Drag(MouseButton::Left), column, row, KeyModifiers::NONE)
}

fn up(column: u16, row: u16) -> Event {
    at(MouseEventKind::Up(MouseButton::Left), column, row, KeyModifiers::NONE)
}

/// With a terminal beside the list at column 30, row 2, whose program has printed this.
fn beside(output: &[u8]) -> App {
    let (mut app, a, _) = two();
    let opened = press(&mut app, "tab");
    let turn = opened.iter().find_map(|effect| if let Effect::Pane(PaneOrder::Open { turn, .. }) = effect { Some(*turn) } else { None });
    let turn = turn.expect("it opens");
    let attached = Attached { session: a, name: "a".into(), control: true, direct: false, ended: None, runtime: None, taken: None };
    app.update(Event::Pane(turn, PaneNews::Attached(Box::new(attached))));
    app.update(Event::Pane(turn, PaneNews::Output(output.to_vec())));
    app
}

fn typed_bytes(effects: Vec<Effect>) -> String {
    let bytes = deeds(effects).into_iter().flat_map(|effect| match effect {
        Effect::Pane(PaneOrder::Type(bytes)) => bytes,
        other => panic!("{other:?}"),
    });
    String::from_utf8(bytes.collect()).expect("text")
}

#[test]
fn whoever_saw_the_press_hears_of_the_release_wherever_it_is() {
    let mut app = beside(b"\x1b[?1002h\x1b[?1006h");
    assert_eq!(typed_bytes(app.update(down(34, 5))), "\x1b[<0;5;4M");
    assert_eq!(typed_bytes(app.update(drag(36, 5))), "\x1b[<32;7;4M");
    assert_eq!(typed_bytes(app.update(drag(3, 0))), "\x1b[<32;1;1M", "at the edge that is nearest");
    assert_eq!(typed_bytes(app.update(up(2, 23))), "\x1b[<0;1;21m");
    assert_eq!(app.list.cursor, app.pane.as_ref().map(|pane| pane.session), "the list has not moved");
    assert_eq!(typed_bytes(app.update(up(40, 5))), "", "there is nothing to let go");
    // a drag that began in the list is not the program's
    app.update(down(2, 3));
    assert_eq!(typed_bytes(app.update(drag(40, 5))), "");
}

#[test]
fn dragging_over_a_program_without_the_mouse_copies() {
    let mut app = beside(b"first line\r\nsecond line\r\n");
    assert!(deeds(app.update(down(36, 2))).is_empty());
    assert!(deeds(app.update(drag(39, 3))).is_empty());
    assert!(app.pane.as_ref().is_some_and(|pane| pane.selection.is_some()));
    assert_eq!(deeds(app.update(up(35, 3))), vec![Effect::Copy("line\nsecond".into())]);
    assert!(app.log.current().is_some_and(|message| message.text == "copied 2 lines to the clipboard"));
    assert!(app.pane.as_ref().is_some_and(|pane| pane.selection.is_none()));
    // a click alone copies nothing; the wheel looks back
    app.update(down(36, 2));
    assert!(deeds(app.update(up(36, 2))).is_empty());
    let back = deeds(app.update(at(MouseEventKind::ScrollUp, 40, 5, KeyModifiers::NONE)));
    assert!(matches!(&back[..], [Effect::Ask(Asked::Open(_), _)]), "{back:?}");
}

#[test]
fn with_shift_the_mouse_is_the_users() {
    let mut app = beside(b"\x1b[?1002h\x1b[?1006hsome text");
    let shift = |kind, column| at(kind, column, 2, KeyModifiers::SHIFT);
    assert!(deeds(app.update(shift(MouseEventKind::Down(MouseButton::Left), 35))).is_empty());
    assert!(deeds(app.update(shift(MouseEventKind::Drag(MouseButton::Left), 38))).is_empty());
    assert_eq!(deeds(app.update(shift(MouseEventKind::Up(MouseButton::Left), 38))), vec![Effect::Copy("text".into())]);
}

#[test]
fn a_click_into_the_terminal_of_another_takes_control_as_enter_does() {
    let mut app = beside(b"");
    press(&mut app, "ctrl-b d");
    app.pane.as_mut().expect("a terminal").has_control = false;
    assert_eq!(deeds(app.update(down(40, 5))), vec![Effect::Pane(PaneOrder::TakeControl)]);
    assert_eq!(app.focus, Focus::Pane);
}

#[test]
fn questions_are_answered_by_a_click() {
    for (word, kills) in [("y", true), ("leave it", false)] {
        let (mut app, _, _) = two();
        press(&mut app, "x");
        let area = overlay::area(&app).expect("a question");
        assert!(deeds(app.update(down(area.x + 2, area.y + 1))).is_empty(), "its words are no answer");
        assert!(matches!(app.overlay, Some(Overlay::Confirm { .. })));
        let x = if word == "y" { area.x + 3 } else { area.x + 14 };
        let answered = deeds(app.update(down(x, area.bottom() - 2)));
        assert_eq!((answered.len(), app.overlay.is_none()), (usize::from(kills), true), "{word}: {answered:?}");
    }
    let (mut app, _, _) = two();
    press(&mut app, "x");
    assert!(deeds(app.update(down(0, 0))).is_empty() && app.overlay.is_none(), "beside it means no");
}

#[test]
fn the_palette_runs_the_action_that_is_clicked_and_scrolls() {
    let (mut app, _, _) = two();
    press(&mut app, ":");
    typed(&mut app, "statistics");
    let area = overlay::area(&app).expect("the palette");
    app.update(down(area.x + 5, area.y + 2));
    assert!(app.overlay.is_none() && matches!(app.views.last(), Some(View::Stats(_))));
    press(&mut app, "q :");
    for _ in 0..3 {
        app.update(at(MouseEventKind::ScrollDown, 40, 8, KeyModifiers::NONE));
    }
    assert!(matches!(&app.overlay, Some(Overlay::Palette(palette)) if palette.cursor == 3));
    app.update(down(area.x + 5, area.y + 1));
    assert!(matches!(&app.overlay, Some(Overlay::Palette(_))), "the line that is typed in is no action");
    app.update(down(0, 23));
    assert!(app.overlay.is_none());
}

#[test]
fn a_message_is_pointed_at() {
    let (mut app, _, _) = two();
    for word in ["one", "two", "three"] {
        app.update(Event::Complaint(word.into()));
    }
    press(&mut app, "m");
    app.update(down(20, 2));
    assert!(matches!(app.views.last(), Some(View::Messages { cursor: 1 })));
    assert_eq!(deeds(press(&mut app, "y")), vec![Effect::Copy("two".into())]);
}

#[test]
fn a_form_is_filled_and_sent_with_the_mouse() {
    use crate::dashboard::state::form::Field;
    for (width, height) in [(80, 24), (40, 15)] {
        let (mut app, _, _) = two();
        app.update(Event::Resized(Rect::new(0, 0, width, height)));
        press(&mut app, "n");
        let area = overlay::area(&app).expect("the form");
        let row = |field: Field| area.y + 1 + Field::ALL.iter().position(|one| *one == field).expect("one of them") as u16;
        app.update(down(area.x + 20, row(Field::Task)));
        typed(&mut app, "by hand");
        app.update(down(area.x + 18, row(Field::Recent)));
        let Some(Overlay::New(form)) = &app.overlay else { panic!("a form") };
        assert_eq!((form.focus, form.recent().0), (Field::Task, Some(0)), "at {width}");
        // the last of its keys is: no
        let esc = crate::dashboard::view::tests::find(&app, "esc").expect("its keys are seen");
        app.update(down(esc.0, esc.1));
        assert!(app.overlay.is_none(), "at {width}");
        press(&mut app, "n");
        let start = crate::dashboard::view::tests::find(&app, "ctrl-s").expect("its keys are seen");
        let sent = deeds(app.update(down(start.0, start.1)));
        assert!(matches!(&sent[..], [Effect::New(_, Then::Stay)]), "at {width}: {sent:?}");
    }
}

#[test]
fn a_click_on_a_title_sorts_by_its_column() {
    use crate::dashboard::state::order::Sort;
    let mut list: Vec<Session> = ["a", "b"].into_iter().map(|name| session(name, Status::Active)).collect();
    list[0].task = Some("a task".into());
    let mut app = app(200, 50, list);
    let cases = [
        ("name", Some(Sort::Name)),
        ("name", Some(Sort::Name)),
        ("idle", Some(Sort::Active)),
        ("age", Some(Sort::Newest)),
        ("workspace", Some(Sort::Workspace)),
        ("status", Some(Sort::Attention)),
        ("runs", None),
        ("iter", None),
        ("activity", None),
        ("cpu", None),
        ("mem", None),
    ];
    for (title, sort) in cases {
        let (column, row) = crate::dashboard::view::tests::find(&app, title).expect(title);
        let before = app.list.sort;
        app.update(down(column, row));
        assert_eq!(app.list.sort, sort.unwrap_or(before), "{title}");
        app.log.dismiss();
    }
    app.update(down(1, 1));
    assert_eq!(app.list.sort, Sort::Attention, "the mark of who needs you");
    let kept = deeds(app.update(down(5, 1)));
    assert!(matches!(&kept[..], [Effect::Remember(kept)] if kept.sort == Sort::Name), "{kept:?}");
}

#[test]
fn a_click_beside_a_form_throws_nothing_away() {
    let (mut app, _, _) = two();
    press(&mut app, "n");
    typed(&mut app, "npm run dev");
    app.update(down(0, 0));
    assert!(matches!(app.overlay, Some(Overlay::New(_))));
    assert!(crate::dashboard::view::tests::find(&app, "npm run dev").is_some());
}
