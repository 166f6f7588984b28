//! Several sessions for one command: by their names, or by filters.

use clap::Args;
use shared::filter::Filter;
use shared::message::{Changed, Failure, Request};
use shared::session::Session;
use shared::text::{count, visible};

use super::filter::FilterArgs;
use super::{life, print, print_json};
use crate::client::Client;

#[derive(Args)]
pub struct TargetArgs {
    /// The sessions: names or ids
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The sessions a command is for.
pub enum Targets {
    /// As the user named them: the daemon decides what each one means.
    Named(Vec<String>),
    /// Those that fit the filters, oldest first.
    Filtered(Vec<Session>),
}

impl TargetArgs {
    /// The only name, if that is all that was given.
    pub fn only(&self) -> Option<String> {
        match self.names.as_slice() {
            [name] if !self.filter.is_given() => Some(name.clone()),
            _ => None,
        }
    }

    /// Resolves filters to the sessions that the command can do something with.
    pub async fn resolve(self, client: &mut Client, fits: impl Fn(&Session) -> bool) -> Result<Targets, Failure> {
        let filter = self.filter.filter()?;
        match (self.names.is_empty(), filter.searches()) {
            (true, false) => Err(Failure::usage("which session? give a name, or a filter such as --group or --status")),
            (false, true) => Err(Failure::usage("give names or filters, not both")),
            (false, false) => Ok(Targets::Named(self.names)),
            (true, true) => {
                let sessions: Vec<Session> = client.call(Request::List(Filter { all: true, ..filter })).await?;
                Ok(Targets::Filtered(sessions.into_iter().filter(fits).collect()))
            }
        }
    }
}

impl Targets {
    /// What to put into requests, with the name for messages.
    pub fn words(&self) -> Vec<(String, String)> {
        match self {
            Self::Named(names) => names.iter().map(|name| (name.clone(), name.clone())).collect(),
            Self::Filtered(sessions) => sessions.iter().map(|session| (session.id.to_string(), session.name.clone())).collect(),
        }
    }

    /// One session by its name: answered as before there were several.
    pub fn is_one(&self) -> bool {
        matches!(self, Self::Named(names) if names.len() == 1)
    }

    /// Asks before filters decide what cannot be undone.
    pub fn confirm(&self, verb: &str, yes: bool) -> Result<(), Failure> {
        use std::io::IsTerminal;
        let Self::Filtered(sessions) = self else { return Ok(()) };
        if yes || sessions.is_empty() {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("not a terminal: pass --yes"));
        }
        let names: Vec<String> = sessions.iter().map(|session| visible(&session.name)).collect();
        eprint!("{verb} {} ({})? [y/N] ", count(sessions.len(), "session"), names.join(", "));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(|error| Failure::failed(error.to_string()))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::failed("nothing was changed")) }
    }
}

/// Sends one request for each target. A failure of one does not stop the others; the first one's code is the command's.
pub async fn each<A: serde::de::DeserializeOwned>(
    client: &mut Client,
    targets: &Targets,
    request: impl Fn(String) -> Request,
) -> (Vec<A>, Option<Failure>) {
    let (mut done, mut first) = (Vec::new(), None);
    for (word, name) in targets.words() {
        match client.call::<A>(request(word)).await {
            Ok(answer) => done.push(answer),
            Err(failure) if targets.is_one() => return (done, Some(failure)),
            Err(failure) => {
                eprintln!("error: {}: {}", visible(&name), visible(&failure.message));
                first.get_or_insert(Failure::new(failure.code, "not all of them could be changed"));
            }
        }
    }
    (done, first)
}

/// Changes the status of each, and prints what became of them.
pub async fn change_each(client: &mut Client, targets: &Targets, request: impl Fn(String) -> Request, json: bool) -> Result<(), Failure> {
    let (done, failure) = each::<Changed>(client, targets, request).await;
    match (targets.is_one(), done.as_slice()) {
        (true, [one]) => life::print_changed(one, json)?,
        (true, _) => {}
        (false, many) if json => print_json(&many)?,
        (false, []) if failure.is_none() => print("no session matches\n")?,
        (false, many) => {
            for changed in many {
                life::print_changed(changed, false)?;
            }
        }
    }
    failure.map_or(Ok(()), Err)
}
