"""Our server: tried by the SDK's own client, and by ours."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_calls import result_of
from mcp_types import ImageContent, TextContent

from ferrule import CallScope, Image, Text, ToolFailed, ToolRegistry, Toolset, calculator, tool
from ferrule.errors import SettingsError
from ferrule.execution import FileJournal, Policy, Rule
from ferrule.mcp import MCPServer, http_bodies, serve

Serving = Callable[..., Any]
PIXEL = b"\x89PNG the bytes"
TOOL_FILE = '''
import os
from ferrule import tool

print("printed at import")
os.system("echo said by a child at import")

@tool(read_only=True)
def shout(text: str) -> str:
    """Shout."""
    print("printed in a call")
    os.system("echo said by a child")
    return text.upper()
'''


@tool
def draw() -> list[Text | Image]:
    """Draw."""
    return [Text("look:"), Image(PIXEL)]


@tool(destructive=True, open_world=False)
def drop(table: str) -> str:
    """Drop a table."""
    raise ToolFailed(f"there is no table {table}")


@tool
def count(to: int, scope: CallScope) -> str:
    """Count in a thread."""
    for number in range(to):
        scope.report_progress(f"at {number}", number / to)
    return "counted"


@tool
def mumble(scope: CallScope) -> str:
    """Say what it does, and not how far it is."""
    scope.report_progress("one")
    scope.report_progress("two")
    return "said"


@tool
def repeat(scope: CallScope) -> str:
    """Report the same fraction twice."""
    for fraction in (0.0, 0.0, None, 0.5, 0.5, 1.0):
        scope.report_progress("on", fraction)
    return "repeated"


class Visits(Toolset):
    """Counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    @tool
    def visit(self) -> int:
        """Count one more."""
        self.count += 1
        return self.count


@dataclass
class Town:
    """A town."""

    name: str
    people: int | None = None


@tool
def find(town: str) -> Town:
    """Find a town."""
    return Town(town, 3)


@tool
def search(town: str) -> list[Town] | None:
    """Find towns."""
    return [Town(town)] if town else None


@tool
def guess(town: str) -> dict[str, int]:
    """Return something else than it says."""
    return {"people": town}


