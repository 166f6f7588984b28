#!/usr/bin/env python3
"""The project's own small benchmark: sessions-tui, tmux and a raw PTY side by side.

  tests/bench.py                    full sizes, under 5 minutes on 2 cores
  tests/bench.py --quick            small sizes, under a minute
  tests/bench.py --only latency,history --json out.json
  SESSIONS_BIN=path tests/bench.py  another binary (default: target/release/sessions-tui)

Prints one Markdown table: the median (p50) per peer, our ratio to raw and to tmux, and the goal.
Lower is better in every row.  The peers take turns in a new random order each round (latency:
each key, create: each session), so noise hits all alike: trust the ratios, not the absolutes.
Each peer is driven as a user drives it: its command line, and its client in a real PTY of 120x40.
All run with defaults (ours records), tmux with a history-limit of 10000 lines.  "raw" is the same
program on a bare PTY, what the machine allows; for `attach` a `cat` of one screenful, for `create`
a PTY plus a spawn, for `ls` running `true`.  Memory and CPU count the server-side processes (ours:
daemon and session holders), CPU of an attached row also the client, never the programs inside.
All state is in a temporary directory; what was started is ended by its pid, also after ^C.
"""
import argparse, contextlib, fcntl, json, os, random, re, select, shutil, signal  # noqa: E401
import statistics, struct, subprocess, sys, tempfile, termios, time               # noqa: E401

ROWS, COLS, SH, now = 40, 120, "/bin/sh", time.perf_counter
GROUPS = ("throughput", "latency", "history", "sessions")             # methods of Bench

# key, label ({..} are options), unit, goal: ("raw"|"tmux", factor), ("abs", bound) or None
TABLE = [
    ("det", "plain {plain_mb:g} MB, detached", "s", ("raw", 1.3)),
    ("att", "plain {plain_mb:g} MB, attached", "s", ("raw", 1.6)),
    ("col", "colour {colour_mb:g} MB, attached", "s", ("raw", 1.8)),
    ("backlog", "server busy after a detached program's end", "s", None),
    ("det_cpu", "CPU plain detached, server", "cpu s", ("tmux", 0.6)),
    ("att_cpu", "CPU plain attached, server+client", "cpu s", ("tmux", 1.0)),
    ("col_cpu", "CPU colour attached, server+client", "cpu s", ("tmux", 1.0)),
    ("echo", "echo of a key, idle", "us", ("tmux", 1.1)),
    ("flood", "echo of a key, another session floods", "us", ("tmux", 0.4)),
    ("intr", "^C in an own flood", "ms", ("tmux", 0.1)),
    ("attach", "attach, {history} lines of history", "ms", ("tmux", 0.9)),
    ("create", "create a session, per call ({sessions})", "ms", ("tmux", 0.9)),
    ("ls", "ls with {sessions} sessions", "ms", ("tmux", 0.7)),
    ("pss0", "PSS of the server, 0 sessions", "KiB", ("abs", 10240)),
    ("pss1", "PSS of the server, 1 session", "KiB", ("abs", 10240)),
    ("pssn", "PSS per further idle session", "KiB", ("abs", 400)),
    ("growth", "PSS growth per session after {history} lines", "KiB", ("abs", 1536)),
    ("idle_cpu", "idle CPU in {idle_s:g} s, {sessions} sessions", "cpu ms", ("abs", 0)),
    ("wakeups", "idle wake-ups in {idle_s:g} s, {sessions} sessions", "", ("abs", 0)),
]
SIZES = {  # option: (default, quick, help)
    "plain_mb": (100.0, 15.0, "size of the plain log"), "colour_mb": (20.0, 4.0, "size of the colour log"),
    "rounds": (5, 3, "rounds of the throughput rows"), "keys": (300, 75, "keys typed per echo row"),
    "interrupts": (10, 5, "^C trials"), "attaches": (30, 10, "attach trials"), "lists": (20, 8, "calls of ls"),
    "sessions": (100, 100, "sessions for create, ls, idle"), "history": (10000, 10000, "lines of history"),
    "talkers": (10, 4, "sessions that print history"), "idle_s": (10.0, 4.0, "seconds of idling"),
    "settle_s": (5.0, 4.0, "seconds between the last activity and that"),
}

