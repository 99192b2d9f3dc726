"""Runs a call that is permitted: waits for its lock, runs the tool's function, makes the result, records both.

The function is awaited, run in a thread of its own, or in a process, with its timeout and retries. Nothing that a tool
does gets out of here as an exception; the cancellation of the caller does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from ferrule.conversation import Text, ToolResult
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution.authorize import Authorizer, PermittedCall, RefusedCall, find_timeout
from ferrule.execution.error_results import (
    Manner,
    denied_result,
    describe_failure,
    error_result,
    not_started_result,
    timed_out_result,
)
from ferrule.execution.journal import CallRecord, Journal, record_cancelled, record_refused
from ferrule.execution.locks import LockHolder, get_lock
from ferrule.execution.results import ResultLimits, make_parts
from ferrule.execution.threads import Outcome, ThreadRun, await_outcome
from ferrule.tools.argument_errors import ArgumentsInvalid
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope

_CHANGED = "what was approved has changed since; look at it again"
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
_FINAL = (ToolFailed, ToolRetry, ArgumentsInvalid, asyncio.CancelledError, SystemExit)
_log = logging.getLogger("ferrule.execution")


class CallRunner:
    """Runs permitted calls. `timeout`, in seconds, is for tools that name none."""

    def __init__(
        self, authorizer: Authorizer, journal: Journal | None, limits: ResultLimits, timeout: float | None
    ) -> None:
        self._authorizer = authorizer
        self._journal = journal
        self._limits = limits
        self._timeout = timeout

    async def run(self, permitted: PermittedCall, scope: CallScope) -> ToolResult:
        """Run a call once its lock is free. Raises nothing but what stops the caller."""
        proposal = permitted.proposal
        tool = proposal.tool
        timeout = find_timeout(tool, self._timeout, scope)
        if timeout == 0:
            return self._refuse(permitted, not_started_result(proposal.call, busy=False))
        holder: LockHolder | None = None
        if tool.barrier is not None:
            holder = await self._acquire(permitted, tool.barrier, timeout)
            if holder is None:
                return self._refuse(permitted, not_started_result(proposal.call, busy=True))
        run: FunctionRun | None = None
        try:
            if proposal.intent is not None and not await self._is_still_permitted(permitted, scope):
                return self._refuse(permitted, denied_result(proposal.call, _CHANGED))
            record = CallRecord.start(self._journal, permitted)
            run = self._prepare(permitted, scope, timeout, partial(self._record_late, permitted, record, holder))
            try:
                outcome = await run_function(run)
            except BaseException:
                record.finish("cancelled")
                raise
            result = self._make_result(permitted, outcome)
            record.finish(result.status, "" if result.status == "ok" else result.text)
            return result
        finally:
            # What was given up and may still write keeps the others out until it ends: see _record_late.
            if holder is not None and (run is None or not run.is_given_up or self._only_reads(permitted)):
                holder.release()

    async def _acquire(self, permitted: PermittedCall, barrier: object, timeout: float | None) -> LockHolder | None:
        """Wait for the lock of the call's Toolset; None where the time passes first."""
        try:
            return await get_lock(barrier).acquire(self._only_reads(permitted), timeout)
        except asyncio.CancelledError:
            record_cancelled(self._journal, permitted.proposal.call)
            raise

    async def _is_still_permitted(self, permitted: PermittedCall, scope: CallScope) -> bool:
        try:
            return await self._authorizer.is_still_permitted(permitted, scope)
        except asyncio.CancelledError:
            record_cancelled(self._journal, permitted.proposal.call)
            raise

    def _only_reads(self, permitted: PermittedCall) -> bool:
        return self._authorizer.policy.resolve_hints(permitted.proposal.tool).read_only

    def _prepare(
        self, permitted: PermittedCall, scope: CallScope, timeout: float | None, on_late: Callable[[Outcome], None]
    ) -> FunctionRun:
        proposal = permitted.proposal
        tool, arguments, retries = proposal.tool, proposal.arguments, 0
        if tool.scope_parameter is not None:
            deadline = None if timeout is None else time.monotonic() + timeout
            blobs = self._limits.blobs
            own = CallScope(proposal.call, scope.conversation, deadline, blobs, scope.emit, scope.workspace)
            arguments = {**arguments, tool.scope_parameter: own}
        if tool.retries:
            hints = self._authorizer.policy.resolve_hints(tool)
            retries = tool.retries if hints.idempotent or hints.read_only else 0
        return FunctionRun(tool, arguments, timeout, retries, on_late)

    def _make_result(self, permitted: PermittedCall, outcome: Outcome | Manner) -> ToolResult:
        """The result of a call that was run, within the limits."""
        call = permitted.proposal.call
        if isinstance(outcome, str):
            result = timed_out_result(call, outcome, self._only_reads(permitted))
        elif outcome.error is not None:
            result = error_result(call.id, call.name, *describe_failure(outcome.error, call.arguments))
        else:
            try:
                result = ToolResult(call.id, call.name, make_parts(outcome.value))
            except ToolFailed as error:
                result = error_result(call.id, call.name, "error", f"the call was run, but {error.reason}")
        content = self._limits.cut(result.content)
        if permitted.is_edited:
            content = (*content, *self._limits.cut((_render_edit_note(permitted),)))
        return result if content is result.content else ToolResult(call.id, call.name, content, result.status)

    def _record_late(
        self, permitted: PermittedCall, record: CallRecord, holder: LockHolder | None, outcome: Outcome
    ) -> None:
        """Record how a call ended that was given up; mostly called in its thread."""
        try:
            result = self._make_result(permitted, outcome)
            record.finish_late(result.status, result.text)
        finally:
            if holder is not None:
                holder.release()

    def _refuse(self, permitted: PermittedCall, result: ToolResult) -> ToolResult:
        proposal = permitted.proposal
        record_refused(self._journal, RefusedCall(proposal.call, result, proposal.plain, permitted.verdict))
        return result


