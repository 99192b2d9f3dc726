"""Calls tools as a model does: by the executor, with JSON arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Approver, Executor, Policy
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope


async def call_tool(
    tools: Sequence[Tool],
    name: str,
    *,
    policy: Policy | None = None,
    approver: Approver | None = None,
    **arguments: Any,
) -> ToolResult:
    """Run one call of the tool `name` and return its result."""
    async with ToolRegistry(list(tools)).open() as bound:
        executor = Executor(bound, policy=policy, approver=approver)
        result = await executor.run(ToolCall("call_1", name, json.dumps(arguments)), CallScope())
    assert isinstance(result, ToolResult)
    return result
