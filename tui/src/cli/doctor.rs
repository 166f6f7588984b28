//! doctor: what may be wrong, what it means, and the command that fixes it.

use std::fmt::Write;
use std::process::ExitCode;

use shared::message::Failure;
use shared::paths::Paths;
use shared::text::{count, visible};

use super::{Cli, print, print_json};
use crate::doctor::{Finding, Lookers, Verdict, check, gather};

pub const HELP: &str = "It starts nothing and changes nothing, and works when the daemon is dead or the database is damaged.\n✓ is well, ✗ is wrong (exit code 1), – is worth knowing.\n\nExamples:\n  sessions-tui doctor\n  sessions-tui doctor --json";

#[derive(clap::Args, Clone, Copy)]
pub struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub async fn doctor(cli: &Cli, args: DoctorArgs, look: Lookers) -> ExitCode {
    let outcome = async { examine(&cli.paths()?, args, look).await };
    match outcome.await {
        Ok(code) => code,
        Err(failure) => super::refuse(&failure),
    }
}

async fn examine(paths: &Paths, args: DoctorArgs, look: Lookers) -> Result<ExitCode, Failure> {
    let findings = check(&gather(paths, look).await);
    let wrong = findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count();
    if args.json {
        print_json(&findings)?;
    } else {
        let summary = match wrong {
            0 => "nothing is wrong\n".to_owned(),
            1 => "1 thing is wrong\n".to_owned(),
            _ => format!("{} are wrong\n", count(wrong, "thing")),
        };
        print(&(text(&findings, super::session::colours()) + "\n" + &summary))?;
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(findings: &[Finding], is_coloured: bool) -> String {
    let mut out = String::new();
    for Finding { check, verdict, says, mend } in findings {
        let mark = match verdict {
            _ if !is_coloured => verdict.mark().to_string(),
            Verdict::Fine => format!("\x1b[32m{}\x1b[m", verdict.mark()),
            Verdict::Wrong => format!("\x1b[31m{}\x1b[m", verdict.mark()),
            Verdict::Note => format!("\x1b[33m{}\x1b[m", verdict.mark()),
        };
        let _ = writeln!(out, "{mark} {check:<12} {}", visible(says));
        if let Some(mend) = mend {
            let _ = writeln!(out, "  {:<12} → {}", "", visible(mend));
        }
    }
    out
}
