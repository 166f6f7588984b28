#!/usr/bin/env python3
"""A soak: twenty sessions under everything at once, for as long as you like, and every recording compared with what was printed.

  tests/soak.py                    60 minutes
  tests/soak.py --minutes 5        shorter
  SESSIONS_BIN=path tests/soak.py  another binary (default: target/release/sessions-tui, else target/debug)

Ten sessions print numbered lines in bursts and count what they printed (SHA-256 beside the PTY), the others run vim, shells and
interpreters in three languages. Beside them: replay, search and export, pause and resume, hibernate and wake, `kill -9` of the
daemon every 20 s, and a full disk twice (needs root: the state is then on a small tmpfs). At the end every flood's recording is
exported raw and compared, nothing may hang, and no process or mount may be left behind. Exit 0: everything held.
"""
import argparse, hashlib, json, os, random, shutil, signal, subprocess, sys, tempfile, threading, time  # noqa: E401

HERE = os.path.dirname(os.path.abspath(__file__))


def binary():
    given = os.environ.get("SESSIONS_BIN")
    for path in [given] if given else [os.path.join(HERE, "..", "target", kind, "sessions-tui") for kind in ("release", "debug")]:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("error: no binary: run `cargo build --release` first, or set SESSIONS_BIN")


# Prints lines to the terminal in raw mode, so that what is recorded is byte for byte what was printed. Stops when the file `stop`
# appears; then writes how much it printed and the sum.
FLOOD = r"""
import hashlib, os, random, sys, time, tty
name, folder = sys.argv[1], sys.argv[2]
tty.setraw(1)
total, number, sum_ = 0, 0, hashlib.sha256()
while not os.path.exists(os.path.join(folder, "stop")):
    lines = b"".join(b"%s %09d %s\r\n" % (name.encode(), number + n, b"x" * random.randrange(80)) for n in range(random.choice([1, 10, 400])))
    number += lines.count(b"\n")
    view = memoryview(lines)
    while view:
        view = view[os.write(1, view):]
    sum_.update(lines)
    total += len(lines)
    time.sleep(random.choice([0.01, 0.05, 0.3]))
with open(os.path.join(folder, name + ".sum.new"), "w") as out:
    out.write("%d %s" % (total, sum_.hexdigest()))
os.rename(os.path.join(folder, name + ".sum.new"), os.path.join(folder, name + ".sum"))
"""


