//! What is refused: lines that were typed are kept, and only what was done can be undone.

use super::*;
use crate::dashboard::app::{Asks, Prompt};

fn prompt(app: &App) -> Option<&Prompt> {
    match &app.overlay {
        Some(Overlay::Prompt(prompt)) => Some(prompt),
        _ => None,
    }
}

/// The deed that was asked for last.
fn asked(effects: Vec<Effect>) -> Asked {
    let Some(Effect::Ask(asked, _)) = deeds(effects).into_iter().next_back() else { panic!("nothing was asked") };
    asked
}

#[test]
fn a_refused_name_can_be_corrected() {
    let (mut app, _, _) = two();
    press(&mut app, "R ctrl-u");
    typed(&mut app, "taken");
    let deed = asked(press(&mut app, "enter"));
    assert!(app.overlay.is_none());
    app.update(Event::Refused(deed, Failure::failed("there is a thread called taken already")));
    let shown = prompt(&app).expect("it is asked again");
    assert_eq!((shown.line.text(), shown.asks.clone()), ("taken", Asks::Rename));
    assert!(shown.error.as_deref().is_some_and(|why| why.contains("already")));
    typed(&mut app, "2");
    assert!(prompt(&app).is_some_and(|prompt| prompt.error.is_none()));
    let deed = asked(press(&mut app, "enter"));
    assert!(matches!(&deed, Asked::Deed(_, _, Deed::Rename(name)) if name == "taken2"), "{deed:?}");
    app.update(Event::Answer(deed, Box::new(Reply::Done(None))));
    assert!(app.overlay.is_none());
    press(&mut app, "R");
    assert_eq!(prompt(&app).map(|prompt| prompt.line.text()), Some("a"), "what was done is not offered again");
}

#[test]
fn whoever_went_on_finds_the_line_the_next_time() {
    let (mut app, _, _) = two();
    press(&mut app, "s");
    typed(&mut app, "long line");
    let deed = asked(press(&mut app, "enter"));
    press(&mut app, "m");
    app.update(Event::Refused(deed, Failure::failed("the daemon went away")));
    assert!(app.overlay.is_none(), "keys that are for something else are not taken");
    press(&mut app, "q s");
    assert_eq!(prompt(&app).map(|prompt| prompt.line.text()), Some("long line"));
}

#[test]
fn a_file_that_cannot_be_written_can_get_another_name() {
    let (mut app, _, _) = two();
    press(&mut app, "E ctrl-u");
    typed(&mut app, "there.cast");
    let written = deeds(press(&mut app, "enter"));
    let Some(Effect::Export { turn, .. }) = written.last() else { panic!("{written:?}") };
    app.update(Event::Wrote(*turn, Err("there.cast exists already".into())));
    assert_eq!(prompt(&app).map(|prompt| prompt.line.text()), Some("there.cast"));
    assert!(app.exporting.is_none());
}

#[test]
fn undo_is_for_those_that_succeeded() {
    let list: Vec<Session> = ["a", "b", "c"].into_iter().map(|name| session(name, Status::Active)).collect();
    let ids: Vec<SessionId> = list.iter().map(|session| session.id).collect();
    let mut app = app(80, 24, list);
    let paused = deeds(press(&mut app, "A p"));
    for effect in paused {
        let Effect::Ask(asked, _) = effect else { panic!("{effect:?}") };
        let Asked::Deed(_, session, _) = &asked else { panic!("{asked:?}") };
        if *session == ids[1] {
            app.update(Event::Refused(asked, Failure::failed("cannot pause b")));
        } else {
            app.update(Event::Answer(asked, Box::new(Reply::Done(None))));
        }
    }
    assert!(app.log.current().is_some_and(|message| message.text.starts_with("2 sessions paused; cannot pause b")));
    let undone = deeds(press(&mut app, "u"));
    let names: Vec<String> = undone
        .iter()
        .map(|effect| match effect {
            Effect::Ask(_, Request::Resume(resume)) => resume.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, [ids[0].to_string(), ids[2].to_string()]);
}

#[test]
fn sentences_name_the_users_own_keys() {
    let (a, b) = (session("a", Status::Active), session("b", Status::Completed));
    let mut app = app(80, 24, vec![a, b]);
    let wishes = [("kill", "ctrl-k"), ("remove", "X"), ("refresh", "f5"), ("quit", "Q"), ("messages", "M")];
    let wishes = wishes.into_iter().map(|(name, key)| (name.to_owned(), vec![key.to_owned()])).collect();
    app.keymap = Keymap::with(&wishes).0;
    press(&mut app, "X");
    assert!(app.log.current().is_some_and(|message| message.text.contains("ctrl-k ends it first")));
    press(&mut app, "j ctrl-k");
    assert!(app.log.current().is_some_and(|message| message.text.contains("X removes it")));
    press(&mut app, "esc");
    assert!(app.log.current().is_some_and(|message| message.text == "Q leaves; sessions go on"));
    app.update(Event::Stopped);
    let text = crate::dashboard::view::tests::drawn(&app);
    assert!(text.contains("f5 starts it again, Q leaves"), "{text}");
    app.update(Event::Complaint("long ".repeat(40)));
    let text = crate::dashboard::view::tests::drawn(&app);
    assert!(text.contains("M: all of it"), "{text}");
}
