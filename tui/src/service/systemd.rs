//! The unit of the systemd user manager.

use std::fmt::Write;

use super::{ALREADY_RUNNING, MARK};

pub fn unit(executable: &str, environment: &[(String, String)]) -> String {
    let mut variables = String::new();
    for (key, value) in environment {
        let _ = writeln!(variables, "Environment=\"{key}={}\"", quoted(value));
    }
    format!(
        "# {MARK}; `sessions-tui daemon uninstall` takes it away.
[Unit]
Description=sessions-tui: keeps terminals, interpreters and tasks alive

[Service]
Type=notify
ExecStart=\"{executable}\" daemon run
{variables}# stopping, restarting and upgrading reach the daemon alone: sessions go on
KillMode=process
Restart=on-failure
RestartSec=1
# a daemon that a command has started is as good
RestartPreventExitStatus={ALREADY_RUNNING}
# programs of sessions count as this unit's: one that takes too much memory is no reason to stop the others
OOMPolicy=continue
TasksMax=infinity
# sessions are frozen in control groups of their own
Delegate=yes

[Install]
WantedBy=default.target
",
        executable = quoted(executable).replace('$', "$$"),
    )
}

/// Inside double quotes: backslashes, quotes and the percent of specifiers.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::tests::odd_service;

    #[test]
    fn odd_characters_are_quoted() {
        let service = odd_service();
        let text = unit(service.executable.to_str().expect("Unicode"), &service.environment);
        assert!(text.contains("ExecStart=\"/opt/50%% \\\"off\\\" $$HOME\\\\bin & <x>/sessions-tui\" daemon run\n"), "{text}");
        assert!(text.contains("Environment=\"PATH=/usr/bin:/home/me/my programs/bin\"\n"), "{text}");
        assert!(text.contains("\nKillMode=process\n") && text.contains("\nType=notify\n"));
    }
}
