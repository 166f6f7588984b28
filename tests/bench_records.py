#!/usr/bin/env python3
"""How queries grow with the number of sessions: 1 000, 10 000 and 100 000 of them, 50 events each.

  tests/bench_records.py                    about four minutes on 2 cores, 4 GB of disk while it runs
  tests/bench_records.py --quick            1 000 and 10 000 only
  SESSIONS_BIN=path tests/bench_records.py  another binary (default: target/release/sessions-tui)

Each database is filled directly with a year of sessions of 40 users, 8 modes and 300 workspaces; 50 of them are live, about
one in 365 ended today. Every row is the median of whole commands, process start included; "start" is a cold `daemon start`
until it has answered. Reference ("nothing"): `sessions-tui --version`, what starting a process costs; "sqlite" is the same
question asked of the same file by Python's SQLite, in its own process too. The columns of one row belong to one run: look at
how they grow, not at the milliseconds.
"""
import argparse, json, os, random, shutil, sqlite3, statistics, subprocess, sys, tempfile, time  # noqa: E401
import uuid

BIN = os.environ.get("SESSIONS_BIN", os.path.join(os.path.dirname(__file__), "..", "target", "release", "sessions-tui"))
DAY = 86_400_000_000
EVENTS = 50


def run(root, *args, check=True):
    environment = {"PATH": os.environ["PATH"], "HOME": root, "SESSIONS_ROOT": root, "LANG": "C.UTF-8"}
    return subprocess.run([BIN, *args], env=environment, cwd=root, capture_output=True, text=True, check=check)


def fill(root, count):
    """A year of sessions, written into the schema that the daemon made."""
    os.makedirs(os.path.join(root, "config"))
    with open(os.path.join(root, "config", "config.toml"), "w") as config:
        config.write("[cleanup]\nolder_than_days = 0\n")  # what is old is what is measured here
    run(root, "daemon", "start")
    run(root, "daemon", "stop")
    database = sqlite3.connect(os.path.join(root, "state", "sessions.db"))
    database.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA foreign_keys = OFF;")
    lease = database.execute("SELECT id FROM leases").fetchone()[0]
    dice, now = random.Random(3), time.time_ns() // 1000
    threads, sessions, terminals, events = [], [], [], []
    words = "fix the login of users when a cache is cold and the tests of the build do not pass".split()

    def flush():
        database.executemany("INSERT INTO threads (id, name, workspace, user, channel, created_at, task_count) VALUES (?,?,?,?,?,?,?)", threads)
        database.executemany(
            "INSERT INTO sessions (id, thread_id, mode, task, status, status_reason, created_at, updated_at, last_activity_at, ended_at,"
            " iterations, metadata, started_at, cost, tokens_prompt, tokens_completion, tokens_total, event_count)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", sessions)
        database.executemany("INSERT INTO terminals (id, thread_id, kind, cwd, cols, rows, lease_id) VALUES (?,?,'terminal',?,80,24,?)", terminals)
        database.executemany("INSERT INTO events (session_id, at, author, type, data, n) VALUES (?,?,?,?,?,?)", events)
        for rows in (threads, sessions, terminals, events):
            rows.clear()

    for number in range(count):
        thread, session = str(uuid.uuid4()), str(uuid.uuid4())
        live = number >= count - 50
        created = now - dice.randrange(365 * DAY) if not live else now - dice.randrange(DAY)
        length = dice.randrange(3_600_000_000)
        folder = f"/src/project-{dice.randrange(300)}"
        status = "active" if live else dice.choice(["completed"] * 7 + ["failed"] * 2 + ["timeout"])
        ended = None if live else created + length
        cost, tokens = dice.random(), dice.randrange(10_000)
        metadata = json.dumps({"model": "m", "cost": cost, "tokens": {"prompt": tokens, "completion": tokens, "total": 2 * tokens}})
        threads.append((thread, f"task-{number}", folder, f"user-{dice.randrange(40)}", f"c{dice.randrange(9)}", created, 1))
        sessions.append((session, thread, f"mode-{dice.randrange(8)}", " ".join(dice.choices(words, k=9)), status, None, created, created,
                         created + length, ended, dice.randrange(50), metadata, created, cost, tokens, tokens, 2 * tokens, EVENTS))
        terminals.append((str(uuid.uuid4()), thread, folder, lease))
        for n in range(1, EVENTS + 1):
            events.append((session, created + n, "api", "iteration", f'{{"iteration":{n},"phase":"work","file":"src/main.rs"}}', n))
        if number % 2000 == 1999:
            flush()
    flush()
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


