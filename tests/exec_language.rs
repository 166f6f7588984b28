//! What bash, python and node promise one by one: what stays between calls, how code can fail, and that none of it breaks the runtime.

use serde_json::{Value, json};

use crate::support::exec::Calls;
use crate::support::{Root, process, wait_until};

/// A pid that code has printed.
#[track_caller]
fn pid(text: &str) -> u32 {
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} is not a pid"))
}

#[track_caller]
fn text<'a>(result: &'a Value, key: &str) -> &'a str {
    result[key].as_str().unwrap_or_else(|| panic!("no {key} in {result}"))
}

/// The code must end by a timeout; whether the runtime kept its state is for the caller to see.
#[track_caller]
fn time_out(calls: &mut Calls, language: &str, code: &str) -> Value {
    let result = calls.ask(json!({"request": "exec", "language": language, "code": code, "timeout_ms": 300}));
    assert_eq!((result["timedOut"].as_bool(), result["success"].as_bool()), (Some(true), Some(false)), "{code}: {result}");
    result
}

#[test]
fn bash_is_one_process_that_keeps_what_was_typed() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let first = pid(&calls.prints("bash", "echo $BASHPID"));
    calls.table(
        "bash",
        &[
            ("mkdir -p 'ä \"b'; cd 'ä \"b'", 0, ""),
            ("basename \"$PWD\"; cd ..", 0, "ä \"b\n"),
            ("x=5; export Y='a b'; f() { echo f$x; }; declare -A m=([k]=v); declare -a list=(1 2); alias greet='echo hello'", 0, ""),
            ("f; echo ${m[k]} ${list[1]}; greet; bash -c 'echo $Y'", 0, "f5\nv 2\nhello\na b\n"),
            ("cat <<END\none\n$x\nEND", 0, "one\n5\n"),
            ("cat <<'END'\n$x\nEND\n", 0, "$x\n"),
            ("for n in 1 2\ndo\n  echo $n\ndone |\n  tac", 0, "2\n1\n"),
            ("printf '%s' 'ünï → 日本'", 0, "ünï → 日本"),
            ("", 0, ""),
            ("# only a comment", 0, ""),
            ("false", 1, ""),
            ("echo $?", 0, "1\n"),
            ("(exit 7)", 7, ""),
            ("echo $?", 0, "7\n"),
            ("g() { return 9; }; g", 9, ""),
            ("set -- a b", 0, ""),
            ("echo $#$1$2", 0, "2ab\n"),
            ("x=$((x+1)); local y=1", 1, ""),
            ("echo $x", 0, "6\n"),
            ("shopt -s extglob nullglob", 0, ""),
            ("echo /no/such/*; case aab in +(a)b) echo matched;; esac", 0, "\nmatched\n"),
        ],
    );
    assert_eq!(pid(&calls.prints("bash", "echo $BASHPID")), first, "all in one process");
}

#[test]
fn errexit_and_its_kind_stop_the_rest_of_a_call_and_not_the_bash() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table(
        "bash",
        &[
            ("x=1; f() { echo f; }; set -e", 0, ""),
            ("echo before; false; echo never", 1, "before\n"),
            ("echo $x; f; case $- in *e*) echo still on;; esac", 0, "1\nf\nstill on\n"),
            ("(exit 3); echo never", 3, ""),
            ("y=$(exit 4); echo never", 4, ""),
            ("if false; then :; fi; false || true; echo fine", 0, "fine\n"),
            ("set -o pipefail; false | true; echo never", 1, ""),
            ("set +e +o pipefail; false; echo on", 0, "on\n"),
            ("set -u; echo $nope; echo never", 1, ""),
            ("echo $x; set +u", 0, "1\n"),
            (": ${zz:?missing}\necho never", 1, ""),
            ("echo $((1/0)); echo never", 1, ""),
            ("f; echo $x", 0, "f\n1\n"),
        ],
    );
    for _ in 0..5 {
        calls.table("bash", &[("set -e; x=$((x+1)); false", 1, "")]);
    }
    calls.table("bash", &[("set +e; echo $x", 0, "6\n")]);
    let failed = calls.exec("bash", ": ${zz:?missing}");
    assert!(text(&failed, "stderr").contains("zz: missing"), "{failed}");
}

