#!/usr/bin/env python3
"""How fast recordings are searched, beside `rg` on the same bytes as a text file, in the same run.

  tests/bench_search.py                     256 MB of each kind of output, a few minutes on 2 cores, 2 GB of disk while it runs
  tests/bench_search.py --mb 32             smaller
  tests/bench_search.py --packed            of recordings that have been packed in the background
  SESSIONS_BIN=path tests/bench_search.py   another binary (default: target/release/sessions-tui)

Needs `rg` (Debian and Ubuntu: apt install ripgrep); without it only our own numbers are shown.

Three programs print a plain log, a coloured log and what full-screen programs draw; they are recorded by the real binary. What
was recorded is written out once more as plain files for `rg -a -j1`. Each pattern is in the output once, near its beginning, so
that everything is searched before it is found. A row is the fastest of some whole commands; of ours, a search of an empty
session (process start, connection, database) is taken away, of rg's, a search of an empty file. Bytes are those of the output;
both use one core. Trust the ratios, not the absolutes.
"""
import argparse, json, os, random, shutil, struct, subprocess, sys, tempfile, time  # noqa: E401

BIN = os.path.abspath(os.environ.get("SESSIONS_BIN", os.path.join(os.path.dirname(__file__), "..", "target", "release", "sessions-tui")))
NEEDLES = "the Zyqqx_9f sentinel; state rest test iteration 77; ConnectionRESET by peer Q; took 98765432 ms in vain"
ROWS = [  # label, options, pattern
    ("literal, rare bytes", [], "Zyqqx_9f"),
    ("literal, common bytes", [], "state rest test iteration"),
    ("-i literal", ["-i"], "connectionreset BY peer q"),
    ("regex with a literal", ["--regex"], r"took \d{8} ms in vain"),
    ("regex, classes only", ["--regex"], r"[0-9]{8} [a-z]{2} [a-z]{2} [a-z]{4}"),
]


def run(root, *args, check=True):
    environment = {"PATH": os.environ["PATH"], "HOME": root, "SESSIONS_ROOT": root, "LANG": "C.UTF-8"}
    return subprocess.run([BIN, *args], env=environment, cwd=root, capture_output=True, text=True, check=check)


def plain(dice):
    words = "request connection lease finished worker cache started of the in and user timeout status retry".split()
    while True:
        yield (f"2026-01-{dice.randrange(1, 29):02}T{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}.{dice.randrange(10**6):06}Z INFO "
               f"[worker-{dice.randrange(64)}] req={dice.randrange(10**7)} " + " ".join(dice.choices(words, k=6)) + f" in {dice.randrange(10**5)} us\n")


def colour(dice):
    for line in plain(dice):
        parts = line.rstrip("\n").split(" ")
        yield " ".join(f"\x1b[{dice.choice(['1', '31', '32', '38;5;208', '0;36'])}m{part}\x1b[0m" if dice.random() < 0.6 else part for part in parts) + "\n"


def screens(dice):
    """Boxes, lists and status lines at places of their own, mostly redrawn."""
    words = "src main.rs modified README.md tests passed running 12% esc to interrupt tokens".split()
    while True:
        out = ["\x1b[?2026h"]
        for row in dice.sample(range(1, 40), 12):
            out.append(f"\x1b[{row};{dice.randrange(1, 60)}H\x1b[38;2;{dice.randrange(256)};{dice.randrange(256)};200m" + " ".join(dice.choices(words, k=4)))
            out.append(f"\x1b[{dice.randrange(1, 9)}C\x1b[0m│\x1b[K")
        yield "".join(out) + "\x1b[?2026l\r\n"


