//! `config.toml`: its types and defaults. Reads no file.

mod check;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

pub use check::{CheckLook, ConfigError, Mistakes, Wrong, located, place};
pub use words::{did_you_mean, nearest};

/// Every setting with what it means, as a file that changes nothing: what is set is commented out.
pub const COMMENTED_DEFAULT: &str = include_str!("config/default.toml");

use crate::exec::Language;
use crate::policy::{Kind, Limit, Policy, Span};
use crate::watch::WatchMode;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What happens to sessions whose programs were lost with the machine.
    pub restore: Restore,
    pub keys: Keys,
    pub recording: RecordingConfig,
    pub policy: PolicyConfig,
    /// How many sessions of a group run at once.
    #[serde(deserialize_with = "with_composed_keys")]
    pub groups: BTreeMap<String, u64>,
    pub runtime: RuntimeConfig,
    pub cleanup: CleanupConfig,
    pub webhooks: WebhookConfig,
    pub theme: ThemeConfig,
    pub shell: ShellConfig,
    pub pause: PauseConfig,
    pub attention: AttentionConfig,
    pub notify: NotifyConfig,
    pub watch: WatchConfig,
}

/// Freezing, hibernating, and starting again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseConfig {
    /// How everything of a session is stopped.
    pub freeze: FreezeBy,
    /// A session that nothing happened in for this long is hibernated.
    pub hibernate_after: Limit,
    /// With more live programs than this, those that are idle longest are hibernated; 0: no limit.
    pub max_live: u32,
    /// As above, while processes wait for memory for more than this share of the time, in percent; 0: never.
    pub memory_pressure: u32,
    /// What the kernel says that by; a control group's own is another.
    pub pressure_file: String,
    /// How many lost sessions are started again at once.
    pub restore_at_once: u32,
}

impl Default for PauseConfig {
    fn default() -> Self {
        Self {
            freeze: FreezeBy::Auto,
            hibernate_after: Limit::None,
            max_live: 0,
            memory_pressure: 0,
            pressure_file: "/proc/pressure/memory".into(),
            restore_at_once: 3,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreezeBy {
    /// A control group where the system lets us have one, else signals.
    #[default]
    Auto,
    Signals,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    /// When somebody says so.
    #[default]
    Ask,
    Auto,
    Never,
}

/// Whether sessions need a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionConfig {
    /// Whether the screens of known agents are read by the rules of their manifests: the weakest evidence.
    pub screen_rules: bool,
}

impl Default for AttentionConfig {
    fn default() -> Self {
        Self { screen_rules: true }
    }
}

/// How people are told that a session waits for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// A program and its arguments, started without a shell; `{title}`, `{body}`, `{name}` and `{state}` are filled in.
    pub command: Vec<String>,
    /// Whether terminals that show something else are told (OSC 9).
    pub terminals: bool,
    /// Whether an end that nobody saw is told too.
    pub ends: bool,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self { command: Vec::new(), terminals: true, ends: true }
    }
}

impl NotifyConfig {
    const MARKS: [&'static str; 4] = ["{title}", "{body}", "{name}", "{state}"];

    fn check(&self) -> Result<(), String> {
        let Some(program) = self.command.first() else { return Ok(()) };
        if program.trim().is_empty() || program.contains('{') {
            return Err("must begin with a program".into());
        }
        for word in &self.command {
            let unknown = word.match_indices('{').find(|(at, _)| !Self::MARKS.iter().any(|mark| word[*at..].starts_with(mark)));
            if unknown.is_some() {
                return Err(format!("{word:?} may have {{title}}, {{body}}, {{name}} and {{state}} in it, no other braces"));
            }
        }
        Ok(())
    }
}

/// Files that change in the workspaces of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WatchConfig {
    /// For sessions of which nothing else was asked (`new --watch`).
    pub mode: WatchMode,
    /// With more folders than this, not counting ignored ones, a tree is huge.
    pub max_folders: u32,
    /// With more files than this, too.
    pub max_files: u32,
    /// What is of no interest beside what `.gitignore` says, in its language.
    pub ignore: Vec<String>,
}