#[test]
fn traps_of_the_user_are_theirs() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table(
        "bash",
        &[
            ("trap 'echo usr' USR1; trap 'echo bye > left' EXIT; trap 'echo failed' ERR", 0, ""),
            ("kill -USR1 $BASHPID; :", 0, "usr\n"),
            ("false; true", 0, "failed\n"),
            ("trap - ERR; set -e; false", 1, ""),
            ("set +e; kill -USR1 $BASHPID; :", 0, "usr\n"),
            ("trap 'd=$((d+1))' DEBUG", 0, ""),
            ("trap - DEBUG; [ $d -gt 0 ] && echo counted", 0, "counted\n"),
        ],
    );
    assert!(!root.work().join("left").exists(), "the shell has not left yet");
    calls.table("bash", &[("exit 3", 3, "")]);
    assert_eq!(root.wait_file("work/left"), "bye\n");
}

#[test]
fn background_jobs_return_at_once_and_belong_to_the_runtime() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let job = pid(&calls.prints("bash", "sleep 1000 & echo $!"));
    // out of the process group and without a parent, but of this runtime all the same
    let far = pid(&calls.prints("bash", "setsid sleep 1000 & sh -c 'sleep 1000 & echo $!'"));
    assert_eq!(calls.prints("bash", "jobs | wc -l; kill -0 $!; echo $?").trim(), "2\n0");
    let timed_out = time_out(&mut calls, "bash", "sleep 1000");
    assert!(process::is_alive(job), "an interrupt is for the call, not for jobs: {timed_out}");
    calls.ask(json!({"request": "reset_runtime", "language": "bash"}));
    wait_until("the jobs to end with their runtime", || !process::is_alive(job) && !process::is_alive(far));
}

#[test]
fn nothing_waits_for_input_that_nobody_gives() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("bash", &[("read line; echo $?-$line; cat; wc -c", 0, "1-\n0\n")]);
    calls.table(
        "python",
        &[
            ("import sys\nprint(repr(sys.stdin.read()))", 0, "''\n"),
            ("input('name? ')", 1, "name? "),
            ("import subprocess; print(subprocess.run(['cat'], capture_output=True).stdout)", 0, "b''\n"),
        ],
    );
    assert!(text(&calls.exec("python", "input()"), "stderr").contains("EOFError"));
    calls.table(
        "node",
        &[
            ("let got = ''; for await (const part of process.stdin) got += part; console.log('end' + got)", 0, "end\n"),
            ("console.log(require('fs').readFileSync(0).length, require('child_process').execSync('cat').length)", 0, "0 0\n"),
        ],
    );
    // given: read by that call and by no other
    let lines = "one\nzwei ü\n";
    for (language, code) in [
        ("bash", "read a; echo $a; cat"),
        ("python", "print(input()); print(sys.stdin.read(), end='')"),
        ("node", "for await (const part of process.stdin) process.stdout.write(part)"),
    ] {
        let given = calls.ask(json!({"request": "exec", "language": language, "code": code, "stdin": lines}));
        assert_eq!(given["stdout"], lines, "{given}");
    }
    calls.table("bash", &[("cat", 0, "")]);
    calls.table("python", &[("print(repr(sys.stdin.read()))", 0, "''\n")]);
}

#[test]
fn descriptors_are_as_they_were_after_each_call() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for code in [
        "exec >&-",
        "exec 2>&-",
        "exec >kept 2>&1; echo into the file",
        "exec </dev/zero",
        "exec 0<&- 1>&- 2>&-",
        "exec 3>&- 4>&- 10>&- 11>&-",
        "exec 3</dev/zero 4>/dev/null",
    ] {
        calls.table("bash", &[(code, 0, "")]);
        let result = calls.exec("bash", "echo out; echo err >&2; read x; echo $?");
        assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("out\n1\n", "err\n"), "{code}");
    }
    calls.table("bash", &[("cat kept", 0, "into the file\n"), ("exec 5>five", 0, ""), ("echo 5 >&5; exec 5>&-; cat five", 0, "5\n")]);
    for code in [
        "import os, sys; os.close(1)",
        "os.close(2)",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        "sys.stdout = open('/dev/null', 'w')",
        "sys.stdout.close()",
        "sys.stderr = None",
    ] {
        calls.exec("python", code);
        let result = calls.exec("python", "import os, sys; print('out'); print('err', file=sys.stderr); os.system('echo sub')");
        assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("out\nsub\n", "err\n"), "{code}: {result}");
    }
    for code in ["require('fs').closeSync(1)", "require('fs').closeSync(2)", "process.stdout.end()", "process.stdout.destroy()"] {
        calls.exec("node", code);
        let result = calls.exec("node", "console.log('out'); console.error('err')");
        assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("out\n", "err\n"), "{code}: {result}");
    }
}