class Soak:
    def __init__(self, minutes):
        self.bin, self.root = binary(), tempfile.mkdtemp(prefix="soak-")
        self.work = os.path.join(self.root, "work")
        os.makedirs(self.work)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SESSIONS_")}
        self.env.update(SESSIONS_ROOT=os.path.join(self.root, "s"), SHELL="/bin/bash", TERM="xterm-256color", LANG="C.UTF-8")
        os.makedirs(self.env["SESSIONS_ROOT"], mode=0o700)
        self.ends_at = time.time() + minutes * 60
        self.faults, self.counts, self.lock = [], {}, threading.Lock()
        self.disk_is_full, self.disk = threading.Event(), None
        self.flood = os.path.join(self.root, "flood.py")
        with open(self.flood, "w") as out:
            out.write(FLOOD)

    def is_over(self):
        return time.time() >= self.ends_at

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        print("FAULT:", text, flush=True)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def run(self, *args, timeout=60, stdin=b""):
        """A command; one that does not end is a fault."""
        try:
            done = subprocess.run([self.bin, *args], env=self.env, cwd=self.work, input=stdin, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.fault(f"hung for {timeout} s: {' '.join(args)}")
            return None
        if b"panicked" in done.stderr:
            self.fault(f"panic in {' '.join(args)}: {done.stderr.decode(errors='replace')}")
        return done

    def until(self, *args, tries=60):
        """A command that must succeed, although the daemon is killed all the time."""
        for _ in range(tries):
            done = self.run(*args)
            # a pause that was refused (a full disk) leaves nothing to resume
            if done and (done.returncode == 0 or (args[0] == "resume" and b"is active" in done.stderr)):
                return done
            time.sleep(0.5)
        self.fault(f"never succeeded: {' '.join(args)}: {done.stderr.decode(errors='replace') if done else 'hung'}")
        return None

    def loop(self, name, step, pause):
        def body():
            while not self.is_over():
                try:
                    step()
                    self.count(name)
                except Exception as error:  # noqa: BLE001
                    self.fault(f"{name}: {error!r}")
                time.sleep(pause)
        thread = threading.Thread(target=body, name=name)
        thread.start()
        return thread

    def daemon_pid(self):
        done = self.run("daemon", "status", "--json")
        try:
            return json.loads(done.stdout).get("pid") if done and done.returncode == 0 else None
        except ValueError:
            return None

    def kill_daemon(self):
        pid = self.daemon_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)

    def mount(self):
        if os.geteuid() != 0:
            print("not root: the disk is not filled", flush=True)
            return
        size = "3g"
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", self.env["SESSIONS_ROOT"]], capture_output=True)
        if made.returncode == 0:
            self.disk = self.env["SESSIONS_ROOT"]
        else:
            print("no tmpfs can be mounted: the disk is not filled", flush=True)

    def fill_disk(self):
        """Fills the disk for some seconds. What is printed meanwhile is not recorded, which each recording says itself."""
        if not self.disk:
            return
        self.disk_is_full.set()
        ballast = os.path.join(self.disk, "ballast")
        try:
            with open(ballast, "wb") as out:
                while True:
                    out.write(b"\0" * (1 << 20))
        except OSError:
            pass
        self.run("ls")
        time.sleep(5)
        os.unlink(ballast)
        self.count("disk filled")

    def start(self):
        for n in range(10):
            self.until("new", "-d", "-n", f"flood{n}", "--", sys.executable, self.flood, f"flood{n}", self.work)
        for n in range(3):
            self.until("new", "-d", "-n", f"shell{n}", "--", "bash", "--norc")
        for n in range(2):
            self.until("new", "-d", "-n", f"vim{n}", "--", "vim", "-u", "NONE", "-n") if shutil.which("vim") else None
        for language in ("bash", "python", "node"):
            if shutil.which({"python": "python3"}.get(language, language)):
                self.until("new", "-d", "-n", f"exec-{language}", "--no-run")

    def execs(self):
        for language, code, expected in (("bash", "n=$((n+1)); echo run $n", "run"), ("python", "print('run')", "run"), ("node", "console.log('run')", "run")):
            if not shutil.which({"python": "python3"}.get(language, language)):
                continue
            done = self.run("exec", "-s", f"exec-{language}", "-l", language, "--timeout", "30s", code, timeout=90)
            is_told = done and b"bytes of its output are lost" in done.stderr
            if done and done.returncode == 0 and not is_told and expected not in done.stdout.decode(errors="replace"):
                self.fault(f"exec in {language} answered {done.stdout!r}, {done.stderr!r}")

    def read(self):
        name = f"flood{random.randrange(10)}"
        random.choice([
            lambda: self.run("search", f"{name} 0000000", "--limit", "5", timeout=120),
            lambda: self.run("export", name, "--format", "text", "-o", os.path.join(self.root, "out.txt"), "--force", timeout=300),
            lambda: self.run("screen", name),
            lambda: self.run("show", name),
            lambda: self.run("stats", "--disk"),
        ])()

    def pause(self):
        name = f"flood{random.randrange(10)}"
        self.run("pause", name)
        self.until("resume", name)

    def hibernate(self):
        name = f"shell{random.randrange(3)}"
        self.run("pause", name, "--hibernate")
        self.until("resume", name)

    def type(self):
        self.run("send", f"shell{random.randrange(3)}", "--enter", "echo $((RANDOM))")
        self.run("send", f"vim{random.randrange(2)}", "ihello")
        self.run("send", f"vim{random.randrange(2)}", "--key", "escape")

    def check(self):
        """Everything that was printed is recorded, or the recording says how much is not."""
        open(os.path.join(self.work, "stop"), "w").close()
        for n in range(10):
            name = f"flood{n}"
            self.until("wait", name, "--for", "exit", "--timeout", "60s")
            with open(os.path.join(self.work, name + ".sum")) as given:
                total, wanted = given.read().split()
            cast = os.path.join(self.root, name + ".cast")
            done = self.run("export", name, "--raw", "--format", "asciicast-v2", "-o", cast, "--force", timeout=600)
            if not done or done.returncode != 0:
                self.fault(f"{name}: export: {done and done.stderr.decode(errors='replace')}")
                continue
            found, unrecorded = hashlib.sha256(), 0
            length = 0
            with open(cast) as lines:
                next(lines)
                for line in lines:
                    _, kind, text = json.loads(line)
                    if kind == "o":
                        found.update(text.encode())
                        length += len(text.encode())
                    elif kind == "m" and text.endswith("bytes were not recorded here"):
                        unrecorded += int(text.split()[0])
            if length + unrecorded != int(total):
                self.fault(f"{name}: printed {total} bytes, recorded {length}, told as not recorded {unrecorded}")
            elif unrecorded == 0 and found.hexdigest() != wanted:
                self.fault(f"{name}: the recording is not what was printed")
            else:
                print(f"{name}: {length} bytes recorded, {unrecorded} told as not recorded", flush=True)

    def leave(self):
        self.run("daemon", "stop", "--all", "--yes", timeout=120)
        deadline = time.time() + 20
        while time.time() < deadline and self.processes():
            time.sleep(0.2)
        for pid, line in self.processes():
            self.fault(f"left behind: {pid} {line}")
            os.kill(pid, signal.SIGKILL)
        if self.disk:
            subprocess.run(["umount", "-l", self.disk], check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as environ:
                    if self.root.encode() in environ.read() and int(pid) != os.getpid():
                        found.append((int(pid), line.read().replace(b"\0", b" ").decode(errors="replace")))
            except OSError:
                pass
        return found

    def go(self):
        self.mount()
        begin = time.time()
        length = self.ends_at - begin
        try:
            self.start()
            threads = [
                self.loop("exec", self.execs, 0.5), self.loop("read", self.read, 0.2), self.loop("pause", self.pause, 1),
                self.loop("hibernate", self.hibernate, 5), self.loop("type", self.type, 0.3), self.loop("kill -9", self.kill_daemon, 20),
            ]
            for part in (1 / 3, 2 / 3):
                while time.time() < begin + length * part and not self.is_over():
                    time.sleep(0.5)
                self.fill_disk()
            for thread in threads:
                thread.join()
            self.check()
        finally:
            self.leave()
        print("done:", ", ".join(f"{what} {count}" for what, count in sorted(self.counts.items())))
        print(f"{'no faults' if not self.faults else f'{len(self.faults)} faults'} in {(time.time() - begin) / 60:.1f} minutes")
        return 1 if self.faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    sys.exit(Soak(parser.parse_args().minutes).go())