REGISTRY = ToolRegistry([calculator, draw, drop, count, mumble, repeat, Visits])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_lists_and_calls(serving: Serving, mode: Any) -> None:
    async with serving(REGISTRY) as address, Client(address, mode=mode) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
        assert list(listed) == ["calculator", "draw", "drop", "count", "mumble", "repeat", "visit"]
        assert listed["calculator"].input_schema == calculator.parameters
        assert listed["calculator"].annotations.read_only_hint is True
        hints = listed["drop"].annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (None, True, False)
        reckoned = await client.call_tool("calculator", {"expression": "6 * 7"})
        assert (reckoned.content, reckoned.is_error) == ([TextContent(text="42")], False)
        drawn = await client.call_tool("draw", {})
        assert [type(part) for part in drawn.content] == [TextContent, ImageContent]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_has_a_return_type_is_structured_too(serving: Serving, mode: Any) -> None:
    async with serving(ToolRegistry([find, search, guess, draw, mumble])) as address, Client(address, mode=mode) as sdk:
        schemas = {one.name: one.output_schema for one in (await sdk.list_tools()).tools}
        assert schemas["find"]["properties"]["people"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
        assert schemas["search"]["required"] == ["result"]
        assert (schemas["draw"], schemas["mumble"]) == (None, None)
        # The SDK's client refuses what doesn't follow the schema.
        found = await sdk.call_tool("find", {"town": "Ulm"})
        assert (found.structured_content, json.loads(found.content[0].text)) == ({"name": "Ulm", "people": 3},) * 2
        several = await sdk.call_tool("search", {"town": "Ulm"})
        assert several.structured_content == {"result": [{"name": "Ulm", "people": None}]}
        assert (await sdk.call_tool("search", {"town": ""})).structured_content == {"result": None}
        wrong = await sdk.call_tool("guess", {"town": "Ulm"})
        assert (wrong.is_error, wrong.structured_content) == (True, None)
        assert (
            "doesn't follow the tool's output schema: people: 'Ulm' is not of type 'integer'" in wrong.content[0].text
        )


async def test_ours_gets_what_ours_returned(serving: Serving) -> None:
    async with serving(ToolRegistry([find, search])) as address, MCPServer(address) as server:
        found, several = await result_of(server, "find", town="Ulm"), await result_of(server, "search", town="Ulm")
    assert (found.text, found.data) == ('{"name":"Ulm","people":3}', {"name": "Ulm", "people": 3})
    assert several.text == '[{"name":"Ulm","people":null}]'


async def test_failures_are_results_that_say_so(serving: Serving) -> None:
    async with serving(REGISTRY) as address, Client(address) as client:
        for name, arguments, text in [
            ("drop", {"table": "users"}, "error: there is no table users"),
            ("drop", {"tabel": "users"}, "- tabel: unknown parameter; did you mean table?"),
            ("dorp", {}, "error: unknown tool 'dorp'; the nearest are: drop, draw"),
        ]:
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert text in result.content[0].text


async def test_the_policy_and_the_journal_are_part_of_it(serving: Serving, tmp_path: Path) -> None:
    policy = Policy((Rule("deny", "drop", reason="nothing is dropped here"), Rule("ask", "draw")))
    with FileJournal(tmp_path / "calls.jsonl") as journal:
        async with serving(REGISTRY, policy=policy, journal=journal) as address, Client(address) as client:
            denied = await client.call_tool("drop", {"table": "users"})
            unasked = await client.call_tool("draw", {})
            await client.call_tool("calculator", {"expression": "1 + 1"})
    assert denied.content[0].text == "error: denied: nothing is dropped here"
    assert "nobody can be asked" in unasked.content[0].text
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [(line["event"], line["tool"]) for line in lines] == [
        ("refused", "drop"),
        ("refused", "draw"),
        ("started", "calculator"),
        ("finished", "calculator"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "steps"),
    [
        ("count", {"to": 4}, [("at 0", 0.0, 1.0), ("at 1", 0.25, 1.0), ("at 2", 0.5, 1.0), ("at 3", 0.75, 1.0)]),
        ("mumble", {}, [("one", 1.0, None), ("two", 2.0, None)]),
        (
            "repeat",
            {},
            [
                ("on", 0.0, 1.0),
                ("on", 1e-6, 1.0),
                ("on", 2e-6, None),
                ("on", 0.5, 1.0),
                ("on", 0.500001, 1.0),
                ("on", 1.0, 1.0),
            ],
        ),
    ],
)
async def test_progress_grows_and_comes_before_the_result(
    serving: Serving, name: str, arguments: dict, steps: list
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with serving(REGISTRY) as address, Client(address) as client:
        await client.call_tool(name, arguments, progress_callback=hear)
    assert [(message, progress, total) for progress, total, message in heard] == steps
    numbers = [progress for progress, _, _ in heard]
    assert numbers == sorted(set(numbers))


async def test_a_call_that_the_client_gives_up_is_cancelled(serving: Serving, tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    with FileJournal(tmp_path / "calls.jsonl") as journal:
        async with serving(ToolRegistry([wait]), journal=journal) as address, Client(address) as client:
            call = asyncio.create_task(client.call_tool("wait", {}))
            await asyncio.to_thread(begun.wait, 10)
            call.cancel()
            await asyncio.wait({call})
            assert await asyncio.to_thread(ended.wait, 10)
    last = json.loads((tmp_path / "calls.jsonl").read_text().splitlines()[-1])
    assert last["status"] == "cancelled"


async def test_a_toolset_is_made_once_for_all_clients(serving: Serving) -> None:
    async with serving(REGISTRY) as address:
        for visit in ("1", "2"):
            async with Client(address) as client:
                assert (await client.call_tool("visit", {})).content[0].text == visit


async def test_ours_and_ours(serving: Serving) -> None:
    heard = []
    async with serving(REGISTRY) as address, MCPServer(address, name="ours") as server:
        assert server.registry.names == ("calculator", "draw", "drop", "count", "mumble", "repeat", "visit")
        assert server.registry.get("drop").annotations == drop.annotations
        assert server.registry.get("calculator").parameters == calculator.parameters
        assert (await result_of(server, "draw")).content == (Text("look:"), Image(PIXEL))
        assert (await result_of(server, "drop", table="users")).text == "error: there is no table users"
        await result_of(server, "count", to=2, scope=CallScope(emit=heard.append))
    assert [one.text for one in heard] == ["at 0", "at 1"]


async def test_a_served_server_is_served_on(serving: Serving) -> None:
    """What another server offers can be offered again: a registry is a registry."""
    async with (
        serving(ToolRegistry([calculator])) as inner,
        serving(ToolRegistry([draw, MCPServer(inner)]), policy=Policy(profile="all")) as outer,
        Client(outer) as client,
    ):
        assert [one.name for one in (await client.list_tools()).tools] == ["draw", "calculator"]
        assert (await client.call_tool("calculator", {"expression": "2 ** 10"})).content[0].text == "1024"


async def test_over_stdio_nothing_but_the_protocol_is_written(tmp_path: Path) -> None:
    (tmp_path / "loud_tool.py").write_text(TOOL_FILE, encoding="utf-8")
    arguments = ["-m", "ferrule", "mcp", "serve", str(tmp_path), "--yes", "--journal", str(tmp_path / "calls.jsonl")]
    # Every byte of its output is kept.
    script = f"{shlex.join([sys.executable, *arguments])} | tee {shlex.quote(str(tmp_path / 'output'))}"
    with (tmp_path / "errors").open("w+", encoding="utf-8") as errors:
        parameters = StdioServerParameters(command="/bin/sh", args=["-c", script])
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            assert [one.name for one in (await client.list_tools()).tools] == ["calculator", "shout"]
            assert (await client.call_tool("shout", {"text": "hello"})).content == [TextContent(text="HELLO")]
    lines = (tmp_path / "output").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 3
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    told = (tmp_path / "errors").read_text(encoding="utf-8")
    for noise in ("printed at import", "said by a child at import", "printed in a call", "said by a child"):
        assert noise in told
    assert '"tool":"shout"' in (tmp_path / "calls.jsonl").read_text(encoding="utf-8")


async def test_an_unknown_transport_and_a_taken_address_are_refused(serving: Serving) -> None:
    with pytest.raises(SettingsError, match="use stdio or http"):
        await serve(REGISTRY, transport="carrier pigeon")  # type: ignore[arg-type]
    async with serving(REGISTRY) as address:
        port = int(address.rpartition(":")[2].partition("/")[0])
        with pytest.raises(OSError, match="in use"):
            async with serving(REGISTRY, port=port):
                pass


@pytest.mark.parametrize("size", [100, 20_000])
async def test_an_answer_over_http_is_bounded(serving, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    @tool
    def repeat() -> str:
        """Repeat a letter."""
        return "x" * size

    async with serving(ToolRegistry([repeat])) as address, MCPServer(address) as server:
        monkeypatch.setattr(http_bodies, "MOST_BYTES", 10_000)
        result = await result_of(server, "repeat")
        if size < 10_000:
            assert result.text == "x" * size
            return
        assert result.text.endswith("gave no result: its answer isn't read: it has more than 50 MB")
        monkeypatch.undo()
        assert (await result_of(server, "repeat")).status == "ok"