# ---- programs inside the sessions (markers are joined at run time: no status line may fake them) ----
LINE = "2026-01-01T00:00:00.009600Z INFO  [worker-16] req=93275178 connection lease finished in 80991 us"
HELLO = "stty -echo; read l; printf 'RE4''DY\\r\\n'; "
PLAY_ATT = HELLO + "read l <$1; cat $2; printf '\\n<<F1%s\\n' 'N4L>>'; exec sleep 1000"
PLAY_DET = "read l <$1; cat $2; echo d >$3; exec sleep 1000"
ECHO = HELLO.replace("printf", "stty raw -echo; printf") + "exec cat"
FLOOD = "echo $$ >$1; exec yes '%s'" % LINE
INTR = HELLO + "trap : INT; n=0; while read l <$1; do n=$((n+1)); yes '%s'; printf '\\n<<ST0P%%d>>\\n' $n; done" % LINE
TALK = "read l <$1; seq -f '%%06.0f %s' 1 $2; cat $3; echo d >$4; exec sleep 1000" % LINE


def plain_log(f, size):
    """A server log, about 110 bytes a line, every line different."""
    r, n = random.Random(1), 0
    words = "connection accepted upstream timeout retry cache miss worker shard replica lease queue".split()
    pool = [" ".join(r.choices(words, k=r.randrange(3, 9))) for _ in range(4000)]
    while n < size:
        n += f.write(b"2026-01-01T00:%02d:%09.6fZ INFO  [worker-%02d] req=%08x %s in %d us\n" % (
            n // 60000000 % 60, n / 1e6 % 60, n & 31, r.getrandbits(32), pool[n % 4000].encode(), n % 99991))


def colour_log(f, size):
    """Build and diff output: 16, 256 and true colour, attributes, wide characters, CR+EL."""
    r, n, pool = random.Random(2), 0, []
    shapes = ["\x1b[1m\x1b[32m   Compiling\x1b[0m W vN.N.N", "\x1b[1m\x1b[38;5;9merror\x1b[0m\x1b[1m[EN]\x1b[0m: W W W W W",
              "\x1b[38;5;NmW\x1b[0m " * 10, "\x1b[38;2;N;N;NmW\x1b[39m" * 8, "\x1b[32m+W W W W W W W W\x1b[m",
              "\x1b[31m-W W W W W W W W\x1b[m", "\r\x1b[K\x1b[36mBuilding\x1b[0m [=====================>      ]",
              "\x1b[7m W W \x1b[27m \x1b[4mW W W\x1b[24m \x1b[3;35mW W\x1b[0m"]
    fill = {"W": lambda: r.choice("src lib core parse écran größe 漢字 ✓ → mod net io".split()),
            "N": lambda: str(r.randrange(256))}
    for i in range(4000):
        pool.append(re.sub("[WN]", lambda m: fill[m[0]](), shapes[i % 8]).encode())
    while n < size:
        n += f.write(b"%s %d\n" % (pool[r.randrange(4000)], n))


# ---- /proc -------------------------------------------------------------------------------------------
def slurp(path):
    with contextlib.suppress(OSError), open(path, "rb") as f:
        return f.read()
    return b""


def born(pid):
    """When a living process was started (tells a reused pid apart); None for a dead one."""
    f = slurp("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return int(f[19]) if f and f[0] not in b"ZX" else None


def tagged(tag):
    """All living processes with this in their environment: clients, servers, inner programs."""
    return [p for p in map(int, filter(str.isdigit, os.listdir("/proc")))
            if tag.encode() in slurp("/proc/%d/environ" % p) and born(p)]


def kill(pid, sig):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def cpu_ns(pids):
    """CPU time of all threads by the processes' CPU clocks: the counters behind /proc/PID/schedstat, to
    the nanosecond, and including threads that have ended in between."""
    return sum(time.clock_gettime_ns((~p << 3) | 2) for p in pids)


def pss_kb(pids):
    return sum(int(re.search(rb"^Pss: +(\d+)", slurp("/proc/%d/smaps_rollup" % p), re.M)[1]) for p in pids)


def wakeups(pids):
    """Voluntary context switches so far: how often a thread woke up and slept again."""
    return sum(int(re.search(rb"^voluntary_ctxt_switches:\s+(\d+)", slurp("/proc/%d/task/%s/status" % (p, t)), re.M)[1])
               for p in pids for t in os.listdir("/proc/%d/task" % p))


# ---- the user's terminal -----------------------------------------------------------------------------
ESC = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\"
                 rb"|[()*+][0-9A-Za-z]|[ -/]*[0-~])|[\x0e\x0f\x07]")
ANSWERS = [(re.compile(q), a) for q, a in (       # what xterm would say when asked
    (rb"\x1b\[0?c", b"\x1b[?62;22c"), (rb"\x1b\[>0?c", b"\x1b[>0;276;0c"), (rb"\x1b\[5n", b"\x1b[0n"),
    (rb"\x1b\[>0?q", b"\x1bP>|xterm(390)\x1b\\"), (rb"\x1b\[\??6n", b"\x1b[1;1R"), (rb"\x1b\[\?u", b"\x1b[?0u"),
    (rb"\x1b\]1([01]);\?(?:\x07|\x1b\\)", b"\x1b]1\\1;rgb:0000/0000/0000\x1b\\\\"))]


class Term:
    """A PTY with a client in it.  posix_spawn, so that forking Python is not billed to the peer."""
    def __init__(self, argv, env):
        self.respond, self.ended, self.tail = True, False, b""
        self.fd, s = os.openpty()
        fcntl.ioctl(s, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, COLS * 10, ROWS * 20))
        self.t0 = now()
        # setsid and then opening a tty makes it the controlling terminal
        self.pid = os.posix_spawnp(argv[0], argv, env, setsid=True, setsigdef=[signal.SIGINT, signal.SIGPIPE],
                                   file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.ttyname(s), os.O_RDWR, 0),
                                                 (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)])
        os.close(s)
        os.set_blocking(self.fd, False)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)

    def send(self, data):
        os.write(self.fd, data)

    def read(self, timeout):
        """One chunk, b"" after the timeout; OSError (EIO) when the client is gone."""
        while True:
            try:
                c = os.read(self.fd, 65536)
                break
            except BlockingIOError:
                if timeout <= 0 or not self.poll.poll(timeout * 1000):
                    return b""
        for q, a in ANSWERS if self.respond and b"\x1b" in c else ():
            for m in q.finditer(c):
                self.send(m.expand(a) if m.groups() else a)
        return c

    def wait_for(self, *marks, timeout=20.0):
        """Reads until all marks are drawn; returns when that was.  Marks in one piece are found at once,
        those with escape sequences between their letters as soon as the stream pauses."""
        end, want = now() + timeout, marks
        while True:
            c = self.read(0)
            text = self.tail[-32:] + c if c else ESC.sub(b"", self.tail)
            self.tail = (self.tail + c)[-8192:]
            want = [m for m in want if m not in text]
            if not want:
                return now()
            if now() > end:
                raise TimeoutError("never drawn: %r; last %r" % (want, ESC.sub(b"", self.tail)[-200:]))
            c or self.poll.poll(200)

    def drain(self, quiet=0.05, limit=1.0):
        end = now() + limit
        while now() < end and self.read(quiet):
            pass

    def ready(self):
        """Types Enter until the inner program answers: then all of the path works."""
        for wait in (0.2, 0.3, 0.5, 1, 2, 5):
            self.send(b"\r")
            with contextlib.suppress(TimeoutError):
                self.wait_for(b"RE4DY", timeout=wait)
                break
        else:
            self.wait_for(b"RE4DY")
        self.drain(0.1)
        self.respond = False
        return self

    def echo_us(self, k):
        """Microseconds from typing k until k is drawn."""
        self.drain(0)
        buf, t0 = b"", now()
        self.send(k)
        while k not in buf or k not in ESC.sub(b"", buf):
            buf += self.read(1)
            if now() - t0 > 5:
                raise TimeoutError("no echo of %r in %r" % (k, buf[-200:]))
        return (now() - t0) * 1e6

    def wait_exit(self, timeout):
        end = now() + timeout
        while not self.ended and now() < end:
            with contextlib.suppress(OSError):
                self.read(0.005)
            self.ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return self.ended

    def close(self):
        for sig in (signal.SIGHUP, signal.SIGKILL):
            if not self.ended:
                kill(self.pid, sig)
                self.wait_exit(1)
        os.close(self.fd)