def _render_edit_note(permitted: PermittedCall) -> Text:
    arguments = json.dumps(dict(permitted.proposal.plain), ensure_ascii=False)
    return Text(f"[the user changed the arguments; what was run: {arguments}]")


@dataclass(slots=True)
class FunctionRun:
    """One function to run. `timeout` is in seconds and for each attempt.

    `on_late` gets the outcome of a thread that was given up. `is_given_up` is set where a thread still runs when
    `run_function` is over.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    timeout: float | None
    retries: int
    on_late: Callable[[Outcome], None]
    is_given_up: bool = False


async def run_function(run: FunctionRun) -> Outcome | Manner:
    """Run it, again where it may be: its outcome, or what became of it when its time was up."""
    tool, delay, retries = run.tool, _FIRST_DELAY, run.retries
    manner: Manner = "killed" if tool.isolate == "process" else "stopped" if tool.is_async else "abandoned"
    attempt = _ATTEMPTS[manner]
    while True:
        outcome = await attempt(run)
        if outcome is None:
            return manner
        if outcome.error is None:
            return outcome
        _log.debug("the tool %s raised", tool.name, exc_info=outcome.error)
        if not retries or isinstance(outcome.error, _FINAL):
            return outcome
        await asyncio.sleep(delay * random.uniform(0.5, 1))
        delay = min(2 * delay, _LONGEST_DELAY)
        retries -= 1


def _run_async(run: FunctionRun) -> Awaitable[Outcome | None]:
    return await_outcome(run.tool.function, run.arguments, run.timeout)


async def _run_in_thread(run: FunctionRun) -> Outcome | None:
    thread = ThreadRun(partial(copy_context().run, run.tool.function, **run.arguments), run.on_late)
    try:
        return await thread.wait(run.timeout)
    finally:
        run.is_given_up = thread.is_given_up


async def _run_in_process(run: FunctionRun) -> Outcome | None:
    from ferrule.execution.subprocess import IsolatedCall

    arguments = {name: _make_portable(value) for name, value in run.arguments.items()}
    try:
        isolated = IsolatedCall(run.tool.function, arguments)
    except ToolFailed as error:
        return Outcome(error=error)
    thread = ThreadRun(isolated.run, _ignore_outcome)
    try:
        return await thread.wait(run.timeout, is_brief=False)
    finally:
        isolated.kill()


_ATTEMPTS: dict[Manner, Callable[[FunctionRun], Awaitable[Outcome | None]]] = {
    "stopped": _run_async,
    "abandoned": _run_in_thread,
    "killed": _run_in_process,
}


def _make_portable(value: Any) -> Any:
    """A scope as far as it can cross into another process: nobody gets its progress there, and it keeps no blobs."""
    if isinstance(value, CallScope):
        return CallScope(value.call, value.conversation, value.deadline, workspace=value.workspace)
    return value


def _ignore_outcome(_outcome: Outcome) -> None:
    """What a killed process came to is known: it was killed."""
