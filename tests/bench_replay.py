#!/usr/bin/env python3
"""Seeking: how long until the screen of any moment is there, in recordings of 10 MB, 100 MB and 1 GB.

    cargo build --release && python3 tests/bench_replay.py [--sizes 10,100,1000] [--seeks 200] [--kinds log,colour,tui]

Recordings are made by real sessions (80x24) of the release binary in a root of their own. Random times and offsets are asked for
over the daemon's socket, as the player does, and the answer's screen is waited for. For comparison, in the same run: the same
moments by reading from the beginning, which is what players without keyframes do (for the smallest size only: it takes long).

A recording that is incomplete, is not packed or does not answer in time is named and passed over; the others are measured all the
same, and the exit code is 1. --patience says how many seconds each step may take besides one for each 2 MB.
"""
import argparse, json, os, random, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("SESSIONS_BIN") or os.path.join(HERE, "target", "release", "sessions-tui")

WRITER = r"""
import sys, os, random
kind, size = sys.argv[1], int(sys.argv[2])
random.seed(7)
words = [bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(3000)]
def log(n):
    return b"2026-11-16 12:%02d:%02d INFO request %d " % (n // 60 % 60, n % 60, n) + b" ".join(random.choices(words, k=8)) + b"\n"
def colour(n):
    return b"".join(b"\x1b[%d;3%dm%s\x1b[0m " % (n % 2, random.randint(1, 7), w) for w in random.choices(words, k=8)) + b"\n"
def tui(n):
    out = [b"\x1b[?25l"]
    for _ in range(6):
        out.append(b"\x1b[%d;%dH\x1b[48;5;%dm%s\x1b[0m" % (random.randint(1, 24), random.randint(1, 60), random.randint(0, 255), b" ".join(random.choices(words, k=3))))
    return b"".join(out) + b"\x1b[1;1HFrame %d\x1b[K" % n
make = {"log": log, "colour": colour, "tui": tui}[kind]
if kind == "tui": os.write(1, b"\x1b[?1049h\x1b[2J")
written, n, block = 0, 0, []
pool = [make(k) for k in range(4000)]
while written < size:
    block = b"".join(random.choices(pool, k=200)) + make(n)
    n += 1
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
    written += len(block)
os.write(1, b"\r\nWRITTEN\r\n")
import time
time.sleep(100000)
"""


class Incomplete(Exception):
    """A recording cannot be measured; the text says why."""