QUESTIONS = [
    ("ls", ["ls", "--json"]),
    ("ls --user --limit 20", ["ls", "--user", "user-7", "--limit", "20", "--json"]),
    ("ls --mode --status --limit 20", ["ls", "--mode", "mode-3", "--status", "failed", "--limit", "20", "--json"]),
    ("ls --workspace --limit 20", ["ls", "--workspace", "/src/project-7", "--limit", "20", "--json"]),
    ("ls --created-after 1d", ["ls", "--created-after", "1d", "--json"]),
    ("ls --text (rare) --limit 20", ["ls", "--text", "no such words", "--limit", "20", "--json"]),
    ("stats", ["stats", "--json"]),
    ("stats --user", ["stats", "--user", "user-7", "--json"]),
    ("stats --created-after 7d", ["stats", "--created-after", "7d", "--json"]),
    ("cleanup --dry-run", ["cleanup", "--dry-run", "--json"]),
    ("show NAME", ["show", "task-5", "--json"]),
    ("events NAME", ["events", "task-5", "--json"]),
    ("iterate NAME", ["iterate", "live", "--json"]),
    ("new --no-run", ["new", "--no-run", "--json"]),
]
SQLITE = ("import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT status, count(*), avg(iterations), sum(cost),"
          " sum(tokens_total) FROM sessions GROUP BY status').fetchall())")


def median(work, rounds):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


def measure(root, rounds):
    found = {}

    def start():
        run(root, "daemon", "start")

    times = []
    for _ in range(3):
        times.append(median(start, 1))
        run(root, "daemon", "stop")
    found["daemon start"] = statistics.median(times)
    run(root, "daemon", "start")
    run(root, "new", "--no-run", "-n", "live", "--max-iterations", "1000000")
    found["nothing"] = median(lambda: run(root, "--version"), rounds)
    for label, args in QUESTIONS:
        run(root, *args)
        found[label] = median(lambda: run(root, *args), rounds)  # noqa: B023
    path = os.path.join(root, "state", "sessions.db")
    found["sqlite: sums by status"] = median(lambda: subprocess.run([sys.executable, "-c", SQLITE, path], capture_output=True, check=True), 5)
    status = json.loads(run(root, "daemon", "status", "--json").stdout)
    with open(f"/proc/{status['pid']}/smaps_rollup") as smaps:
        found["daemon's PSS, KiB"] = int(next(line for line in smaps if line.startswith("Pss:")).split()[1])
    run(root, "daemon", "stop", "--all", "--yes")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 000 and 10 000 sessions only")
    parser.add_argument("--rounds", type=int, default=9, help="calls of each row")
    parser.add_argument("--json", metavar="FILE", help="the numbers too")
    options = parser.parse_args()
    sizes = [1000, 10_000] if options.quick else [1000, 10_000, 100_000]
    columns = []
    for size in sizes:
        root = tempfile.mkdtemp(prefix="bench")
        try:
            begin = time.perf_counter()
            fill(root, size)
            bytes_ = os.path.getsize(os.path.join(root, "state", "sessions.db"))
            print(f"{size} sessions, {size * EVENTS} events, {bytes_ >> 20} MiB: filled in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
            columns.append(measure(root, options.rounds))
        finally:
            run(root, "daemon", "stop", "--all", "--yes", check=False)
            shutil.rmtree(root, ignore_errors=True)
    print("| ms (median of whole commands) | " + " | ".join(f"{size:,}".replace(",", " ") for size in sizes) + " | growth |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for label in columns[0]:
        values = [column[label] for column in columns]
        print(f"| {label} | " + " | ".join(f"{value:.1f}" for value in values) + f" | x {values[-1] / values[0]:.1f} |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(zip(map(str, sizes), columns)), file, indent=1)


if __name__ == "__main__":
    main()
