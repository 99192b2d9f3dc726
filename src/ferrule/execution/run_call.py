"""Runs a permitted call: waits for its lock, runs the tool's function, makes the result, and records both.

The function is awaited, or run in a thread or a process, with its timeout and retries. Exceptions of a tool don't
propagate from here; cancellation of the caller does.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ferrule.conversation import COMMENT_NOTE, EDITED_NOTE, Text, ToolResult
from ferrule.errors import ArgumentsInvalid, ToolFailed, ToolRetry
from ferrule.events import ToolStarted
from ferrule.execution.argument_changes import describe_changes
from ferrule.execution.authorize import Authorizer
from ferrule.execution.call_clock import CallClock
from ferrule.execution.decisions import NOBODY
from ferrule.execution.error_results import (
    TimeoutAction,
    describe_failure,
    make_cancelled_result,
    make_error_result,
    make_not_started_result,
    make_timed_out_result,
)
from ferrule.execution.journal import CallRecord, Journal, record_cancelled, record_refused
from ferrule.execution.locks import LockHolder, get_lock
from ferrule.execution.proposals import PermittedCall, RefusedCall, find_timeout
from ferrule.execution.results import ResultLimits, make_data, make_parts
from ferrule.execution.threads import ThreadOutcome, ThreadRun, await_outcome
from ferrule.execution.tool_output import is_in_tool
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.scope import CallScope

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
_FINAL = (ToolFailed, ToolRetry, ArgumentsInvalid, asyncio.CancelledError, SystemExit)
_log = logging.getLogger("ferrule.execution")


# Not frozen, although never changed: there is one for each message, and that would take three times as long.
@dataclass(slots=True)
class CallWatch:
    """Follows calls as they run. A call starts once it may run, which can be after a question about it."""

    on_start: Callable[[ToolStarted], None] | None = None
    on_result: Callable[[ToolResult], None] | None = None
    """Called with each result as soon as there is one; a call that is stopped has one only if it has kept output."""
    started: set[str] = field(default_factory=set)
    """The ids of the calls that have started."""
    is_serial: bool = False
    """Whether each call waits for the one before it."""
    unasked: list[str] = field(default_factory=list)
    """Why calls were denied that nobody could be asked about."""


class CallRunner:
    """Runs permitted calls. `timeout`, in seconds, applies to tools without their own."""

    __slots__ = ("_authorizer", "_journal", "_limits", "_timeout")

    def __init__(
        self, authorizer: Authorizer, journal: Journal | None, limits: ResultLimits, timeout: float | None
    ) -> None:
        self._authorizer = authorizer
        self._journal = journal
        self._limits = limits
        self._timeout = timeout

    async def run(self, permitted: PermittedCall, scope: CallScope, watch: CallWatch) -> ToolResult:
        """Run a call once its lock is free. Raises only what stops the caller, such as `CancelledError`."""
        proposal = permitted.proposal
        tool = proposal.tool
        timeout = find_timeout(tool, self._timeout, scope)
        if timeout == 0:
            return self._refuse_permitted(permitted, make_not_started_result(proposal.call, busy=False))
        holder: LockHolder | None = None
        if tool.barrier is not None:
            holder = await self._acquire(permitted, tool.barrier, timeout)
            if holder is None:
                return self._refuse_permitted(permitted, make_not_started_result(proposal.call, busy=True))
        run: FunctionRun | None = None
        try:
            if proposal.intent is not None:
                rechecked = await self._recheck(permitted, scope)
                if isinstance(rechecked, RefusedCall):
                    return self.refuse(rechecked)
                permitted = rechecked
            record = None if self._journal is None else CallRecord.start(self._journal, permitted)
            run = self._prepare(permitted, scope, timeout, record, holder)
            watch.started.add(proposal.call.id)
            if watch.on_start is not None:
                watch.on_start(permitted.describe_start())
            try:
                outcome = await run_function(run)
            except BaseException:
                self._record_stopped(run, permitted, record, watch)
                raise
            result = self._make_result(permitted, outcome)
            if record is not None:
                record.finish(result.status, "" if result.status == "ok" else result.text)
            return result
        finally:
            # An abandoned call that may still write holds the lock until it ends: see _record_late.
            if holder is not None and (run is None or not run.is_given_up or self._only_reads(permitted)):
                holder.release()

    def _record_stopped(
        self, run: FunctionRun, permitted: PermittedCall, record: CallRecord | None, watch: CallWatch
    ) -> None:
        """Record that the function was stopped; what it has kept is its result."""
        if record is not None:
            record.finish("cancelled")
        if watch.on_result is not None and run.kept:
            result = make_cancelled_result(permitted.proposal.call, run.kept[-1])
            watch.on_result(self._limits.cut_result(result))

    def refuse(self, refused: RefusedCall, watch: CallWatch | None = None) -> ToolResult:
        """Record a call that isn't run, and return its result, cut to the limits: it may quote what the model wrote."""
        if watch is not None and refused.verdict is not None and refused.verdict.by == NOBODY:
            watch.unasked.append(refused.verdict.reason)
        record_refused(self._journal, refused)
        return self._limits.cut_result(refused.result)

    async def _acquire(self, permitted: PermittedCall, barrier: object, timeout: float | None) -> LockHolder | None:
        """Wait for the lock of the call's Toolset; None if that takes too long."""
        try:
            return await get_lock(barrier).acquire(self._only_reads(permitted), timeout)
        except asyncio.CancelledError:
            record_cancelled(self._journal, permitted.proposal.call)
            raise

    async def _recheck(self, permitted: PermittedCall, scope: CallScope) -> PermittedCall | RefusedCall:
        try:
            return await self._authorizer.recheck(permitted, scope)
        except asyncio.CancelledError:
            record_cancelled(self._journal, permitted.proposal.call)
            raise

    def _only_reads(self, permitted: PermittedCall) -> bool:
        return self._authorizer.policy.resolve_hints(permitted.proposal.tool).read_only

    def _prepare(
        self,
        permitted: PermittedCall,
        scope: CallScope,
        timeout: float | None,
        record: CallRecord | None,
        holder: LockHolder | None,
    ) -> FunctionRun:
        proposal = permitted.proposal
        tool = proposal.tool
        clock = None if timeout is None or not tool.is_async else CallClock(scope.deadline)
        run = FunctionRun(tool, proposal.arguments, timeout, 0, clock)
        if tool.scope_parameter is not None:
            read_clock = time.monotonic if clock is None else clock.read
            deadline = None if timeout is None else read_clock() + timeout
            own = CallScope(
                proposal.call, scope.conversation, deadline, self._limits.blobs, scope.emit, scope.workspace,
                scope.run_state, partial(self._authorize_more, permitted, scope, record), read_clock, run.kept.append,
            )  # fmt: skip
            run.arguments = {**run.arguments, tool.scope_parameter: own}
        if tool.retries:
            hints = self._authorizer.policy.resolve_hints(tool)
            run.retries = tool.retries if hints.idempotent or hints.read_only else 0
        if timeout is not None or not tool.is_async:  # only then can it be abandoned
            run.on_late = partial(self._record_late, permitted, record, holder)
        return run

    async def _authorize_more(
        self, permitted: PermittedCall, scope: CallScope, record: CallRecord | None, intent: Intent
    ) -> None:
        """Decide on what a running call asks for. Raises `ToolFailed` if it is denied."""
        verdict = await self._authorizer.authorize_running(permitted, intent, scope)
        if record is not None:
            record.record_authorization(intent, verdict)
        if verdict.action != "allow":
            raise ToolFailed(f"denied: {verdict.reason}")

    def _make_result(self, permitted: PermittedCall, outcome: ThreadOutcome | TimeoutAction) -> ToolResult:
        """Make the result of a call that was run, cut to the limits."""
        call = permitted.proposal.call
        if type(outcome) is not ThreadOutcome:
            result = make_timed_out_result(call, outcome, self._only_reads(permitted))
        elif outcome.error is not None:
            result = make_error_result(call.id, call.name, *describe_failure(outcome.error, call.arguments))
        else:
            try:
                parts = make_parts(outcome.value)
                result = ToolResult(call.id, call.name, parts, "ok", make_data(outcome.value, parts))
            except ToolFailed as error:
                result = make_error_result(call.id, call.name, "error", f"the call was run, but {error.reason}")
        result = self._limits.cut_result(result)
        if permitted.edited_from is not None or permitted.comment:
            notes = self._limits.cut(tuple(_render_notes(permitted)))
            result = replace(result, content=(*result.content, *notes))
        return result

    def _record_late(
        self, permitted: PermittedCall, record: CallRecord | None, holder: LockHolder | None, outcome: ThreadOutcome
    ) -> None:
        """Record how an abandoned call ended; usually called in its thread."""
        try:
            result = self._make_result(permitted, outcome)
            if record is not None:
                record.finish_late(result.status, result.text)
        finally:
            if holder is not None:
                holder.release()

    def _refuse_permitted(self, permitted: PermittedCall, result: ToolResult) -> ToolResult:
        proposal = permitted.proposal
        return self.refuse(RefusedCall(proposal.call, result, proposal.plain, permitted.verdict))