/// Whatever is printed, also to the descriptors that scripts use for themselves, is output or nothing; never an answer.
#[test]
fn nothing_that_is_printed_is_taken_for_an_answer() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let frame = "r 0000000010\\n{\"exit\":9}";
    let plain = "r 0000000010\n{\"exit\":9}";
    let everywhere = format!("for n in 3 4 5 6 7 8 9; do printf '{frame}' >&$n; done 2>/dev/null; (exit 5)");
    calls.table("bash", &[(&format!("printf '{frame}'"), 0, plain), (&everywhere, 5, ""), ("echo fine", 0, "fine\n")]);
    let everywhere = format!("import os\nfor n in range(3, 10):\n  try: os.write(n, b'{frame}')\n  except OSError: pass\nprint('done')");
    let result = calls.exec("python", &everywhere);
    assert_eq!(result["exitCode"], 0, "{result}");
    calls.table("python", &[("print('fine')", 0, "fine\n")]);
    calls.table("node", &[(&format!("process.stdout.write('{frame}')"), 0, plain), ("console.log('fine')", 0, "fine\n")]);
}

#[test]
fn settings_and_names_of_the_user_do_not_break_the_bash() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for code in [
        "set -x",
        "set -v",
        "set -o posix",
        "IFS=0123456789r",
        "shopt -s failglob dotglob nocasematch",
        "LC_ALL=C",
        "PS4='$(echo x)'",
        "set -f -C -a -k",
        "set -E; trap ': x' ERR",
        "set -T; trap ': x' DEBUG",
        "unset PWD IFS PATH HOME",
        "readonly IFS LC_ALL=C.UTF-8",
        "read() { echo BAD; }; printf() { echo BAD; }; eval() { echo BAD; }; cd() { :; }; export() { echo BAD; }",
        "alias read=BAD printf=BAD if=BAD until=BAD",
    ] {
        calls.exec("bash", code);
        let result = calls.exec("bash", "builtin echo hi ä");
        assert_eq!((result["exitCode"].as_i64(), text(&result, "stdout")), (Some(0), "hi ä\n"), "{code}: {result}");
        assert!(!text(&result, "stderr").contains("__sessions"), "{code}: nothing of ours is to be seen: {result}");
        let result = calls.exec("bash", "builtin set -e; builtin false; builtin echo never");
        assert_eq!((result["exitCode"].as_i64(), text(&result, "stdout")), (Some(1), ""), "{code}: {result}");
        calls.ask(json!({"request": "reset_runtime", "language": "bash"}));
    }
    calls.table("bash", &[("set -x", 0, ""), ("echo hi", 0, "hi\n")]);
    let traced = calls.exec("bash", "echo traced");
    assert!(text(&traced, "stderr").trim_start_matches('+') == " echo traced\n", "only the user's own lines are traced: {traced}");
}

#[test]
fn errors_of_the_code_are_results() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for (language, code, exit, error, stderr) in [
        ("bash", "echo \"a", 2, "exit code 2", "unexpected EOF"),
        ("bash", "if; then", 2, "exit code 2", "syntax error"),
        ("bash", "true\nnosuchcommand", 127, "exit code 127", "line 2: nosuchcommand: command not found"),
        ("bash", "kill -TERM $(sh -c 'echo $PPID' >/dev/null; echo 0x) 2>/dev/null; ls /no/such", 2, "exit code 2", "/no/such"),
        ("python", "1/0", 1, "ZeroDivisionError: division by zero", "Traceback (most recent call last)"),
        ("python", "print(1", 1, "SyntaxError", "print(1"),
        ("python", "nope", 1, "NameError: name 'nope' is not defined", "nope"),
        ("python", "raise KeyError('k')", 1, "KeyError: 'k'", "KeyError"),
        ("python", "def r(): r()\nr()", 1, "RecursionError", "RecursionError"),
        ("python", "import nosuchmodule", 1, "ModuleNotFoundError", "nosuchmodule"),
        ("node", "null.x", 1, "TypeError: Cannot read properties of null", "TypeError"),
        ("node", "1 +", 1, "SyntaxError", "SyntaxError"),
        ("node", "nope", 1, "ReferenceError: nope is not defined", "ReferenceError"),
        ("node", "throw 'a string'", 1, "a string", "a string"),
        ("node", "await Promise.reject(new RangeError('far'))", 1, "RangeError: far", "RangeError: far"),
        ("node", "require('./nosuch')", 1, "Error: Cannot find module", "nosuch"),
        ("node", "const r = () => r(); r()", 1, "RangeError: Maximum call stack", "RangeError"),
    ] {
        let result = calls.exec(language, code);
        assert_eq!((result["exitCode"].as_i64(), result["success"].as_bool()), (Some(exit), Some(false)), "{code}: {result}");
        assert!(text(&result, "error").contains(error), "{code}: {result}");
        assert!(text(&result, "stderr").contains(stderr), "{code}: {result}");
        assert!(result.get("ended").is_none(), "{code}: the runtime goes on: {result}");
    }
    for language in ["bash", "python", "node"] {
        assert_eq!(calls.ask(json!({"request": "history", "language": language, "limit": 1}))[0]["stage"], "finished");
        assert_eq!(calls.state(language)["alive"], true);
    }
}