impl Default for WatchConfig {
    fn default() -> Self {
        // a watch of the system's and half a kilobyte of memory for each folder, a hundred bytes for each file
        Self { mode: WatchMode::Auto, max_folders: 5_000, max_files: 50_000, ignore: Vec::new() }
    }
}

impl WatchConfig {
    fn check(&self) -> Result<(), String> {
        for pattern in &self.ignore {
            globset::Glob::new(pattern).map_err(|error| format!("{pattern:?}: {}", error.kind()))?;
        }
        Ok(())
    }
}

/// Shells that are typed into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShellConfig {
    /// Whether bash, zsh and fish tell of their commands, by scripts of ours.
    pub integration: bool,
    /// Whether what they export is kept, for the next time they are started.
    pub environment: bool,
    /// Whether variables with secret-looking names are kept too.
    pub secrets: bool,
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self { integration: true, environment: true, secrets: false }
    }
}

/// The dashboard's colours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(default)]
pub struct ThemeConfig {
    /// `dark`, `light`, `contrast`, `16` or `none`; without it, what the terminal can show.
    pub name: Option<String>,
    /// Own colours, by what they mean.
    #[serde(flatten)]
    pub colours: BTreeMap<String, String>,
}

/// Not derived: what is flattened forgets where it was written.
impl<'de> Deserialize<'de> for ThemeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // in an answer of the daemon a name that is not set is null
        let mut all = BTreeMap::<String, Option<String>>::deserialize(deserializer)?;
        let name = all.remove("name").flatten();
        Ok(Self { name, colours: all.into_iter().filter_map(|(role, colour)| Some((role, colour?))).collect() })
    }
}

/// Defaults by kind of session; `--idle-timeout` and `--max-duration` say otherwise for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PolicyWishes")]
pub struct PolicyConfig {
    pub terminal: Policy,
    pub task: Policy,
    pub runtime: Policy,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            terminal: Policy::default(),
            task: Policy { idle_timeout: Limit::secs(3600), max_duration: Limit::secs(24 * 3600) },
            runtime: Policy { idle_timeout: Limit::secs(30 * 60), max_duration: Limit::None },
        }
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct PolicyWishes {
    terminal: PolicyWish,
    task: PolicyWish,
    runtime: PolicyWish,
}

/// What is not said stays as it is.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct PolicyWish {
    idle_timeout: Option<Limit>,
    max_duration: Option<Limit>,
}

impl From<PolicyWishes> for PolicyConfig {
    fn from(wishes: PolicyWishes) -> Self {
        let with = |wish: PolicyWish, usual: Policy| Policy {
            idle_timeout: wish.idle_timeout.unwrap_or(usual.idle_timeout),
            max_duration: wish.max_duration.unwrap_or(usual.max_duration),
        };
        let usual = Self::default();
        Self {
            terminal: with(wishes.terminal, usual.terminal),
            task: with(wishes.task, usual.task),
            runtime: with(wishes.runtime, usual.runtime),
        }
    }
}

impl PolicyConfig {
    pub fn of(&self, kind: Kind) -> Policy {
        match kind {
            Kind::Terminal => self.terminal,
            Kind::Task => self.task,
            Kind::Runtime => self.runtime,
        }
    }
}

/// Interpreters and the calls to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeConfig {
    /// Full paths of interpreters, instead of the first on PATH.
    pub bash: Option<String>,
    pub python: Option<String>,
    pub node: Option<String>,
    /// A call that takes longer is answered with a handle and goes on.
    pub soft_limit: Span,
    /// Calls that may wait for one runtime.
    pub max_queue: u32,
    /// Processes and threads a runtime may have at once, as far as the system can be told.
    pub max_processes: u64,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self { bash: None, python: None, node: None, soft_limit: Span::from_secs(60), max_queue: 256, max_processes: 2048 }
    }
}

