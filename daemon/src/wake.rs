//! A program that was hibernated or lost is started again where it was: same arguments, folder, variables and size, with its last
//! screen above a line that says what happened.

use std::fmt::Write;
use std::path::Path;

use shared::id::{Offset, RuntimeId};
use shared::message::{Code, Failure};
use shared::runtime::Launch;
use shared::session::Session;
use shared::text;

use crate::agent::Known;
use crate::context::Context;
use crate::launch::{self, Ready};
use crate::picture::Picture;
use crate::recording;
use crate::store::{self, Asleep};

/// Why a program was not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    Hibernated,
    Lost,
}

/// A program whose launch is stored, and the one in whose place it comes.
pub struct Again {
    pub runtime: RuntimeId,
    pub continues: RuntimeId,
    /// Where in that one's recording the screen is that stays.
    pub screen_at: Option<Offset>,
    pub launch: Launch,
    pub was: Was,
    /// What is said of how it is started, if that is not as before.
    pub says: Option<String>,
}

/// Whether it can be started at all, before anything is changed.
pub fn check(session: &Session, launch: &Launch, environment: &[(String, String)]) -> Result<(), Failure> {
    let cannot = |why: String| Failure::new(Code::Status, format!("session {} cannot be started again: {why}", session.name));
    if !Path::new(&launch.cwd).is_dir() {
        return Err(cannot(format!("its folder {} is gone", text::visible(&launch.cwd))));
    }
    let program = launch.argv.first().map_or("", String::as_str);
    if find_program(program, launch, environment) {
        return Ok(());
    }
    Err(cannot(format!("there is no program {} any more", text::visible(program))))
}

fn find_program(program: &str, launch: &Launch, environment: &[(String, String)]) -> bool {
    if program.contains('/') {
        return Path::new(&launch.cwd).join(program).exists();
    }
    let path = launch.env_delta.iter().chain(environment).find(|(key, _)| key == "PATH").map_or("/usr/bin:/bin", |(_, value)| value);
    launch::is_on_path(program, path)
}

/// Starts it; the sentence says why if it could not be.
pub async fn start(
    context: &Context,
    session: &Session,
    again: Again,
    environment: Vec<(String, String)>,
) -> store::Result<Result<(), String>> {
    let preface = preface(context, &again).await;
    let ready = Ready {
        runtime: again.runtime,
        session: session.id,
        thread: session.thread,
        name: session.name.clone(),
        launch: again.launch,
        environment,
        holder: launch::holder(context, again.runtime),
        interpreter: None,
        preface,
    };
    launch::start(context, ready).await
}

/// What a session's place looked like before, and what happened since.
async fn preface(context: &Context, again: &Again) -> String {
    let dir = context.paths.recording(again.continues);
    let mut shown = String::new();
    if let Ok(tail) = recording::tail(&dir)
        && tail.end > 0
    {
        let at = again.screen_at.map_or(tail.end, |at| at.min(tail.end));
        let shot = Picture::open(&dir, again.launch.size, at).shot(at).await;
        let last = shot.rows.iter().rposition(|row| !row.text.trim().is_empty()).map_or(0, |row| row + 1);
        for row in shot.rows.iter().take(last) {
            shown.push_str(&row.ansi);
            shown.push_str("\x1b[0m\r\n");
        }
    }
    let happened = match again.was {
        Was::Hibernated => "was hibernated",
        Was::Lost => "was lost",
    };
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M").to_string();
    let command = text::visible(&text::shell_words(&again.launch.argv));
    let says = again.says.as_ref().map(|says| format!(" ({})", text::visible(says))).unwrap_or_default();
    // dim, and nothing of it can be taken for the program's own
    let _ = write!(shown, "\x1b[2m── {happened}; started again {now}: {command}{says} ──\x1b[0m\r\n");
    shown
}

/// The environment of whoever wakes it; without one, the daemon's.
pub fn environment(given: Option<Vec<(String, String)>>) -> Vec<(String, String)> {
    given.filter(|given| !given.is_empty()).unwrap_or_else(launch::own_environment)
}

/// With what a sleeping program is started: its own command, or the one its agent goes on with.
pub async fn again(context: &Context, asleep: Asleep, was: Was) -> Result<Again, Failure> {
    let Asleep { runtime: continues, screen_at, mut launch, folder_is_gone, conversation } = asleep;
    let mut says = folder_is_gone.then(|| "its folder is gone: in its workspace".to_owned());
    if let Some(id) = conversation.as_ref().and_then(|known| known.session_id.clone().filter(|_| known.prompted && !known.ended)) {
        let agent = conversation.as_ref().map(|known| known.agent.clone()).unwrap_or_default();
        if let Some(other) = context.store.who_has(agent, id.clone()).await? {
            let name = context.registry.runtime(other).map_or_else(String::new, |handle| format!(" ({})", handle.facts.session()));
            let text = format!("conversation {id} goes on in another session already{name}: end that first");
            return Err(Failure::new(Code::Status, text));
        }
    }
    if let Some(resume) = context.agents().resume(&launch.argv, Known::of(conversation.as_ref())) {
        launch.argv = resume.argv;
        let withheld =
            if resume.withheld.is_empty() { String::new() } else { format!("; without {}", text::shell_words(&resume.withheld)) };
        says = Some(format!("{}{withheld}", resume.says));
    } else if let Some(conversation) = conversation.filter(|known| known.prompted && !known.ended)
        && let Some(resume) = context.agents().resume_by_name(&conversation)
    {
        // it was typed into a shell: the person who types may want it back
        says = Some(format!("in it was {}: {}", conversation.agent, text::shell_words(&resume)));
    }
    Ok(Again { runtime: RuntimeId::new(), continues, screen_at, launch, was, says })
}
