#!/usr/bin/env python3
"""Round trip of an empty exec, side by side in one run: ours in bash, python and node, against what people do instead.

  tests/bench_exec.py                    300 rounds, about a minute on 2 cores
  tests/bench_exec.py --quick            60 rounds
  SESSIONS_BIN=path tests/bench_exec.py  another binary (default: target/release/sessions-tui)

Everybody takes one call per round, in a new random order, so that whatever else the machine does hits all alike: look at the
ratios. "ours" speaks the daemon's own socket, as MCP and other programs do; a call is recorded, stored and told before it is
answered. "bare" is the limit: the same interpreter over pipes, which remembers nothing and can be wedged by a quote. tmux is
there if it is installed; Jupyter if `python3 -m ipykernel` works, also in the environment named by BENCH_PYTHON.

Also measured: the first call of a fresh runtime against starting the interpreter itself, and what 1000 calls leave behind.
"""
import argparse, json, os, random, shutil, socket, statistics, subprocess, sys, tempfile, time  # noqa: E401

BIN = os.path.abspath(os.environ.get("SESSIONS_BIN", os.path.join(os.path.dirname(__file__), "..", "target", "release", "sessions-tui")))
PYTHON = os.environ.get("BENCH_PYTHON", sys.executable)

BARE_PYTHON = """
import sys
names, write, flush = {}, sys.stdout.write, sys.stdout.flush
for line in sys.stdin:
    exec(compile(line, "<cell>", "exec"), names)
    write("S\\n"); flush()
"""

BARE_NODE = """
const vm = require("vm");
let rest = "";
process.stdin.on("data", (data) => {
  rest += data;
  for (let end; (end = rest.indexOf("\\n")) >= 0; rest = rest.slice(end + 1)) {
    vm.runInThisContext(rest.slice(0, end));
    process.stdout.write("S\\n");
  }
});
"""

JUPYTER = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
print("S", flush=True)
for line in sys.stdin:
    asked = client.execute("pass", store_history=False)
    while client.get_shell_msg(timeout=10)["parent_header"].get("msg_id") != asked:
        pass
    while True:
        message = client.get_iopub_msg(timeout=10)
        state = message["content"].get("execution_state")
        if message["parent_header"].get("msg_id") == asked and message["msg_type"] == "status" and state == "idle":
            break
    print("S", flush=True)
