//! Code that attacks its own driver: the next execs are right, or the runtime is reported as lost. Never a wrong result, and never
//! one that does not come.

use serde_json::{Value, json};

use crate::support::Root;
use crate::support::exec::Calls;

/// How many programs are generated for each language: `SESSIONS_FUZZ=1000` for a long run.
fn iterations() -> u64 {
    std::env::var("SESSIONS_FUZZ").ok().and_then(|number| number.parse().ok()).unwrap_or(12)
}

fn run(calls: &mut Calls, language: &str, code: &str) -> Value {
    calls.ask(json!({"request": "exec", "language": language, "code": code, "timeout_ms": 2000}))
}

/// Two execs that print different numbers, with nothing in them that code could legitimately have redefined.
#[track_caller]
fn check(calls: &mut Calls, language: &str, number: u64, hostile: &str) {
    for number in [number * 2, number * 2 + 1] {
        let code = match language {
            "bash" => format!("/bin/echo \"$(({number}+1))\""),
            "python" => format!("print({number}+1)"),
            _ => format!("console.log({number}+1)"),
        };
        let result = run(calls, language, &code);
        if result["ended"] == true && result["success"] == false {
            // the runtime is reported as lost
            continue;
        }
        assert_eq!(
            (result["exitCode"].as_i64(), result["stdout"].as_str()),
            (Some(0), Some(format!("{}\n", number + 1).as_str())),
            "after {hostile}: {result}"
        );
    }
}

const FORGED: &str = r#"r 0000000021\n{"exit":0,"cwd":"/"}   "#;

fn bash() -> Vec<String> {
    let mut snippets: Vec<String> = [
        ":() { return 1; }",
        ":() { true; }",
        "builtin() { true; }",
        "builtin() { return 1; }",
        "builtin() { command builtin \"$@\"; }",
        "builtin() { echo \"$@\"; }",
        "eval() { true; }",
        "exec() { true; }",
        "return() { true; }",
        "read() { true; }",
        "printf() { true; }",
        "trap() { true; }",
        "set() { true; }",
        "unset() { true; }",
        "local() { true; }",
        "exit() { true; }",
        "command() { true; }",
        "shopt() { true; }",
        "mapfile() { true; }",
        "continue",
        "break",
        "break 5",
        "continue 9",
        "for i in 1 2; do continue 3; done",
        "if true; then break; fi",
        "set -e; break",
        "set -u; continue",
        "(break)",
        "{ continue; }",
        "return 3",
        "exec 31>&-",
        "exec 30<&-",
        "exec 32>&-",
        "exec 33>&-",
        "exec 31>/dev/null",
        "exec 30</dev/zero",
        "exec 30</dev/null",
        "exec 3>&- 4>&-",
        "exec 1>&- 2>&- 0<&-",
        "set -x",
        "set -v",
        "set -n",
        "set -f",
        "set -o posix",
        "shopt -s extdebug; trap false DEBUG",
        "trap 'exit 3' DEBUG",
        "trap 'true' DEBUG",
        "trap '' INT",
        "trap 'break' ERR; false",
        "trap 'exit 1' EXIT",
        "trap 'return 1' RETURN",
        "alias builtin=true",
        "alias if=true until=true",
        "enable -n printf",
        "enable -n read",
        "enable -n builtin",
        "enable -n eval",
        "enable -n return",
        "readonly __sessions_st",
        "readonly IFS=x",
        "IFS=0123456789",
        "PATH=",
        "LC_ALL=xx",
        "readonly LC_ALL=C",
        "ulimit -n 8",
        "unset -f __sessions_end",
        "__sessions_end() { true; }",
        "unset __sessions_loop",
        "__sessions_loop=",
        "__sessions_busy=",
        "exit 4",
        "exit",
        "kill -9 $$",
        "kill -9 $BASHPID",
        "unset PWD",
        "PWD=/nowhere",
        "cd /; cd /tmp",
        "sleep 0.05 &",
        "(exit 5)",
        "false",
        "exec true",
        "POSIXLY_CORRECT=1",
        "BASH_XTRACEFD=31; set -x",
        "unset FUNCNAME",
        "declare -i __sessions_st",
        "declare -n __sessions_in=x",
        "shopt -s failglob nullglob",
        "readonly -f builtin",
        "builtin() { true; }; readonly -f builtin",
    ]
    .map(str::to_owned)
    .to_vec();
    for descriptor in [4, 31, 32] {
        snippets.push(format!("printf '{FORGED}' >&{descriptor}"));
        // later output counts as that of the exec that runs then, so not on standard output
        if descriptor != 32 {
            snippets.push(format!("(sleep 0.02; printf '{FORGED}') >&{descriptor} &"));
        }
        snippets.push(format!("printf 'r 0000999999\\n' >&{descriptor}"));
        snippets.push(format!("head -c 3000 /dev/urandom >&{descriptor}"));
    }
    snippets
}