class Fifo:
    """A gate or a bell for the inner program; held open both ways, so opening never blocks."""
    def __init__(self, peer, name):
        self.path = os.path.join(peer.dir, name)
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR)

    def put(self):
        os.write(self.fd, b"\n")

    def wait(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            raise TimeoutError("the inner program did not finish")
        t, self.said = now(), os.read(self.fd, 4096)
        return t


# ---- the peers ---------------------------------------------------------------------------------------
class Peer:
    """One isolated instance: own directory, environment and server, ended by end()."""
    def __init__(self, bench):
        bench.serial += 1
        self.bench, self.terms, self.known = bench, [], {}            # known: pid -> born
        self.dir = os.path.join(bench.root, "%d%s" % (bench.serial, self.name[0]))
        os.makedirs(self.dir, mode=0o700)
        self.tag = "%s-%s-" % (bench.tag, os.path.basename(self.dir))
        self.env = dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"), self.dir)
        self.env.update(PATH=os.environ.get("PATH", os.defpath), TERM="xterm-256color", LANG="C.UTF-8", SHELL=SH,
                        SESSIONS_BENCH=self.tag)
        bench.peers.append(self)
        self.start()

    def run(self, *argv, out=subprocess.DEVNULL):
        """A call of the peer's command line."""
        return subprocess.run([*self.base, *argv], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.DEVNULL, timeout=30, check=True).stdout

    def attach(self, name):
        self.terms.append(Term([*self.base, *self.attach_args, name], self.env))
        return self.terms[-1]

    def open(self, name, *argv):
        """A session with a terminal looking at it."""
        self.create(name, *argv)
        return self.attach(name)

    def end(self):
        """Ends what this peer started, pid by pid; what had to be killed is remembered."""
        while self.terms:
            self.terms.pop().close()
        for sig, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0)):
            told, stop, left = set(), now() + patience, True
            while left and now() < stop:
                self.known.update((p, born(p)) for p in tagged(self.tag) if p not in self.known)
                left = {p for p, b in self.known.items() if b and born(p) == b}
                for p in left - told:
                    if sig == signal.SIGKILL:
                        self.bench.killed.append("%s: %r" % (self.name, slurp("/proc/%d/cmdline" % p)[:80]))
                    kill(p, sig)
                    kill(p, signal.SIGCONT)          # a stopped flood must hear it
                told |= left
                time.sleep(0.01)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.bench.peers.remove(self)


