"""`coding.tools`: one registry for pipelines, servers and commands."""

import json
import sys
from pathlib import Path

import pytest

from ferrule import ScriptedModel, Tool, ToolCall, coding, model
from ferrule.coding.workspace import Workspace
from ferrule.errors import SandboxInputError
from ferrule.execution import Policy
from ferrule.execution.executor import call_tool
from ferrule.mcp.client import MCPServer


async def test_the_tools_work_in_the_folder_that_they_were_made_for(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("found\n")
    result = await call_tool(coding.tools(tmp_path), {"command": "cat here.txt"}, name="bash")
    assert result.text == "found"


def test_a_missing_folder_is_refused_where_the_tools_are_made(tmp_path: Path) -> None:
    with pytest.raises(SandboxInputError, match="absent"):
        coding.tools(tmp_path / "absent")


async def test_commands_are_asked_about_by_the_profile_ask(tmp_path: Path) -> None:
    result = await call_tool(coding.tools(tmp_path), {"command": "touch x"}, name="bash", policy=Policy(profile="ask"))
    assert result.status == "denied"
    assert not (tmp_path / "x").exists()


async def test_a_server_offers_them_without_sub_agents_which_need_a_model() -> None:
    command = [sys.executable, "-m", "ferrule", "mcp", "serve", "--tools", "coding"]
    async with MCPServer(command) as server:
        assert "bash" in server.registry.names
        assert "calculator" not in server.registry.names
        assert "task" not in server.registry


async def test_beside_many_tools_they_stay_on_offer(tmp_path: Path) -> None:
    own = coding.tools(tmp_path)
    others = [Tool.from_callable(lambda: "", name=f"other_{number}", description="Else.") for number in range(60)]
    scripted = ScriptedModel("Hi.")
    run = await model(scripted).chat("Hi").using(own, *others).run()
    assert [spec.name for spec in run.offers[0].tools] == ["search_tools", *own.names]


async def test_whoever_passes_only_the_registry_gets_its_workspace_and_the_profile_ask(tmp_path: Path) -> None:
    """No command runs unasked, nothing outside is read unasked, and the folders added count as inside."""
    (tmp_path / "own").mkdir()
    (tmp_path / "added").mkdir()
    for name in ("own/a.txt", "added/a.txt", "outside.txt"):
        (tmp_path / name).write_text("text\n")
    commands = ("touch b", "cat a.txt", f"cat {tmp_path}/added/a.txt", f"cat {tmp_path}/outside.txt")
    calls = [ToolCall(f"call_{at}", "bash", json.dumps({"command": one})) for at, one in enumerate(commands)]
    async with Workspace(tmp_path / "own", [tmp_path / "added"]) as workspace:
        run = await model(ScriptedModel([*calls], "Done.")).chat("Go.").using(coding.tools(workspace)).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["denied", "ok", "ok", "denied"]
    assert "the profile ask asks" in results[0].text
    assert f"read outside the workspace: {tmp_path}/outside.txt" in results[3].text
    assert not (tmp_path / "own" / "b").exists()