#[test]
fn an_exit_ends_the_runtime_honestly_and_the_next_has_its_folder_and_environment() {
    let root = Root::new();
    std::fs::create_dir(root.work().join("sub")).expect("a folder");
    let mut calls = Calls::new(&root);
    for (language, before, ends, look) in [
        (
            "bash",
            "cd sub; export KEPT=yes; v=1",
            &["exit 3", "exec bash -c 'echo other; exit 3'", "f() { exit 3; }; f"][..],
            "echo $KEPT; pwd",
        ),
        (
            "python",
            "import os; os.chdir('sub'); os.environ['KEPT'] = 'yes'",
            &["import os; print('out'); os._exit(3)"],
            "import os; print(os.environ['KEPT']); print(os.getcwd())",
        ),
        (
            "node",
            "process.chdir('sub'); process.env.KEPT = 'yes'",
            &["console.log('out'); process.exit(3)", "process.on('exit', () => console.log('late')); process.exit(3)"],
            "console.log(process.env.KEPT); console.log(process.cwd())",
        ),
    ] {
        calls.table(language, &[(before, 0, "")]);
        let here = calls.state(language)["working_dir"].as_str().expect("a folder").to_owned();
        assert!(here.ends_with("work/sub"), "{here}");
        for end in ends {
            let result = calls.exec(language, end);
            assert_eq!((result["exitCode"].as_i64(), result["ended"].as_bool()), (Some(3), Some(true)), "{end}: {result}");
            assert!(text(&result, "error").contains("the runtime ended with this call"), "{end}: {result}");
            let next = calls.exec(language, look);
            assert_eq!(text(&next, "stdout"), format!("yes\n{here}\n"), "{end}: {next}");
            assert_eq!(next["restarted"], true, "{end}: {next}");
            let note = text(&next, "note");
            assert!(note.contains("exit code 3") && note.contains("variables are gone"), "{end}: {note}");
            assert_eq!(calls.exec(language, "")["restarted"], false, "told once");
        }
    }
    let printed = calls.exec("bash", "exec echo replaced");
    assert_eq!((text(&printed, "stdout"), printed["exitCode"].as_i64()), ("replaced\n", Some(0)), "{printed}");
    assert_eq!((printed["ended"].as_bool(), printed["success"].as_bool()), (Some(true), Some(true)), "{printed}");
    calls.table("bash", &[("exec /no/such/program", 127, "")]);
    assert_eq!(calls.prints("bash", "echo $KEPT"), "yes\n", "nothing was there to become, so it goes on");
    // a subshell is not the shell
    calls.table(
        "bash",
        &[("v=2; (exit 3)", 3, ""), ("exit 3 | cat; echo $v", 0, "2\n"), ("x=$(echo a; exit 2)", 2, ""), ("echo $v$x", 0, "2a\n")],
    );
}