class Raw(Peer):
    name, start, servers = "raw", lambda self: None, lambda self: []

    def create(self, name, *argv):
        """Detached = `cat` reads the PTY and throws it away."""
        t = Term(argv, self.env)
        os.set_blocking(t.fd, True)
        os.posix_spawnp("cat", ["cat"], self.env, file_actions=[(os.POSIX_SPAWN_DUP2, t.fd, 0), (
            os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)])
        os.close(t.fd)

    def open(self, name, *argv):
        self.terms.append(Term(argv, self.env))
        return self.terms[-1]


class Tmux(Peer):
    name, attach_args, list_args = "tmux", ("attach-session", "-t"), ("list-sessions",)

    def start(self):
        conf = os.path.join(self.dir, "conf")
        with open(conf, "w") as f:                   # exit-empty: to see it with 0 sessions
            f.write("set -g history-limit 10000\nset -s exit-empty off\n")
        self.env["TMUX_TMPDIR"] = self.dir
        self.base = ["tmux", "-L", self.tag, "-f", conf]
        self.run("start-server")
        self.learn()

    def learn(self):
        self.pid = int(self.run("display-message", "-p", "#{pid}", out=subprocess.PIPE))
        self.known[self.pid] = born(self.pid)        # it overwrites its environment: no tag

    def create(self, name, *argv):
        self.run("new-session", "-d", "-s", name, "-x", str(COLS), "-y", str(ROWS), "--", *argv)

    def servers(self):
        return [self.pid]

    def end(self):
        with contextlib.suppress(AttributeError, subprocess.SubprocessError):
            self.known or self.learn()               # interrupted while it was starting
        super().end()


