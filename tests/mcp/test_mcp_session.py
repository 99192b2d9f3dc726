"""`--mcp` for `ask` and `chat`: a server's tools for as long as the command runs, under the command's own rules."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai_server import calls, lenient, says, server
from server_thread import serve_in_thread
from terminals import Terminal, assert_refused, ferrule

from ferrule.builtin_tools import calculator
from ferrule.cli.session_options import SessionOptions, open_session
from ferrule.errors import RegistryError
from ferrule.mcp import MCPServer
from ferrule.session.project_file import ServerData
from ferrule.session.servers import SessionServers
from ferrule.session.session import SessionRunner
from ferrule.tools.registry import ToolRegistry

Strange = Callable[[str], list[str]]


@contextmanager
def asked(*script: object) -> Iterator[tuple[str, ...]]:
    """The options that name a model which answers by a script."""
    with serve_in_thread(lambda: server(*script, judge=lenient)) as url:
        yield "--model", "compatible:m", "--base-url", f"{url}/v1"


def calling(name: str, arguments: str = "{}") -> object:
    return calls(("call_1", name, arguments))


def test_a_tool_of_a_server_is_called_when_it_is_allowed(strange: Strange, tmp_path: Path) -> None:
    command = shlex.join(strange("none"))
    script = [calling("pid"), says("Done.")]
    with asked(*script) as model:
        denied = ferrule("ask", "Which?", *model, "--mcp", command)
    assert "needs approval, and nobody can be asked" in denied.stdout
    with asked(*script) as model:
        allowed = ferrule("ask", "Which?", *model, "--mcp", command, "--yes", "--journal", tmp_path / "calls.jsonl")
    process = (tmp_path / "pids").read_text().split()[-1]
    assert (allowed.returncode, allowed.stdout) == (0, f"▸ pid  →  {process}\nDone.\n")
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2


def test_what_a_server_says_of_its_tools_counts_where_it_is_trusted(addresses: dict[str, str]) -> None:
    with asked(calling("erase"), says("Erased.")) as model:
        done = ferrule("ask", "Erase it.", *model, "--mcp", addresses["newest"], "--trust", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["text"] for event in events if event["event"] == "result"] == ["erased"]
    assert_refused(ferrule("ask", "Erase it.", "--trust"), "--trust is for the servers of --mcp")
    assert_refused(ferrule("ask", "Hi", "--mcp", "http://"), "has no host")


def test_always_holds_for_the_rest_of_the_chat(strange: Strange) -> None:
    script = [calling("pid"), says("One."), calling("pid"), says("Two.")]
    with asked(*script) as model, Terminal("chat", *model, "--mcp", shlex.join(strange("none"))) as terminal:
        terminal.type("Which?\r")
        terminal.expect("this session (every call of pid as the server defines it now)?")
        terminal.type("a\r")
        terminal.expect("One.")
        terminal.type("Again?\r")
        assert "this session" not in terminal.expect("Two.")
        terminal.type("/quit\r")
        assert terminal.ended() == 0


def test_an_always_does_not_count_for_a_tool_that_its_server_has_changed(strange: Strange) -> None:
    script = [calling("pid"), says("One."), calling("pid"), says("Two.")]
    with asked(*script) as model, Terminal("chat", *model, "--mcp", shlex.join(strange("changing"))) as terminal:
        terminal.type("Which?\r")
        terminal.expect("this session (every call of pid as the server defines it now)?")
        terminal.type("a\r")
        terminal.expect("One.")
        terminal.type("Again?\r")
        shown = terminal.expect("this session (every call of pid as the server defines it now)?")
        assert '! the server has changed this tool since the last "always":' in shown
        assert "│ -Give the process's id, for the 1. time." in shown
        assert "│ +Give the process's id, for the 2. time." in shown
        terminal.type("n\r")
        terminal.expect("Two.")
        terminal.type("/quit\r")
        assert terminal.ended() == 0


async def test_declared_servers_of_both_kinds_start(strange: Strange, addresses: dict[str, str]) -> None:
    declared = {
        "bare": ServerData(command=tuple(strange("none"))),
        "given": ServerData(command=tuple(strange("none")), env={"A": "b"}),
        "address": ServerData(url=addresses["newest"]),
        "greeted": ServerData(url=addresses["newest"], headers={"X-A": "b"}),
    }
    servers = SessionServers([], 20, declared=declared)
    try:
        await servers.open(require_all=True)
        assert servers.origins == ("mcp:bare", "mcp:given", "mcp:address", "mcp:greeted")
        names = (await servers.add_to(ToolRegistry())).names
    finally:
        await servers.close()
    assert {"pid", "given_pid", "erase", "greeted_erase"} <= set(names)


def options(url: str, *servers: str, timeout: float = 20) -> SessionOptions:
    return SessionOptions(
        "compatible:m", base_url=f"{url}/v1", mcp=[*servers], mcp_timeout=timeout, as_json=True, yes=True
    )


@contextmanager
def session_on(script: list[object], *servers: str, timeout: float = 20) -> Iterator[SessionRunner]:
    with (
        serve_in_thread(lambda: server(*script, judge=lenient)) as url,
        open_session(options(url, *servers, timeout=timeout)) as session,
    ):
        yield session


@pytest.mark.slow
def test_servers_that_hang_or_are_none_are_left_behind(
    strange: Strange, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging = [shlex.join(strange("initialize"))] * 2
    with session_on([says("Hi.")], *hanging, shlex.join(strange("none")), "/no/such", timeout=12) as session:
        assert session.session.registry.names == ("calculator", "die", "pid", "hang")
        alive = [pid for pid in (tmp_path / "pids").read_text().split() if Path("/proc", pid).exists()]
        assert len(alive) == 1, "the hanging servers were killed, the other one still runs"
        assert session.ask("Hello").stopped == "done"
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3
    assert not [pid for pid in pids if Path("/proc", pid).exists()]
    told = capsys.readouterr().err.splitlines()
    abandoned = "did not answer within 12 seconds; it was abandoned; its tools are not offered"
    assert sum(abandoned in line for line in told) == 2
    assert sum("file not found: '/no/such'; its tools are not offered" in line for line in told) == 1


def test_a_question_is_not_asked_without_a_server_that_was_named_and_a_chat_goes_on() -> None:
    refused = ferrule("ask", "Hi", "--model", "echo", "--mcp", "/no/such")
    assert_refused(refused, "the MCP server 'such' (/no/such) can't be reached: file not found: '/no/such'")
    chat = ferrule("chat", "--model", "echo", "--mcp", "/no/such", typed="Hi\n")
    assert (chat.returncode, chat.stdout) == (0, "Hi\n")
    assert "its tools are not offered" in chat.stderr


def test_names_that_collide_are_prefixed_and_a_server_that_died_is_started_again(
    strange: Strange, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = shlex.join(strange("none"))
    script = [calling("die"), says("It died."), calling("strange_server_pid"), calling("pid"), says("Both are there.")]
    with session_on(script, command, command) as session:
        names = ("die", "pid", "hang", *(f"strange_server_{name}" for name in ("die", "pid", "hang")))
        assert session.session.registry.names == ("calculator", *names)
        assert session.ask("Die.").stopped == "done"
        assert session.ask("Who are you?").stopped == "done"
    first, second, third = (tmp_path / "pids").read_text().split()
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    results = [event["text"] for event in shown if event["event"] == "result"]
    assert "ended while the call ran" in results[0]
    assert third in results[1:]
    assert {first, second} & set(results[1:])


def test_ctrl_c_while_a_server_starts_ends_the_command_and_the_server(strange: Strange, tmp_path: Path) -> None:
    with Terminal("ask", "Hello", "--model", "echo", "--mcp", shlex.join(strange("initialize"))) as terminal:
        while not (tmp_path / "pids").exists():
            time.sleep(0.05)
        time.sleep(0.3)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ended() == 130
    assert not Path(f"/proc/{(tmp_path / 'pids').read_text().strip()}").exists()


async def test_the_servers_of_a_registry_get_ready_at_the_same_time(strange: Strange, tmp_path: Path) -> None:
    hanging = [MCPServer(strange("initialize"), name=name, start_timeout=1.5) for name in ("one", "two", "three")]
    with pytest.raises(RegistryError, match=r"did not answer within 1\.5 seconds"):
        async with ToolRegistry([calculator, *hanging]).open():
            pass
    assert len((tmp_path / "pids").read_text().split()) == 3
    both = [MCPServer(strange("none"), name=name) for name in ("one", "two")]
    async with ToolRegistry([calculator, *both]).open() as bound:
        assert bound.names == ("calculator", "die", "pid", "hang", "two_die", "two_pid", "two_hang")
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("MCP server")]