#[test]
fn a_signal_that_ends_the_interpreter_is_told_as_one() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for (language, code, exit) in [
        ("bash", "kill -TERM $BASHPID; echo never", 143),
        ("bash", "true; kill -HUP $BASHPID; echo never", 129),
        ("bash", "kill -KILL $BASHPID", 137),
        ("python", "import os; os.kill(os.getpid(), 15)\nimport time; time.sleep(1000)", 143),
        ("python", "import os; os.abort()", 134),
        ("node", "process.kill(process.pid, 'SIGTERM'); await new Promise(() => setInterval(() => {}, 1000))", 143),
        ("node", "process.abort()", 134),
    ] {
        let result = calls.exec(language, code);
        assert_eq!((result["exitCode"].as_i64(), result["ended"].as_bool()), (Some(exit), Some(true)), "{code}: {result}");
        assert!(result["success"] == false && text(&result, "error").contains("killed"), "{code}: {result}");
        assert_eq!(result["stdout"], "", "{code}: {result}");
        assert_eq!(calls.exec(language, "")["restarted"], true, "{code}");
    }
}

#[test]
fn python_gives_values_of_last_expressions_and_json_where_it_can() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("python", &[("x = 5\ndef f(n):\n    return n * 2\n\nclass P:\n    pass\n", 0, ""), ("print(f(x))", 0, "10\n")]);
    for (code, value) in [("x + 1", json!("6")), ("x\nf('ü')", json!("'üü'")), ("None", json!(null)), ("y = 3", json!(null))] {
        assert_eq!(calls.exec("python", code)["value"], value, "{code}");
    }
    for (code, value, json) in [
        ("(1, [2.5, 'a', None, True])", "(1, [2.5, 'a', None, True])", json!([1, [2.5, "a", null, true]])),
        ("{'a': {}}", "{'a': {}}", json!({"a": {}})),
        (" x ", "5", json!(5)),
        ("None", "None", json!(null)),
        ("float('nan')", "nan", json!(null)),
        ("{1}", "{1}", json!(null)),
    ] {
        let result = calls.eval("python", code);
        assert_eq!((text(&result, "value"), &result["json"]), (value, &json), "{code}: {result}");
        assert_eq!(result.get("json").is_some(), !matches!(code, "float('nan')" | "{1}"), "{code}: {result}");
    }
    assert!(text(&calls.eval("python", "z = 1"), "error").contains("SyntaxError"), "a statement has no value");
    calls.table(
        "python",
        &[
            (
                "import pickle, dataclasses\n@dataclasses.dataclass\nclass D:\n  a: int = 1\nprint(pickle.loads(pickle.dumps(D(2))))",
                0,
                "D(a=2)\n",
            ),
            ("print(__name__)", 0, "__main__\n"),
            ("async def later():\n    return 4\nvalue = await later()\nprint(value)", 0, "4\n"),
            ("import asyncio; await asyncio.sleep(0); print(await later())", 0, "4\n"),
            ("print(asyncio.run(later()))", 0, "4\n"),
        ],
    );
    let long = calls.eval("python", "'x' * 200000");
    assert!(text(&long, "value").len() < 200_000 && text(&long, "note").contains("longer"), "cut, and says so");
}

#[test]
fn tracebacks_and_stacks_show_the_users_code_and_nothing_of_ours() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("python", &[("def f():\n    return 1/0", 0, "")]);
    let failed = calls.exec("python", "x = 1\nf()");
    let trace = text(&failed, "stderr");
    assert!(trace.starts_with("Traceback") && trace.ends_with("ZeroDivisionError: division by zero\n"), "{trace}");
    for line in ["    f()", "    return 1/0", "in f"] {
        assert!(trace.contains(line), "{line:?} is missing in {trace}");
    }
    assert!(!trace.contains(".py"), "no file of ours: {trace}");
    let awaited = calls.exec("python", "import asyncio\nasync def g():\n    raise KeyError(1)\nawait g()");
    let trace = text(&awaited, "stderr");
    assert!(trace.contains("raise KeyError(1)") && !trace.contains(".py"), "{trace}");
    let cause = calls.exec("python", "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e");
    assert!(text(&cause, "stderr").contains("direct cause") && !text(&cause, "stderr").contains(".py"), "{cause}");
    calls.table("node", &[("function g() { null.x }", 0, "")]);
    let failed = calls.exec("node", "g()");
    let stack = text(&failed, "stderr");
    assert!(stack.starts_with("TypeError: ") && stack.contains("at g ("), "{stack}");
    assert!(!stack.contains(".js") && !stack.contains("node:"), "no file of ours, nothing internal: {stack}");
    let awaited = calls.exec("node", "await (async () => { await 1; throw new Error('later') })()");
    assert!(!text(&awaited, "stderr").contains(".js"), "{awaited}");
}

