"""Finds out what a call would do: the only function of a tool that runs before the call is permitted."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from ferrule.errors import ToolFailed
from ferrule.execution.error_results import RaisedElsewhere
from ferrule.execution.threads import ThreadOutcome, ThreadRun, await_outcome
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.scope import CallScope


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
