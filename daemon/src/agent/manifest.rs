//! What a manifest says, checked when it is read. A user's own stands beside the built-in ones; of the same name, what it says
//! takes the place of theirs.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};
use shared::agent::{Install, KnownAgent};
use shared::attention::Attention;
use shared::config::{ConfigError, Wrong, did_you_mean, located};
use toml::{Table, Value};

const BUILT_IN: &[&str] = &[
    include_str!("manifests/claude-code.toml"),
    include_str!("manifests/codex.toml"),
    include_str!("manifests/opencode.toml"),
    include_str!("manifests/gemini.toml"),
    include_str!("manifests/aider.toml"),
];

/// Lines of the screen's lower end that a rule looks at if it says nothing else: where agents ask.
const REGION: u16 = 20;

/// Ids are passed on as one argument of a command; whatever else they are, they are short and plain.
const ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";

#[derive(Clone, Debug)]
pub struct Agent {
    pub name: String,
    /// Other names it goes by: in hooks that were set up by hand, say.
    pub aliases: Vec<String>,
    /// For people.
    pub title: String,
    pub programs: Vec<String>,
    /// Names of packages that an interpreter or a package runner starts it from.
    pub packages: Vec<String>,
    pub resume: ResumeWords,
    pub install: Option<Install>,
    pub titles: Vec<Rule>,
    pub screens: Vec<Rule>,
    hooks: BTreeMap<String, HookState>,
    id: Regex,
}

/// What a hook's event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    State(Attention),
    /// Done with what it was asked.
    Done,
    /// The agent itself has ended.
    Ended,
}