#[test]
fn sys_exit_is_the_exit_code_of_the_call_and_the_python_goes_on() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("python", &[("import sys; x = 1", 0, "")]);
    for (code, exit, stderr) in [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('a message')", 1, "a message\n"),
        ("exit(4)", 4, ""),
        ("raise SystemExit", 0, ""),
    ] {
        let result = calls.exec("python", code);
        assert_eq!((result["exitCode"].as_i64(), text(&result, "stderr")), (Some(exit), stderr), "{code}: {result}");
        assert!(result.get("ended").is_none(), "{code}: {result}");
    }
    calls.table("python", &[("print(x)", 0, "1\n")]);
}

#[test]
fn what_prints_after_its_call_is_recorded_and_no_others_output() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let wait = "while not os.path.exists('go'): time.sleep(0.01)";
    let thread =
        format!("import threading, time, os\ndef late():\n    {wait}\n    print('late-python')\nthreading.Thread(target=late).start()");
    calls.table("python", &[(&thread, 0, "")]);
    calls.table("bash", &[("(while [ ! -e go ]; do sleep 0.01; done; echo late-bash) &", 0, "")]);
    let timer = "const timer = setInterval(() => { if (require('fs').existsSync('go')) { console.log('late-node'); clearInterval(timer) } }, 10); 0";
    calls.table("node", &[(timer, 0, "")]);
    std::fs::write(root.work().join("go"), "").expect("writes");
    let name = calls.ask(json!({"request": "state"}))["name"].as_str().expect("a name").to_owned();
    for language in ["python", "bash", "node"] {
        let late = format!("late-{language}");
        wait_until(&format!("{late} in the transcript"), || root.run(&["screen", &name, "-l", language]).ok().contains(&late));
        calls.table(language, &[("", 0, "")]);
    }
}

#[test]
fn what_children_print_is_captured_too() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let result = calls.exec(
        "python",
        "import os, subprocess, sys\nprint('a')\nos.write(1, b'b\\n')\nos.system('echo c; echo d >&2')\nsubprocess.run(['echo', 'e'])\nprint('f')",
    );
    assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("a\nb\nc\ne\nf\n", "d\n"), "in their order: {result}");
    let result = calls
        .exec("node", "console.log('a'); require('child_process').execSync('echo b; echo c >&2', {stdio: 'inherit'}); console.log('d')");
    assert_eq!((text(&result, "stdout"), text(&result, "stderr")), ("a\nb\nd\n", "c\n"), "{result}");
    // a forked child that falls out of the code is not a second interpreter
    calls.table(
        "python",
        &[("import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()", 0, "child\n"), ("print(1)", 0, "1\n")],
    );
}

#[test]
fn folders_variables_imports_and_names_are_seen() {
    let root = Root::new();
    std::fs::create_dir(root.work().join("sub")).expect("a folder");
    let mut calls = Calls::new(&root);
    calls.table("bash", &[("cd sub; export SHOWN='x y\nz'; hidden=1; fn() { :; }; unset SHELL", 0, "")]);
    calls.table(
        "python",
        &[(
            "import os, json as j\nfrom collections import OrderedDict\nos.chdir('sub'); os.environ['SHOWN'] = 'ü'; a = 1\ndef f(): pass",
            0,
            "",
        )],
    );
    calls.table(
        "node",
        &[(
            "const fs = require('fs'); const os = await import('node:os'); process.chdir('sub'); process.env.SHOWN = 'ü'; let a = 1",
            0,
            "",
        )],
    );
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    for (language, value, imports, names) in [
        ("bash", "x y\nz", &[][..], &["fn()", "hidden"][..]),
        ("python", "ü", &["collections", "json", "os"], &["a", "f", "j", "OrderedDict"]),
        ("node", "ü", &["fs", "node:os"], &["a", "fs", "os"]),
    ] {
        let state = calls.state(language);
        assert!(text(&state, "working_dir").ends_with("work/sub"), "{state}");
        assert_eq!(state["env_vars"], json!({"SHOWN": value}), "only what has changed: {state}");
        assert_eq!(strings(&state["imports"]), imports, "{state}");
        for name in names {
            assert!(strings(&state["names"]).iter().any(|known| known == name), "{name} in {state}");
        }
        assert!(text(&state, "version").starts_with(|c: char| c.is_ascii_digit()), "{state}");
    }
    assert_eq!(calls.state("bash")["env_removed"], json!(["SHELL"]));
    calls.table("bash", &[("unset SHOWN", 0, "")]);
    assert_eq!(calls.state("bash")["env_vars"], json!({}));
}

