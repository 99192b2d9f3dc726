"""Checkpoints before tools that make none: whose calls have one, and whose haven't; also for sub-agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferrule import ToolCall, model, tool
from ferrule.coding import tools
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.registry import make_hooks
from ferrule.coding.workspace import Workspace
from ferrule.execution import Policy
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import Tool


def make_writer(folder: Path, read_only: bool | None = None) -> Tool:
    @tool(read_only=read_only)
    def generate() -> str:
        """Generate a file, as a tool of an MCP server might."""
        (folder / "made.txt").write_text("made")
        (folder / "kept.txt").write_text("changed")
        return "done"

    return generate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "kept.txt").write_text("kept")
    return made


async def run(folder: Path, other: Tool, *written: object) -> Checkpoints:
    checkpoints = Checkpoints(folder, folder.parent / "store")
    async with Workspace(folder, checkpoints=checkpoints) as workspace:
        checkpoints.begin_turn("generate")
        pipeline = model(ScriptedModel(*written)).using(tools(workspace), other, policy=Policy(profile="all"))
        await pipeline.hook(*make_hooks(workspace)).chat("Generate.").run()
        await checkpoints.end_turn()
    return checkpoints


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


async def test_what_another_tool_changed_is_undone(folder: Path) -> None:
    checkpoints = await run(folder, make_writer(folder), call("generate"), "Done.")
    assert (folder / "kept.txt").read_text() == "changed"
    report = await checkpoints.undo()
    assert report.is_complete
    assert {path.name for path in folder.iterdir()} == {"kept.txt"}
    assert (folder / "kept.txt").read_text() == "kept"
    await checkpoints.aclose()


async def test_also_if_a_sub_agent_called_it(folder: Path) -> None:
    started = call("task", prompt="Generate.", tools=["generate"])
    checkpoints = await run(folder, make_writer(folder), started, call("generate"), "Done.", "Done.")
    assert (await checkpoints.undo()).is_complete
    assert (folder / "kept.txt").read_text() == "kept"
    await checkpoints.aclose()


@pytest.mark.parametrize(("origin", "is_made"), [("code", False), ("mcp:server", True)])
async def test_a_tool_that_says_that_it_only_reads_is_believed_if_it_is_trusted(
    folder: Path, origin: str, is_made: bool
) -> None:
    other = make_writer(folder, read_only=True).with_origin(origin)
    checkpoints = await run(folder, other, call("generate"), "Done.")
    assert bool(await checkpoints.list_turns()) is is_made
    await checkpoints.aclose()


async def test_reading_makes_none(folder: Path) -> None:
    checkpoints = await run(folder, make_writer(folder), call("read_file", path="kept.txt"), "Read.")
    assert await checkpoints.list_turns() == []
    await checkpoints.aclose()
