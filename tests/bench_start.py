#!/usr/bin/env python3
"""What starting costs, side by side in one run: the binary itself, a list, a new session, and everything from nothing.

  tests/bench_start.py                    100 rounds, about a minute on 2 cores
  tests/bench_start.py --quick            20 rounds
  tests/bench_start.py --rounds N --patience SECONDS
  SESSIONS_BIN=path tests/bench_start.py  another binary (default: target/release/sessions-tui)

Beside it whichever of tmux, screen, dtach and abduco are installed. Everybody takes one turn per round, in a new random order, so
that whatever else the machine does hits all alike: look at the ratios. Each time is that of a whole command, process start
included. "first session" is `new -d` (or its like) while no server runs; ours stores the launch in a database before it starts the
program, and waits until it has started. "first ever" makes that database too. dtach and abduco have no server: each of their
sessions is a process, and a list is of files (dtach has none).

A command that fails or takes longer than the patience (10 s) ends that turn of its program; after three such turns the program takes
no further part. The results of the others are printed all the same, then what went wrong, and the exit code is 1 if it was ours.
"""
import argparse, collections, os, random, shutil, statistics, subprocess, sys, tempfile, time  # noqa: E401

BIN = os.path.abspath(os.environ.get("SESSIONS_BIN", os.path.join(os.path.dirname(__file__), "..", "target", "release", "sessions-tui")))
PROGRAM = ["sleep", "1000"]

# turns a program may fail in before it is left out
MOST_FAILURES = 3


class Peer:
    """A program that keeps sessions. Folders of its own, and no setting of the user's."""

    patience = 10.0

    def __init__(self, name, binary, root):
        self.name, self.binary = name, binary
        self.root = os.path.join(root, name)
        os.makedirs(self.root, mode=0o700)
        self.env = {"PATH": os.environ["PATH"], "HOME": self.root, "LANG": "C.UTF-8", "TERM": "xterm-256color", "SHELL": "/bin/sh"}
        self.number = 0

    def run(self, *args, check=True):
        null = subprocess.DEVNULL
        command = [self.binary, *args]
        return subprocess.run(command, env=self.env, cwd=self.root, stdin=null, stdout=null, stderr=null, check=check, timeout=self.patience)

    def version(self):
        # some say it with an exit code of their own
        self.run("--version", check=False)

    def next(self):
        self.number += 1
        return f"s{self.number}"


class Ours(Peer):
    def __init__(self, name, binary, root):
        super().__init__(name, binary, root)
        self.fresh()

    def fresh(self):
        """A machine that has never seen it."""
        self.env["SESSIONS_ROOT"] = os.path.join(self.root, self.next())
        os.makedirs(self.env["SESSIONS_ROOT"])

    def new(self):
        self.run("new", "-d", "-n", self.next(), "--", *PROGRAM)

    def list(self):
        self.run("ls")

    def end(self):
        self.run("daemon", "stop", "--all", "--yes")


class Tmux(Peer):
    def run(self, *args, check=True):
        return super().run("-S", os.path.join(self.root, "socket"), "-f", "/dev/null", *args, check=check)

    def version(self):
        super().run("-V")

    def new(self):
        self.run("new-session", "-d", "-s", self.next(), *PROGRAM)

    def list(self):
        self.run("list-sessions")

    def end(self):
        self.run("kill-server")


class Screen(Peer):
    def __init__(self, name, binary, root):
        super().__init__(name, binary, root)
        self.env["SCREENDIR"] = self.root

    def new(self):
        self.run("-c", "/dev/null", "-dmS", self.next(), *PROGRAM)

    def list(self):
        self.run("-ls", check=False)

    def end(self):
        end_program(self)


class Dtach(Peer):
    list = None

    def new(self):
        self.run("-n", os.path.join(self.root, self.next()), *PROGRAM)

    def end(self):
        end_program(self)


class Abduco(Peer):
    def __init__(self, name, binary, root):
        super().__init__(name, binary, root)
        self.env["ABDUCO_SOCKET_DIR"] = self.root

    def version(self):
        self.run("-v")

    def new(self):
        self.run("-n", self.next(), *PROGRAM)

    def list(self):
        self.run()

    def end(self):
        end_program(self)


