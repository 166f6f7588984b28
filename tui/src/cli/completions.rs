//! completions and man: what shells and readers of manuals want to know of the command line. Names of sessions are asked of a running
//! daemon at the moment they are wanted; none is started for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, CommandFactory, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use shared::attention::Attention;
use shared::exec::Language;
use shared::filter::Filter;
use shared::message::{Failure, Request};
use shared::session::{Session, Status};
use shared::text::visible;
use shared::watch::WatchMode;

use super::{Cli, print, table};
use crate::{connect, environment};

/// Set by the scripts that `completions` prints.
const VARIABLE: &str = "SESSIONS_COMPLETE";

const PROGRAM: &str = "sessions-tui";

/// Clap's own script for bash puts candidates into the line unquoted.
const FOR_BASH: &str = include_str!("completions.bash");

/// Somebody waits for the tab key.
const PATIENCE: Duration = Duration::from_millis(500);

pub const HELP: &str = "Add one of these to your shell's settings:\n  eval \"$(sessions-tui completions bash)\"      ~/.bashrc\n  eval \"$(sessions-tui completions zsh)\"       ~/.zshrc, after compinit\n  sessions-tui completions fish | source       ~/.config/fish/config.fish";

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The command line; with the commit it was built from, if that is known.
pub fn parse(commit: Option<&'static str>) -> Cli {
    let version: &'static str = match commit {
        // once in a process's life
        Some(commit) => format!("{} ({commit})", shared::VERSION).leak(),
        None => shared::VERSION,
    };
    let matches = super::groups::grouped(Cli::command()).version(version).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Answers a shell that asks how a line can go on, and ends; else nothing happens.
pub fn answer_shell() {
    if std::env::var_os(VARIABLE).is_some() {
        clap_complete::CompleteEnv::with_factory(with_names).var(VARIABLE).bin(PROGRAM).completer(PROGRAM).complete();
    }
}

/// Wherever a session is named, those that are there.
fn with_names() -> clap::Command {
    with_names_in(Cli::command())
}

fn with_names_in(command: clap::Command) -> clap::Command {
    let names_a_session = |arg: &Arg| {
        matches!(arg.get_id().as_str(), "name" | "names" | "session" | "words" | "to")
            && arg.get_help().is_some_and(|help| {
                let help = help.to_string().to_lowercase();
                help.contains("the session") || help.contains("a session") || help.contains("sessions")
            })
    };
    let fits = fits(command.get_name());
    let command = command.mut_args(|arg| {
        if names_a_session(&arg) {
            return arg.add(ArgValueCandidates::new(move || names(fits)));
        }
        match words(&arg) {
            Some(words) => arg.add(ArgValueCandidates::new(move || words.iter().map(CompletionCandidate::new).collect())),
            None => arg,
        }
    });
    command.mut_subcommands(with_names_in)
}

/// What an option can be, where that is a list of words.
fn words(arg: &Arg) -> Option<Vec<String>> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let mut words: Vec<String> = match arg.get_id().as_str() {
        "status" => Status::ALL.iter().map(ToString::to_string).collect(),
        "watch" => WatchMode::ALL.map(|mode| mode.as_str().to_owned()).to_vec(),
        "language" => Language::ALL.map(|language| language.as_str().to_owned()).to_vec(),
        "condition" => ["exit", "prompt", "quiet", "quiet=", "text="].map(str::to_owned).to_vec(),
        _ => return None,
    };
    if arg.get_id() == "condition" {
        words.extend(Status::ALL.iter().map(|status| format!("status={status}")));
        words.extend(Attention::ALL.iter().map(|state| format!("attention={}", state.as_str())));
    }
    Some(words)
}

/// Which sessions make sense for a command.
fn fits(command: &str) -> fn(&Session) -> bool {
    match command {
        "attach" | "detach" | "kill" | "send" | "wait" | "screen" | "logs" => |session| !session.is_over(),
        "pause" => |session| session.status == Status::Active,
        "resume" => |session| session.status == Status::Paused || session.status == Status::Timeout,
        "complete" | "fail" | "iterate" => |session| !session.status.has_ended(),
        "rm" => Session::is_over,
        "restore" => |session| session.restorable,
        _ => |_| true,
    }
}

fn names(fits: fn(&Session) -> bool) -> Vec<CompletionCandidate> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let asked = async {
        let paths = environment::paths(None).ok()?;
        let mut client = connect::running(&paths).await.ok()??;
        client.call::<Vec<Session>>(Request::List(Filter::default())).await.ok()
    };
    let sessions = runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await }).ok().flatten().unwrap_or_default();
    runtime.shutdown_background();
    let candidate = |session: Session| {
        let help = format!("{} {}", table::state_words(&session), visible(&session.workspace));
        CompletionCandidate::new(session.name).help(Some(help.into()))
    };
    sessions.into_iter().filter(fits).map(candidate).collect()
}

/// The script that a shell reads.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let name = match shell {
        Shell::Bash => return print(FOR_BASH),
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let shells = Shells::builtins();
    let completer = shells.completer(name).ok_or_else(|| Failure::failed(format!("nothing is known of {name}")))?;
    let mut script = Vec::new();
    let failed = |error: std::io::Error| Failure::failed(error.to_string());
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script).map_err(failed)?;
    print(&String::from_utf8_lossy(&script))
}

/// The manual: one page on standard output, or a page for each command in a folder.
pub fn man(folder: Option<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(error.to_string());
    match folder {
        None => print(&page(Cli::command()).map_err(failed)?.1),
        Some(folder) => {
            let in_folder = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.display()));
            std::fs::create_dir_all(&folder).map_err(in_folder)?;
            let mut command = Cli::command().disable_help_subcommand(true);
            // gives every command its full name
            command.build();
            pages(&command, &folder).map_err(in_folder)
        }
    }
}

fn pages(command: &clap::Command, folder: &Path) -> std::io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages(inner, folder)?;
    }
    let (name, text) = page(command.clone())?;
    std::fs::write(folder.join(name), text)
}

/// A page, and the name of its file.
fn page(command: clap::Command) -> std::io::Result<(String, String)> {
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    // what stands below the options are examples
    Ok((man.get_filename(), String::from_utf8_lossy(&page).replacen(".SH EXTRA", ".SH EXAMPLES", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
        with_names().debug_assert();
    }
    #[test]
    fn every_command_has_an_example_and_every_word_a_meaning() {
        fn look(command: &clap::Command, is_outer: bool) {
            let name = command.get_name();
            for arg in command.get_arguments() {
                let is_said = arg.get_help().is_some() || !arg.get_possible_values().is_empty();
                assert!(is_said, "{name}: nothing is said of {}", arg.get_id());
                let is_empty = arg.get_default_values().iter().any(|value| value.is_empty());
                assert!(!is_empty || arg.is_hide_default_value_set(), "{name}: {} shows an empty default", arg.get_id());
            }
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let says = examples.contains("Example") || matches!(name, "help" | "completions" | "mcp" | "schema");
            assert!(!is_outer || says, "{name} has no example");
            command.get_subcommands().for_each(|inner| look(inner, false));
        }
        Cli::command().get_subcommands().filter(|command| !command.is_hide_set()).for_each(|command| look(command, true));
    }

    #[test]
    fn pages_of_the_manual_have_examples() {
        let (name, text) = page(Cli::command()).expect("a page");
        assert!(name == "sessions-tui.1" && text.contains(".SH EXAMPLES") && !text.contains(".SH EXTRA"), "{text}");
    }
}
