#!/usr/bin/env python3
"""Stands in for the user manager's systemctl: writes down how it was called, and starts a unit of Type=notify as systemd does."""
import os
import shlex
import socket
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls"), "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
if "start" in sys.argv:
    unit = os.path.join(os.environ["HOME"], ".config/systemd/user", sys.argv[-1])
    environment, command = {"HOME": os.environ["HOME"]}, None
    for line in open(unit):
        key, _, value = line.strip().partition("=")
        if key == "Environment":
            name, _, text = shlex.split(value)[0].partition("=")
            environment[name] = text
        elif key == "ExecStart":
            command = shlex.split(value)
    path = os.path.join(here, "notify")
    if os.path.exists(path):
        os.remove(path)
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(path)
    told.settimeout(30)
    environment["NOTIFY_SOCKET"] = path
    daemon = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    said = told.recv(4096).decode()
    if "READY=1" not in said.splitlines() or f"MAINPID={daemon.pid}" not in said.splitlines():
        sys.exit(f"it said {said!r}")
