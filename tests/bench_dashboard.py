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
BINARY = os.path.join(HERE, "..", "target", "release", "sessions-tui")
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

    def settle(self, quiet=0.5, most=20.0):
        until = time.perf_counter() + most
        while time.perf_counter() < until:
            if not self.read(quiet)[0]:
                return

    def key(self, key, patience=5.0):
        """Seconds until the first byte after a key, and until the end of the frame that came with it (None without marks)."""
        start = time.perf_counter()
        os.write(self.fd, key)
        first, seen = None, b""
        while time.perf_counter() < start + patience:
            data, at = self.read(patience)
            if data and first is None:
                first = at - start
            seen += data
            if END in seen:
                return first, at - start
            if BEGIN not in seen and seen:
                return first, None
        raise SystemExit("a key was not answered")

    def cpu(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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


def frames(window, seconds):
    """Lengths of the frames that are drawn meanwhile, from mark to mark."""
    lengths, began, rest = [], None, b""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        data, at = window.read(0.1)
        rest += data
        while True:
            mark = BEGIN if began is None else END
            if mark not in rest:
                rest = rest[-len(mark):]
                break
            rest = rest.split(mark, 1)[1]
            if began is None:
                began = at
            else:
                lengths.append(at - began)
                began = None
    return lengths


def keys(window, count):
    answered, framed = [], []
    for n in range(count):
        first, frame = window.key(b"j" if n % 40 < 20 else b"k")
        answered.append(first)
        if frame is not None:
            framed.append(frame)
        # the rest of it, so that the next key finds a window at rest
        while window.read(0.03)[0]:
            pass
    return answered, framed


class Ours:
    def __init__(self, count, flood):
        self.root = tempfile.mkdtemp(prefix="bench-dashboard-")
        self.env = {**os.environ, "SESSIONS_ROOT": self.root, "TERM": "xterm-256color", "SHELL": "/bin/bash"}
        for n in range(count):
            what = ["-d", "-n", f"flood-{n}", "--", "bash", "-c", FLOOD] if flood else ["--no-run", "-n", f"task-{n}", "--task", f"Task number {n}"]
            if count == 1 and not flood:
                what = ["-d", "-n", "one", "--", "cat"]
            self.run("new", *what)
        self.window = Window([BINARY], self.env)
        self.window.settle(1.0 if not flood else 0.2, 8.0)

    def run(self, *args):
        subprocess.run([BINARY, *args], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def close(self):
        self.window.close()
        subprocess.run([BINARY, "daemon", "stop", "--all", "--yes"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root, ignore_errors=True)


class Tmux:
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


def measure(made, count, rounds, seconds):
    answered, framed = keys(made.window, rounds)
    before, start = made.window.cpu(), time.perf_counter()
    lengths = frames(made.window, seconds)
    return {
        "sessions": count,
        "key": percentiles(answered),
        "frame after key": percentiles(framed) if framed else None,
        "frame": percentiles(lengths) if lengths else None,
        "cpu": (made.window.cpu() - before) / (time.perf_counter() - start),
        "frames": len(lengths) / seconds,
    }


def row(name, got):
    pair = lambda value: f"{value[0]:.2f} / {value[1]:.2f}" if value else "-"
    print(f"| {name} | {pair(got['key'])} | {pair(got['frame after key'])} | {pair(got['frame'])} | {got['frames']:.0f} | {got['cpu'] * 100:.1f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="a word of the cases that are wanted: 1000, flood, …")
    wanted = parser.parse_args()
    quick = wanted.quick
    # whoever ends it ends what it started, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    rounds, seconds = (40, 4) if quick else (200, 10)
    print("| | key to first byte, p50 / p99 ms | key to whole frame | frame, mark to mark | frames/s | CPU of the client |\n|---|---|---|---|--:|--:|")
    cases = [("1 session", 1, False), ("100 sessions", 100, False), ("1000 sessions", 1000, False), ("100 sessions that flood", 100, True)]
    for name, count, flood in cases:
        if wanted.only and wanted.only not in name:
            continue
        for who, make in (("ours", Ours), ("tmux choose-tree", Tmux)):
            if who != "ours" and (count > 100 or not shutil.which("tmux")):
                continue
            made = make(count, flood)
            try:
                row(f"{name}, {who}", measure(made, count, rounds, seconds))
            finally:
                made.close()


if __name__ == "__main__":
    main()
