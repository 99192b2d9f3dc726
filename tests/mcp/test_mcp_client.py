"""The tools of servers that were made with the SDK, over streamable HTTP and over stdio."""

from __future__ import annotations

import asyncio
import pickle
import sys
from pathlib import Path

import pytest
import sdk_server
from mcp_calls import result_of
from sdk_server import PIXEL

from ferrule import tool
from ferrule.agent.pipeline import model
from ferrule.conversation import Image, Text, ToolCall
from ferrule.errors import ArgumentsInvalid, RegistryError, SettingsError
from ferrule.events import ToolProgress
from ferrule.execution import Policy
from ferrule.execution.call_clock import CallClock
from ferrule.mcp import MCPServer, remote_tools, serving
from ferrule.mcp.target import parse_target
from ferrule.models.hosted import ProviderRequest
from ferrule.models.scripted import ScriptedModel
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.command import CommandRequest
from ferrule.session.project_file import ProjectSettings, ServerData
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

SDK_SERVER = str(Path(__file__).with_name("sdk_server.py"))


@tool
def erase() -> str:
    """A tool of our own that has the name of another."""
    return "ours"


async def test_the_whole_listing_is_offered_under_names_that_models_can_write(address: str) -> None:
    async with MCPServer(address, name="trying") as server:
        registry = server.registry
        assert registry.names[:4] == ("add", "erase", "files_read_all", "strict")
        assert "steps" in registry
        assert {spec.origin for spec in registry.specs} == {"mcp:trying"}
        assert registry.get("add").parameters["required"] == ["a", "b"]
        assert registry.get("add").description == "Add two numbers."
        assert registry.get("add").annotations == Annotations()
        assert registry.get("erase").annotations == Annotations(True, False, True, False)
        assert (await result_of(server, "files_read_all")).text == "all of it"


async def test_a_tool_whose_schema_is_none_is_left_out_and_named(address: str) -> None:
    async with MCPServer(address) as server:
        assert "odd" not in server.registry
        odd, *_ = server.problems
        assert odd.startswith("'odd' is not offered: the tool 'odd': not a JSON Schema at properties.x.type")


async def test_a_pattern_costs_little_and_one_that_may_cost_much_is_named_and_not_checked(address: str) -> None:
    async with MCPServer(address) as server:
        _, unchecked, *_ = server.problems
        assert unchecked == (
            "'strict' is offered, but of its schema word.pattern: the string \"(?=x)y\" isn't checked: "
            "it has a lookaround"
        )
        strict = server.registry.get("strict")
        assert strict.bind({"name": "aa", "word": "z"}) == {"name": "aa", "word": "z"}
        with pytest.raises(ArgumentsInvalid, match=r"expected a string that matches \^\(a\+\)\+\$"):
            strict.bind({"name": "a" * 60 + "!"})


async def test_results_keep_their_parts_and_say_what_is_left_out(address: str) -> None:
    left_out = "[left out: audio/wav, 5 bytes]\n[left out: image/png, not valid base64]\n"
    wanted = {
        "table": (Text('{"rows": [1, 2]}'),),
        "silent": (Text(""),),
        "picture": (Text("look:"), Image(PIXEL)),
        "everything": (
            Text("the text of a\n[left out: application/zip from file:///b, 5 bytes]"),
            Image(PIXEL),
            Text(f"{left_out}[a link to the resource file:///d, d; its content was not sent]"),
        ),
    }
    async with MCPServer(address) as server:
        assert {name: (await result_of(server, name)).content for name in wanted} == wanted


async def test_structured_content_is_data_beside_the_text_and_is_checked(address: str) -> None:
    async with MCPServer(address, name="trying") as server:
        assert server.problems[2].startswith("'untyped' is offered, but its output schema isn't checked: not a JSON Sc")
        assert server.registry.get("table").output_schema == sdk_server.ROWS
        table, wrong, untyped = [await result_of(server, name) for name in ("table", "wrong", "untyped")]
    assert (table.text, table.data) == ('{"rows": [1, 2]}', {"rows": [1, 2]})
    assert (untyped.text, untyped.data) == ("fine", {"said": "fine"})
    assert wrong.status == "error"
    assert wrong.text.startswith(
        "error: the call was run, but what it returned doesn't follow the tool's output schema: rows[0]: 'one' is not"
    )


async def test_errors_reach_the_model(address: str) -> None:
    async with MCPServer(address, name="trying") as server:
        failed = await result_of(server, "fail")
        refused = await result_of(server, "refuse")
    assert (failed.status, failed.text) == ("error", "error: the disk is full")
    assert (refused.status, refused.text) == ("error", "error: the MCP server 'trying' gave no result: not today")


async def test_arguments_are_checked_before_they_are_sent(address: str) -> None:
    async with MCPServer(address) as server:
        assert (await result_of(server, "add", a=1, b="2")).text == "3"
        wrong = await result_of(server, "add", a="one", c=3)
    assert wrong.status == "invalid"
    assert "- a: got the string" in wrong.text
    assert "- b: got nothing" in wrong.text