class Ours(Peer):
    name, attach_args, list_args = "ours", ("attach",), ("ls",)

    def start(self):
        self.env["SESSIONS_ROOT"] = self.dir
        self.base = [self.bench.exe]
        self.run("daemon", "start")

    def create(self, name, *argv):
        self.run("new", "-d", "-n", name, "--size", "%dx%d" % (COLS, ROWS), "--", *argv)

    def servers(self):
        """Daemon and session holders: our executable with our tag, without the clients."""
        out = [p for p in tagged(self.tag) if p not in [t.pid for t in self.terms]
               and os.path.realpath("/proc/%d/exe" % p) == self.bench.exe]
        if not out:
            raise RuntimeError("no server process: nothing to measure")
        return out


# ---- the measurements --------------------------------------------------------------------------------
class Bench:
    def __init__(self, opt, root):
        self.o, self.root, self.rng = opt, os.path.realpath(root), random.Random(opt.seed)
        self.tag, self.serial, self.peers, self.values = os.path.basename(root), 0, [], {}
        self.failures, self.killed = [], []
        self.exe = shutil.copy2(opt.bin, os.path.join(self.root, "sessions-tui"))  # a rebuild must not change the run

    def end_all(self):
        for p in list(self.peers):
            p.end()

    def put(self, key, peer, value):
        self.values.setdefault(key, {}).setdefault(peer, []).append(value)

    def turns(self, items, what, fn, *args):
        """fn(item, *args) for each in random order; a failure is noted and costs only this turn."""
        for x in self.rng.sample(list(items), len(items)):
            try:
                fn(x, *args)
            except (OSError, RuntimeError, subprocess.SubprocessError) as e:      # TimeoutError is an OSError
                self.failures.append("%s, %s: %s: %s" % (what, getattr(x, "name", x), type(e).__name__, str(e)[:300]))
                print("  ! " + self.failures[-1], file=sys.stderr)

    def throughput(self):
        """The program waits at a gate; the clock runs from opening it until the client has drawn the last
        line (attached) or the program has written all (detached).  Then the server is followed until its
        CPU stands still: work put off until later counts as CPU, and shows as backlog."""
        logs = {k: os.path.join(self.root, k) for k in ("plain", "colour")}
        for k, path in logs.items():
            with open(path, "wb") as f:
                {"plain": plain_log, "colour": colour_log}[k](f, getattr(self.o, k + "_mb") * 1e6)

        def one(cls, key, log):
            peer = cls(self)
            try:
                gate, done, t = Fifo(peer, "gate"), Fifo(peer, "done"), None
                if key == "det":
                    peer.create("s1", SH, "-c", PLAY_DET, SH, gate.path, log, done.path)
                    time.sleep(0.3)
                else:
                    t = peer.open("s1", SH, "-c", PLAY_ATT, SH, gate.path, log).ready()
                count = peer.servers() + ([t.pid] if t and cls is not Raw else [])
                c0, t0 = cpu_ns(count), now()
                gate.put()
                end = t.wait_for(b"<<F1N4L>>", timeout=180) if t else done.wait(180)
                last, busy = cpu_ns(count), end
                while count and now() - busy < 0.15 and now() - end < 30:
                    t.drain(0.02, 0.02) if t else time.sleep(0.02)
                    c = cpu_ns(count)
                    last, busy = c, (now() if c - last > 2e6 else busy)
                self.put(key, cls.name, end - t0)
                if count:
                    self.put(key + "_cpu", cls.name, (last - c0) / 1e9)
                    key == "det" and self.put("backlog", cls.name, busy - end)
            finally:
                peer.end()

        for _ in range(self.o.rounds):
            for key, log in (("det", "plain"), ("att", "plain"), ("col", "colour")):
                self.turns((Raw, Tmux, Ours), key, one, key, logs[log])

    def latency(self):
        """Echo, idle: all are attached at once and take turns key by key.  Flood: another session of the same
        server runs `yes`, unwatched; it is stopped while the others have their turn.  ^C: the attached
        session itself floods; from ^C until the program's answer is drawn."""
        peers, keys = [c(self) for c in (Raw, Tmux, Ours)], b"@%&=~^!$"           # in nobody's status line
        for p in peers:
            p.t = p.open("echo", SH, "-c", ECHO, SH).ready()

        def think():
            time.sleep(self.rng.uniform(0.001, 0.004))

        def idle(p, i):
            self.put("echo", p.name, p.t.echo_us(keys[i % 8:][:1]))

        def flood(p):
            os.kill(p.flood, signal.SIGCONT)
            try:
                time.sleep(0.05)
                for i in range(25):
                    self.put("flood", p.name, p.t.echo_us(keys[i % 8:][:1]))
                    think()
            finally:
                os.kill(p.flood, signal.SIGSTOP)
                p.t.drain(0.03)

        def interrupt(p, i):
            p.gate.put()
            p.t.drain(0.25, 0.25)
            t0 = now()
            p.t.send(b"\x03")
            self.put("intr", p.name, (p.t.wait_for(b"<<ST0P%d>>" % i) - t0) * 1e3)

        for i in range(self.o.keys):
            self.turns(peers, "echo", idle, i)
            think()
        for p in peers:
            pidfile = Fifo(p, "pid")
            p.create("flood", SH, "-c", FLOOD, SH, pidfile.path)
            pidfile.wait(10)
            p.flood = int(pidfile.said)
            os.kill(p.flood, signal.SIGSTOP)
        time.sleep(0.5)
        for _ in range(max(1, self.o.keys // 25)):
            self.turns(peers, "flood", flood)
        self.end_all()
        peers = [c(self) for c in (Raw, Tmux, Ours)]
        for p in peers:
            p.gate = Fifo(p, "gate")
            p.t = p.open("intr", SH, "-c", INTR, SH, p.gate.path).ready()
        for i in range(self.o.interrupts):
            self.turns(peers, "^C", interrupt, i + 1)

    def history(self):
        """Some sessions print their history and a screenful unwatched: growth of the server, as a mean.  Then
        attach to one: from starting the client until top and bottom of that screen are drawn."""
        screen = os.path.join(self.root, "screen")
        with open(screen, "w") as f:
            f.write("\n".join(["<<T0P@@"] + ["attach screen text " * 5] * 18 + ["@@B0T>>", ""]))
        raw, *muxes = peers = [c(self) for c in (Raw, Tmux, Ours)]

        def talk(p):
            gate, done, k = Fifo(p, "gate"), Fifo(p, "done"), self.o.talkers
            for i in range(k):
                p.create("s%d" % i, SH, "-c", TALK, SH, gate.path, str(self.o.history), screen, done.path)
            time.sleep(1)
            before = pss_kb(p.servers())
            for i in range(k):
                gate.put()
                done.wait(30)
            time.sleep(1)
            self.put("growth", p.name, (pss_kb(p.servers()) - before) / k)

        def attach(p, i):
            t = raw.open("", "cat", screen) if p is raw else p.attach("s0")
            end = t.wait_for(b"<<T0P@@", b"@@B0T>>")
            if i:                                    # the first may resize the session: not counted
                self.put("attach", p.name, (end - t.t0) * 1e3)
            if p is not raw:
                t.drain(0.02)
                t.send(b"\x02d")
                if not t.wait_exit(5):
                    raise TimeoutError("the client did not detach")

        self.turns(muxes, "growth", talk)
        for i in range(self.o.attaches + 1):
            self.turns(peers, "attach", attach, i)

    def sessions(self):
        """Memory with 0, 1 and many sessions, creating and listing them, and what idling costs."""
        o, idle, raw, muxes, pss = self.o, ("sleep", "1000"), Raw(self), [Tmux(self), Ours(self)], {}

        def memory():
            time.sleep(1)
            for p in muxes:
                pss.setdefault(p, []).append(pss_kb(p.servers()))

        def timed(p, key, fn, *args):
            t0 = now()
            out = fn(*args)
            self.put(key, p.name, (now() - t0) * 1e3)
            return out

        def create(p, i):
            timed(p, "create", p.open if p is raw else p.create, "s%d" % i, *idle)
            time.sleep(0.01)                         # its aftermath is not the next one's burden

        def ls(p):
            if p is raw:
                timed(p, "ls", subprocess.run, ["true"])
            elif timed(p, "ls", lambda: p.run(*p.list_args, out=subprocess.PIPE)).count(b"\n") < o.sessions:
                raise RuntimeError("not all sessions are listed")

        memory()
        for p in muxes:
            p.create("s0", *idle)
        memory()
        for i in range(1, o.sessions):
            self.turns([raw, *muxes], "create", create, i)
        for _ in range(o.lists):
            self.turns([raw, *muxes], "ls", ls)
        memory()
        pids = {p: p.servers() for p in muxes}
        time.sleep(o.settle_s)
        before = {p: (cpu_ns(pids[p]), wakeups(pids[p])) for p in muxes}
        time.sleep(o.idle_s)
        for p in muxes:
            self.put("idle_cpu", p.name, (cpu_ns(pids[p]) - before[p][0]) / 1e6)
            self.put("wakeups", p.name, wakeups(pids[p]) - before[p][1])
            for key, v in zip(("pss0", "pss1", "pssn"), pss[p][:2] + [(pss[p][2] - pss[p][1]) / (o.sessions - 1)]):
                self.put(key, p.name, v)


# ---- the report --------------------------------------------------------------------------------------
def report(b):
    """The table's rows as dicts, only for what was measured."""
    for key, label, unit, goal in TABLE:
        mid = {n: statistics.median(v) for n, v in b.values.get(key, {}).items()}
        row = {"key": key, "metric": label.format(**vars(b.o)), "unit": unit, "goal": None, "ok": None,
               **{n: mid.get(n) for n in ("raw", "tmux", "ours")}, "values": b.values.get(key)}
        for base in ("raw", "tmux"):
            row["x " + base] = row["ours"] / row[base] if row["ours"] is not None and row[base] else None
        if goal:
            got = row["ours"] if goal[0] == "abs" else row["x " + goal[0]]
            row["goal"] = "<= %g %s" % (goal[1], unit if goal[0] == "abs" else "x " + goal[0]) if goal[1] else "0"
            row["ok"] = None if got is None else got <= goal[1]
        if mid:
            yield row


def cell(v):
    """A Markdown cell: three significant digits."""
    if v is None or isinstance(v, (bool, str)):
        return {None: "-", True: "yes", False: "**NO**"}.get(v, v)
    return "%d" % v if abs(v) >= 100 or v == int(v) else "%.3g" % v


def options():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    repo = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    a.add_argument("--bin", default=os.environ.get("SESSIONS_BIN") or os.path.join(repo, "target/release/sessions-tui"),
                   help="our binary (default: $SESSIONS_BIN, then the repository's release build)")
    a.add_argument("--quick", action="store_true", help="small sizes: under a minute, rougher numbers")
    a.add_argument("--only", metavar="GROUPS", default=",".join(GROUPS), help="some of %(default)s")
    a.add_argument("--json", metavar="FILE", help="also write all values there")
    a.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    a.add_argument("--tmp", metavar="DIR", help="where the temporary directory goes (a short path: it holds sockets)")
    a.add_argument("--seed", type=int, default=int(time.time()), help="order of the turns")
    for k, (full, quick, text) in SIZES.items():
        a.add_argument("--" + k.replace("_", "-"), type=type(full), metavar="N",
                       help="%s (default %g, quick %g)" % (text, full, quick))
    o = a.parse_args()
    for k, (full, quick, _) in SIZES.items():
        if getattr(o, k) is None:
            setattr(o, k, quick if o.quick else full)
    o.only = o.only.split(",")
    if set(o.only) - set(GROUPS) or o.sessions < 2:
        a.error("--only takes %s; --sessions at least 2" % ",".join(GROUPS))
    if not os.access(o.bin, os.X_OK):
        sys.exit("bench: there is no %s; build it with `cargo build --release` or name it with --bin." % o.bin)
    if not shutil.which("tmux"):
        sys.exit("bench: tmux is not installed, and every ratio is to tmux; please install it (3.2 or later).")
    return o


def main():
    o, began, load, broken = options(), now(), os.getloadavg()[0], False
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):       # also if inherited as ignored
        signal.signal(sig, signal.default_int_handler)
    b = Bench(o, tempfile.mkdtemp(prefix="sb-", dir=o.tmp))
    try:
        for g in o.only:
            t0 = now()
            b.turns([g], "group", lambda _: getattr(b, g)())
            b.end_all()
            print("  %-10s %3.0f s" % (g, now() - t0), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        broken = True
        print("\nbench: interrupted; ending what was started", file=sys.stderr)
    finally:
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, lambda *_: None)      # cleaning up is not interrupted
        b.end_all()
        left = [(p, slurp("/proc/%d/cmdline" % p)[:80]) for p in tagged("SESSIONS_BENCH=" + b.tag)]
        for p, _ in left:
            kill(p, signal.SIGKILL)
        shutil.rmtree(b.root, ignore_errors=True)
    rows, version = list(report(b)), lambda *argv: subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    meta = {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cores": os.cpu_count(),
            "kernel": os.uname().release, "ours": version(o.bin, "--version"), "tmux": version("tmux", "-V"), "load": [load, os.getloadavg()[0]],
            "seconds": round(now() - began, 1)}
    columns = ("metric", "unit", "raw", "tmux", "ours", "x raw", "x tmux", "goal", "ok")
    print("| %s? |\n|---|---|---:|---:|---:|---:|---:|---|---|" % " | ".join(columns))
    for r in rows:
        print("| %s |" % " | ".join(cell(r[c]) for c in columns))
    print("\n%s, %s, Linux %s, %d cores, load %.1f to %.1f, %.0f s, seed %d" % (
        meta["ours"], meta["tmux"], meta["kernel"], meta["cores"], *meta["load"], meta["seconds"], o.seed))
    missed = [r["metric"] for r in rows if r["goal"] and not r["ok"]]
    for title, items in (("goals missed", missed), ("failures", b.failures), ("left-over processes", left),
                         ("ended only by SIGKILL", sorted(set(b.killed)))):
        print("%s: %s" % (title, "; ".join(map(str, items)) or "none"))
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"meta": meta, "options": vars(o), "rows": rows, "failures": b.failures, "killed": b.killed,
                       "left_over": [p for p, _ in left]}, f, indent=1)
    return 130 if broken else 1 if b.failures or left or (o.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