class Wire:
    def __init__(self, path, patience):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")
        self.number = 0
        self.file.write(b'{"hello":{"protocol":1,"version":"bench","pid":1}}\n')
        self.file.flush()
        self.file.readline()

    def call(self, **request):
        self.number += 1
        try:
            self.file.write(json.dumps({"id": self.number, **request}).encode() + b"\n")
            self.file.flush()
            line = self.file.readline()
        except TimeoutError:
            raise Incomplete(f"the daemon did not answer {request['request']} in time") from None
        if not line:
            raise Incomplete(f"the daemon closed the connection during {request['request']}")
        answer = json.loads(line)
        if "failure" in answer:
            raise Incomplete(f"{request['request']} was refused: {answer['failure'].get('message', answer['failure'])}")
        return answer["ok"]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Bench:
    def __init__(self, root, args):
        self.root, self.args = root, args
        self.env = {**os.environ, "SESSIONS_ROOT": root}
        self.writer = os.path.join(root, "writer.py")
        with open(self.writer, "w") as file:
            file.write(WRITER)

    def run(self, *words, patience):
        try:
            done = subprocess.run([BINARY, *words], env=self.env, capture_output=True, text=True, timeout=patience)
        except subprocess.TimeoutExpired:
            raise Incomplete(f"`{' '.join(words[:2])}` took longer than {patience:g} s") from None
        if done.returncode != 0:
            raise Incomplete(f"`{' '.join(words[:2])}` failed: {done.stderr.strip()}")
        return done.stdout

    def measure(self, kind, size, is_smallest):
        name = f"{kind}-{size}"
        patience = self.args.patience + int(size) / 2
        short = self.args.patience
        self.run("new", "-d", "-n", name, "--size", "80x24", "--", sys.executable, self.writer, kind, str(int(size) * 1_000_000), patience=short)
        try:
            self.run("wait", name, "--for", "text=WRITTEN", "--timeout", f"{int(patience)}s", patience=patience + short)
        except Incomplete as error:
            raise Incomplete(f"the end of what was written was not seen, so data is missing in the recording ({error})") from None
        status = json.loads(self.run("daemon", "status", "--json", patience=short))
        wire = Wire(status["socket"], patience)
        outline = wire.call(request="replay", name=name)
        runtime, end = outline["runtime"], outline["end"]
        recorded = end["offset"] - outline["first"]["offset"]
        if recorded < int(size) * 1_000_000:
            raise Incomplete(f"{recorded} bytes are recorded, {int(size) * 1_000_000} were written")
        folder = next((d for d, _, _ in os.walk(self.root) if os.path.basename(d) == runtime.replace("-", "")), None)
        if folder is None:
            raise Incomplete("the directory of the recording is missing")
        self.wait_until_packed(folder, patience)
        print(self.seek(wire, runtime, outline, folder, kind, size))
        if is_smallest:
            print(self.seek_without_keyframes(wire, runtime, end, folder))
        self.run("kill", name, patience=short)

    def wait_until_packed(self, folder, patience):
        """What is done in the background must not disturb the measurement."""
        deadline = time.monotonic() + patience
        while (plain := sum(f.endswith(".rec") for f in os.listdir(folder))) > 1:
            if time.monotonic() > deadline:
                raise Incomplete(f"{plain} segments are still not packed after {patience:g} s")
            time.sleep(0.2)

    def seek(self, wire, runtime, outline, folder, kind, size):
        end = outline["end"]
        random.seed(11)
        took = []
        for n in range(self.args.seeks):
            if n % 2:
                to = {"to": "offset", "offset": random.randrange(outline["first"]["offset"], end["offset"])}
            else:
                to = {"to": "time", "time": random.randrange(end["time"])}
            began = time.perf_counter()
            moment = wire.call(request="seek", runtime=runtime, **to)
            took.append((time.perf_counter() - began) * 1000)
            if not moment["keyframe"]:
                raise Incomplete(f"there is no screen at {to}")
        use = {"index": 0, "all": 0}
        for f in os.listdir(folder):
            length = os.path.getsize(os.path.join(folder, f))
            use["all"] += length
            if not f.split(".")[-1].startswith("rec"):
                use["index"] += length
        shares = f"{percentile(took, 0.5):8.1f} {percentile(took, 0.99):8.1f} {max(took):8.1f}"
        return f"{kind:>9} {size:>4}MB {use['all'] / 1e6:7.1f}MB {use['index'] / 1e6:9.2f}MB {shares}"

    def seek_without_keyframes(self, wire, runtime, end, folder):
        for f in os.listdir(folder):
            if f.endswith(".keys") or f.endswith(".index"):
                os.rename(os.path.join(folder, f), os.path.join(folder, f + ".aside"))
        slow = []
        for n in range(5):
            began = time.perf_counter()
            wire.call(request="seek", runtime=runtime, to="offset", offset=end["offset"] * (n + 1) // 6)
            slow.append((time.perf_counter() - began) * 1000)
            for f in os.listdir(folder):
                if f.endswith(".keys"):
                    os.remove(os.path.join(folder, f))
        return f"{'from the start':>16} {'':9} {'':11} {percentile(slow, 0.5):8.1f} {'':8} {max(slow):8.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--kinds", default="log,colour,tui")
    parser.add_argument("--seeks", type=int, default=200)
    parser.add_argument("--patience", type=float, default=60)
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix="bench-replay-")
    bench = Bench(root, args)
    failed = []
    try:
        print(f"{'recording':>16} {'on disk':>9} {'for seeking':>11} {'p50':>8} {'p99':>8} {'max':>8}   (milliseconds, {args.seeks} random seeks each)")
        for kind in args.kinds.split(","):
            for n, size in enumerate(args.sizes.split(",")):
                try:
                    bench.measure(kind, size, is_smallest=n == 0)
                except Incomplete as error:
                    failed.append(f"{kind}-{size}: {error}")
                    print(f"{kind:>9} {size:>4}MB not measured: {error}")
                sys.stdout.flush()
    finally:
        # a daemon that hangs must not keep the benchmark
        try:
            subprocess.run([BINARY, "daemon", "stop", "--all", "--yes"], env=bench.env, capture_output=True, timeout=args.patience)
        except subprocess.TimeoutExpired:
            print(f"the daemon does not stop; its root stays: {root}", file=sys.stderr)
        else:
            shutil.rmtree(root, ignore_errors=True)
    if failed:
        sys.exit("not measured:\n  " + "\n  ".join(failed))


main()