#[test]
fn a_timeout_interrupts_the_code_and_keeps_the_state() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("bash", &[("x=1; f() { while :; do :; done; }", 0, "")]);
    calls.table("python", &[("import time, asyncio, subprocess; x = 1", 0, "")]);
    calls.table("node", &[("const x = 1; function loop() { for (;;); }", 0, "")]);
    for (language, look, endless) in [
        (
            "bash",
            "echo $x",
            &["sleep 1000; echo never", "f; echo never", "sleep 1000 | cat; echo never", "y=$(sleep 1000)", "set -e; sleep 1000"][..],
        ),
        (
            "python",
            "print(x)",
            &[
                "while True: pass",
                "time.sleep(1000)",
                "await asyncio.sleep(1000)",
                "subprocess.run(['sleep', '1000'])",
                "try:\n  time.sleep(1000)\nexcept KeyboardInterrupt:\n  print('caught'); raise",
            ],
        ),
        (
            "node",
            "console.log(x)",
            &["while (true);", "await new Promise(() => {})", "loop()", "for (;;) await new Promise(r => setTimeout(r, 1))"],
        ),
    ] {
        for code in endless {
            let result = time_out(&mut calls, language, code);
            assert_eq!((result["exitCode"].as_i64(), result["interrupted"].as_bool()), (Some(130), Some(true)), "{code}: {result}");
            assert!(text(&result, "error").contains("the state of the runtime is kept"), "{code}: {result}");
            assert!(!text(&result, "stdout").contains("never"), "{code}: {result}");
            assert_eq!(calls.prints(language, look), "1\n", "after {code}");
        }
    }
}

#[test]
fn code_that_hears_no_interrupt_is_ended_and_says_so() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let mut asked: Vec<(&str, Calls)> = Vec::new();
    // each needs two rounds of grace: all at once
    for (language, before, deaf) in [
        ("bash", "export KEPT=1", "trap '' INT; while :; do :; done"),
        ("python", "import os; os.environ['KEPT'] = '1'", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
        ("node", "process.env.KEPT = '1'", "for (;;) { try { for (;;); } catch {} finally { for (;;); } }"),
    ] {
        calls.table(language, &[(before, 0, "")]);
        let mut other = Calls::new(&root);
        other.send(json!({"request": "exec", "language": language, "code": deaf, "timeout_ms": 300}));
        asked.push((language, other));
    }
    for (language, mut other) in asked {
        let result = other.answer()["ok"].take();
        assert_eq!(result["timedOut"], true, "{language}: {result}");
        let is_ended = result["ended"] == true;
        let sentence = text(&result, "error");
        assert_eq!(is_ended, sentence.contains("its variables are gone"), "{language}: {sentence}");
        assert!(is_ended || language == "node", "{language}: {result}");
        let look = match language {
            "bash" => "echo $KEPT",
            "python" => "import os; print(os.environ['KEPT'])",
            _ => "console.log(process.env.KEPT)",
        };
        let next = calls.exec(language, look);
        assert_eq!((text(&next, "stdout"), next["restarted"].as_bool()), ("1\n", Some(is_ended)), "{language}: {next}");
    }
}

#[test]
fn code_that_stops_itself_is_not_waited_for() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    calls.table("bash", &[("export KEPT=1", 0, "")]);
    calls.table("python", &[("import os, signal; os.environ['KEPT'] = '1'", 0, "")]);
    for (language, stop, look) in [
        ("bash", "kill -STOP $BASHPID; sleep 1000; echo never", "echo $KEPT"),
        ("python", "os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass", "import os; print(os.environ['KEPT'])"),
    ] {
        let stopped = time_out(&mut calls, language, stop);
        assert_eq!(stopped["stdout"], "", "{stopped}");
        // whether it could be kept or had to be ended: it is there
        assert_eq!(calls.prints(language, look), "1\n");
    }
}

