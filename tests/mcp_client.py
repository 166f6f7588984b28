#!/usr/bin/env python3
"""The official client of the Model Context Protocol against our server.

    mcp_client.py VENV prepare
    mcp_client.py VENV SCENARIO SERVER WORK [NAME=VALUE …]

Makes a virtual environment with the client in VENV the first time, and goes on inside it. The client gives the server
HOME, LOGNAME, PATH, SHELL, TERM, USER and the variables named here, nothing else. Fails with a traceback.
"""

import os
import pathlib
import subprocess
import sys

CLIENT = "mcp==2.3.0"


def prepare(venv: pathlib.Path) -> pathlib.Path:
    """The interpreter of a complete environment: one that was only half made has no mark, and is made again."""
    python, mark = venv / "bin" / "python", venv / "complete"
    if not mark.exists() or mark.read_text() != CLIENT:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True, timeout=300)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", CLIENT], check=True, timeout=600)
        mark.write_text(CLIENT)
    return python


def main() -> None:
    venv, scenario, *rest = sys.argv[1:]
    python = prepare(pathlib.Path(venv))
    if scenario == "prepare":
        return
    if pathlib.Path(sys.prefix).resolve() != pathlib.Path(venv).resolve():
        os.execv(python, [str(python), *sys.argv])
    import anyio

    server, work, *variables = rest
    environment = dict(variable.split("=", 1) for variable in variables)
    anyio.run(run, scenario, server, work, environment)
    print("all is well")


async def run(scenario: str, server: str, work: str, environment: dict[str, str]) -> None:
    import anyio
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    parameters = StdioServerParameters(command=server, args=["mcp"], env=environment, cwd=work)
    for mode, version in (("legacy", "2025-11-25"), ("auto", "2026-07-28")):
        with anyio.fail_after(60):
            async with Client(parameters, mode=mode) as client:
                assert client.protocol_version == version, client.protocol_version
                await {"terminals": terminals, "runtimes": runtimes}[scenario](client, mode)