/// What a text means while it can be seen.
#[derive(Clone, Debug)]
pub struct Rule {
    pub pattern: Regex,
    /// Another row of the same part of the screen must match this.
    pub with: Option<Regex>,
    /// Of a title: it is shown in other states too, so that a rule for the screen counts more.
    pub is_weak: bool,
    /// Of the screen's lines, the last so many that are not empty.
    pub lines: u16,
    pub state: Attention,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeWords {
    /// What goes on with the conversation of an id.
    pub with_id: Vec<String>,
    /// When its id is not known; empty: it is started afresh.
    pub without_id: Vec<String>,
    /// When nothing had been asked yet, so that there is no conversation; empty: it is started afresh.
    pub before_prompt: Vec<String>,
    /// Chooses the id at the launch.
    pub choose_id: Vec<String>,
    /// Flags of the first launch whose value is the id.
    pub id_flags: Vec<String>,
    /// Words of it behind which the id stands.
    pub id_words: Vec<String>,
    pub id_pattern: Option<String>,
    /// Flags of the first launch that are used again: those that stand alone, those with one value, those with several.
    pub keep: Vec<String>,
    pub keep_one: Vec<String>,
    pub keep_many: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    #[serde(default)]
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    title: Option<String>,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    packages: Vec<String>,
    #[serde(default)]
    resume: ResumeWords,
    #[serde(default)]
    hooks: BTreeMap<String, String>,
    install: Option<Install>,
    #[serde(default)]
    titles: Vec<ManifestRule>,
    #[serde(default)]
    screens: Vec<ManifestRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestRule {
    pattern: String,
    with: Option<String>,
    state: String,
    lines: Option<u16>,
    #[serde(default)]
    weak: bool,
}

/// Every agent that is known.
#[derive(Clone, Debug)]
pub struct Agents(pub(super) Vec<Agent>);

impl Default for Agents {
    fn default() -> Self {
        Self::read(&[]).0
    }
}

impl Agents {
    /// The built-in ones, and files of the user's own by their names; with them one sentence for each that cannot be used.
    pub fn read(files: &[(String, String)]) -> (Self, Vec<String>) {
        let mut tables: Vec<Table> = BUILT_IN.iter().filter_map(|text| text.parse().ok()).collect();
        let mut wrong = Vec::new();
        for (file, text) in files {
            match of_user(&tables, text) {
                Ok(table) => {
                    let name = table.get("name").cloned();
                    tables.retain(|known| known.get("name") != name.as_ref());
                    // the user's own are asked first
                    tables.insert(0, table);
                }
                Err(ConfigError { line, column, reason }) => {
                    wrong.push(format!("agents/{file}, line {line}, column {column}: {reason}; it is not used"));
                }
            }
        }
        let agents = tables.into_iter().filter_map(|table| understand(table).ok()).collect();
        (Self(agents), wrong)
    }

    pub fn by_name(&self, name: &str) -> Option<&Agent> {
        self.0.iter().find(|agent| agent.name == name || agent.aliases.iter().any(|alias| alias == name))
    }

    /// For whoever sets up their hooks.
    pub fn known(&self) -> Vec<KnownAgent> {
        let known = |agent: &Agent| KnownAgent {
            name: agent.name.clone(),
            aliases: agent.aliases.clone(),
            title: agent.title.clone(),
            install: agent.install.clone(),
        };
        self.0.iter().map(known).collect()
    }
}

impl Agent {
    /// What an event of its hooks means; `kind` says more about it (the type of a notification). Case and `_` do not matter.
    pub fn hook(&self, event: &str, kind: Option<&str>) -> Option<HookState> {
        let exact = kind.and_then(|kind| self.hooks.get(&plain(&format!("{event}.{kind}"))));
        exact.or_else(|| self.hooks.get(&plain(event))).copied()
    }

    pub fn is_id(&self, id: &str) -> bool {
        self.id.is_match(id)
    }
}

/// As names of events are compared.
fn plain(event: &str) -> String {
    event.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}

/// What a user says of an agent that is built in takes the place of what is said there; the rest stays.
fn of_user(known: &[Table], text: &str) -> Result<Table, ConfigError> {
    // for its form alone: what is built in may have what is missing here
    toml::from_str::<Manifest>(text).map_err(|error| located(text, &error))?;
    let own: Table = text.parse().map_err(|error| located(text, &error))?;
    let name = own.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let Some(name) = name else { return Err(Wrong::new("name", "it has no name").located(text)) };
    let mut table = known.iter().find(|table| table.get("name").and_then(Value::as_str) == Some(name)).cloned().unwrap_or_default();
    table.extend(own);
    understand(table.clone()).map(|_| table).map_err(|wrong| wrong.located(text))
}

fn understand(table: Table) -> Result<Agent, Wrong> {
    let manifest: Manifest = table.try_into().map_err(|error: toml::de::Error| Wrong::new("name", first_line(error.message())))?;
    let name = manifest.name;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Err(Wrong::new("name", format!("{name:?} may have small letters, digits and -")));
    }
    if manifest.programs.iter().all(String::is_empty) && manifest.packages.iter().all(String::is_empty) {
        return Err(Wrong::new("programs", "it needs programs or packages to be recognised by"));
    }
    let mut hooks = BTreeMap::new();
    for (event, state) in manifest.hooks {
        hooks.insert(plain(&event), hook_state(&event, &state)?);
    }
    let words = &manifest.resume;
    for (what, words) in [("with_id", &words.with_id), ("before_prompt", &words.before_prompt), ("choose_id", &words.choose_id)] {
        if !words.is_empty() && !words.iter().any(|word| word.contains("{id}")) {
            return Err(Wrong::new(&format!("resume.{what}"), "needs a word with {id}"));
        }
    }
    let id = words.id_pattern.as_deref().unwrap_or(ID_PATTERN);
    Ok(Agent {
        id: pattern("resume.id_pattern", id)?,
        title: manifest.title.unwrap_or_else(|| name.clone()),
        name,
        aliases: manifest.aliases,
        programs: manifest.programs,
        packages: manifest.packages,
        resume: manifest.resume,
        install: manifest.install,
        titles: rules("titles", manifest.titles)?,
        screens: rules("screens", manifest.screens)?,
        hooks,
    })
}

fn rules(what: &str, rules: Vec<ManifestRule>) -> Result<Vec<Rule>, Wrong> {
    let read = |(n, rule): (usize, ManifestRule)| {
        let state = attention(&rule.state).ok_or_else(|| {
            Wrong::new(&format!("{what}.{n}.state"), format!("{:?} is not a state: {}", rule.state, did_you_mean(&rule.state, states())))
        })?;
        Ok(Rule {
            pattern: pattern(&format!("{what}.{n}.pattern"), &rule.pattern)?,
            with: rule.with.map(|with| pattern(&format!("{what}.{n}.with"), &with)).transpose()?,
            is_weak: rule.weak,
            lines: rule.lines.unwrap_or(REGION),
            state,
        })
    };
    rules.into_iter().enumerate().map(read).collect()
}

fn pattern(path: &str, text: &str) -> Result<Regex, Wrong> {
    // rules are looked at again and again: one that is too large is refused rather than slow
    regex::RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| {
        let text = error.to_string();
        Wrong::new(path, text.lines().last().unwrap_or("it cannot be read").trim())
    })
}

/// What text can say: that nobody has looked is not on a screen.
fn attention(text: &str) -> Option<Attention> {
    Attention::parse(text).filter(|state| !matches!(state, Attention::DoneUnseen | Attention::Unknown))
}

fn states() -> impl Iterator<Item = &'static str> {
    ["working", "waiting_approval", "waiting_answer", "idle", "stuck"].into_iter()
}

