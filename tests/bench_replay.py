#!/usr/bin/env python3
"""Seeking: how long until the screen of any moment is there, in recordings of 10 MB, 100 MB and 1 GB.

    cargo build --release && python3 tests/bench_replay.py [--sizes 10,100,1000] [--seeks 200] [--kinds log,colour,tui]

Recordings are made by real sessions (80x24) of the release binary in a root of their own. Random times and offsets are asked for
over the daemon's socket, as the player does, and the answer's screen is waited for. For comparison, in the same run: the same
moments by reading from the beginning, which is what players without keyframes do (for the smallest size only: it takes long).
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


class Wire:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")
        self.number = 0
        self.file.write(b'{"hello":{"protocol":1,"version":"bench","pid":1}}\n')
        self.file.flush()
        self.file.readline()

    def call(self, **request):
        self.number += 1
        self.file.write(json.dumps({"id": self.number, **request}).encode() + b"\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        if "failure" in answer:
            sys.exit(f"{request}: {answer['failure']}")
        return answer["ok"]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--kinds", default="log,colour,tui")
    parser.add_argument("--seeks", type=int, default=200)
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix="bench-replay-")
    env = {**os.environ, "SESSIONS_ROOT": root}
    run = lambda *words: subprocess.run([BINARY, *words], env=env, check=True, capture_output=True, text=True).stdout
    try:
        os.makedirs(os.path.join(root, "config"), exist_ok=True)
        writer = os.path.join(root, "writer.py")
        open(writer, "w").write(WRITER)
        print(f"{'recording':>16} {'on disk':>9} {'for seeking':>11} {'p50':>8} {'p99':>8} {'max':>8}   (milliseconds, {args.seeks} random seeks each)")
        for kind in args.kinds.split(","):
            for size in args.sizes.split(","):
                name = f"{kind}-{size}"
                run("new", "-d", "-n", name, "--size", "80x24", "--", sys.executable, writer, kind, str(int(size) * 1_000_000))
                run("wait", name, "--for", "text=WRITTEN", "--timeout", "1h")
                status = json.loads(run("daemon", "status", "--json"))
                wire = Wire(status["socket"])
                outline = wire.call(request="replay", name=name)
                runtime, end = outline["runtime"], outline["end"]
                folder = next(os.path.join(d) for d, _, files in os.walk(root) if os.path.basename(d) == runtime.replace("-", ""))
                # whatever is done in the background is done
                while sum(f.endswith(".rec") for f in os.listdir(folder)) > 1:
                    time.sleep(0.2)
                random.seed(11)
                took = []
                for n in range(args.seeks):
                    if n % 2:
                        to = {"to": "offset", "offset": random.randrange(outline["first"]["offset"], end["offset"])}
                    else:
                        to = {"to": "time", "time": random.randrange(end["time"])}
                    began = time.perf_counter()
                    moment = wire.call(request="seek", runtime=runtime, **to)
                    took.append((time.perf_counter() - began) * 1000)
                    assert moment["keyframe"]
                use = {"index": 0, "all": 0}
                for f in os.listdir(folder):
                    bytes = os.path.getsize(os.path.join(folder, f))
                    use["all"] += bytes
                    if not f.split(".")[-1].startswith("rec"):
                        use["index"] += bytes
                print(f"{kind:>9} {size:>4}MB {use['all'] / 1e6:7.1f}MB {use['index'] / 1e6:9.2f}MB {percentile(took, 0.5):8.1f} {percentile(took, 0.99):8.1f} {max(took):8.1f}")
                if size == args.sizes.split(",")[0]:
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
                    print(f"{'from the start':>16} {'':9} {'':11} {percentile(slow, 0.5):8.1f} {'':8} {max(slow):8.1f}")
                run("kill", name)
                sys.stdout.flush()
    finally:
        subprocess.run([BINARY, "daemon", "stop", "--all", "--yes"], env=env, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)


main()
