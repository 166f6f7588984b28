//! What an exec left running and prints later is never in the result of another exec, but it is recorded.

use serde_json::Value;

use crate::support::Root;

/// Each language's ways of leaving something behind that prints `late` to both streams once the file `go` is there, and code
/// that lets it, waits until it has printed, and prints `mine`.
const LEFT_RUNNING: &[(&str, &str, &str)] = &[
    (
        "bash",
        "(until [ -e go ]; do sleep 0.02; done; echo late; echo late >&2; echo >gone) &",
        "echo before; touch go; until [ -e gone ]; do sleep 0.02; done; echo mine; echo mine >&2; rm go gone",
    ),
    (
        "python",
        "import subprocess; p = subprocess.Popen('until [ -e go ]; do sleep 0.02; done; echo late; echo late >&2; echo >gone', shell=True)",
        "import os, sys, time; print('before'); open('go', 'w').close()\nwhile not os.path.exists('gone'): time.sleep(0.02)\nprint('mine'); print('mine', file=sys.stderr); p.wait(); os.remove('go'); os.remove('gone')",
    ),
    (
        "python",
        "import os, sys, threading, time\ndef wait():\n    while not os.path.exists('go'): time.sleep(0.02)\n    print('late'); print('late', file=sys.stderr); open('gone', 'w').close()\nt = threading.Thread(target=wait); t.start()",
        "print('before'); open('go', 'w').close()\nwhile not os.path.exists('gone'): time.sleep(0.02)\nprint('mine'); print('mine', file=sys.stderr); t.join(); os.remove('go'); os.remove('gone')",
    ),
    (
        "node",
        "require('child_process').spawn('sh', ['-c', 'until [ -e go ]; do sleep 0.02; done; echo late; echo late >&2; echo >gone'], { stdio: 'inherit' }).unref(); 1",
        "const fs = require('fs'); console.log('before'); fs.writeFileSync('go', ''); while (!fs.existsSync('gone')) await new Promise((r) => setTimeout(r, 20)); console.log('mine'); console.error('mine'); fs.rmSync('go'); fs.rmSync('gone')",
    ),
    (
        "node",
        "const t = setInterval(() => { if (require('fs').existsSync('go')) { clearInterval(t); console.log('late'); console.error('late'); require('fs').writeFileSync('gone', ''); } }, 20); 1",
        "const fs = require('fs'); console.log('before'); fs.writeFileSync('go', ''); while (!fs.existsSync('gone')) await new Promise((r) => setTimeout(r, 20)); console.log('mine'); console.error('mine'); fs.rmSync('go'); fs.rmSync('gone')",
    ),
];

fn exec(root: &Root, session: &str, language: &str, code: &str) -> Value {
    root.json(&["exec", "-s", session, "-l", language, "--timeout", "30s", "--json", code])
}

#[test]
fn output_of_an_earlier_exec_is_told_apart() {
    let root = Root::new();
    for (n, (language, leaves, code)) in LEFT_RUNNING.iter().enumerate() {
        let name = format!("s{n}");
        root.run(&["new", "-d", "-n", &name, "--no-run"]).ok();
        for round in 0..3 {
            let left = exec(&root, &name, language, leaves);
            assert_eq!((left["exitCode"].as_i64(), left["stdout"].as_str()), (Some(0), Some("")), "{language} {n}: {left}");
            if round == 1 {
                root.kill_daemon();
            }
            let result = exec(&root, &name, language, code);
            assert_eq!(result["stdout"], "before\nmine\n", "{language} {n}, round {round}: {result}");
            assert_eq!(result["stderr"], "mine\n", "{language} {n}, round {round}: {result}");
            // nothing is left: back to the plain way
            let plain = exec(
                &root,
                &name,
                language,
                if *language == "bash" {
                    "echo plain"
                } else if *language == "python" {
                    "print('plain')"
                } else {
                    "console.log('plain')"
                },
            );
            assert_eq!((plain["stdout"].as_str(), plain["stderr"].as_str()), (Some("plain\n"), Some("")), "{language} {n}: {plain}");
        }
        // recorded all the same: three times on each stream
        let text = root.run(&["export", &name, "-l", language, "--format", "text"]).ok();
        assert_eq!(text.lines().filter(|line| line.trim() == "late").count(), 6, "{language} {n}: {text}");
        let hits = root.run(&["search", "late", "--json", "--session", &name]);
        assert!(hits.stdout.contains("\"line\":\"late\""), "{}", hits.stdout);
    }
}

/// Many that stay: descriptors do not grow without bound, and each result is its own.
#[test]
fn many_background_processes_are_bounded() {
    let root = Root::new();
    root.run(&["new", "-d", "-n", "many", "--no-run"]).ok();
    for n in 0..40 {
        let result = exec(&root, "many", "bash", &format!("sleep 300 & echo number {n}"));
        assert_eq!(result["stdout"], format!("number {n}\n"), "{result}");
    }
    let holder = root.json(&["show", "many", "--json"]);
    let pids = holder.to_string();
    let open = root.holders().into_iter().map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).expect("lists").count()).max();
    assert!(open < Some(100), "{open:?} descriptors: {pids}");
    let result = exec(&root, "many", "bash", "kill $(jobs -p); wait; echo done");
    assert_eq!(result["stdout"], "done\n", "{result}");
}
