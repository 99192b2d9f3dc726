"""One permitted call, run: awaited, in a thread of its own, or in a process; with its timeout and retries.

Nothing that a tool does gets out of here as an exception; the cancellation of the caller does.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from ferrule.argument_errors import ArgumentsInvalid
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution.threads import Ended, OwnThread
from ferrule.execution.words import Manner
from ferrule.scope import CallScope
from ferrule.tool import Tool

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
_log = logging.getLogger("ferrule.execution")


@dataclass(slots=True)
class Job:
    """One call to run. `timeout` is in seconds and for each attempt; `on_late` gets the end of a run that was given up.

    `is_given_up` is set where a thread still runs when `end_of` is over.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    timeout: float | None
    retries: int
    on_late: Callable[[Ended], None]
    is_given_up: bool = False


async def end_of(job: Job) -> Ended | Manner:
    """Run it, again where it may be; how it ended, or what became of it when its time was up."""
    tool, delay, retries = job.tool, _FIRST_DELAY, job.retries
    attempt = _isolated if tool.isolate == "process" else _awaited if tool.is_async else _threaded
    while True:
        end = await attempt(job)
        if isinstance(end, str) or end.error is None:
            return end
        _log.debug("the tool %s raised", tool.name, exc_info=end.error)
        if not retries or isinstance(end.error, _FINAL):
            return end
        await asyncio.sleep(delay * random.uniform(0.5, 1))
        delay = min(2 * delay, _LONGEST_DELAY)
        retries -= 1


_FINAL = (ToolFailed, ToolRetry, ArgumentsInvalid, asyncio.CancelledError, SystemExit)


async def _awaited(job: Job) -> Ended | Manner:
    # asyncio.timeout costs a handle in the loop; a call without one is only awaited.
    clock = None if job.timeout is None else asyncio.timeout(job.timeout)
    try:
        if clock is None:
            return Ended(await job.tool.function(**job.arguments))
        async with clock:
            return Ended(await job.tool.function(**job.arguments))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled this call: the tool awaited something that was cancelled.
        return Ended(error=error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises becomes its result
        return "stopped" if clock is not None and clock.expired() else Ended(error=error)


async def _threaded(job: Job) -> Ended | Manner:
    work = partial(copy_context().run, job.tool.function, **job.arguments)
    thread = OwnThread(work, job.on_late)
    try:
        return await thread.ended(job.timeout) or "abandoned"
    finally:
        job.is_given_up = thread.is_given_up


async def _isolated(job: Job) -> Ended | Manner:
    from ferrule.execution.isolated import IsolatedCall

    try:
        isolated = IsolatedCall(job.tool.function, {name: _portable(value) for name, value in job.arguments.items()})
    except ToolFailed as error:
        return Ended(error=error)
    thread = OwnThread(isolated.run, _forget)
    try:
        return await thread.ended(job.timeout) or "killed"
    finally:
        isolated.kill()


def _portable(value: Any) -> Any:
    """A scope as far as it can cross into another process: nobody hears its progress there, and it keeps no blobs."""
    if isinstance(value, CallScope):
        return CallScope(value.call, value.conversation, value.deadline)
    return value


def _forget(_end: Ended) -> None:
    """What a killed process came to is known: it was killed."""