impl RuntimeConfig {
    pub fn interpreter(&self, language: Language) -> Option<&str> {
        match language {
            Language::Bash => &self.bash,
            Language::Python => &self.python,
            Language::Node => &self.node,
        }
        .as_deref()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CleanupConfig {
    /// Sessions that ended longer ago go, once a day; 0: never by itself.
    pub older_than_days: u32,
}

impl Default for CleanupConfig {
    fn default() -> Self {
        Self { older_than_days: 30 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// For one attempt, from the name lookup to the end of the answer.
    pub timeout: Span,
    /// After the first failure; each further one doubles it.
    pub first_retry: Span,
    pub max_retry: Span,
    /// A delivery that could not be made for this long is given up.
    pub max_age: Span,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            timeout: Span::from_secs(15),
            first_retry: Span::from_secs(5),
            max_retry: Span::from_secs(3600),
            max_age: Span::from_secs(24 * 3600),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// The key that starts a command of ours while attached, like tmux's.
    pub prefix: Prefix,
    /// Keys of the dashboard by the name of the action, in the place of the usual ones.
    #[serde(deserialize_with = "one_or_more")]
    pub dashboard: BTreeMap<String, Vec<String>>,
}

/// Names of groups in the form in which they are stored with sessions.
fn with_composed_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let groups = BTreeMap::<String, u64>::deserialize(deserializer)?;
    Ok(groups.into_iter().map(|(name, limit)| (crate::text::composed(&name), limit)).collect())
}

/// `kill = "x"` or `kill = ["x", "delete"]`.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    struct OneOrMore(Vec<String>);

    impl<'de> Deserialize<'de> for OneOrMore {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Texts).map(Self)
        }
    }

    struct Texts;

    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text or a list of texts")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = items.next_element()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }

    let read = BTreeMap::<String, OneOrMore>::deserialize(deserializer)?;
    Ok(read.into_iter().map(|(name, keys)| (name, keys.0)).collect())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordingConfig {
    /// Oldest output of a runtime goes when its recording takes more than this on disk.
    pub max_mib: u64,
    /// Oldest output of all goes when all recordings take more than this; 0: no limit.
    pub max_total_mib: u64,
    /// Output older than this goes; 0: it stays as long as its session.
    pub max_age_days: u32,
    /// Whether closed segments are packed in the background.
    pub compress: bool,
    /// Whether what is typed is recorded too, as with `new --record-input`.
    pub input: bool,
    pub redact: RedactConfig,
}

impl Default for RecordingConfig {
    fn default() -> Self {
        Self { max_mib: 1024, max_total_mib: 20 << 10, max_age_days: 0, compress: true, input: false, redact: RedactConfig::default() }
    }
}

/// Secrets in what is recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedactConfig {
    /// Rules of the user's own, beside the known ones: regular expressions; a group in one is the secret.
    pub rules: Vec<String>,
    /// Covers secrets before they are recorded, not only on export.
    pub at_write: bool,
}

/// A control key, written `ctrl-b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(char);

impl Default for Prefix {
    fn default() -> Self {
        Self('b')
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.label()
    }
}

impl Prefix {
    pub fn letter(self) -> char {
        self.0
    }

    /// The byte a terminal sends for it.
    pub fn byte(self) -> u8 {
        (self.0 as u8) & 0x1f
    }

