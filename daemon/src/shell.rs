//! Shell integration: a shell that is started to type in tells of its commands and folders (OSC 133, OSC 7). The scripts are
//! inside the binary; no file of the user's is touched, and what they have set up is read as ever.

use std::io;
use std::path::{Path, PathBuf};

use shared::exec::Language;
use shared::id::RuntimeId;

use crate::context::Context;
use crate::files;
use crate::language::environment::{self, Delta, Environment};

const BASH: &str = include_str!("shell/bash.bash");
const ZSH: &str = include_str!("shell/zshenv.zsh");
const FISH: &str = include_str!("shell/sessions.fish");

/// Set by whoever does not want it, in the environment of what is started.
const OPT_OUT: &str = "SESSIONS_NO_SHELL_INTEGRATION";

/// Where fish looks when nobody says otherwise.
const DATA_DIRS: &str = "/usr/local/share:/usr/share";

/// Of a file with a shell's environment: more than a kernel gives a program.
pub const MAX_ENVIRONMENT: u64 = 4 << 20;

/// Of one value that is kept, and of all together.
const MAX_VALUE: usize = 32 << 10;
const MAX_DELTA: usize = 128 << 10;

/// Programs whose prompt is where things stand still.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "fish", "dash", "ksh", "mksh", "ash", "nu", "tcsh", "csh", "elvish", "xonsh"];

/// Whether this is a shell of any kind that is typed into: not one that runs a script.
pub fn is_shell(argv: &[String]) -> bool {
    let Some((program, flags)) = argv.split_first() else { return false };
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    let is_script = flags.iter().any(|flag| !flag.starts_with('-') || (!flag.starts_with("--") && flag.contains('c')));
    name.is_some_and(|name| SHELLS.contains(&name)) && !is_script
}

/// Where a shell's script keeps what the shell exports: never in the recording, where it would stay.
pub struct StateFiles {
    pub first: PathBuf,
    pub now: PathBuf,
}

impl StateFiles {
    pub fn of(context: &Context, runtime: RuntimeId) -> Option<Self> {
        let is_wanted = context.config().shell.environment;
        is_wanted.then(|| Self { first: context.paths.shell_start(runtime), now: context.paths.shell_state(runtime) })
    }
}

