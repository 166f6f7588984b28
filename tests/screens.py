#!/usr/bin/env python3
"""Writes the screens of README.md: the real dashboard, in a real terminal, with real sessions.

    cargo build --release && python3 tests/screens.py

Needs tmux. Each place in README.md between `<!-- screen NAME -->` and `<!-- end -->` is written anew.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.environ.get("SESSIONS_BIN") or os.path.join(HERE, "target", "release", "sessions-tui")
README = os.path.join(HERE, "README.md")

AGENT = r"""
printf '\033[1m● Update(src/login.rs)\033[0m\n'
printf '  41   fn expired(&self, now: Instant) -> bool {\n'
printf '\033[31m  42 -     self.cached_at + TTL < now\033[0m\n'
printf '\033[32m  42 +     now.duration_since(self.cached_at) > TTL\033[0m\n\n'
printf ' Apply this change?\n \033[36m❯ 1. Yes\033[0m\n   2. No, and tell what to do instead\n'
printf '\033]9;Apply this change to src/login.rs?\007'
cat
"""

SERVER = "i=0; while :; do i=$((i+1)); echo \"10:02:$((10 + i % 50)) GET /users/$((i * 37 % 101)) 200 $((i % 9 + 1)) ms\"; sleep 0.4; done"


def sessions(run, home):
    src = os.path.join(home, "src")
    for folder in ("api", "web", "docs"):
        os.makedirs(os.path.join(src, folder))
    run("new", "-d", "-n", "api", "-w", f"{src}/api", "--", "sh", "-c", SERVER)
    run("new", "-d", "-n", "fix-login", "-w", f"{src}/web", "--task", "Fix the login of users whose cache is cold", "--mode", "developer", "--", "sh", "-c", AGENT)
    for _ in range(12):
        run("iterate", "fix-login")
    run("new", "-d", "-n", "tests", "-w", f"{src}/web", "--", "sh", "-c", "echo running 214 tests; i=0; while :; do i=$((i+1)); : $((i*i)); done")
    run("new", "-d", "-n", "notes", "-w", f"{src}/docs", "--", "vi", "notes.md")
    run("new", "-n", "review", "-w", f"{src}/docs", "--task", "Review the release notes", "--mode", "review", "--no-run")
    run("pause", "review", "--reason", "waits for Ana")
    run("new", "-d", "-n", "build", "-w", f"{src}/web", "--", "sh", "-c", 'echo "error[E0382]: borrow of moved value"; exit 101')


def main():
    root = tempfile.mkdtemp(prefix="screens-")
    home = os.path.join(root, "me")
    os.makedirs(home)
    env = {**os.environ, "SESSIONS_ROOT": os.path.join(root, "sessions"), "HOME": home, "TMUX_TMPDIR": root, "TERM": "xterm-256color", "SHELL": "/bin/sh", "PS1": "$ "}
    env.pop("TMUX", None)

    def run(*args):
        subprocess.run([BINARY, *args], env=env, check=True, stdout=subprocess.DEVNULL)

    def tmux(*args):
        return subprocess.run(["tmux", "-f", "/dev/null", *args], env=env, check=True, capture_output=True, text=True).stdout

    def screen(wanted, patience=20.0):
        """The screen, once everything that is wanted is on it."""
        until = time.time() + patience
        while True:
            text = tmux("capture-pane", "-p", "-t", "s")
            if all(word in text for word in wanted):
                return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))
            if time.time() > until:
                raise SystemExit(f"{wanted} did not come:\n{text}")
            time.sleep(0.1)

    screens = {}
    try:
        sessions(run, home)
        # the curves need some time to have something to show
        time.sleep(3)
        tmux("new-session", "-d", "-s", "s", "-x", "100", "-y", "26", "-c", os.path.join(home, "src", "api"), BINARY)
        screen(["fix-login", "Apply this change", "❯ 1. Yes"])
        time.sleep(14)
        screens["list"] = screen(["fix-login", "❯ 1. Yes", "▄"])
        tmux("send-keys", "-t", "s", "t")
        screens["grid"] = screen(["┏", "GET /users", "❯ 1. Yes"])
        tmux("send-keys", "-t", "s", "t")
        tmux("send-keys", "-t", "s", "C-s")
        screen(["search"])
        tmux("send-keys", "-t", "s", "-l", "GET /users/7")
        screen(["hits in 1 session"])
        tmux("send-keys", "-t", "s", "Enter", "j", "j")
        screens["search"] = screen(["hits in 1 session", "enter plays from here", "play from there"])
        tmux("kill-server")
    finally:
        subprocess.run([BINARY, "daemon", "stop", "--all", "--yes"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(root, ignore_errors=True)
    with open(README) as file:
        text = file.read()
    for name, shown in screens.items():
        shown = shown.replace(root, "")
        block = f"<!-- screen {name} -->\n```\n{shown}\n```\n<!-- end -->"
        text, count = re.subn(rf"<!-- screen {name} -->.*?<!-- end -->", lambda _: block, text, flags=re.S)
        if count != 1:
            raise SystemExit(f"README.md has {count} places for the screen {name}")
    with open(README, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