def write(path, lines, megabytes):
    """A few megabytes that differ, again and again; the needles once, in the second line."""
    unit, size = [], 0
    while size < min(megabytes, 8) * 1_000_000:
        unit.append(next(lines))
        size += len(unit[-1])
    block = "".join(unit).encode()
    with open(path, "wb") as file:
        file.write(f"the first line\n{NEEDLES}\n".encode())
        for _ in range(max(1, megabytes * 1_000_000 // len(block))):
            file.write(block)


def folder_of(root, name):
    runtime = json.loads(run(root, "show", name, "--json").stdout)["runtimes"][0]["id"].replace("-", "")
    return os.path.join(root, "state", "recordings", runtime)


def unpacked(root, name):
    return any(file.endswith(".rec") for file in os.listdir(folder_of(root, name)))


def recorded(root, name, path):
    """The bytes of a recording that is not packed, read by its description; gives how many."""
    folder, count = folder_of(root, name), 0
    with open(path, "wb") as out:
        for segment in sorted(file for file in os.listdir(folder) if file.endswith(".rec")):
            with open(os.path.join(folder, segment), "rb") as file:
                data = file.read()
            at = 0
            while at < len(data):
                kind, length = struct.unpack_from("<BI", data, at)
                if kind == 2:
                    out.write(data[at + 17:at + 5 + length])
                    count += length - 12
                at += 5 + length
    return count


def fastest(work, rounds):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=256, help="megabytes of each kind")
    parser.add_argument("--rounds", type=int, default=5, help="searches of each row")
    parser.add_argument("--packed", action="store_true", help="search packed recordings")
    parser.add_argument("--json", metavar="FILE", help="the numbers too")
    options = parser.parse_args()
    rg, found = shutil.which("rg"), {}
    root = tempfile.mkdtemp(prefix="bench")
    try:
        os.makedirs(os.path.join(root, "config"))
        with open(os.path.join(root, "config", "config.toml"), "w") as config:
            config.write(f"[recording]\ncompress = {'true' if options.packed else 'false'}\nmax_mib = {options.mb * 2 + 64}\n")
        run(root, "new", "-d", "-n", "nothing", "--", "true")
        empty = os.path.join(root, "empty.txt")
        open(empty, "w").close()
        print("| MB/s of output, one core | " + ("ours | rg | ratio |" if rg else "ours |"))
        print("|---|" + "---:|" * (3 if rg else 1))
        for kind, lines in (("plain", plain), ("colour", colour), ("screens", screens)):
            source, text = os.path.join(root, f"{kind}.txt"), os.path.join(root, f"{kind}.out")
            write(source, lines(random.Random(7)), options.mb)
            run(root, "new", "-d", "-n", kind, "--", "cat", source)
            while json.loads(run(root, "show", kind, "--json").stdout)["session"]["status"] == "active":
                time.sleep(0.2)
            if options.packed:
                text, size = source, os.path.getsize(source)
                while unpacked(root, kind):
                    time.sleep(0.2)
            else:
                os.remove(source)
                size = recorded(root, kind, text)

            def ours(name, arguments, pattern, hits):
                done = run(root, "search", pattern, *arguments, "-s", name, "--kind", "output", "--json", check=False)
                assert done.returncode in (0, 1) and len(done.stdout.splitlines()) == hits, (name, pattern, done.stdout[:500], done.stderr)

            def theirs(path, arguments, pattern):
                arguments = ["-e" if "--regex" in arguments else "-F"] + (["-i"] if "-i" in arguments else [])
                subprocess.run([rg, "-a", "-j1", "--no-config", *(["-i"] if "-i" in arguments else []), arguments[0], pattern, path], capture_output=True)

            for label, arguments, pattern in ROWS:
                start = fastest(lambda: ours("nothing", arguments, pattern, 0), options.rounds)
                taken = fastest(lambda: ours(kind, arguments, pattern, 1), options.rounds)
                row = {"ours": size / 1e6 / max(taken - start, 1e-4)}
                if rg:
                    begin = fastest(lambda: theirs(empty, arguments, pattern), options.rounds)
                    row["rg"] = size / 1e6 / max(fastest(lambda: theirs(text, arguments, pattern), options.rounds) - begin, 1e-4)
                found[f"{kind}: {label}"] = row
                cells = [f"{row['ours']:.0f}"] + ([f"{row['rg']:.0f}", f"{row['ours'] / row['rg']:.2f}"] if rg else [])
                print(f"| {kind}: {label} | " + " | ".join(cells) + " |", flush=True)
            os.remove(text)
    finally:
        run(root, "daemon", "stop", "--all", "--yes", check=False)
        shutil.rmtree(root, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