def end_program(peer):
    """Those without a word for it: their sessions end with their programs, which are known by their folder. Some start late."""
    left, deadline = 2, time.monotonic() + 2
    while left > 0 and time.monotonic() < deadline:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as command:
                    is_program = command.read().split(b"\0")[:-1] == [word.encode() for word in PROGRAM]
                if is_program and os.readlink(f"/proc/{pid}/cwd").startswith(peer.root):
                    with open(f"/proc/{pid}/stat") as stat:
                        server = int(stat.read().rsplit(") ", 1)[1].split()[1])
                    os.kill(int(pid), 9)
                    left -= 1
                    if isinstance(peer, Abduco) and server > 1:
                        os.kill(server, 9)  # it would keep the exit code for whoever attaches
            except OSError:
                pass  # it is gone


def timed(work):
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def in_words(error):
    """What went wrong, with the command as it was typed."""
    command = " ".join(os.path.basename(word) if n == 0 else word for n, word in enumerate(error.cmd))
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{command!r} took longer than {error.timeout:.0f} s"
    return f"{command!r} ended with exit code {error.returncode}"


def end_quietly(peer):
    try:
        if peer.number > 0:
            peer.end()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pass  # nothing of it runs, or it cannot be helped


def turn(peer, is_first_ever):
    """One turn of one program: how long each row took."""
    took = {"--version": timed(peer.version), "first session": timed(peer.new)}
    took["new session"] = timed(peer.new)
    if peer.list:
        took["list"] = timed(peer.list)
    peer.end()
    if isinstance(peer, Ours) and is_first_ever:
        kept = peer.env["SESSIONS_ROOT"]
        peer.fresh()
        try:
            took["first ever"] = timed(peer.new)
            peer.end()
        finally:
            shutil.rmtree(peer.env["SESSIONS_ROOT"], ignore_errors=True)
            peer.env["SESSIONS_ROOT"] = kept
    return took


def measure(peers, rounds, failures):
    rows = ["--version", "list", "new session", "first session", "first ever"]
    times = {row: {peer.name: [] for peer in peers} for row in rows}
    for number in range(-2, rounds):
        takes_part = [peer for peer in peers if len(failures[peer.name]) < MOST_FAILURES]
        for peer in random.sample(takes_part, len(takes_part)):
            try:
                took = turn(peer, number % 5 == 0)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                failures[peer.name].append(in_words(error))
                end_quietly(peer)
                continue
            if number >= 0:
                for row, value in took.items():
                    times[row][peer.name].append(value)
    return times


def show(peers, times, rounds):
    names = [peer.name for peer in peers]
    print(f"| median of {rounds}, ms | " + " | ".join(names) + " | ours ÷ tmux |\n|---|" + "---:|" * (len(names) + 1))
    sizes = [os.path.getsize(os.path.realpath(peer.binary)) / 1e6 for peer in peers]
    print("| size of the binary, MB | " + " | ".join(f"{size:.1f}" for size in sizes) + " | |")
    for row, by_peer in times.items():
        medians = [statistics.median(by_peer[name]) if by_peer[name] else None for name in names]
        tmux = medians[names.index("tmux")] if "tmux" in names else None
        ratio = f"{medians[0] / tmux:.1f}" if tmux and medians[0] is not None else ""
        print(f"| {row} | " + " | ".join("" if median is None else f"{median:.1f}" for median in medians) + f" | {ratio} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--patience", type=float, default=Peer.patience, help="seconds a command may take")
    args = parser.parse_args()
    rounds = args.rounds or (20 if args.quick else 100)
    Peer.patience = args.patience
    root = tempfile.mkdtemp(prefix="bench-start-")
    peers = [Ours("sessions-tui", BIN, root)]
    for name, kind in {"tmux": Tmux, "screen": Screen, "dtach": Dtach, "abduco": Abduco}.items():
        binary = shutil.which(name)
        if binary:
            peers.append(kind(name, binary, root))
    failures = collections.defaultdict(list)
    try:
        show(peers, measure(peers, rounds, failures), rounds)
    finally:
        for peer in peers:
            end_quietly(peer)
        shutil.rmtree(root, ignore_errors=True)
    for name, said in filter(lambda failed: failed[1], failures.items()):
        left_out = ", left out from then on" if len(said) >= MOST_FAILURES else ""
        print(f"{name}: {len(said)} turns failed{left_out}: {said[0]}", file=sys.stderr)
    if failures["sessions-tui"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
