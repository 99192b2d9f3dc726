"""`tools`: everything that a coding agent uses, as a registry for any pipeline, server or command; and its hooks."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ferrule._util.background import close_at_exit
from ferrule.agent.hooks import Hooks, RunState
from ferrule.builtin_tools import shell_tool
from ferrule.coding.announcements import AnnouncementHook
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.run_tests.tool import make_run_tests
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.sub_agents import NAME as TASK
from ferrule.coding.sub_agents import make_task_tool
from ferrule.coding.todo import make_todo
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolCall
from ferrule.tools.registry import ToolRegistry

COMMAND_SECONDS = 30.0
"""The default timeout of a command: a model says when it expects a long one."""


def tools(
    workspace: str | os.PathLike[str] | Workspace = ".", *, test_command: Sequence[str] | None = None
) -> ToolRegistry:
    """Make the tools of a coding agent for one workspace: a folder, or a `Workspace`, which the caller closes.

    Their calls are judged by the workspace, and where the policy names no profile, by the profile `ask`.
    `test_command` is the program with its arguments that `run_tests` runs; None: what the project's files speak for.
    What the tools of a folder start is closed when the program ends. Raises `SandboxInputError` for a folder that
    can't be used.
    """
    used = workspace if isinstance(workspace, Workspace) else close_at_exit(Workspace(Path(workspace)))
    own = [
        *make_file_tools(used),
        *make_search_tools(used),
        shell_tool(
            used.sandbox,
            name="bash",
            timeout=COMMAND_SECONDS,
            jobs=used.jobs,
            before_command=used.before_command,
        ),
        *used.jobs.make_tools(),
        make_run_tests(used, test_command),
        make_todo(),
    ]
    hooks = [CheckpointOtherTools(used, [TASK, *(tool.name for tool in own)])]
    # Beside many tools of servers, a model isn't made to search for what it reads and edits files with. And whoever
    # passes only the registry gets the workspace and the profile of these tools with it.
    whole = (*own, make_task_tool(used.folder, hooks))
    return ToolRegistry(replace(tool, always_offered=True, folders=used.access.folders) for tool in whole)


def make_hooks(workspace: Workspace) -> tuple[Hooks, ...]:
    """Make the hooks of a pipeline with these tools: news for the model, and checkpoints before other tools."""
    return AnnouncementHook(workspace), CheckpointOtherTools(workspace, tools(workspace).names)


class CheckpointOtherTools(Hooks):
    """Keeps the workspace as before a command when the model calls a tool that may change it and isn't one of `own`.

    Such are those of MCP servers, plugins, the project's files and the user's own, which know of no checkpoint; `own`
    are the names of tools that see to it themselves. What only reads needs no checkpoint, if the policy trusts
    what the tool says of itself.
    """

    def __init__(self, workspace: Workspace, own: Collection[str]) -> None:
        self._workspace = workspace
        self._own = frozenset(own)

    async def after_message(self, state: RunState) -> None:
        """See `Hooks`."""
        if any(isinstance(call, ToolCall) and self._may_write(state, call.name) for call in state.open_calls):
            await self._workspace.before_command()

    def _may_write(self, state: RunState, name: str) -> bool:
        tool = state.registry.get(name)
        if tool is None or name in self._own:
            return False
        return tool.annotations.read_only is not True or not state.policy.trusts(tool.origin)
