"""A call from the command line, run by the executor like any model's."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from ferrule.cli.parameters import arguments_from
from ferrule.cli.permission import Terms
from ferrule.cli.words import result_words
from ferrule.conversation import ToolCall, ToolResult
from ferrule.errors import SettingsError
from ferrule.events import ToolProgress
from ferrule.execution import Executor
from ferrule.registry import ToolRegistry
from ferrule.scope import CallScope


def called(name: str, options: Sequence[str], given: str | None, registry: ToolRegistry, terms: Terms) -> ToolResult:
    """The result of calling a tool with options, and with what `given`, a JSON object, says beside them.

    Raises `SettingsError` for a tool that isn't there, or arguments that can't be read.
    """
    call = call_from(registry, name, options, given)
    return asyncio.run(result_of(registry.only(name), call, terms))


def call_from(registry: ToolRegistry, name: str, options: Sequence[str], given: str | None) -> ToolCall:
    """The call that a command line writes; raises as `called` does."""
    tool = registry.get(name)
    if tool is None:
        near = registry.nearest(name) or registry.names
        raise SettingsError(f"there is no tool {name!r}; the nearest: {', '.join(near)}")
    arguments = {**_object(given), **arguments_from(options, tool.parameters)}
    return ToolCall("call_1", name, json.dumps(arguments, ensure_ascii=False))


async def result_of(registry: ToolRegistry, call: ToolCall, terms: Terms) -> ToolResult:
    """What comes of a call; its progress is shown on a terminal."""
    async with registry.open() as bound:
        executor = Executor(bound, policy=terms.policy, approver=terms.approver, journal=terms.journal)
        result = await executor.run(call, CallScope(emit=_tell))
    assert isinstance(result, ToolResult), "where nobody is asked, asking is a denial"
    return result


def _tell(progress: ToolProgress) -> None:
    if sys.stderr.isatty():
        share = "" if progress.fraction is None else f"{progress.fraction:.0%} "
        print(f"… {share}{result_words(progress.text)}", file=sys.stderr)


def _object(given: str | None) -> dict[str, object]:
    if given is None:
        return {}
    try:
        value = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--json-arguments is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SettingsError('--json-arguments must be a JSON object, such as \'{"expression": "2+2"}\'')
    return value
