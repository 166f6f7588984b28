//! Arguments decide the role: client, daemon or holder. The only file that sees both crates.

use std::process::ExitCode;

use daemon::{Place, StartError};
use tui::cli::{self, Cli, Command, DaemonCommand};

fn main() -> ExitCode {
    // first, and without parsing anything: holders are many and must stay small
    if std::env::args_os().nth(1).is_some_and(|word| word == "holder") {
        return match daemon::run_holder() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    cli::answer_shell();
    let cli = cli::parse(option_env!("SESSIONS_COMMIT"));
    // one thread: requests are short, and the long work gives way by itself
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(8).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = match &cli.command {
        Some(Command::Daemon { command: DaemonCommand::Run { detached, takes_over } }) => {
            let place = if *takes_over { Place::BeingLeft } else { Place::Free };
            runtime.block_on(run_daemon(&cli, *detached, place))
        }
        Some(Command::Doctor(args)) => {
            runtime.block_on(cli::doctor(&cli, *args, cli::Lookers { database: daemon::look_at_database, agents: daemon::check_agents }))
        }
        _ => runtime.block_on(cli::run(cli, daemon::check_agents)),
    };
    // a thread waiting in a system call must not keep us
    runtime.shutdown_background();
    code
}

async fn run_daemon(cli: &Cli, detached: bool, place: Place) -> ExitCode {
    daemon::reset_signals();
    if detached {
        // out of the client's session: its terminal's hang-up and ^C are not ours
        let _ = rustix::process::setsid();
    }
    tui::keep_descriptors_to_ourselves();
    let paths = match cli.paths() {
        Ok(paths) => paths,
        Err(failure) => return refuse(&failure.message, false, detached),
    };
    if place == Place::BeingLeft {
        // while the other still runs
        if let Err(error) = daemon::refuse_newer_database(&paths.database()) {
            return refuse(&error.to_string(), false, detached);
        }
        cli::announce_waiting();
    }
    let (config, warning) = tui::load_config(&paths);
    let settings = daemon::FirstSettings { config, wrong: warning.into_iter().collect(), read: tui::read_config };
    let ready = || {
        tui::notify_ready();
        if detached {
            cli::announce_ready();
            // nobody listens any more, and a later write must not find a closed pipe
            redirect_output_to_null();
        }
    };
    match Box::pin(daemon::run_daemon(paths, settings, place, ready)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error.to_string(), matches!(error, StartError::AlreadyRunning(_)), detached),
    }
}

fn refuse(error: &str, already_running: bool, detached: bool) -> ExitCode {
    if detached {
        cli::announce_refusal(error, already_running);
    } else {
        eprintln!("error: {}", shared::text::visible(error));
    }
    if already_running { ExitCode::from(tui::ALREADY_RUNNING) } else { ExitCode::FAILURE }
}

fn redirect_output_to_null() {
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}