client.stop_channels()
manager.shutdown_kernel(now=True)
"""


class Ours:
    """One connection to the daemon."""

    def __init__(self, root):
        self.root = root
        self.env = {"PATH": os.environ["PATH"], "HOME": root, "SESSIONS_ROOT": root, "LANG": "C.UTF-8"}
        self.run("daemon", "start")
        self.pid = json.loads(self.run("daemon", "status", "--json"))["pid"]
        path = json.loads(self.run("daemon", "status", "--json"))["socket"]
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b'{"hello":{"protocol":1,"version":"bench","pid":%d}}\n' % os.getpid())
        self.file.readline()
        self.next = 1

    def run(self, *args):
        return subprocess.run([BIN, *args], env=self.env, cwd=self.root, capture_output=True, text=True, check=True).stdout

    def call(self, language, code, workspace=None):
        call = {"id": self.next, "request": "exec", "workspace": workspace or self.root, "language": language, "code": code}
        self.next += 1
        self.socket.sendall(json.dumps(call).encode() + b"\n")
        answer = json.loads(self.file.readline())
        assert answer["ok"]["success"], answer
        return answer["ok"]

    def stop(self):
        self.run("daemon", "stop", "--all", "--yes")


class Pipe:
    """A process that answers a line with a line."""

    def __init__(self, argv, ready=False):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if ready and not self.process.stdout.readline():
            raise RuntimeError(argv[0])

    def ask(self, line):
        self.process.stdin.write(line)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"S\n"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Tmux:
    def __init__(self, root):
        self.base = ["tmux", "-S", os.path.join(root, "tmux"), "-f", "/dev/null"]
        subprocess.run([*self.base, "new-session", "-d", "-s", "b", "-x", "120", "-y", "40", "bash --norc --noprofile"], check=True)
        self.number = 0

    def ask(self):
        self.number += 1
        subprocess.run([*self.base, "send-keys", "-t", "b", f"true; echo Q$(({self.number - 1}+1))Q", "Enter"], check=True)
        want = f"Q{self.number}Q"
        while want not in subprocess.run([*self.base, "capture-pane", "-p", "-t", "b"], capture_output=True, text=True).stdout:
            pass

    def stop(self):
        subprocess.run([*self.base, "kill-server"])


def timed(work):
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def round_trips(ours, root, rounds):
    bash, python = Pipe(["bash", "--norc", "--noprofile"]), Pipe([sys.executable, "-u", "-c", BARE_PYTHON])
    calls = {
        "bash, bare pipe": lambda: bash.ask(b"true; echo S\n"),
        "bash, ours": lambda: ours.call("bash", "true"),
        "bash -c true": lambda: subprocess.run(["bash", "-c", "true"]),
        "python, bare pipe": lambda: python.ask(b"pass\n"),
        "python, ours": lambda: ours.call("python", "pass"),
    }
    stops = [bash.stop, python.stop]
    if shutil.which("node"):
        node = Pipe(["node", "-e", BARE_NODE])
        stops.append(node.stop)
        calls["node, bare pipe"] = lambda: node.ask(b"0\n")
        calls["node, ours"] = lambda: ours.call("node", "0")
    if shutil.which("tmux"):
        tmux = Tmux(root)
        stops.append(tmux.stop)
        calls["tmux send-keys + capture-pane"] = tmux.ask
    try:
        jupyter = Pipe([PYTHON, "-c", JUPYTER], ready=True)
        stops.append(jupyter.stop)
        calls["jupyter (ipykernel)"] = lambda: jupyter.ask(b"go\n")
    except RuntimeError:
        print("jupyter is not there: pip install ipykernel jupyter_client, or name a python with BENCH_PYTHON\n")
    times = {name: [] for name in calls}
    try:
        for number in range(-5, rounds):
            order = list(calls)
            random.shuffle(order)
            for name in order:
                took = timed(calls[name])
                if number >= 0:
                    times[name].append(took)
    finally:
        for stop in stops:
            stop()
    print(f"| an empty call, {rounds} rounds | p50 ms | p99 ms | x its bare pipe |\n|---|---:|---:|---:|")
    for name, values in times.items():
        language = name.split(",")[0].split()[0]
        bare = times.get(f"{language}, bare pipe", times["bash, bare pipe"])
        ratio = statistics.median(values) / statistics.median(bare)
        print(f"| {name} | {statistics.median(values):.3f} | {quantile(values, 0.99):.3f} | {ratio:.1f} |")


def first_calls(ours, root, rounds):
    print(f"\n| first call of a fresh runtime, median of {rounds} | ms | the interpreter alone | difference |\n|---|---:|---:|---:|")
    commands = {"bash": (["bash", "--norc", "--noprofile", "-c", "true"], "true"), "python": (["python3", "-c", "pass"], "pass"),
                "node": (["node", "-e", "0"], "0")}
    for language, (argv, code) in commands.items():
        if not shutil.which(argv[0]):
            continue
        ours_took, alone = [], []
        for number in range(rounds):
            folder = os.path.join(root, f"{language}-{number}")
            os.makedirs(folder)
            ours_took.append(timed(lambda: ours.call(language, code, folder)))
            alone.append(timed(lambda: subprocess.run(argv)))
        took, base = statistics.median(ours_took), statistics.median(alone)
        print(f"| {language} | {took:.1f} | {base:.1f} | {took - base:+.1f} |")


def growth(ours, calls):
    def standing():
        return pss(ours.pid), len(os.listdir(f"/proc/{ours.pid}/fd"))
    for _ in range(200):
        ours.call("bash", "true")
    before = standing()
    for _ in range(calls):
        ours.call("bash", "echo x")
    after = standing()
    print(f"\n{calls} calls: the daemon's PSS {before[0]} -> {after[0]} KiB, descriptors {before[1]} -> {after[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    rounds = 60 if parser.parse_args().quick else 300
    root = tempfile.mkdtemp(prefix="bench-exec-")
    ours = Ours(root)
    try:
        round_trips(ours, root, rounds)
        first_calls(ours, root, 5 if rounds < 300 else 15)
        growth(ours, 1000)
    finally:
        ours.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