def _render_notes(permitted: PermittedCall) -> Iterator[Text]:
    """Say what the user has changed in the arguments, and what they say about the call."""
    if permitted.edited_from is not None:
        changes = describe_changes(permitted.edited_from, permitted.proposal.plain)
        yield Text(f"{EDITED_NOTE}{changes}]")
    if permitted.comment:
        yield Text(f"{COMMENT_NOTE}{permitted.comment}]")


def _ignore_outcome(_outcome: ThreadOutcome) -> None:
    """Ignore the outcome of a function that was abandoned, or of a process that was killed."""


@dataclass(slots=True)
class FunctionRun:
    """A function to run. `timeout` is in seconds, for each attempt, by `clock` if there is one.

    `on_late` is called with the outcome of an abandoned function. `is_given_up` is set if one is still running when
    `run_function` returns. `kept` is what the function has kept for the case that it is stopped, the latest last.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    timeout: float | None
    retries: int
    clock: CallClock | None = None
    on_late: Callable[[ThreadOutcome], None] = _ignore_outcome
    is_given_up: bool = False
    kept: list[str] = field(default_factory=list)

    def give_up(self) -> None:
        """Record that the function is still running."""
        self.is_given_up = True


async def run_function(run: FunctionRun) -> ThreadOutcome | TimeoutAction:
    """Run a function, with retries. Returns its outcome, or after a timeout what was done to it."""
    tool, delay, retries = run.tool, _FIRST_DELAY, run.retries
    before = is_in_tool.set(True)
    try:
        while True:
            if tool.isolate == "process":
                outcome = await _run_in_process(run)
            elif tool.is_async:
                outcome = await await_outcome(
                    tool.function, run.arguments, run.timeout, run.on_late, run.give_up, run.clock
                )
            else:
                outcome = await _run_in_thread(run)
            if type(outcome) is not ThreadOutcome or outcome.error is None:
                return outcome
            _log.debug("the tool %s raised", tool.name, exc_info=outcome.error)
            if not retries or isinstance(outcome.error, _FINAL):
                return outcome
            await asyncio.sleep(delay * random.uniform(0.5, 1))
            delay = min(2 * delay, _LONGEST_DELAY)
            retries -= 1
    finally:
        is_in_tool.reset(before)


async def _run_in_thread(run: FunctionRun) -> ThreadOutcome | TimeoutAction:
    thread = ThreadRun(partial(copy_context().run, run.tool.function, **run.arguments), run.on_late)
    try:
        return await thread.wait(run.timeout) or "abandoned"
    finally:
        run.is_given_up = thread.is_given_up


async def _run_in_process(run: FunctionRun) -> ThreadOutcome | TimeoutAction:
    from ferrule.execution.subprocess import IsolatedCall

    arguments = {name: _make_portable(value) for name, value in run.arguments.items()}
    try:
        isolated = IsolatedCall(run.tool.function, arguments)
    except ToolFailed as error:
        return ThreadOutcome(error=error)
    thread = ThreadRun(isolated.run, _ignore_outcome)
    try:
        return await thread.wait(run.timeout, is_brief=False) or "killed"
    finally:
        isolated.kill()


def _make_portable(value: Any) -> Any:
    """Reduce a scope to what can be sent to another process: without progress and blobs."""
    if isinstance(value, CallScope):
        return CallScope(value.call, value.conversation, value.deadline, workspace=value.workspace)
    return value