async def test_progress_is_heard(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[ToolProgress] = []
    restarts: list[CallClock] = []
    monkeypatch.setattr(CallClock, "restart", lambda clock: restarts.append(clock))
    async with MCPServer(address) as server:
        await result_of(server, "steps", scope=CallScope(ToolCall("call_1", "steps", "{}"), emit=heard.append))
    assert [(one.call_id, one.text, one.fraction) for one in heard] == [
        ("call_1", "step 1", 0.25),
        ("call_1", "step 2", 0.5),
        ("call_1", "step 4", 1.0),
    ]
    assert len(restarts) == 3, "each message begins the timeout anew"


async def test_a_cancelled_call_is_cancelled_at_the_server_which_stays(address: str) -> None:
    begun = asyncio.Event()
    async with MCPServer(address) as server:
        scope = CallScope(emit=lambda _progress: begun.set())
        call = asyncio.create_task(result_of(server, "wait", scope=scope))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await result_of(server, "waited")).text == "it was cancelled"


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(address: str) -> None:
    async with MCPServer(address, timeout=0.2) as server:
        result = await result_of(server, "wait")
        assert (result.status, "timed out" in result.text) == ("timeout", True)
    async with MCPServer(address) as server:
        assert (await result_of(server, "waited")).text == "it was cancelled"


async def test_changes_of_the_list_are_followed(address: str) -> None:
    changes: asyncio.Queue[ToolRegistry] = asyncio.Queue()
    async with MCPServer(address, on_change=changes.put_nowait) as server:
        before = server.registry
        pipeline = model(ScriptedModel(ToolCall("call_1", "grown", "{}"), "It is there.")).using(
            server, policy=Policy(profile="all")
        )
        await result_of(server, "toggle")
        assert "grown" in await asyncio.wait_for(changes.get(), 10)
        assert "grown" in server.registry
        assert "grown" not in before
        run = await pipeline.chat("Use the new one.").run()
        assert run.conversation.messages[2].result.text == "all of it"
        await result_of(server, "toggle")
        assert "grown" not in await asyncio.wait_for(changes.get(), 10)


async def test_what_a_server_says_of_its_tools_loosens_nothing_until_it_is_trusted(address: str) -> None:
    async with MCPServer(address, name="trying") as server:
        denied = await result_of(server, "erase", policy=Policy())
        assert denied.status == "denied"
        assert 'whose read_only isn\'t trusted: set trusted = ["mcp:trying"] in the policy' in denied.text
        assert (await result_of(server, "erase", policy=Policy(trusted=(server.origin,)))).text == "erased"
        assert (await result_of(server, "erase", policy=Policy(trusted=("mcp:other",)))).status == "denied"


async def test_names_that_collide_are_prefixed_with_the_name_of_the_server(addresses: dict[str, str]) -> None:
    first, second = (MCPServer(addresses[name], name=name) for name in ("newest", "legacy"))
    async with ToolRegistry([erase, first, second]).open() as bound:
        assert bound.get("erase").origin == "code"
        assert bound.get("newest_erase").origin == "mcp:newest"
        assert bound.get("add").origin == "mcp:newest"
        assert bound.get("legacy_erase").origin == bound.get("legacy_add").origin == "mcp:legacy"
        assert len(set(bound.names)) == len(bound.names)


async def test_a_run_opens_a_server_and_closes_it(addresses: dict[str, str]) -> None:
    server = MCPServer(addresses["newest"])
    scripted = ScriptedModel(ToolCall("call_1", "add", '{"a": 1, "b": 2}'), "It is 3.")
    run = await model(scripted).using(server, policy=Policy(profile="all")).chat("1 + 2?").run()
    assert run.conversation.messages[2].result.text == "3"
    with pytest.raises(RegistryError, match="isn't open"):
        _ = server.registry


