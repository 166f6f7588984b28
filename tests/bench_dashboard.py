#!/usr/bin/env python3
"""How quick the dashboard is: time of a frame, time from a key to its frame, and what it costs while 100 sessions flood.

    cargo build --release && python3 tests/bench_dashboard.py [--quick]

Keys are typed into a real terminal and the frames are read back from it, one by one: each is written between the marks of a synchronised update.
Beside it, in the same run, tmux shows its list of sessions with previews (choose-tree) and gets the same keys. Only ratios mean anything.
"""

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("SESSIONS_BIN") or os.path.join(HERE, "..", "target", "release", "sessions-tui")
FLOOD = "while :; do echo $RANDOM $RANDOM $RANDOM the quick brown fox jumps over the lazy dog; done"


class Window:
    """A program in a terminal of its own."""

    def __init__(self, argv, env, cols=120, rows=40):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self, wait):
        """What has arrived, with the time of its arrival."""
        ready, _, _ = select.select([self.fd], [], [], wait)
        if not ready:
            return b"", time.perf_counter()
        try:
            data = os.read(self.fd, 1 << 20)
        except OSError:
            data = b""
        return data, time.perf_counter()

    def until(self, text, most=60.0):
        """Until it is on the screen: what starts is not measured."""
        seen, deadline = b"", time.perf_counter() + most
        while text not in seen:
            if time.perf_counter() > deadline:
                raise SystemExit(f"{text} did not come")
            seen += self.read(1.0)[0]

    def settle(self, quiet=0.5, most=20.0):
        until = time.perf_counter() + most
        while time.perf_counter() < until:
            if not self.read(quiet)[0]:
                return

    def key(self, key, has_marks, patience=5.0):
        """Seconds until the frame that answers a key has arrived: up to its mark, or, of a program without marks, its first byte."""
        start = time.perf_counter()
        os.write(self.fd, key)
        seen = b""
        while time.perf_counter() < start + patience:
            data, at = self.read(patience)
            seen += data
            # the rest of a frame from before the key is not its answer
            if END in seen.partition(BEGIN)[2] if has_marks else seen:
                return at - start
        raise SystemExit("a key was not answered")

    def worked(self):
        """Seconds the program has had a processor."""
        with open(f"/proc/{self.pid}/schedstat") as stat:
            return int(stat.read().split()[0]) / 1e9

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        until = time.perf_counter() + 5
        while time.perf_counter() < until:
            self.read(0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def percentiles(samples):
    ordered = sorted(samples)
    return statistics.median(ordered) * 1000, ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000


def keys(made, count):
    """For each key: until its frame is there, and the work for it."""
    answered, work = [], []
    for n in range(count):
        before = made.window.worked()
        answered.append(made.window.key(b"j" if n % 40 < 20 else b"k", made.has_marks))
        work.append(made.window.worked() - before)
        # the rest of it, so that the next key finds a window at rest
        until = time.perf_counter() + 1
        while time.perf_counter() < until and made.window.read(0.03)[0]:
            pass
    return answered, work


class Ours:
    has_marks = True

    def __init__(self, count, flood):
        self.root = tempfile.mkdtemp(prefix="bench-dashboard-")
        self.env = {**os.environ, "SESSIONS_ROOT": self.root, "TERM": "xterm-256color", "SHELL": "/bin/bash"}
        for n in range(count):
            what = ["-d", "-n", f"flood-{n}", "--", "bash", "-c", FLOOD] if flood else ["--no-run", "-n", f"task-{n}", "--task", f"Task number {n}"]
            if count == 1 and not flood:
                what = ["-d", "-n", "one", "--", "cat"]
            self.run("new", *what)
        self.window = Window([BINARY], self.env)
        self.window.until(b"flood-" if flood else b"one" if count == 1 else b"task-")
        self.window.settle(1.0 if not flood else 0.2, 8.0)

    def run(self, *args):
        subprocess.run([BINARY, *args], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        self.window.close()
        subprocess.run([BINARY, "daemon", "stop", "--all", "--yes"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root, ignore_errors=True)


class Tmux:
    has_marks = False

    def __init__(self, count, flood):
        self.root = tempfile.mkdtemp(prefix="bench-dashboard-")
        self.env = {**os.environ, "TMUX_TMPDIR": self.root, "TERM": "xterm-256color"}
        self.env.pop("TMUX", None)
        for n in range(count):
            command = ["bash", "-c", FLOOD] if flood else ["cat"]
            self.run("-f", "/dev/null", "new-session", "-d", "-s", f"s{n}", "-x", "120", "-y", "40", *command)
        self.window = Window(["tmux", "attach", "-t", "s0"], self.env)
        self.window.settle(0.5, 5.0)
        self.run("choose-tree", "-t", "s0:0.0", "-Zs")
        self.window.settle(0.5, 5.0)

    def run(self, *args):
        subprocess.run(["tmux", *args], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        self.window.close()
        subprocess.run(["tmux", "kill-server"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root, ignore_errors=True)


def measure(made, rounds, seconds):
    answered, work = keys(made, rounds)
    before, start, drawn = made.window.worked(), time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        drawn += made.window.read(0.1)[0].count(END)
    return percentiles(answered), percentiles(work), (made.window.worked() - before) / seconds, drawn / seconds


def row(name, key, work, busy, drawn):
    print(f"| {name} | {key[0]:.2f} / {key[1]:.2f} | {work[0]:.2f} / {work[1]:.2f} | {drawn:.0f} | {busy * 100:.1f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="a word of the cases that are wanted: 1000, flood, …")
    wanted = parser.parse_args()
    quick = wanted.quick
    # whoever ends it ends what it started, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    rounds, seconds = (40, 4) if quick else (200, 10)
    print("| | key to frame, p50 / p99 ms | work for it in the client, p50 / p99 ms | frames/s without keys | CPU of the client then |\n|---|---|---|--:|--:|")
    cases = [("1 session", 1, False), ("100 sessions", 100, False), ("1000 sessions", 1000, False), ("100 sessions that flood", 100, True)]
    for name, count, flood in cases:
        if wanted.only and wanted.only not in name:
            continue
        for who, make in (("ours", Ours), ("tmux choose-tree", Tmux)):
            if who != "ours" and (count > 100 or not shutil.which("tmux")):
                continue
            made = make(count, flood)
            try:
                row(f"{name}, {who}", *measure(made, rounds, seconds))
            finally:
                made.close()


if __name__ == "__main__":
    main()
