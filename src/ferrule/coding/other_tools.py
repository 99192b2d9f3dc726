"""Checkpoints before tools that know of none: those of MCP servers, plugins, the project's files and the user's own."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ferrule.agent.hooks import Hooks, RunState
from ferrule.conversation import ToolCall

if TYPE_CHECKING:
    from ferrule.coding.workspace import Workspace

__all__ = ["CheckpointOtherTools"]


class CheckpointOtherTools(Hooks):
    """Keeps the workspace as before a command when the model calls a tool that may change it and isn't one of `own`.

    `own` are the names of tools that see to it themselves. What only reads needs no checkpoint, if the policy trusts
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