    pub fn label(self) -> String {
        format!("ctrl-{}", self.0)
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let lower = text.to_lowercase();
        let letter = lower.strip_prefix("ctrl-").or_else(|| lower.strip_prefix("c-")).and_then(|rest| {
            let mut chars = rest.chars();
            chars.next().filter(|c| c.is_ascii_lowercase() && chars.next().is_none())
        });
        // ctrl-i, ctrl-j and ctrl-m are tab and enter, ctrl-c and ctrl-z must reach the program
        match letter {
            Some(c) if !"ijmcz".contains(c) => Ok(Self(c)),
            Some(c) => Err(format!("ctrl-{c} is needed by programs: choose another letter, as in \"ctrl-b\"")),
            None => Err(format!("{text:?} is not a prefix key: write it as \"ctrl-b\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default() {
        let config = Config::parse("").expect("empty is fine");
        assert_eq!(config, Config::default());
        assert_eq!(config.keys.prefix.byte(), 2);
        assert_eq!(config.keys.prefix.label(), "ctrl-b");
    }

    #[test]
    fn policies_have_defaults_by_kind_and_keep_what_is_not_said() {
        let config = Config::parse("[policy.task]\nidle_timeout = \"2m\"\n[policy.terminal]\nmax_duration = \"8h\"\n").expect("fine");
        let day = Limit::secs(24 * 3600);
        assert_eq!(config.policy.of(Kind::Task), Policy { idle_timeout: Limit::secs(120), max_duration: day });
        assert_eq!(config.policy.of(Kind::Terminal), Policy { idle_timeout: Limit::None, max_duration: Limit::secs(8 * 3600) });
        let plain = Config::default().policy;
        assert_eq!(plain.of(Kind::Terminal), Policy::default());
        assert_eq!(plain.of(Kind::Task), Policy { idle_timeout: Limit::secs(3600), max_duration: day });
        assert_eq!(Config::parse("[policy.task]\nidle = \"2m\"\n").expect_err("unknown").line, 2);
        assert_eq!(Config::parse("[groups]\nbuilds = 2\n").expect("fine").groups.get("builds"), Some(&2));
    }

    #[test]
    fn a_mistake_elsewhere_does_not_uncover_secrets() {
        let text = "[keys]\nprefx = \"x\"\n[recording.redact]\nat_write = true\n";
        assert!(Config::parse(text).is_err());
        assert!(Config::without_settings(text).recording.redact.at_write);
        assert!(!Config::without_settings("# at_write = true\n").recording.redact.at_write);
    }

    #[test]
    fn a_command_that_notifies_is_a_program_and_its_arguments() {
        assert!(Config::parse("[keys]\nprefix = \"ctrl-c\"\n").is_err());
        for command in ["[\"\"]", "[\"{title}\"]", "[\"say\", \"{what}\"]", "\"say\""] {
            let error = Config::parse(&format!("[notify]\ncommand = {command}\n")).expect_err(command);
            assert_eq!(error.line, 2, "{error}");
        }
        assert!(Config::parse("[notify]\ncommand = [\"say\", \"{title}: {body}\"]\n").is_ok());
    }

    /// Lines of the commented default that set something, as they would be without their mark.
    fn uncommented() -> String {
        let line = |line: &str| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest.to_owned(),
            _ => line.to_owned(),
        };
        COMMENTED_DEFAULT.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_commented_default_changes_nothing_with_or_without_its_marks() {
        assert_eq!(Config::parse(COMMENTED_DEFAULT), Ok(Config::default()));
        assert_eq!(Config::parse(&uncommented()), Ok(Config::default()));
    }

    #[test]
    fn the_commented_default_has_every_setting() {
        fn look(at: &serde_json::Value, section: &str) {
            let text = COMMENTED_DEFAULT;
            let of_section = match section {
                "" => text.split("\n[").next(),
                _ => text.split(&format!("\n[{section}]\n")).nth(1).and_then(|rest| rest.split("\n[").next()),
            };
            // a table that has only tables in it has no line of its own
            let lines = of_section.unwrap_or_default();
            for (key, value) in at.as_object().expect("a table") {
                let path = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
                match value {
                    serde_json::Value::Object(_) => look(value, &path),
                    _ => {
                        let is_there = |line: &str| {
                            line.strip_prefix("# e.g. ")
                                .or_else(|| line.strip_prefix('#'))
                                .is_some_and(|rest| rest.starts_with(&format!("{key} = ")))
                        };
                        assert!(lines.lines().any(is_there), "{path} is not in the commented default");
                    }
                }
            }
        }
        look(&serde_json::to_value(Config::default()).expect("serialises"), "");
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let text = "restore = \"auto\"\n[keys]\nprefix = \"ctrl-a\"\n[keys.dashboard]\nkill = \"X\"\n[theme]\naccent = \"red\"\n[groups]\nb = 2\n[policy.task]\nidle_timeout = \"2m\"\n";
        let config = Config::parse(text).expect("fine");
        let shown = toml::to_string(&config).expect("is TOML");
        assert_eq!(Config::parse(&shown), Ok(config.clone()), "{shown}");
        for config in [config, Config::default()] {
            let sent = serde_json::to_string(&config).expect("serialises");
            assert_eq!(serde_json::from_str::<Config>(&sent).expect("as it was sent"), config);
        }
    }
}
