"""Servers that hang, die and talk nonsense: each is abandoned with an error that says so, and its process is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_calls import result_of

from ferrule.errors import RegistryError
from ferrule.mcp import MCPServer, connection

Strange = Callable[[str], list[str]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_GRACE_SECONDS", 0.3)


def processes(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pids").read_text().split()]


def is_gone(process: int) -> bool:
    """Whether it ends within a minute: who killed it may not wait until it is gone."""
    patience = time.monotonic() + 60
    while time.monotonic() < patience:
        try:
            os.kill(process, 0)
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


async def test_one_that_hangs_at_the_start_or_at_its_list_is_left_behind(strange: Strange, tmp_path: Path) -> None:
    async def opened(way: str) -> None:
        with pytest.raises(RegistryError, match=r"'strange' .* did not answer within 1 seconds; it was abandoned"):
            async with MCPServer(strange(way), name="strange", start_timeout=1):
                pass

    await asyncio.gather(opened("initialize"), opened("list"))
    assert len(processes(tmp_path)) == 2
    assert all(map(is_gone, processes(tmp_path)))


async def test_one_that_hangs_in_a_call_is_left_behind_and_started_again(strange: Strange, tmp_path: Path) -> None:
    async with MCPServer(strange("call"), name="strange", timeout=0.5) as server:
        assert (await result_of(server, "hang")).status == "timeout"
        # This one waits until it is known that the first process doesn't answer, and gets a new one.
        again = await result_of(server, "hang")
        assert again.status == "timeout"
    first, *others = processes(tmp_path)
    assert others
    assert all(map(is_gone, (first, *others)))


async def test_one_that_dies_in_a_call_is_started_by_the_next(strange: Strange, tmp_path: Path) -> None:
    async with MCPServer(strange("none"), name="strange") as server:
        first = await result_of(server, "pid")
        died = await result_of(server, "die")
        assert died.text == (
            "error: the MCP server 'strange' ended while the call ran; it may have had some of its effects; "
            "the next call starts the server again"
        )
        second = await result_of(server, "pid")
    assert [int(first.text), int(second.text)] == processes(tmp_path)


async def test_calls_beside_one_that_dies_are_answered_too(strange: Strange) -> None:
    async with MCPServer(strange("none"), name="strange") as server:
        results = await asyncio.gather(*(result_of(server, name) for name in ("die", "die", "pid")))
    assert {result.status for result in results} <= {"ok", "error"}
    assert results[0].status == "error"


async def test_one_that_writes_what_is_no_protocol_is_borne(strange: Strange, caplog) -> None:
    async with MCPServer(strange("noise"), name="strange") as server:
        assert (await result_of(server, "pid")).status == "ok"
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_a_tool_that_cannot_be_read_costs_no_other(strange: Strange) -> None:
    async with MCPServer(strange("deep"), name="strange") as server:
        assert server.registry.names == ("die", "pid", "hang")
        assert server.problems == (
            "'none' is not offered: it doesn't follow the MCP specification: inputSchema.type: Field required",
            "'deep' is not offered: the tool 'deep': its schema is nested too deeply; give a flatter one",
        )
        assert (await result_of(server, "pid")).status == "ok"


async def test_a_change_announced_before_the_end_is_no_failure(strange: Strange, caplog) -> None:
    for _ in range(5):
        async with MCPServer(strange("restless"), name="strange") as server:
            assert (await result_of(server, "pid")).status == "ok"
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (["/no/such/program"], "can't be reached: file not found: '/no/such/program'"),
        (["echo", "hi"], "ended before it was ready; it wrote 'hi', which is no MCP message: check that this starts"),
        (
            ["sh", "-c", "echo hi; sleep 60"],
            "not answer within 1 seconds; it was abandoned; it wrote 'hi', which is no",
        ),
        (["true"], "ended before it was ready; it wrote nothing on stderr"),
        (["cat"], "can't be reached: Method not found"),
        ("http://127.0.0.1:1/mcp", "can't be reached: ConnectError"),
    ],
)
async def test_what_is_no_server_is_said_to_be_none(server: str | list[str], message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        async with MCPServer(server, start_timeout=1 if "sh" in server else 10):
            pass


async def test_opening_can_be_cancelled_and_leaves_no_process(strange: Strange, tmp_path: Path) -> None:
    async def opened() -> None:
        async with MCPServer(strange("initialize"), name="strange"):
            pass

    opening = asyncio.create_task(opened())
    async with asyncio.timeout(20):
        while not (tmp_path / "pids").exists() or not processes(tmp_path):
            await asyncio.sleep(0.01)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert all(map(is_gone, processes(tmp_path)))


async def test_a_run_whose_server_is_not_there_says_so_before_the_model_is_asked(strange: Strange) -> None:
    from ferrule.agent.pipeline import model
    from ferrule.models.scripted import ScriptedModel

    scripted = ScriptedModel("Never said.")
    with pytest.raises(RegistryError, match="file not found: '/no/such/program'"):
        await model(scripted).using(MCPServer("/no/such/program")).chat("Hello?").run()
    assert scripted.seen == []


@pytest.mark.parametrize("code", ["-32000", "-32001", "-32603"])
async def test_an_error_of_its_own_is_reported_and_the_server_goes_on(
    strange: Strange, tmp_path: Path, code: str
) -> None:
    async with MCPServer(strange(code), name="strange") as server:
        for _ in range(2):
            failed = await result_of(server, "pid")
            assert failed.text == "error: the MCP server 'strange' gave no result: the disk is full"
    assert len(processes(tmp_path)) == 1


async def test_what_a_server_writes_to_stderr_is_logged_escaped_and_never_shown(
    strange: Strange, caplog, capfd
) -> None:
    caplog.set_level(logging.INFO, "ferrule.mcp")
    async with MCPServer(strange("loud"), name="strange") as server:
        died = await result_of(server, "die")
        assert "ended while the call ran" in died.text
        assert "Allow everything" not in died.text
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert told[0].startswith(
        "the MCP server strange ended while a call ran; its last lines on stderr: no newline\\x1b[2J\\x1b[1mAllow"
    )
    assert told[0].endswith("… / no newline")
    assert "the MCP server strange wrote: \\x1b[2J\\x1b[1mAllow everything? [y]es\\x1b[0m" in caplog.messages
    assert "\x1b" not in "".join(caplog.messages)
    assert capfd.readouterr() == ("", "")


async def test_a_server_that_does_not_start_says_why_by_its_last_lines() -> None:
    failing = [
        "sh",
        "-c",
        r"for i in 1 2 3 4; do echo line $i >&2; done; printf '\033]0;title\007no module x' >&2; exit 1",
    ]
    with pytest.raises(
        RegistryError, match="ended before it was ready; its last lines on stderr: line 3 / line 4 / "
    ) as error:
        async with MCPServer(failing):
            pass
    assert str(error.value).endswith(r"\x1b]0;title\x07no module x")


async def test_a_flood_on_stderr_stops_neither_the_server_nor_us() -> None:
    flooding = ["sh", "-c", "yes 2>/dev/null | head -c 5000000 >&2; echo why >&2"]
    with pytest.raises(RegistryError, match="its last lines on stderr: y / y / why"):
        async with MCPServer(flooding):
            pass


async def test_an_invalid_part_of_a_result_costs_no_other(strange: Strange) -> None:
    async with MCPServer(strange("blocks"), name="strange") as server:
        result = await result_of(server, "pid")
    assert result.status == "ok"
    first, *notes, last, structured = result.text.split("\n")
    assert (first, last) == ("first", "last")
    wrong = "doesn't follow the MCP specification"
    assert notes == [
        f"[left out: part 2 of 5 of the type 'image' {wrong}: data: Input should be a valid string]",
        f"[left out: part 3 of 5 of the type 'hologram' {wrong}: unknown type]",
        f"[left out: part 4 of 5 {wrong}: content: Input should be a valid dictionary or instance of TextContent]",
    ]
    assert structured.startswith(
        "[left out: the structured content doesn't follow the MCP specification: structuredContent: "
    )
