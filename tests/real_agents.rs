//! Real agents, as people have them, against a model on loopback: what they tell of themselves is understood, and their
//! conversations go on.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::{Root, wait_for, wait_until};

const CLAUDE: (&str, &str) = ("@anthropic-ai/claude-code", "2.1.197");
const CODEX: (&str, &str) = ("@openai/codex", "0.169.0");

/// The program of a package, which is fetched the first time and stays between runs. Fetching takes as long as it takes; what is
/// tested is what comes after.
fn installed((package, version): (&str, &str), program: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agent-{program}"));
    // one that was only half made has no mark, and is made again
    let mark = folder.join("complete");
    if std::fs::read_to_string(&mark).ok().as_deref() != Some(version) {
        std::fs::create_dir_all(&folder).expect("a folder");
        let wanted = format!("{package}@{version}");
        let args = ["install", "--no-audit", "--no-fund", "--silent", "--no-save", "--prefix", ".", &wanted];
        let output = Command::new("npm").args(args).current_dir(&folder).output().expect("npm starts");
        assert!(output.status.success(), "{wanted} could not be installed: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(mark, version).expect("writes");
    }
    folder.join("node_modules/.bin").join(program)
}

/// A model that asks for one tool and is done when it has been used; ends with the test.
struct Model {
    child: Child,
    port: u16,
}

impl Model {
    fn start(root: &Root) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_model.py");
        let file = root.join("port");
        let child = Command::new("python3").arg(script).arg(&file).stdin(Stdio::null()).spawn().expect("python3 starts");
        let port = wait_for("the model to listen", || std::fs::read_to_string(&file).ok()?.parse().ok());
        Self { child, port }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn wait_state(root: &Root, name: &str, state: &str) -> Value {
    let explained = || root.json(&["explain", name, "--json"]);
    let found = std::cell::RefCell::new(Value::Null);
    wait_for(&format!("{name} to be {state}"), || {
        found.replace(explained());
        (found.borrow()["state"] == state).then(|| found.borrow().clone())
    })
}

/// Writes and asks, as one does: the line, then enter once it is there.
#[track_caller]
fn ask(root: &Root, name: &str, text: &str) {
    root.run(&["send", name, text]).ok();
    root.wait_screen(name, text);
    root.run(&["send", name, "--key", "enter"]).ok();
}

fn work(root: &Root) -> String {
    root.work().to_str().expect("Unicode").to_owned()
}

#[test]
fn claude_code_asks_is_answered_and_goes_on_after_its_end() {
    let claude = installed(CLAUDE, "claude");
    let root = Root::new();
    let work = work(&root);
    let model = Model::start(&root);
    let settled = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": {"approved": ["fake-key-for-tests"]},
        "projects": {&work: {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}
    });
    std::fs::write(root.join("home/.claude.json"), settled.to_string()).expect("writes");
    root.run(&["hook", "install", "claude-code", "--yes"]).ok();
    let address = format!("ANTHROPIC_BASE_URL=http://127.0.0.1:{}", model.port);
    let start = |argv: &[&str]| {
        let mut args = vec!["new", "-d", "-n", "work", "--size", "100x40"];
        for variable in [&address, "ANTHROPIC_API_KEY=fake-key-for-tests", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1"] {
            args.extend(["-e", variable]);
        }
        args.extend(["-e", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "--"]);
        args.extend(argv);
        root.run(&args).ok();
    };
    start(&[claude.to_str().expect("Unicode")]);
    wait_state(&root, "work", "idle");
    ask(&root, "work", "touch the file");
    let found = wait_state(&root, "work", "waiting_approval");
    assert!(found["why"].as_str().is_some_and(|why| why.contains("touch made-by-agent")), "{found}");
    // the daemon may die while it asks
    root.kill_daemon();
    wait_state(&root, "work", "waiting_approval");
    root.run(&["send", "work", "--key", "enter"]).ok();
    let found = wait_state(&root, "work", "done_unseen");
    assert_eq!(found["why"], "Touched the file.");
    assert!(root.work().join("made-by-agent").exists());
    let runtime = root.runtime("work");
    let id = runtime["agent"]["session_id"].as_str().expect("an id");
    let resume = runtime["resume"].clone();
    assert_eq!((&resume["argv"], &resume["continues"]), (&json!([claude, "--resume", id]), &json!(true)), "{runtime}");
    assert!(Path::new(runtime["agent"]["transcript"].as_str().expect("a path")).exists());
    // its own command goes on with it
    root.run(&["kill", "work"]).ok();
    let argv: Vec<String> = resume["argv"].as_array().expect("words").iter().map(|word| word.as_str().unwrap_or("").to_owned()).collect();
    start(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    root.wait_screen("work", "Touched the file.");
    wait_until("the same conversation", || root.runtime("work")["agent"]["session_id"] == id);
    assert_eq!(root.runtime("work")["agent"]["prompted"], true);
}

#[test]
fn codex_reports_by_itself() {
    let codex = installed(CODEX, "codex");
    let root = Root::new();
    let model = Model::start(&root);
    let config = format!(
        "model = \"fake\"\nmodel_provider = \"fake\"\napproval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\ncheck_for_update_on_startup = false\n\
         [model_providers.fake]\nname = \"fake\"\nbase_url = \"http://127.0.0.1:{}/v1\"\nwire_api = \"responses\"\n\
         [projects.{:?}]\ntrust_level = \"trusted\"\n",
        model.port,
        work(&root)
    );
    std::fs::create_dir_all(root.join("home/.codex")).expect("a folder");
    std::fs::write(root.join("home/.codex/config.toml"), config).expect("writes");
    root.run(&["new", "-d", "-n", "work", "--size", "100x40", "--", codex.to_str().expect("Unicode")]).ok();
    root.wait_screen("work", "Ask Codex");
    ask(&root, "work", "touch the file");
    let found = wait_state(&root, "work", "waiting_approval");
    assert_eq!((&found["evidence"][0]["source"], &found["evidence"][0]["weight"]), (&json!("OSC 7501"), &json!(90)), "{found}");
    root.kill_daemon();
    wait_state(&root, "work", "waiting_approval");
    root.wait_screen("work", "Press enter");
    root.run(&["send", "work", "--key", "enter"]).ok();
    wait_state(&root, "work", "done_unseen");
    assert!(root.work().join("made-by-agent").exists());
}
