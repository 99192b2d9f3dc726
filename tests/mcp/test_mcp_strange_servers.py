"""Servers that hang, die and talk nonsense: each is abandoned with an error that says so, and its process is gone."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_calls import result_of

from ferrule import TerminalApprover
from ferrule.conversation import ToolCall
from ferrule.errors import RegistryError
from ferrule.execution import Executor, Policy
from ferrule.mcp import MCPServer, client, connection, incoming, stdio_client
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

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


async def test_bytes_that_are_not_utf_8_are_noise_and_cost_no_answer(strange: Strange, caplog) -> None:
    async with MCPServer(strange("bytes"), name="strange") as server:
        for _ in range(2):
            assert (await result_of(server, "pid")).text.startswith("caf\ufffd ")
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


async def test_many_announced_changes_are_listed_one_after_the_other(strange: Strange) -> None:
    async with MCPServer(strange("restless"), name="strange") as server:
        for _ in range(5):
            assert (await result_of(server, "pid")).status == "ok"
            assert len(server._refreshing) <= 2


async def test_of_many_problems_the_first_are_told_and_each_is_short(strange: Strange, caplog) -> None:
    async with MCPServer(strange("wrong"), name="strange") as server:
        assert server.registry.names == ("die", "pid", "hang")
        assert len(server.problems) == 30
        assert {len(problem) for problem in server.problems} == {501}
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "the MCP server strange has 10 more problems"


async def test_a_listing_that_never_ends_is_an_error(strange: Strange) -> None:
    with pytest.raises(RegistryError, match="its list of tools comes to the page 'again' twice"):
        async with MCPServer(strange("circular"), name="strange"):
            pass


async def test_secrets_that_a_server_writes_are_not_in_its_errors() -> None:
    telling = ["sh", "-c", "echo 'API_KEY=hunter2 https://me:hunter2@example.com' >&2; exit 1"]
    with pytest.raises(RegistryError, match=r"API_KEY=\[scrubbed\] https://me:\[scrubbed\]@example\.com") as error:
        async with MCPServer(telling):
            pass
    assert "hunter2" not in str(error.value)


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


async def test_a_person_is_shown_which_server_a_tool_is_of(strange: Strange) -> None:
    shown = io.StringIO()
    approver = TerminalApprover(io.StringIO("n\nn\nn\n"), shown)
    async with (
        MCPServer(strange("ok"), name="first") as first,
        MCPServer(strange("ok"), name="second") as second,
        ToolRegistry([first.registry.only("pid"), second.registry.only("die")]).open() as bound,
    ):
        executor = Executor(bound, policy=Policy(profile="ask"), approver=approver)
        await executor.run(ToolCall("1", "pid", "{}"), CallScope())
        assert shown.getvalue().startswith("▸ pid asks to run\n  from: mcp:first\n")
        await executor.run_all([ToolCall("2", "pid", "{}"), ToolCall("3", "die", "{}")], CallScope())
    assert "pid  (mcp:first)" in shown.getvalue()
    assert "die  (mcp:second)" in shown.getvalue()


async def test_a_protocol_error_of_a_call_reaches_the_model_in_full(strange: Strange) -> None:
    async with MCPServer(strange("refuse"), name="strange") as server:
        failed = await result_of(server, "pid")
    first, reason, last, data = failed.text.split("\n")
    assert first == "error: the MCP server 'strange' gave no result: Invalid arguments: ["
    assert (reason, data) == ("  path must be absolute", '{"field": "päth"}')
    assert last == "]" + " and so on" * 100


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


async def test_no_more_tools_and_parts_are_read_than_the_limits_say(
    strange: Strange, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    for module in (incoming, connection):
        monkeypatch.setattr(module, "MOST_TOOLS", 20)
    monkeypatch.setattr(incoming, "MOST_PARTS", 10)
    async with MCPServer(strange("many"), name="strange") as server:
        assert len(server.registry.names) == 20
        assert server.problems == ("it lists more than 20 tools: the first 20 are offered",)
        result = await result_of(server, "pid")
    left_out = "left out: 20 of the 30 parts of a result, of which 10 are read"
    assert result.text.split("\n") == [*map(str, range(10)), f"[{left_out}]"]
    assert caplog.messages == [f"the MCP server strange: {one}" for one in (*server.problems, left_out)]


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [("MOST_BYTES", 500, "it has more than 50 MB"), ("MOST_VALUES", 20, "it has more than 20 objects and lists")],
)
async def test_an_answer_with_too_much_is_an_error_and_the_server_goes_on(
    strange: Strange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, reason: str
) -> None:
    async with MCPServer(strange("many"), name="strange") as server:
        monkeypatch.setattr(stdio_client, "_LONG", 100)
        monkeypatch.setattr(stdio_client if limit == "MOST_BYTES" else incoming, limit, most)
        for _ in range(2):
            failed = await result_of(server, "pid")
            assert failed.text == f"error: the MCP server 'strange' gave no result: its answer isn't read: {reason}"
        monkeypatch.undo()
        assert (await result_of(server, "pid")).status == "ok"
    assert len(processes(tmp_path)) == 1


async def test_what_takes_long_is_done_in_a_thread_that_the_deadline_does_not_wait_for(
    strange: Strange, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, released = [], threading.Event()
    make_tools, recover = client.make_tools, incoming._WatchedStream._recover

    def make(*arguments: object, **options: object) -> object:
        checked.append(threading.current_thread())
        released.wait(60)
        return make_tools(*arguments, **options)

    def check(*arguments: object) -> object:
        checked.append(threading.current_thread())
        return recover(*arguments)

    monkeypatch.setattr(client, "make_tools", make)
    with pytest.raises(RegistryError, match="did not answer within 1 seconds"):
        async with MCPServer(strange("none"), name="strange", start_timeout=1):
            pass
    released.set()
    monkeypatch.setattr(incoming, "_FEW", 10)
    monkeypatch.setattr(incoming._WatchedStream, "_recover", check)
    async with MCPServer(strange("many"), name="strange") as server:
        assert (await result_of(server, "pid")).status == "ok"
    others = [thread for thread in checked if thread is not threading.main_thread()]
    # The tools twice, and the messages with the listing and the result.
    assert len(others) == 4


async def test_half_a_surrogate_pair_is_replaced(strange: Strange) -> None:
    async with MCPServer(strange("surrogate"), name="strange", timeout=None) as server:
        assert (await result_of(server, "pid")).text.startswith("\N{REPLACEMENT CHARACTER} \N{GRINNING FACE} \\ud83d ")


@pytest.mark.parametrize(
    ("way", "reason"), [("digits", "it is no valid JSON"), ("shapeless", "it isn't a JSON-RPC message")]
)
async def test_an_answer_that_cannot_be_parsed_is_an_error_at_once(strange: Strange, way: str, reason: str) -> None:
    async with MCPServer(strange(way), name="strange", timeout=None) as server:
        for _ in range(2):
            failed = await result_of(server, "pid")
            assert failed.text == f"error: the MCP server 'strange' gave no result: its answer isn't read: {reason}"


async def test_an_answer_comes_before_the_flood_around_it(strange: Strange, caplog) -> None:
    def encode(*messages: object) -> list[str]:
        return [json.dumps({"jsonrpc": "2.0"} | one) if isinstance(one, dict) else one for one in messages]

    ping, change, answer = {"id": "p", "method": "ping"}, {"method": stdio_client._CHANGED}, {"id": 1, "result": {}}
    kept, dropped = await stdio_client._parse_all(encode(*[ping] * 500, *[change] * 500, *["noise"] * 500, answer))
    assert (len(kept), dropped) == (102, 400)
    assert kept[0].message.id == 1
    assert sum(one.message.method == "ping" for one in kept[1:]) == 100
    few = encode(*[ping] * 100, answer, change)
    kept, dropped = await stdio_client._parse_all(few)
    assert [json.loads(one.message.model_dump_json(exclude_unset=True)) for one in kept] == [*map(json.loads, few)]
    assert dropped == 0
    async with MCPServer(strange("flood"), name="strange") as server:
        for _ in range(2):
            assert (await result_of(server, "pid")).status == "ok"
    (told,) = caplog.messages
    assert told.endswith("sends too many messages; some are dropped")


@pytest.mark.parametrize(
    ("first", "last", "answered"),
    [
        ('{"jsonrpc":"2.0","id":7,"result":{"content":[{"id":8', '"id":9}]}}', 7),
        (' { "id" : "a-1" , "result": {', "}}", "a-1"),
        ('{"jsonrpc":"2.0","result":{"content":[{"id":8', '"id":9}]},"id":7}', 7),
        ('{"result":{"id":8', '}, "id": "b", "jsonrpc": "2.0"}\r', "b"),
    ],
)
def test_the_request_of_an_answer_that_is_not_read_gets_an_error(first: str, last: str, answered: object) -> None:
    refused = incoming.refuse_answer(first, last, "it is too long")
    assert refused.message.id == answered
    assert refused.message.error.message == "its answer isn't read: it is too long"


def test_a_message_that_is_not_read_and_has_no_id_answers_nothing() -> None:
    assert incoming.refuse_answer('{"method":"x","params":{"id":1', '"id":2}}', "it is too long") is None


def test_lines_are_split_whatever_their_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio_client, "MOST_BYTES", 10)
    text = b"one\n\nt\xc3\xa4o\n" + b"x" * 11 + b"end\nlast\xff\nopen"
    expected = ["one", "", "täo", stdio_client._LongLine(b"x" * 11, b"x" * 11 + b"end"), "last\ufffd"]
    for size in (1, 2, 3, 100):
        lines = stdio_client._Lines()
        found = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert [one.last[-3:] if isinstance(one, stdio_client._LongLine) else one for one in found] == [
            one.last[-3:] if isinstance(one, stdio_client._LongLine) else one for one in expected
        ]


@pytest.mark.parametrize("is_event", [True, False])
def test_the_messages_of_a_body_are_bounded_one_by_one(monkeypatch: pytest.MonkeyPatch, is_event: bool) -> None:
    from ferrule.mcp import http_bodies

    for module in (http_bodies, incoming):
        monkeypatch.setattr(module, "MOST_VALUES", 10)
    monkeypatch.setattr(http_bodies, "MOST_BYTES", 1_000)
    event = b'data: {"a": [{}, {}, {}], "b": "' + b"[" * 50 + b'"}\n\n'
    message = http_bodies.BoundedMessage(is_event)
    excess = [message.add(bytes([byte])) for _ in range(5) for byte in event]
    assert set(excess) == ({""} if is_event else {"", "it has more than 10 objects and lists"})
    assert http_bodies.BoundedMessage(is_event).add(b"x" * 1_001) == "it has more than 50 MB"
    assert http_bodies.BoundedMessage(is_event).add(b"[" * 11) == "it has more than 10 objects and lists"