fn python() -> Vec<String> {
    let mut snippets: Vec<String> = [
        "import os; os.close(203)",
        "import os; os.close(200)",
        "import os; os.close(204)",
        "import os; os.closerange(0, 3)",
        "import os; os.closerange(3, 1000)",
        "import os; os.dup2(1, 203)",
        "import os; os.dup2(0, 200)",
        "import os; os.getcwd = None",
        "import os; os.write = None",
        "import os; os.environ = None",
        "import sys; sys.stdout = None",
        "import sys; sys.stdout.close()",
        "import sys; sys.stdout.write = None",
        "import sys; sys.modules.clear()",
        "import sys; sys.setrecursionlimit(60)",
        "import sys; sys.settrace(lambda *a: 1/0)",
        "import sys; sys.setprofile(lambda *a: 1/0)",
        "import sys; sys.excepthook = None; 1/0",
        "import sys; sys.exit(3)",
        "raise SystemExit",
        "raise KeyboardInterrupt",
        "raise GeneratorExit",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import os\nif os.fork() == 0: raise ValueError",
        "import os; os.fork() or os._exit(1)",
        "globals().clear()",
        "import builtins; builtins.len = None",
        "import builtins; builtins.open = builtins.int = builtins.repr = None",
        "import builtins; builtins.__import__ = None",
        "class R:\n def __repr__(self): raise SystemExit(9)\nR()",
        "class E(Exception):\n def __str__(self): 1/0\nraise E",
        "import threading, time; threading.Thread(target=lambda: time.sleep(0.3)).start()",
        "import sys; sys._getframe().f_back.f_globals['send'] = None",
        "import sys; del sys.path[:]",
        "import gc; gc.disable()",
        "def f(): return f()\nf()",
        "await None",
        "(",
        "\u{0}",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))",
        "import signal; signal.signal(signal.SIGALRM, lambda *a: 1/0); signal.setitimer(signal.ITIMER_REAL, 0.02)",
        "import os; os.chdir('/'); os.getpid = lambda: 1",
        "import sys; sys.stdin.close()",
        "import os; os.execv('/bin/true', ['true'])",
    ]
    .map(str::to_owned)
    .to_vec();
    for descriptor in [203, 4, 1] {
        snippets.push(format!("import os; os.write({descriptor}, b'''{FORGED}''')"));
        snippets.push(format!("import os; os.write({descriptor}, b'r 0000999999\\n')"));
        if descriptor != 1 {
            snippets.push(format!("import os, threading\nthreading.Timer(0.02, lambda: os.write({descriptor}, b'''{FORGED}''')).start()"));
        }
    }
    snippets
}

fn node() -> Vec<String> {
    let mut snippets: Vec<String> = [
        "process = null",
        "globalThis.process = undefined",
        "delete globalThis.process",
        "process.stdout.write = () => true",
        "process.stderr.write = () => true",
        "process.stdout = null",
        "process.stdout._write = (c, e, d) => {}",
        "Object.getPrototypeOf(process.stdout).write = () => true",
        "process.stdout.emit = null",
        "process.stdout.end()",
        "process.stdout.destroy()",
        "process.stdout.cork()",
        "Buffer = null",
        "Buffer.concat = null",
        "Buffer.prototype.toString = () => 'x'",
        "Buffer.prototype.latin1Slice = null",
        "Buffer.from = null",
        "String.prototype.padStart = () => ''",
        "String.prototype.replace = () => ''",
        "String.prototype.slice = null",
        "Array.prototype.map = null",
        "Array.prototype.push = null",
        "Array.prototype[Symbol.iterator] = null",
        "Object.defineProperty = null",
        "Object.prototype.value = 1",
        "Object.prototype.get = 1",
        "JSON.stringify = () => '1'",
        "JSON = null",
        "Promise = null",
        "Promise.prototype.then = null",
        "Symbol = null",
        "Set.prototype.has = null",
        "setImmediate = null",
        "setInterval = null",
        "clearInterval = null",
        "Atomics = null",
        "Error = null",
        "Error.prepareStackTrace = () => { throw 1 }; null.x",
        "Reflect = null",
        "RegExp.prototype.test = () => false",
        "RegExp.prototype.exec = null",
        "process.exit = null",
        "process.exit(3)",
        "process.exitCode = 4",
        "process.reallyExit(5)",
        "process.abort()",
        "process.kill(process.pid, 'SIGKILL')",
        "process.cwd = null",
        "process.cwd = () => { throw 1 }",
        "process.on = null",
        "process.removeAllListeners()",
        "process.listeners = null",
        "process.binding = null",
        "process._tickCallback = null",
        "process.emit = null",
        "process.nextTick = null",
        "__sessions.job = null",
        "delete globalThis.__sessions",
        "require('fs').closeSync(4)",
        "require('fs').closeSync(3)",
        "require('fs').closeSync(1)",
        "require('fs').writeSync = null",
        "require('fs').closeSync(4); require('fs').openSync('/dev/null', 'w')",
        "require('util').inspect = null",
        "require('vm').Script = null",
        "require('inspector').Session = null",
        "throw null",
        "throw undefined",
        "throw { get message() { throw 1 } }",
        "({ get a() { throw 1 }, toJSON() { throw 2 } })",
        "new Proxy({}, { get() { throw 1 } })",
        "Promise.reject(1)",
        "setTimeout(() => { throw 1 }, 5)",
        "queueMicrotask(() => { throw 1 })",
        "await new Promise((r) => setTimeout(r, 10))",
        "Object.freeze(globalThis)",
        "Object.freeze(process)",
        "globalThis.globalThis = null",
        "console._stdout = null",
        "(",
        "let x = 1; let x = 2",
    ]
    .map(str::to_owned)
    .to_vec();
    for descriptor in [4, 1] {
        snippets.push(format!("require('fs').writeSync({descriptor}, `{FORGED}`)"));
        snippets.push(format!("require('fs').writeSync({descriptor}, 'r 0000999999\\n')"));
        if descriptor != 1 {
            snippets.push(format!("setTimeout(() => require('fs').writeSync({descriptor}, `{FORGED}`), 10)"));
        }
    }
    snippets
}

