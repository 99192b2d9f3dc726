"""The shell tool as a coding agent has it: its output, its network, its background jobs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ferrule.builtin_tools import shell_tool
from ferrule.builtin_tools.shell_jobs import ShellJobs
from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Approver, Decision, Executor, Policy, Rule
from ferrule.execution.decisions import ApprovalRequest
from ferrule.sandbox.shell import ShellSandbox
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

ALL = Policy(profile="all")
PYTHON = os.path.realpath(sys.executable)


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[ShellSandbox]:
    (tmp_path / "workspace").mkdir()
    async with ShellSandbox(tmp_path / "workspace", network=[], readable=[sys.base_prefix]) as opened:
        yield opened


async def call(
    tools: Sequence[Tool],
    name: str,
    policy: Policy | None = None,
    approver: Approver | None = None,
    **arguments: Any,
) -> ToolResult:
    async with ToolRegistry(list(tools)).open() as bound:
        executor = Executor(bound, policy=policy or ALL, approver=approver)
        result = await executor.run(ToolCall("call_1", name, json.dumps(arguments)), CallScope())
    assert isinstance(result, ToolResult)
    return result


async def bash(sandbox: ShellSandbox, command: str, **arguments: Any) -> ToolResult:
    tool = shell_tool(sandbox, name="bash", timeout=30)
    return await call(
        [tool], "bash", arguments.pop("policy", None), arguments.pop("approver", None), command=command, **arguments
    )


async def test_errors_are_told_apart_from_output_whatever_the_status(sandbox: ShellSandbox) -> None:
    assert (await bash(sandbox, "echo err >&2; echo out")).text == "out\nSTDERR:\nerr"
    failed = await bash(sandbox, "echo '3 tests failed'; echo why >&2; exit 3")
    assert (failed.status, failed.text) == ("error", "error: exit status 3\n3 tests failed\nSTDERR:\nwhy")
    assert (await bash(sandbox, "echo err >&2")).text == "STDERR:\nerr"
    assert (await bash(sandbox, "true")).text == "(no output)"
    assert (await bash(sandbox, "exit 7")).text == "error: exit status 7\n(no output)"


async def test_a_command_that_is_stopped_keeps_what_it_wrote_and_nothing_of_it_lives_on(sandbox: ShellSandbox) -> None:
    late = "(sleep 5; echo late > late.txt) & echo out; echo err >&2; sleep 60"
    result = await bash(sandbox, late, timeout=3)
    assert result.text.startswith("error: timed out")
    assert result.text.endswith("out\nSTDERR:\nerr")
    await asyncio.sleep(2.5)  # more than is left of the five seconds
    assert not Path(sandbox.workspace, "late.txt").exists()


async def test_input_is_empty_and_the_time_is_thirty_seconds(sandbox: ShellSandbox) -> None:
    assert (await bash(sandbox, "cat; read line || echo none")).text == "none"
    tool = shell_tool(sandbox, name="bash", timeout=30)
    timeout = tool.parameters["properties"]["timeout"]
    assert timeout["default"] == 30
    assert "Seconds" in timeout["description"]


async def test_secrets_of_the_environment_are_not_handed_on(
    sandbox: ShellSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234")
    monkeypatch.setenv("MY_TOKEN", "t-1234")
    assert "1234" not in (await bash(sandbox, "env")).text


async def test_a_long_output_is_cut_with_its_length_and_kept_whole(sandbox: ShellSandbox) -> None:
    tool = shell_tool(sandbox, name="bash")
    async with ToolRegistry([tool]).open() as bound:
        executor = Executor(bound, policy=ALL)
        command = "i=0; while [ $i -lt 30000 ]; do echo line $i of a long output that goes on and on; i=$((i+1)); done"
        result = await executor.run(ToolCall("1", "bash", json.dumps({"command": command})), CallScope())
        assert isinstance(result, ToolResult)
        assert len(result.text) < 32_000
        assert "line 29999" in result.text
        named = re.search(r"\b[0-9a-f]{16}\b", result.text)
        assert named is not None
        assert b"line 15000 of" in executor.blobs.get(named[0])


class Answers:
    """Answers what it is asked, and keeps the questions."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        assert request.intent is not None
        self.asked.append(str(request.intent.preview))
        return Decision.allow(by="a test") if self._answers.pop(0) else Decision.deny("not this one", by="a test")


async def serve_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    writer.close()