#[test]
fn node_keeps_declarations_loads_modules_and_awaits() {
    let root = Root::new();
    for (file, content) in [("m.js", "exports.v = 7"), ("e.mjs", "export const w = 8; export default 9")] {
        std::fs::write(root.work().join(file), content).expect("writes");
    }
    let mut calls = Calls::new(&root);
    calls.table("node", &[("const a = 1; let b = 2; var v = 3; class C { x = 1 }; function f() { return a + b }", 0, "")]);
    for (code, value) in [
        ("f() + v", "6"),
        ("new C", "C { x: 1 }"),
        ("const a = 5; a", "5"),
        ("await 5", "5"),
        ("const s = await new Promise(r => setTimeout(() => r('t'), 5)); s", "'t'"),
        ("s", "'t'"),
        ("require('./m').v", "7"),
        ("(await import('./e.mjs')).w", "8"),
        ("const { default: d } = await import('./e.mjs'); d", "9"),
        ("Promise.resolve(5)", "Promise { 5 }"),
        ("{a: 1}", "{ a: 1 }"),
        ("if (true) 5", "5"),
        ("for await (const n of [1, 2]) b = n; b", "2"),
    ] {
        let result = calls.exec("node", code);
        assert_eq!(result["value"], value, "{code}: {result}");
    }
    for (code, json) in [("({a: [1, 'x', null]})", json!({"a": [1, "x", null]})), ("'ü'", json!("ü")), ("await 7", json!(7))] {
        assert_eq!(calls.eval("node", code)["json"], json, "{code}");
    }
    for code in ["NaN", "undefined", "new Map", "10n", "() => 1"] {
        let result = calls.eval("node", code);
        assert!(result.get("json").is_none() && result["value"].is_string(), "{code}: {result}");
    }
}

#[test]
fn rejections_and_timers_of_node_outlive_their_call() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    let result = calls
        .exec("node", "setTimeout(() => { throw new Error('late') }, 1); await new Promise(r => setTimeout(r, 50)); console.log('on')");
    assert_eq!((text(&result, "stdout"), result["exitCode"].as_i64()), ("on\n", Some(0)), "{result}");
    assert!(text(&result, "stderr").contains("Error: late"), "{result}");
    let result = calls.exec("node", "Promise.reject(new Error('unheard')); await new Promise(r => setTimeout(r, 20))");
    assert!(text(&result, "stderr").contains("Error: unheard"), "{result}");
    calls.table("node", &[("let n = 0; const t = setInterval(() => n++, 1); 0", 0, "")]);
    wait_until("the timer to run between calls", || calls.eval("node", "n")["json"].as_u64().is_some_and(|n| n > 3));
    calls.table("node", &[("clearInterval(t); process.removeAllListeners()", 0, ""), ("console.log('fine')", 0, "fine\n")]);
}

#[test]
fn hostile_python_and_node_go_on() {
    let root = Root::new();
    let mut calls = Calls::new(&root);
    for code in [
        "import builtins; del builtins.len, builtins.repr, builtins.open, builtins.isinstance",
        "import os; os.read = os.write = None",
        "import sys; sys.setrecursionlimit(60)",
        "import sys; sys.settrace(lambda *a: 1/0)",
        "import sys; sys.modules.clear()",
        "import os; os.environ = 5",
        "globals().clear()",
    ] {
        calls.exec("python", code);
        let result = calls.exec("python", "1/0");
        assert!(text(&result, "error").contains("ZeroDivisionError"), "{code}: {result}");
        assert_eq!(calls.exec("python", "3 + 4")["value"], "7", "{code}");
    }
    for code in [
        "JSON.stringify = null",
        "require('fs').writeSync = null",
        "console = null",
        "Error.prepareStackTrace = () => 5",
        "process.removeAllListeners()",
    ] {
        calls.exec("node", code);
        assert_eq!(calls.exec("node", "6 + 1")["value"], "7", "{code}");
        assert!(text(&calls.exec("node", "throw new TypeError('x')"), "error").contains("TypeError"), "{code}");
    }
}

#[test]
fn a_virtualenv_of_the_workspace_is_used() {
    let root = Root::new();
    let venv = root.work().join(".venv");
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).output().expect("runs");
    assert!(made.status.success(), "{made:?}");
    let mut calls = Calls::new(&root);
    let here = venv.canonicalize().expect("a folder");
    let here = here.to_str().expect("Unicode");
    calls.table(
        "python",
        &[
            ("import sys, os, shutil; print(sys.prefix == os.environ['VIRTUAL_ENV'], sys.prefix != sys.base_prefix)", 0, "True True\n"),
            ("print(shutil.which('python'))", 0, &format!("{here}/bin/python\n")),
        ],
    );
    assert_eq!(calls.state("python")["env_vars"], json!({}), "that is no change of the user's");
}
