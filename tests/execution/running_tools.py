"""Real tools and one way to call them, for the tests of this folder."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Executor, Pending
from ferrule.tools.decorator import tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope


def call(name, call_id="call_1", /, **arguments):
    return ToolCall(call_id, name, json.dumps(arguments))


def answers(items, calls, scope=None, decisions=None, **options):
    """What an executor of these tools answers to these calls."""

    async def run():
        async with ToolRegistry(items).open() as bound:
            return await Executor(bound, **options).run_all(calls, scope or CallScope(), decisions=decisions)

    return asyncio.run(run())


def answer(item, one, **options) -> ToolResult | Pending:
    return answers([item], [one], **options)[0]


@tool(isolate="process")
def in_a_process(number: int) -> dict[str, int]:
    """Say where it runs."""
    print("tools may print")
    return {"double": 2 * number, "process": os.getpid()}


@tool(isolate="process")
async def awaited_in_a_process(number: int) -> int:
    """An async one."""
    await asyncio.sleep(0)
    return number + 1


@tool(isolate="process", timeout=30)
def scoped_in_a_process(scope: CallScope) -> dict[str, object]:
    """Tell of the call."""
    scope.report_progress("heard by nobody")
    return {"id": scope.call.id, "in time": 0 < scope.seconds_left <= 30}


@tool(isolate="process", timeout=1.0)
def spins_in_a_process() -> str:
    """Never end."""
    while True:
        pass


@tool(isolate="process")
def forks_in_a_process(marker: str) -> str:
    """Start a child, say its number, then never end."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    partial = Path(f"{marker}.partial")
    partial.write_text(str(child))
    partial.rename(marker)
    time.sleep(60)
    return ""


@tool(isolate="process")
def dies_in_a_process() -> str:
    """Leave without an answer."""
    os._exit(3)


@tool(isolate="process")
def fails_in_a_process() -> str:
    """Raise."""
    raise LookupError("nothing at 0x7f0011223344")