fn hook_state(event: &str, text: &str) -> Result<HookState, Wrong> {
    match text {
        "done" => Ok(HookState::Done),
        "ended" => Ok(HookState::Ended),
        _ => attention(text).map(HookState::State).ok_or_else(|| {
            let path = vec!["hooks".to_owned(), event.to_owned()];
            let known = states().chain(["done", "ended"]);
            Wrong { path, reason: format!("{text:?} is not a state: {}", did_you_mean(text, known)) }
        }),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("it cannot be read").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_understood() {
        for text in BUILT_IN {
            let table: Table = text.parse().expect("TOML");
            if let Err(why) = understand(table) {
                panic!("{why:?}: {text}");
            }
        }
        let names: Vec<String> = Agents::default().known().into_iter().map(|agent| agent.name).collect();
        assert_eq!(names, ["claude-code", "codex", "opencode", "gemini", "aider"]);
        assert_eq!(Agents::default().by_name("claude").map(|agent| agent.title.as_str()), Some("Claude Code"));
    }

    #[test]
    fn a_user_adds_and_overrides_and_mistakes_are_said() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let (agents, wrong) = Agents::read(&[
            file("mine.toml", "name = \"mine\"\nprograms = [\"mine\"]\n[hooks]\nAsk = \"waiting_answer\"\n"),
            file("codex.toml", "name = \"codex\"\ntitle = \"Our Codex\"\n"),
            file("a.toml", "programs = [\"a\"]"),
            file("b.toml", "name = \"b\"\nprograms = [\"b\"]\n[[screens]]\npattern = \"(\"\nstate = \"idle\""),
            file("c.toml", "name = \"c\"\nprograms = [\"c\"]\n[[titles]]\npattern = \"x\"\nstate = \"happy\""),
            file("d.toml", "name = \"d\"\nprograms = [\"d\"]\nresumes = 1"),
            file("e.toml", "name = \"e\"\nprograms = []"),
            file("f.toml", "name = \"f\"\nprograms = [\"f\"]\n[resume]\nwith_id = [\"--resume\"]"),
            file("g.toml", "= nonsense"),
            file("h.toml", "name = \"h\"\nprograms = [\"h\"]\n[hooks]\nStop = \"done_unseen\""),
        ]);
        assert_eq!(agents.known().len(), 6);
        assert_eq!(agents.by_name("mine").and_then(|agent| agent.hook("ask", None)), Some(HookState::State(Attention::WaitingAnswer)));
        let codex = agents.by_name("codex").expect("is there");
        assert_eq!((codex.title.as_str(), codex.resume.with_id.len(), codex.programs.len()), ("Our Codex", 2, 1));
        assert_eq!(wrong.len(), 8, "{wrong:#?}");
        for (sentence, part) in
            wrong.iter().zip(["no name", "unclosed", "\"happy\"", "resumes", "recognised", "{id}", "g.toml", "\"done_unseen\""])
        {
            assert!(sentence.contains(part) && !sentence.contains('\n'), "{sentence}");
        }
    }

    #[test]
    fn events_of_hooks_have_meanings() {
        use Attention::{Idle, WaitingAnswer, WaitingApproval, Working};
        let agents = Agents::default();
        let meaning = |agent: &str, event: &str, kind| agents.by_name(agent).expect("is there").hook(event, kind);
        for (agent, event, kind, expected) in [
            ("claude-code", "SessionStart", None, Some(HookState::State(Idle))),
            ("claude-code", "session_start", None, Some(HookState::State(Idle))),
            ("claude-code", "UserPromptSubmit", None, Some(HookState::State(Working))),
            ("claude-code", "PermissionRequest", None, Some(HookState::State(WaitingApproval))),
            ("claude-code", "Notification", Some("permission_prompt"), Some(HookState::State(WaitingApproval))),
            ("claude-code", "Notification", Some("idle_prompt"), Some(HookState::State(WaitingAnswer))),
            ("claude-code", "Notification", Some("auth_success"), None),
            ("claude-code", "SubagentStop", None, None),
            ("claude-code", "Stop", None, Some(HookState::Done)),
            ("claude-code", "SessionEnd", None, Some(HookState::Ended)),
            ("codex", "agent-turn-complete", None, Some(HookState::Done)),
            ("gemini", "Notification", Some("ToolPermission"), Some(HookState::State(WaitingApproval))),
            ("gemini", "AfterAgent", None, Some(HookState::Done)),
            ("aider", "Stop", None, None),
        ] {
            assert_eq!(meaning(agent, event, kind), expected, "{agent} {event} {kind:?}");
        }
    }
}