async def call(client, tool: str, **arguments):
    """The object a tool gives; the client has checked it against the schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


async def refused(client, tool: str, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error and result.structured_content["success"] is False, result
    return result.structured_content


async def terminals(client, mode: str) -> None:
    import anyio

    tools = (await client.list_tools()).tools
    assert len(tools) == 16, [tool.name for tool in tools]
    assert [tool.name for tool in tools if tool.annotations.read_only_hint] == ["search", "session_files", "session_list", "terminal_screen", "terminal_wait"]

    # a task, from its start to its end
    started = await call(client, "session_start", task="Try the client", name=f"task-{mode}", context={"step": 1})
    session = started["session"]
    assert (await call(client, "session_iterate", session=session))["iterations"] == 1
    await call(client, "session_event", session=session, type="seen", data={"by": "python"})
    await call(client, "session_pause", session=session, reason="a pause")
    await call(client, "session_resume", session=session)
    context = await call(client, "session_context", session=session, set={"step": 2})
    assert context["context"] == {"step": 2} and context["recent_events"][-1]["type"] == "context", context
    assert (await call(client, "session_complete", session=session, result="done"))["status"] == "completed"
    other = await call(client, "session_start", task="Another", name=f"other-{mode}")
    assert (await call(client, "session_fail", session=other["session"], error="no"))["session_error"] == "no"

    # a terminal
    terminal = f"cat-{mode}"
    await call(client, "terminal_start", argv=["cat"], name=terminal)
    await call(client, "terminal_send", session=terminal, text="hello", keys=["Enter"])
    assert (await call(client, "terminal_wait", session=terminal, until="text", pattern="^hello\nhello$"))["met"]
    screen = await client.call_tool("terminal_screen", {"session": terminal})
    assert screen.structured_content is None and "hello\nhello\n" in screen.content[0].text, screen
    listed = await call(client, "session_list", status=["active"])
    assert [row["name"] for row in listed["sessions"] if row["name"].endswith(mode)] == [terminal], listed

    # errors are results that say what to do
    assert (await refused(client, "terminal_screen", session="nobody"))["code"] == "not_found"
    assert "`colour`" in (await refused(client, "session_list", colour="red"))["error"]

    # several calls at once, with progress, of which one is given up
    heard: list[tuple[float, str | None]] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        heard.append((number, message))

    async def wait(pattern: str, callback=None):
        arguments = {"session": terminal, "until": "text", "pattern": pattern, "timeout_ms": 30000}
        return await client.call_tool("terminal_wait", arguments, progress_callback=callback)

    async with anyio.create_task_group() as group:
        group.start_soon(wait, "never")
        result = None

        async def patient() -> None:
            nonlocal result
            result = await wait("done", progress)

        group.start_soon(patient)
        while len(heard) < 2:
            await anyio.sleep(0.01)
        await call(client, "terminal_send", session=terminal, text="done")
        while result is None:
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert result.structured_content["met"] is True, result
    assert heard[0][0] < heard[1][0] and "done" in heard[0][1], heard
    await call(client, "terminal_send", session=terminal, keys=["Enter", "C-d"])
    assert (await call(client, "terminal_wait", session=terminal, until="exit"))["exit_code"] == 0


async def runtimes(client, mode: str) -> None:
    import anyio

    # what one call leaves, the next finds
    await call(client, "runtime", action="exec", command="cd /tmp; export GREETING=hello")
    result = await call(client, "runtime", action="exec", command='echo "$GREETING from $PWD"; echo oops >&2; exit_with() { return $1; }; exit_with 3')
    assert (result["success"], result["exitCode"], result["stdout"], result["stderr"]) == (False, 3, "hello from /tmp\n", "oops\n"), result
    await call(client, "runtime", action="exec", language="python", command="import json\nnumbers = [1, 2, 3]")
    assert (await call(client, "runtime", action="eval", command="sum(numbers)"))["json"] == 6
    assert (await call(client, "runtime", action="eval", language="node", command="[1, 2].map(n => n * 2)"))["json"] == [2, 4]
    state = (await call(client, "runtime", action="state", language="bash"))["state"]
    assert state["working_dir"] == "/tmp" and state["env_vars"]["GREETING"] == "hello", state
    history = (await call(client, "runtime", action="history", language="python"))["history"]
    assert history[-1]["command"] == "sum(numbers)", history

    # long work: it yields, is polled, is interrupted
    heard: list[tuple[float, str | None]] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        heard.append((number, message))

    arguments = {"action": "exec", "command": "for i in $(seq 100); do echo step $i; sleep 0.1; done", "yield_ms": 2500}
    result = (await client.call_tool("runtime", arguments, progress_callback=progress)).structured_content
    assert result["running"] and "step 1\n" in result["stdout"], result
    assert len(heard) >= 2 and all("step" in message for _, message in heard), heard
    assert [number for number, _ in heard] == sorted({number for number, _ in heard}), heard
    cancelled = await call(client, "runtime", action="cancel", exec_id=result["execId"])
    assert cancelled["execId"] == result["execId"], cancelled
    result = await call(client, "runtime", action="result", exec_id=result["execId"])
    assert result.get("running") is None and result["interrupted"], result

    # several interpreters at once
    async with anyio.create_task_group() as group:
        for language, code in (("bash", "echo $((6*7))"), ("python", "print(6*7)"), ("node", "console.log(6*7)")):

            async def one(language=language, code=code) -> None:
                result = await call(client, "runtime", action="exec", language=language, command=code)
                assert result["stdout"] == "42\n", result

            group.start_soon(one)
    assert (await call(client, "runtime", action="reset"))["reset"] is True
    assert (await refused(client, "runtime", action="result", exec_id="00000000-0000-7000-8000-000000000000"))["code"] == "not_found"


if __name__ == "__main__":
    main()