/// An environment as a script of ours writes it: `NAME=value` with zeros between them, or as bash declares it.
pub fn environment_of(bytes: &[u8]) -> Environment {
    if !bytes.contains(&0) {
        return environment::parse(Language::Bash, bytes);
    }
    let pair = |text: &[u8]| String::from_utf8_lossy(text).split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

/// What a shell has exported since its first prompt, as far as it is kept: what belongs to a terminal is not, and secrets are only if
/// they may be. An environment that could not be read is no change.
pub fn delta(first: &Environment, now: &Environment, secrets: bool) -> Delta {
    if now.is_empty() {
        return Delta::default();
    }
    // prompts have our marks in them, and are set up at each start
    let is_prompt = |name: &str| matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4" | "PROMPT" | "RPROMPT" | "PROMPT_COMMAND");
    let is_of_terminal =
        |name: &str| name.starts_with("TERM") || matches!(name, "COLUMNS" | "LINES" | "COLORTERM" | "WINDOWID") || is_prompt(name);
    let mut delta = environment::delta(first, now);
    delta.set.retain(|(name, value)| {
        !is_of_terminal(name) && value.len() <= MAX_VALUE && !value.contains('\0') && (secrets || !shared::exec::looks_secret(name))
    });
    delta.removed.retain(|name| !is_of_terminal(name));
    let mut room = MAX_DELTA;
    delta.set.retain(|(name, value)| {
        let size = name.len() + value.len();
        let fits = size <= room;
        room -= if fits { size } else { 0 };
        fits
    });
    delta
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// A shell that somebody will type into: nothing but flags that say so.
fn recognise(argv: &[String]) -> Option<Shell> {
    let (program, flags) = argv.split_first()?;
    let is_plain = flags.iter().all(|flag| matches!(flag.as_str(), "-l" | "--login" | "-i" | "-il" | "-li"));
    let shell = match Path::new(program).file_name()?.to_str()? {
        // the one that macOS has is too old for it
        "bash" if cfg!(target_os = "macos") && program == "/bin/bash" => return None,
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => return None,
    };
    is_plain.then_some(shell)
}

/// Makes a shell tell of its commands: its arguments and its environment, changed for this start only. What is no shell to type
/// in stays as it is.
pub fn integrate(
    argv: &mut Vec<String>,
    environment: &mut Vec<(String, String)>,
    scripts: &Path,
    state: Option<StateFiles>,
) -> io::Result<()> {
    let Some(shell) = recognise(argv) else { return Ok(()) };
    let value = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    if value(OPT_OUT).is_some_and(|value| !value.is_empty() && value != "0") {
        return Ok(());
    }
    let mut set: Vec<(&str, String)> = Vec::new();
    if let Some(StateFiles { first, now }) = state {
        // made here, so that the shell's mask for new files does not decide who can read what it exports
        for file in [&first, &now] {
            crate::files::write_private(file, b"")?;
        }
        set.push(("SESSIONS_SHELL_WAS", text(&first)));
        set.push(("SESSIONS_SHELL_NOW", text(&now)));
    }
    match shell {
        Shell::Bash => {
            let script = install(scripts, "bash.bash", BASH)?;
            set.push(("SESSIONS_SHELL_INJECT", "1".into()));
            if let Some(own) = value("ENV") {
                set.push(("SESSIONS_SHELL_ENV", own));
            }
            if let (None, Some(home)) = (value("HISTFILE"), value("HOME")) {
                set.push(("HISTFILE", format!("{home}/.bash_history")));
                set.push(("SESSIONS_SHELL_HISTFILE", "1".into()));
            }
            set.push(("ENV", text(&script)));
            // long options come before short ones
            argv.insert(1, "--posix".into());
        }
        Shell::Zsh => {
            let script = install(scripts, "zsh/.zshenv", ZSH)?;
            if let Some(own) = value("ZDOTDIR") {
                set.push(("SESSIONS_SHELL_ZDOTDIR", own));
            }
            set.push(("ZDOTDIR", text(script.parent().unwrap_or(scripts))));
        }
        Shell::Fish => {
            let name = "data/fish/vendor_conf.d/sessions-tui.fish";
            let script = install(scripts, name, FISH)?;
            let folder = text(script.ancestors().nth(3).unwrap_or(scripts));
            if value("XDG_DATA_DIRS").is_none() {
                set.push(("SESSIONS_SHELL_XDG_UNSET", "1".into()));
            }
            let own = value("XDG_DATA_DIRS").filter(|own| !own.is_empty()).unwrap_or_else(|| DATA_DIRS.into());
            set.push(("XDG_DATA_DIRS", format!("{folder}:{own}")));
            set.push(("SESSIONS_SHELL_XDG", folder));
        }
    }
    environment.retain(|(key, _)| !set.iter().any(|(name, _)| name == key));
    environment.extend(set.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(())
}

/// In a folder of the script's own.
fn install(scripts: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = scripts.join(format!("shell-{}", files::sum(text))).join(name);
    files::install(&path, text)?;
    Ok(path)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &str) -> Vec<String> {
        words.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_shells_to_type_in_are_recognised() {
        for (words, shell) in [
            ("/bin/bash", Some(Shell::Bash)),
            ("bash -l", Some(Shell::Bash)),
            ("/usr/bin/zsh -i --login", Some(Shell::Zsh)),
            ("fish", Some(Shell::Fish)),
            ("bash --norc", None),
            ("bash -c true", None),
            ("bash script.sh", None),
            ("sh", None),
            ("/opt/bashful", None),
        ] {
            // macOS has an old one there
            if cfg!(target_os = "macos") && words == "/bin/bash" {
                continue;
            }
            assert_eq!(recognise(&argv(words)), shell, "{words}");
        }
    }

    #[test]
    fn shells_that_are_typed_into_have_prompts() {
        for (words, expected) in [
            ("bash", true),
            ("/bin/sh -i", true),
            ("nu", true),
            ("bash -c make", false),
            ("bash -lc make", false),
            ("sh run.sh", false),
            ("vim", false),
        ] {
            assert_eq!(is_shell(&argv(words)), expected, "{words}");
        }
    }

    #[test]
    fn what_a_shell_exports_is_told_in_its_own_way() {
        let first = environment_of(b"declare -x A=\"1\"\ndeclare -x GONE=\"x\"\ndeclare -x PWD=\"/\"\n");
        let now = environment_of(b"declare -x A=\"1\"\ndeclare -x B=$'two\\nlines'\ndeclare -x API_TOKEN=\"s\"\ndeclare -x PWD=\"/x\"\n");
        let set = |delta: &Delta| delta.set.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let kept = delta(&first, &now, false);
        assert_eq!((set(&kept), kept.removed.clone()), (vec!["B=two\nlines".to_owned()], vec!["GONE".to_owned()]));
        assert_eq!(set(&delta(&first, &now, true)), ["API_TOKEN=s", "B=two\nlines"]);
        assert_eq!(delta(&first, &Environment::new(), true), Delta::default(), "what could not be read is no change");
        let zsh = environment_of(b"A=1\0B=two\nlines\0TERM=dumb\0C=a=b\0");
        assert_eq!(set(&delta(&first, &zsh, false)), ["B=two\nlines", "C=a=b"]);
        let huge = environment_of(format!("A=1\0BIG={}\0", "x".repeat(MAX_VALUE + 1)).as_bytes());
        assert_eq!(set(&delta(&first, &huge, false)), Vec::<String>::new());
    }

    #[test]
    fn a_shell_is_started_with_our_script_and_gets_its_own_back() {
        let folder = std::env::temp_dir().join(format!("sessions-shell-{}", std::process::id()));
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let get =
            |environment: &[(String, String)], name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());

        let (mut bash, mut environment) = (argv("bash -l"), vec![variable("HOME", "/home/me"), variable("ENV", "/home/me/.shinit")]);
        integrate(&mut bash, &mut environment, &folder, None).expect("installs");
        assert_eq!(bash, ["bash", "--posix", "-l"]);
        assert_eq!(get(&environment, "SESSIONS_SHELL_ENV").as_deref(), Some("/home/me/.shinit"));
        assert_eq!(get(&environment, "HISTFILE").as_deref(), Some("/home/me/.bash_history"));
        let script = get(&environment, "ENV").expect("set");
        assert_eq!(std::fs::read_to_string(script).expect("is there"), BASH);

        let (mut zsh, mut environment) = (argv("zsh"), vec![variable("ZDOTDIR", "/home/me/.config/zsh")]);
        integrate(&mut zsh, &mut environment, &folder, None).expect("installs");
        assert_eq!(get(&environment, "SESSIONS_SHELL_ZDOTDIR").as_deref(), Some("/home/me/.config/zsh"));
        assert!(Path::new(&get(&environment, "ZDOTDIR").expect("set")).join(".zshenv").is_file());

        let (mut fish, mut environment) = (argv("fish"), Vec::new());
        integrate(&mut fish, &mut environment, &folder, None).expect("installs");
        let dirs = get(&environment, "XDG_DATA_DIRS").expect("set");
        assert!(dirs.ends_with(DATA_DIRS), "{dirs}");
        assert!(Path::new(dirs.split(':').next().expect("one")).join("fish/vendor_conf.d/sessions-tui.fish").is_file());

        let (mut out, mut environment) = (argv("bash"), vec![variable(OPT_OUT, "1")]);
        integrate(&mut out, &mut environment, &folder, None).expect("nothing to do");
        assert_eq!((out, environment.len()), (argv("bash"), 1));
        std::fs::remove_dir_all(&folder).expect("removes");
    }
}
