"""Calls on their way to being run: their intent, proposed with the policy's verdict, permitted or refused."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import ToolFailed
from ferrule.events import ToolStarted
from ferrule.execution.error_results import RaisedElsewhere, make_denied_result
from ferrule.execution.rules import Verdict
from ferrule.execution.threads import ThreadOutcome, ThreadRun, await_outcome
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.scope import CallScope

_SCALARS = (str, int, float, bool, type(None))
_PLAIN = frozenset(_SCALARS)
"""Nearly every argument has one of these types, which are JSON values already."""


# Not frozen, although never changed: every call creates one of each, which takes three times as long if frozen.
@dataclass(slots=True)
class ProposedCall:
    """A call with valid arguments, and the policy's verdict on it.

    `arguments` are what the function gets, `plain` the same as JSON values. `is_running`: the call runs already, and
    `intent` is what it asks for in addition.
    """

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    plain: Mapping[str, Any]
    intent: Intent | None
    verdict: Verdict
    is_running: bool = False

    def deny(self, reason: str, by: str) -> RefusedCall:
        """Refuse this call; `by` is who denied it."""
        result = make_denied_result(self.call, reason)
        return RefusedCall(self.call, result, self.plain, Verdict("deny", reason, by), self)


@final
@dataclass(slots=True)
class PermittedCall:
    """A call that may run, and why. `was_asked`: somebody approved exactly this call.

    `edited_from` are the model's own arguments, if somebody has changed them; `comment` is what the model is told with
    the result.
    """

    proposal: ProposedCall
    verdict: Verdict
    was_asked: bool = False
    edited_from: Mapping[str, Any] | None = None
    comment: str = ""

    def describe_start(self) -> ToolStarted:
        """The event that this call starts, with the arguments that it starts with."""
        call = self.proposal.call
        if self.edited_from is None:
            return ToolStarted(call)
        return ToolStarted(replace(call, arguments=json.dumps(self.proposal.plain, ensure_ascii=False)), is_edited=True)


@final
@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is answered without being run. `arguments` are those of the call, decoded if possible."""

    call: ToolCall | MalformedCall
    result: ToolResult
    arguments: Any
    verdict: Verdict | None = None
    proposal: ProposedCall | None = None
    """What was judged, if the call got that far."""
    unjudged: Tool | None = None
    """The tool, if its intent failed: that may be otherwise once the calls before this one have run."""


def convert_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert arguments to JSON values. Returns `arguments` itself if that is what they are."""
    for value in arguments.values():
        if type(value) not in _PLAIN:
            return {name: to_json_value(value) for name, value in arguments.items()}
    return arguments


def list_defaults(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """List the defaults of the parameters that a call leaves out, as far as the tool's schema has them.

    The schema of a function has its defaults; that of an MCP server may have some, or none. None is left out, since it
    mostly means that nothing is given.
    """
    properties = tool.parameters.get("properties", {}).items()
    defaults = {name: field.get("default") for name, field in properties if isinstance(field, Mapping)}
    return {name: value for name, value in defaults.items() if value is not None and name not in given}


def to_json_value(value: Any) -> Any:
    """Convert an argument to a JSON value."""
    if isinstance(value, _SCALARS):
        return value
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, fallback=str)
    except ValueError:  # bytes that aren't UTF-8
        return str(value)


def decode_for_journal(arguments: str) -> Any:
    """Decode refused arguments for the journal where possible, so that secrets are found by name."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


class IntentTimeout(Exception):  # noqa: N818 - a timeout, not an error of the tool
    """The intent of a call timed out."""


async def read_intent(tool: Tool, arguments: Mapping[str, Any], timeout: float | None) -> Intent:
    """Find out what a call would do; a blocking intent runs in a thread.

    Raises `IntentTimeout` after `timeout` seconds, and whatever the intent raises.
    """
    read, copied = tool.intent, dict(arguments)
    assert read is not None
    started = time.monotonic()
    if inspect.iscoroutinefunction(read):
        outcome = await await_outcome(partial(read, copied), {}, timeout)
    else:
        run = ThreadRun(partial(copy_context().run, read, copied), _ignore_outcome)
        outcome = await run.wait(timeout) or "abandoned"
        if isinstance(outcome, ThreadOutcome) and inspect.isawaitable(outcome.value):
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
            outcome = await await_outcome(partial(_return_awaitable, outcome.value), {}, left)
    if isinstance(outcome, str):
        raise IntentTimeout
    if isinstance(outcome.error, asyncio.CancelledError):
        raise RaisedElsewhere("CancelledError", str(outcome.error))  # nobody cancelled this call
    if outcome.error is not None:
        raise outcome.error
    intent = outcome.value
    if not isinstance(intent, Intent):
        raise ToolFailed(f"the intent of {tool.name} is a {type(intent).__name__}, not an Intent")
    return intent


def find_timeout(tool: Tool, default: float | None, scope: CallScope) -> float | None:
    """Return how many seconds a call may take: the tool's timeout or the default, but no longer than the deadline."""
    timeout = default if tool.timeout is None else tool.timeout
    if scope.deadline is None:
        return timeout
    left = max(0.0, scope.deadline - time.monotonic())
    return left if timeout is None else min(timeout, left)


def _return_awaitable(work: Awaitable[Any]) -> Awaitable[Any]:
    return work


def _ignore_outcome(_outcome: ThreadOutcome) -> None:
    """Ignore an intent that came too late."""