def fetch(host: str) -> str:
    return f"echo begun >> runs.txt; no_proxy= {PYTHON} -I -c \"import urllib.request as u; print(u.urlopen('http://{host}/x').read())\""


ASK_FOR_HOSTS = Policy((Rule("ask", tool="bash", effect="net"),), profile="all")


async def test_a_host_is_asked_for_and_the_command_is_run_again(sandbox: ShellSandbox) -> None:
    async with await asyncio.start_server(serve_hello, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yes = Answers(True)
        result = await bash(sandbox, f"echo before; {fetch(host)}", policy=ASK_FOR_HOSTS, approver=yes)
    assert result.status == "ok", result.text
    assert result.text.startswith(f"[exit status 1, without access to {host}]\nbefore\nSTDERR:\n")
    assert f"[the command was run again with access to {host}]\nbefore\nb'hello'" in result.text
    assert host in yes.asked[0]
    assert "run again" in yes.asked[0]
    assert Path(sandbox.workspace, "runs.txt").read_text() == "begun\n" * 2


async def test_a_denied_host_is_said_with_the_reason_and_nothing_is_run_again(sandbox: ShellSandbox) -> None:
    result = await bash(sandbox, fetch("far.example"), policy=ASK_FOR_HOSTS, approver=Answers(False))
    assert result.status == "error"
    assert "far.example:80" in result.text
    assert "not this one" in result.text
    assert "`hosts`" in result.text
    assert Path(sandbox.workspace, "runs.txt").read_text() == "begun\n"


async def test_hosts_that_are_named_are_judged_before_the_command_runs(sandbox: ShellSandbox) -> None:
    async with await asyncio.start_server(serve_hello, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yes, no = Answers(True), Answers(False)
        denied = await bash(sandbox, fetch(host), hosts=[host], policy=ASK_FOR_HOSTS, approver=no)
        assert denied.status == "denied"
        assert not Path(sandbox.workspace, "runs.txt").exists()
        result = await bash(sandbox, fetch(host), hosts=[host], policy=ASK_FOR_HOSTS, approver=yes)
    assert result.text == "b'hello'"
    assert f"reaches {host}" in yes.asked[0]


async def test_a_command_that_succeeds_without_its_host_is_not_run_again(sandbox: ShellSandbox) -> None:
    result = await bash(
        sandbox, f"{fetch('far.example')} 2>/dev/null || true", policy=ASK_FOR_HOSTS, approver=Answers()
    )
    assert result.status == "ok"
    assert result.text.startswith("[no access to the network: far.example:80;")


async def test_an_invalid_host_is_refused(sandbox: ShellSandbox) -> None:
    result = await bash(sandbox, "true", hosts=["http://x/"])
    assert "isn't a rule for hosts" in result.text


@pytest_asyncio.fixture
async def job_tools(sandbox: ShellSandbox) -> AsyncIterator[tuple[list[Tool], ShellJobs]]:
    jobs = ShellJobs()
    yield [shell_tool(sandbox, name="bash", jobs=jobs), *jobs.make_tools()], jobs
    await jobs.aclose()


async def test_a_job_is_started_read_and_stopped(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, jobs = job_tools
    began = time.monotonic()
    started = await call(tools, "bash", command="echo ready; echo warned >&2; sleep 60", background=True)
    assert started.text.startswith("started as job_1; ")
    assert time.monotonic() - began < 20
    first = await call(tools, "job_output", id="job_1", wait=20)
    assert first.text.startswith("ready\n")
    assert first.text.endswith("[job_1 running]")
    assert (await call(tools, "list_jobs")).text == "job_1: running: echo ready; echo warned >&2; sleep 60"
    assert jobs.take_announcements() == []
    stopped = await call(tools, "stop_job", id="job_1")
    assert stopped.text.endswith("[job_1 stopped]")
    again = await call(tools, "stop_job", id="job_1")
    assert "had ended before" in again.text
    assert jobs.take_announcements() == []


async def test_the_end_of_a_job_is_announced_once_with_its_status(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, jobs = job_tools
    for command in ("exit 3", "kill -9 $$", "true"):
        await call(tools, "bash", command=command, background=True)
    news: list[str] = []
    while len(news) < 3:
        await asyncio.sleep(0.05)
        news += await asyncio.to_thread(jobs.take_announcements)
    assert sorted(line.splitlines()[0] for line in news) == [
        "The background job job_1: ended: exit status 3: exit 3",
        "The background job job_2: ended: ended by a signal: kill -9 $$",
        "The background job job_3: ended: exit status 0: true",
    ]
    assert jobs.take_announcements() == []
    listed = (await call(tools, "list_jobs")).text
    assert listed.startswith("job_1: ended: exit status 3")


async def test_an_end_that_was_read_is_not_announced(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, jobs = job_tools
    await call(tools, "bash", command="sleep 0.2; exit 4", background=True)
    assert (
        await call(tools, "job_output", id="job_1", wait=30)
    ).text == "(no new output)\n[job_1 ended: exit status 4]"
    assert jobs.take_announcements() == []


async def test_jobs_end_with_their_sandbox(tmp_path: Path) -> None:
    jobs = ShellJobs()
    async with ShellSandbox(tmp_path) as sandbox:
        tools = [shell_tool(sandbox, name="bash", jobs=jobs), *jobs.make_tools()]
        await call(tools, "bash", command="while true; do date +%N > beat.txt; sleep 0.05; done", background=True)
        while not (tmp_path / "beat.txt").exists():
            await asyncio.sleep(0.05)
    before = (tmp_path / "beat.txt").read_text()
    await asyncio.sleep(0.5)
    assert (tmp_path / "beat.txt").read_text() == before
    assert "exit status 0" not in jobs.take_announcements()[0]


async def test_wrong_jobs_are_answered_with_those_that_are_there(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, _ = job_tools
    assert "none was started" in (await call(tools, "job_output", id="job_9")).text
    await call(tools, "bash", command="true", background=True)
    assert "there are: job_1" in (await call(tools, "stop_job", id="nope")).text
    assert "0 to 60" in (await call(tools, "job_output", id="job_1", wait=-1)).text


async def test_a_background_job_is_given_no_repository(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, _ = job_tools
    asked = await call(tools, "bash", command="git commit -m x", background=True)
    named = await call(tools, "bash", command="make", background=True, writable=[".git"])
    assert "which a background job can't" in asked.text
    assert "which a background job can't" in named.text


async def test_too_many_jobs_are_refused(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, _ = job_tools
    for _ in range(16):
        assert (await call(tools, "bash", command="sleep 60", background=True)).status == "ok"
    assert "16 jobs are running" in (await call(tools, "bash", command="sleep 60", background=True)).text


async def test_a_job_is_asked_about_like_any_command(job_tools: tuple[list[Tool], ShellJobs]) -> None:
    tools, _ = job_tools
    no = Answers(False)
    result = await call(tools, "bash", Policy(profile="ask"), no, command="python3 -m http.server", background=True)
    assert result.status == "denied"
    assert "in the background" in no.asked[0]
    assert (await call(tools, "list_jobs")).text == "(no background jobs)"


def test_only_what_means_something_is_offered(tmp_path: Path) -> None:
    plain = shell_tool(tmp_path)
    assert list(plain.parameters["properties"]) == ["command", "timeout", "writable"]
    asking = shell_tool(ShellSandbox(tmp_path, network=[]), jobs=ShellJobs())
    assert list(asking.parameters["properties"]) == ["command", "timeout", "background", "hosts", "writable"]


async def test_a_checkpoint_is_made_before_a_command_that_may_write(sandbox: ShellSandbox) -> None:
    seen: list[bool] = []

    async def before() -> None:
        seen.append(Path(sandbox.workspace, "a").exists())

    tool = shell_tool(sandbox, before_command=before)
    await call([tool], "shell", command="touch a")
    assert seen == [False]


async def test_git_asks_nobody_for_a_password(sandbox: ShellSandbox) -> None:
    subprocess.run(["git", "init", "-q", sandbox.workspace], check=True)
    result = await bash(
        sandbox, "git -c credential.helper= credential fill <<E\nprotocol=https\nhost=far.example\nE", timeout=20
    )
    assert "terminal prompts disabled" in result.text


def test_a_tool_that_asks_for_hosts_is_not_taken_for_one_that_only_reads(tmp_path: Path) -> None:
    tool = shell_tool(ShellSandbox(tmp_path, mode="read-only", network=[]))
    assert tool.intent is not None
    for profile in ("plan", "ask"):
        judge = Policy(profile=profile).judge
        assert judge(tool, {}, tool.intent({"command": "ls"})).action == "allow"
        assert judge(tool, {}, tool.intent({"command": "ls", "hosts": ["a.example"]})).action != "allow"
