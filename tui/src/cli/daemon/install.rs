//! daemon install, uninstall, and what status says of it: writes one file, and asks the service manager, if there is one.

use std::fmt::Write;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use shared::message::Failure;
use shared::paths::Paths;
use shared::text::visible;

use crate::cli::{print, print_json};
use crate::connect;
use crate::service::machine::{Installed, found, has_user_manager, installed, lingers, quiet, service, words};
use crate::service::{Kind, MARK, Service, is_build_folder};
use crate::tty;

#[derive(clap::Args)]
pub struct InstallArgs {
    /// What starts it; without it, what this machine has
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// Show what would be written and run, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep sessions when you log out: `loginctl enable-linger`
    #[arg(long)]
    linger: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct UninstallArgs {
    /// Show what would be taken away, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What was done, or would be.
#[derive(Default, Serialize)]
struct Report {
    kind: Option<Kind>,
    files: Vec<PathBuf>,
    /// Something is different from before.
    changed: bool,
    dry_run: bool,
    commands: Vec<String>,
    notes: Vec<String>,
}

pub async fn install(paths: &Paths, args: InstallArgs) -> Result<(), Failure> {
    let service = service()?;
    let kind = args.kind.unwrap_or_else(kind_of_this_machine);
    let file = service.file(kind);
    let text = service.text(kind).map_err(Failure::failed)?;
    let before = std::fs::read_to_string(&file).ok();
    if before.as_ref().is_some_and(|before| !before.contains(MARK)) {
        return Err(Failure::failed(format!("{} is there and was not written by sessions-tui: it is left as it is", file.display())));
    }
    let is_same = before.as_ref() == Some(&text);
    let mut report = Report { kind: Some(kind), files: vec![file.clone()], changed: !is_same, dry_run: args.dry_run, ..Report::default() };
    if is_build_folder(&service.executable) {
        report.notes.push(format!(
            "it will start {}, in a build folder; after `cargo install --path .`, run `sessions-tui daemon install` of that one",
            service.executable.display()
        ));
    }
    if !args.dry_run && !is_same {
        write(&file, &text)?;
    }
    if !args.json {
        let word = match (args.dry_run, is_same) {
            (_, true) => "there already",
            (true, false) => "would be written",
            (false, false) => "written",
        };
        print(&format!("{} ({}), {word}:\n\n{}\n", super::super::shown(&file), kind.words(), indented(&text)))?;
    }
    let name = service.name();
    let is_running = connect::running(paths).await?.is_some();
    let commands: Vec<Vec<String>> = match kind {
        Kind::Systemd => {
            let unit = format!("{name}.service");
            let mut commands = vec![words(&["systemctl", "--user", "daemon-reload"]), words(&["systemctl", "--user", "enable", &unit])];
            if !is_running {
                commands.push(words(&["systemctl", "--user", "start", &unit]));
            }
            commands
        }
        Kind::Launchd if is_running => Vec::new(),
        Kind::Launchd => {
            let domain = format!("gui/{}", rustix::process::getuid().as_raw());
            vec![words(&["launchctl", "bootstrap", &domain, &file.to_string_lossy()])]
        }
        Kind::Autostart => Vec::new(),
    };
    for command in commands {
        run(&mut report, &command)?;
    }
    if is_running && kind != Kind::Autostart {
        report.notes.push("a daemon is running already and goes on; `sessions-tui daemon restart` moves it to the service".to_owned());
    } else if kind == Kind::Autostart {
        report.notes.push("it starts with the next login; until then any command starts it".to_owned());
    }
    match kind {
        Kind::Systemd => offer_linger(&mut report, &args)?,
        _ if args.linger => report.notes.push(format!("--linger does nothing for a {}: lingering is systemd's", kind.words())),
        Kind::Launchd | Kind::Autostart => {}
    }
    finish(&report, args.json)
}

pub fn uninstall(args: &UninstallArgs) -> Result<(), Failure> {
    let service = service()?;
    let there = installed(&service);
    let mut report = Report { dry_run: args.dry_run, changed: !there.is_empty(), ..Report::default() };
    // one that cannot be asked keeps nothing else from going
    let mut failures = Vec::new();
    for installed in there {
        report.kind = Some(installed.kind);
        failures.extend(take_away(&mut report, &service, &installed));
    }
    if !args.json {
        let word = if args.dry_run { "would be removed" } else { "removed" };
        for file in &report.files {
            print(&format!("{} {word}\n", super::super::shown(file)))?;
        }
        if report.files.is_empty() {
            print("nothing was installed\n")?;
        } else if !args.dry_run {
            print("a daemon that runs goes on until it is stopped, and sessions with it\n")?;
        }
    }
    finish(&report, args.json)?;
    let why: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
    if why.is_empty() { Ok(()) } else { Err(Failure::failed(why.join("; "))) }
}

/// Everything of one kind; what could not be done.
fn take_away(report: &mut Report, service: &Service, installed: &Installed) -> Vec<Failure> {
    let mut outcomes = Vec::new();
    let unit = format!("{}.service", service.name());
    let asks = installed.kind == Kind::Systemd && found("systemctl");
    // the link that `enable` made
    let link = service.config_home.join("systemd/user/default.target.wants").join(&unit);
    match installed.kind {
        Kind::Systemd if asks => outcomes.push(run(report, &words(&["systemctl", "--user", "disable", &unit]))),
        // only forgets it: what runs is left running, with its sessions, until it is stopped
        Kind::Launchd if found("launchctl") => {
            let agent = format!("gui/{}/{}", rustix::process::getuid().as_raw(), service.name());
            outcomes.push(run(report, &words(&["launchctl", "disable", &agent])));
        }
        Kind::Systemd | Kind::Launchd | Kind::Autostart => {}
    }
    // nobody to ask, or nobody who does it
    let is_left = !asks || outcomes.iter().any(Result::is_err);
    if installed.kind == Kind::Systemd && is_left && std::fs::read_link(&link).is_ok() {
        outcomes.push(remove(report, &link));
    }
    outcomes.push(remove(report, &installed.file));
    if asks {
        outcomes.push(run(report, &words(&["systemctl", "--user", "daemon-reload"])));
    }
    outcomes.into_iter().filter_map(Result::err).collect()
}

/// Starts the daemon by its service, if there is one that does so at once; `false`: there is none, or it could not.
pub fn start_service() -> bool {
    let Ok(service) = service() else { return false };
    is_service() && quiet(&words(&["systemctl", "--user", "start", &format!("{}.service", service.name())]))
}

/// Whether a service manager is to start this very program.
pub fn is_service() -> bool {
    let Ok(service) = service() else { return false };
    let is_ours = installed(&service).iter().any(|installed| installed.kind == Kind::Systemd && installed.is_current);
    is_ours && found("systemctl")
}

/// systemd where its user manager answers; a desktop's folder elsewhere on Linux.
fn kind_of_this_machine() -> Kind {
    if cfg!(target_os = "macos") {
        Kind::Launchd
    } else if has_user_manager() {
        Kind::Systemd
    } else {
        Kind::Autostart
    }
}

fn offer_linger(report: &mut Report, args: &InstallArgs) -> Result<(), Failure> {
    let enable = words(&["loginctl", "enable-linger"]);
    if args.linger {
        return run(report, &enable);
    }
    if lingers() != Some(false) {
        return Ok(());
    }
    let why = "lingering is off: when you log out for the last time, systemd ends everything of yours, sessions included";
    if !args.json && !args.dry_run && tty::is_interactive() {
        eprint!("{why}.\nKeep them, with `loginctl enable-linger`? [y/N] ");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::failed(error.to_string()))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return run(report, &enable);
        }
    }
    report.notes.push(format!("{why}; `loginctl enable-linger` (or `daemon install --linger`) keeps them"));
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // whole or not at all; a name that no service manager reads
    let new = file.with_extension("new~");
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).map_err(failed)
}

fn remove(report: &mut Report, file: &Path) -> Result<(), Failure> {
    if !report.dry_run {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::failed(format!("{}: {error}", file.display())));
            }
            _ => {}
        }
    }
    report.files.push(file.to_owned());
    Ok(())
}

/// One command of a service manager; it is reported, and carried out unless this is a rehearsal.
fn run(report: &mut Report, command: &[String]) -> Result<(), Failure> {
    if !found(&command[0]) {
        report.notes.push(format!("there is no {} here: `{}` is left to do", command[0], command.join(" ")));
        return Ok(());
    }
    report.commands.push(command.join(" "));
    if report.dry_run {
        return Ok(());
    }
    let output = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::failed(format!("`{}`: {error}", command.join(" "))))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(Failure::failed(format!(
        "`{}` failed: {}",
        command.join(" "),
        if said.is_empty() { output.status.to_string() } else { visible(said).replace('\n', " ") }
    )))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}

fn finish(report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(report);
    }
    let mut out = String::new();
    for command in &report.commands {
        let _ = writeln!(out, "{} {command}", if report.dry_run { "would run:" } else { "ran:" });
    }
    for note in &report.notes {
        let _ = writeln!(out, "{note}");
    }
    print(&out)
}