async def test_over_stdio_the_process_lives_as_long_as_the_server_is_open() -> None:
    async with MCPServer([sys.executable, SDK_SERVER], name="trying") as server, server:
        assert (await result_of(server, "add", a=1, b=2)).text == "3"
        assert (await result_of(server, "picture")).content[1] == Image(PIXEL)
        assert (await result_of(server, "fail")).text == "error: the disk is full"


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("", {}, "is named by the command"),
        ("run 'this", {}, "No closing quotation"),
        ("http:///mcp", {}, "has no host"),
        ("server", {"name": "a b"}, "1 to 32 letters"),
        ("server", {"timeout": 0}, "seconds above 0, not 0"),
        ("server", {"start_timeout": "5"}, "seconds above 0, not '5'"),
        ("server", {"env": {"PORT": 80}}, "values of env must be text, but 'PORT' has a value of type int"),
        ("server", {"headers": {}}, "headers are for a server at an address"),
        ("http://host/mcp", {"env": {}}, "env and cwd are for a server that is started"),
        ("server", {"headers": {"X-A": "b"}}, "headers are for a server at an address"),
        ("http://host/mcp", {"env": {"A": "b"}}, "env and cwd are for a server that is started"),
    ],
)
def test_what_names_no_server_is_refused(given: str, options: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        MCPServer(given, **options)


def test_the_tools_of_a_server_that_is_not_open_cannot_be_selected() -> None:
    registry = ToolRegistry([erase, MCPServer("server", name="files")])
    assert registry.names == ("erase",)
    with pytest.raises(RegistryError, match="known only once it is open"):
        registry.prefixed("a_")


async def test_a_server_belongs_to_one_loop(addresses: dict[str, str]) -> None:
    async def elsewhere(server: MCPServer) -> None:
        async with server:
            pass

    async with MCPServer(addresses["newest"]) as server:
        with pytest.raises(RegistryError, match="open in another event loop"):
            await asyncio.to_thread(asyncio.run, elsewhere(server))


@pytest.mark.parametrize("is_legacy", [False, True])
async def test_a_server_at_an_address_may_be_started_anew(monkeypatch: pytest.MonkeyPatch, is_legacy: bool) -> None:
    monkeypatch.setattr(sdk_server, "LEGACY", is_legacy)
    monkeypatch.setattr(serving, "_GRACE_SECONDS", 1)  # the newest protocol holds a request open to hear of changes

    async def started(port: int) -> tuple[asyncio.Task[None], str]:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        app = sdk_server.made().streamable_http_app()
        server = asyncio.create_task(serving.serve_http(app, "127.0.0.1", port, "/mcp", ready.set_result))
        return server, await ready

    async def stopped(serving: asyncio.Task[None]) -> None:
        serving.cancel()
        await asyncio.wait({serving})

    first, address = await started(0)
    async with MCPServer(address, name="trying") as server:
        assert (await result_of(server, "add", a=1, b=2)).text == "3"
        await stopped(first)
        if not is_legacy:  # where there is a session, the next server doesn't know it
            gone = await result_of(server, "add", a=1, b=2)
            assert "the MCP server 'trying' ended while the call ran" in gone.text
        second, _ = await started(int(address.rpartition(":")[2].partition("/")[0]))
        again = await result_of(server, "add", a=1, b=2)
        if is_legacy:
            assert again.text == "error: not run: the MCP server 'trying' was restarted; call again"
            again = await result_of(server, "add", a=1, b=2)
        assert again.text == "3"
    await stopped(second)


async def test_an_unopened_server_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(MCPServer("run this", name="files")))
    assert repr(copy) == "<MCPServer files (run)>"


@pytest.mark.parametrize("server", [None, 3, [None], {"command": "x"}])
def test_a_server_that_is_no_text_is_refused(server: object) -> None:
    with pytest.raises(SettingsError, match=r"is named by its command, .* or by its http address, not"):
        MCPServer(server)  # type: ignore[arg-type]


def test_the_representation_of_a_server_shows_no_secret(tmp_path: Path) -> None:
    address = "https://me:hunter2@example.com/mcp?token=hunter2"
    targets = [
        parse_target(address, None, None, {"X-Key": "hunter2"}),
        parse_target("run -t hunter2", {"A": "hunter2"}, None, None),
    ]
    declared = [
        ServerData(url=address, headers={"Authorization": "hunter2"}),
        ServerData(command=("run", "--token", "hunter2"), env={"A": "hunter2"}),
    ]
    settings = ProjectSettings(mcp={"one": declared[0], "two": declared[1]})
    request = ProviderRequest("/chat", {}, {"Authorization": "hunter2"})
    command = CommandRequest("true", environment={"A": "hunter2"})
    shell = ShellSandbox(tmp_path, environment={"A": "hunter2"})
    for one in (*targets, *declared, settings, request, command, shell):
        assert "hunter2" not in f"{one!r} {one}"
    assert repr(targets[0]) == "<ServerTarget https://example.com/mcp>"
    assert repr(declared[1]) == "ServerData(command=['run', '--token', '[scrubbed]'], url=None, env=['A'], headers=[])"


def test_many_names_that_are_taken_are_prefixed_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Counted(remote_tools.ToolNames):
        def __init__(self, *arguments: object) -> None:
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(remote_tools, "ToolNames", Counted)
    names = [*(f"read_{number}" for number in range(40)), "files_read_1", "x" * 64]
    tools = [Tool.from_schema(name, "", {"type": "object"}, print) for name in names]
    renamed = [one.name for one in remote_tools.rename_taken(tools, {*names[:40], "x" * 64}, "files")]
    assert renamed[:3] == ["files_read_0", "files_read_1_2", "files_read_2"]
    assert len(set(renamed)) == len(names)
    assert all(len(name) <= 64 for name in renamed)
    assert len(made) == 1