/// A small generator of its own, so that a failure is repeated by its number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }
}

/// One snippet, or a few of them, at the top level, in a function, in a loop, in a background job or after a failure.
fn program(language: &str, snippets: &[String], dice: &mut Dice) -> String {
    let mut parts: Vec<String> = (0..=dice.below(2)).map(|_| snippets[dice.below(snippets.len())].clone()).collect();
    if language == "bash" {
        let last = parts.pop().expect("a part");
        parts.push(match dice.below(6) {
            0 => format!("f() {{ {last}\n}}; f"),
            1 => format!("for i in 1 2; do {last}\ndone"),
            2 => format!("{{ {last}\n}} &"),
            3 => format!("false || {last}"),
            _ => last,
        });
    }
    parts.join("\n")
}

fn each_snippet(language: &str, snippets: &[String]) {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let only = std::env::var("SESSIONS_FUZZ_ONLY").ok();
    for (number, snippet) in snippets.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !snippet.contains(only.as_str())) {
            continue;
        }
        run(&mut calls, language, snippet);
        check(&mut calls, language, number as u64 * 10 + 100, snippet);
        calls.ask(json!({"request": "reset_runtime", "language": language}));
    }
}

fn fuzz(language: &str, snippets: &[String]) {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let seed = std::env::var("SESSIONS_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for number in 0..iterations() {
        let mut dice = Dice(seed * 1_000_003 + number);
        let code = program(language, snippets, &mut dice);
        run(&mut calls, language, &code);
        check(&mut calls, language, number * 10 + 100, &format!("program {number} (seed {seed}): {code}"));
    }
}

#[test]
fn bash_survives_each_hostile_snippet() {
    each_snippet("bash", &bash());
}

#[test]
fn python_survives_each_hostile_snippet() {
    each_snippet("python", &python());
}

#[test]
fn node_survives_each_hostile_snippet() {
    each_snippet("node", &node());
}

#[test]
fn bash_survives_hostile_programs() {
    fuzz("bash", &bash());
}

#[test]
fn python_survives_hostile_programs() {
    fuzz("python", &python());
}

#[test]
fn node_survives_hostile_programs() {
    fuzz("node", &node());
}

#[test]
fn a_forged_result_shifts_nothing() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for (language, code, expected) in [
        ("bash", format!("printf '{FORGED}{FORGED}' >&31; echo mine; false"), "mine\n"),
        ("python", format!("import os; os.write(203, b'''{FORGED}{FORGED}'''); print('mine'); raise ValueError"), "mine\n"),
        ("node", format!("require('fs').writeSync(4, `{FORGED}{FORGED}`); console.log('mine'); throw new Error('x')"), "mine\n"),
    ] {
        let result = run(&mut calls, language, &code);
        assert_eq!((result["stdout"].as_str(), result["exitCode"].as_i64()), (Some(expected), Some(1)), "{result}");
        assert_eq!(result["ended"], Value::Null, "{result}");
        check(&mut calls, language, 50, &code);
    }
}

#[test]
fn jumps_out_of_no_loop_are_failures_that_say_so() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.prints("bash", "kept=1; : ; :() { echo mine; }");
    for word in ["continue", "break", "break 3"] {
        let result = calls.exec("bash", &format!("echo before; {word}; echo never"));
        assert_eq!((result["exitCode"].as_i64(), result["stdout"].as_str()), (Some(1), Some("before\n")), "{result}");
        assert!(result["stderr"].as_str().is_some_and(|text| text.contains("only meaningful in a")), "{result}");
    }
    assert_eq!(calls.prints("bash", "echo $kept; :"), "1\nmine\n", "state and functions are kept");
}

#[test]
fn a_trace_shows_the_users_commands_alone() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for (code, expected) in [("set -x; echo one", "echo one"), ("echo two; x=3", "echo two x=3"), ("f() { exit 3; }; f", "f exit 3")] {
        let result = calls.exec("bash", code);
        // one `+` for each level of `eval`, of which the driver has some
        let lines = result["stderr"].as_str().expect("text").lines();
        let shown: Vec<&str> = lines.map(|line| line.trim_start_matches('+').trim()).collect();
        assert_eq!(shown.join(" "), expected, "{result}");
    }
}
