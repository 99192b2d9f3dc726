"""No tool of the coding agent reads or changes anything outside, on random links and while links are swapped."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from called_tools import call_tool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))

from link_trees import CANARY, PLACES, TREES, make_swapped_tree, make_tree, read_all, swapping

from ferrule import Policy
from ferrule.coding.attached_files import attach_files
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import SettingsError

ALL = Policy(profile="all")
SECRET = CANARY.decode()


def make_calls(place: str, number: int) -> list[tuple[str, dict[str, Any]]]:
    """A call of each tool that takes a path, on this one."""
    edits = [{"old": "inside", "new": f"inside {number}"}, {"old": SECRET, "new": "lost"}]
    patches = [
        f"*** Add File: {place}\n+new",
        f"*** Add File: {place}/new-{number}\n+new",
        f"*** Update File: {place}\n@@\n-inside\n+inside again",
        f"*** Update File: {place}\n@@\n-{SECRET}\n+lost",
        f"*** Update File: {place}\n*** Move to: moved-{number}",
        f"*** Update File: a\n*** Move to: {place}/moved-{number}",
        f"*** Delete File: {place}",
    ]
    return [
        ("read_file", {"path": place}),
        ("search", {"pattern": ".", "path": place}),
        ("list_files", {"path": place}),
        *(("edit_file", {"path": place, "edits": [edit]}) for edit in edits),
        ("write_file", {"path": place, "content": "written"}),
        ("write_file", {"path": f"{place}/new-{number}", "content": "written"}),
        *(("apply_patch", {"patch": f"*** Begin Patch\n{patch}\n*** End Patch"}) for patch in patches),
    ]


class Agent:
    """The tools of one workspace, with checkpoints."""

    def __init__(self, workspace: Path, store: Path) -> None:
        self.checkpoints = Checkpoints(workspace, store)
        self.workspace = Workspace(workspace, checkpoints=self.checkpoints)
        self.tools = [*make_file_tools(self.workspace), *make_search_tools(self.workspace)]

    async def try_all(self, places: list[str]) -> str:
        """Everything that the tools answer, when each is tried on each path."""
        self.checkpoints.begin_turn("try")
        answers = [
            (await call_tool(self.tools, name, policy=ALL, **arguments)).text
            for number, place in enumerate(places)
            for name, arguments in make_calls(place, number)
        ]
        for place in places:
            try:
                answers += map(str, await asyncio.to_thread(attach_files, f"@{place}", self.workspace))
            except SettingsError as error:
                answers.append(str(error))
        return "\n".join(answers)

    async def close(self) -> None:
        await self.checkpoints.aclose()
        await self.workspace.aclose()


@given(TREES, st.lists(PLACES, min_size=1, max_size=3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_links_lead_no_tool_outside(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, str]], tried: list[str]
) -> None:
    workspace, outside = make_tree(tmp_path_factory.mktemp("tree"), tree)

    async def run() -> None:
        agent = Agent(workspace, workspace.parent / "store")
        said = await agent.try_all([*tried, *(place for place, _ in tree[:4])])
        # An edit that finds nothing repeats what it was given, and so does a patch.
        assert f"1\t{SECRET}" not in said
        assert f"1: {SECRET}" not in said
        assert read_all(outside) == {"a": CANARY}
        await agent.checkpoints.end_turn()
        report = await agent.checkpoints.undo()
        assert read_all(outside) == {"a": CANARY}, report
        await agent.close()

    asyncio.run(run())


@pytest.mark.slow
async def test_links_swapped_while_tools_work_lead_none_outside(tmp_path: Path) -> None:
    workspace, outside = make_swapped_tree(tmp_path)
    agent, choose = Agent(workspace, tmp_path / "store"), random.Random(1)
    places = ["folder/a", "file", "link", "deep/er/a", "folder", "deep/er"]
    seen: set[bool] = set()
    with swapping(workspace, outside, exchanges=True):
        end = time.monotonic() + 6
        while time.monotonic() < end:
            number = choose.randrange(1000)
            name, arguments = choose.choice(make_calls(choose.choice(places), number))
            if any(word in str(arguments) for word in ("lost", "Delete", "Move", "/new-")):
                continue  # what these answer repeats the secret; or the other program needs what they remove or create
            result = await call_tool(agent.tools, name, policy=ALL, **arguments)
            assert SECRET not in result.text, (name, arguments)
            seen.add(result.is_error)
    assert seen == {True, False}
    assert read_all(outside) == {"a": CANARY}
    await agent.close()
