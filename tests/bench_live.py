#!/usr/bin/env python3
"""What a dashboard costs the daemon: looks and pulses, at floods and at silence.

  tests/bench_live.py [SESSIONS [SECONDS]]    default 20 sessions, 8 seconds each; two minutes in all
  SESSIONS_BIN=path tests/bench_live.py       another binary (default: target/release/sessions-tui)

Every row is the daemon's own processor time as a share of one core, and how long an answer took. The floods are `yes`, which takes
every core there is, so that the daemon has its share and no more: there the answers' times say what looking costs; in the streams,
the shares do.
"""
import json, os, signal, socket, statistics, subprocess, sys, tempfile, threading, time  # noqa: E401

BIN = os.environ.get("SESSIONS_BIN", os.path.join(os.path.dirname(__file__), "..", "target", "release", "sessions-tui"))
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 8


class Wire:
    def __init__(self, root):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(root, "run", "daemon.sock"))
        self.file = self.socket.makefile("rwb")
        self.file.write(b'{"hello":{"protocol":1,"version":"bench","pid":1}}\n')
        self.file.flush()
        self.file.readline()

    def call(self, **request):
        self.file.write((json.dumps({"id": 1, **request}) + "\n").encode())
        self.file.flush()
        answer = json.loads(self.file.readline())
        assert "ok" in answer, answer
        return answer["ok"]


def run(root, *args):
    environment = {"PATH": os.environ["PATH"], "HOME": root, "SESSIONS_ROOT": root, "LANG": "C.UTF-8"}
    return subprocess.run([BIN, *args], env=environment, cwd=root, capture_output=True, text=True, check=True).stdout


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(label, pid, root, ask, rate, clients):
    """`clients` threads that each ask `rate` times a second."""
    took, until = [], time.monotonic() + SECONDS

    def client(number):
        wire = Wire(root)
        while time.monotonic() < until:
            began = time.monotonic()
            ask(wire, number)
            took.append(time.monotonic() - began)
            time.sleep(max(0, 1 / rate - (time.monotonic() - began)))

    before, began = cpu(pid), time.monotonic()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(max(0, until - time.monotonic()))
    for thread in threads:
        thread.join()
    share = (cpu(pid) - before) / (time.monotonic() - began)
    quick = f"p50 {statistics.median(took) * 1000:6.2f} ms  max {max(took) * 1000:7.2f} ms  {len(took)} answers" if took else ""
    print(f"{label:44} {share * 100:6.1f} % of a core  {quick}", flush=True)


def main():
    # whatever ends this ends what it started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    stream = "text=$(yes 'a line that is repeated again and again' | head -c 50000); while sleep 0.05; do echo \"$text\"; done"
    for what, argv in [
        ("floods", ["yes", "a line that is repeated again and again"]),
        ("streams of 1 MB/s", ["bash", "-c", stream]),
        ("silent sessions", ["sleep", "1000"]),
    ]:
        with tempfile.TemporaryDirectory() as root:
            try:
                rows(root, what, argv)
            finally:
                subprocess.run([BIN, "daemon", "stop", "--all", "--yes"], env={"SESSIONS_ROOT": root, "HOME": root}, stdout=subprocess.DEVNULL, check=False)


def rows(root, what, argv):
    sessions = [json.loads(run(root, "new", "-d", "--json", "-n", f"s{n}", "--", *argv))["id"] for n in range(COUNT)]
    pid = json.loads(run(root, "daemon", "status", "--json"))["pid"]
    time.sleep(3)
    places = [None] * COUNT

    def look(wire, number):
        places[number] = wire.call(request="look", name=sessions[number], after=places[number], wait_ms=1000)["at"]

    measure(f"{COUNT} {what}, nobody looks", pid, root, None, 1, 0)
    measure(f"  {COUNT} looks, 10 a second each", pid, root, look, 10, COUNT)
    measure("  one pulse of all a second", pid, root, lambda wire, _: wire.call(request="pulse", sessions=sessions), 1, 1)
    measure("  a list, 10 a second", pid, root, lambda wire, _: wire.call(request="list"), 10, 1)
    measure(f"{COUNT} {what}, nobody looks, again", pid, root, None, 1, 0)


main()
