"""Calls of a server's tools, through the executor as a run makes them."""

from __future__ import annotations

import json
from typing import Any

from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Executor, Policy
from ferrule.mcp import MCPServer
from ferrule.tools.scope import CallScope


async def result_of(
    server: MCPServer, name: str, *, policy: Policy | None = None, scope: CallScope | None = None, **arguments: Any
) -> ToolResult:
    async with server.registry.open() as bound:
        executor = Executor(bound, policy=policy or Policy(profile="all"))
        result = await executor.run(ToolCall("call_1", name, json.dumps(arguments)), scope or CallScope())
    assert isinstance(result, ToolResult)
    return result
