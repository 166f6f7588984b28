//! The agent of launchd, for macOS.

use std::fmt::Write;

use super::MARK;

pub fn plist(name: &str, executable: &str, environment: &[(String, String)]) -> String {
    let mut variables = String::new();
    for (key, value) in environment {
        let _ = writeln!(variables, "    <key>{}</key>\n    <string>{}</string>", escaped(key), escaped(value));
    }
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {MARK}; `sessions-tui daemon uninstall` takes it away. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{name}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{executable}</string>
    <string>daemon</string>
    <string>run</string>
  </array>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <!-- sessions go on when the daemon is stopped -->
  <key>AbandonProcessGroup</key>
  <true/>
  <!-- it serves a person who types -->
  <key>ProcessType</key>
  <string>Interactive</string>
</dict>
</plist>
"#,
        name = escaped(name),
        executable = escaped(executable),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
