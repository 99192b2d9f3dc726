"""A permitted call on its way through: its turn, its run, the shape of its result, and its lines in the journal."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial

from ferrule.blobs import BlobStore
from ferrule.conversation import Text, ToolResult
from ferrule.errors import ToolFailed
from ferrule.execution.deciding import Ready, Refused
from ferrule.execution.gates import Turn, gate_of
from ferrule.execution.journal import Journal
from ferrule.execution.recording import Record, record_cancelled, record_refused
from ferrule.execution.running import Job, end_of
from ferrule.execution.shaping import limited, shaped
from ferrule.execution.threads import Ended
from ferrule.execution.words import Manner, denied_result, failed, failure, not_started_result, timed_out_result
from ferrule.scope import CallScope

_CHANGED = "what was approved has changed since; look at it again"


class Performer:
    """Takes permitted calls to their results.

    `limit` counts a result's characters, `can_read` says whether the model can open what was cut, `timeout`, in
    seconds, is for tools that name none.
    """

    def __init__(self, journal: Journal, blobs: BlobStore, limit: int, can_read: bool, timeout: float | None) -> None:
        self._journal = journal
        self._blobs = blobs
        self._limit = limit
        self._can_read = can_read
        self._timeout = timeout

    async def perform(self, ready: Ready, scope: CallScope) -> ToolResult:
        """Run a call once it is its turn. Raises nothing but what stops the caller."""
        proposal, timeout = ready.proposal, self._timeout_of(ready, scope)
        if timeout == 0:
            return self._refused(ready, not_started_result(proposal.call, busy=False))
        turn: Turn | None = None
        if proposal.tool.barrier is not None:
            turn = await self._turn(ready, proposal.tool.barrier, timeout)
            if turn is None:
                return self._refused(ready, not_started_result(proposal.call, busy=True))
        job: Job | None = None
        try:
            if ready.was_asked and _has_changed(ready):
                return self._refused(ready, denied_result(proposal.call, _CHANGED))
            record = Record.started(self._journal, ready)
            job = self._job(ready, scope, timeout, partial(self._late, ready, record, turn))
            try:
                end = await end_of(job)
            except BaseException:
                record.ended("cancelled")
                raise
            result = self._result(ready, end)
            record.ended(result.status, result.text if result.is_error else "")
            return result
        finally:
            # What was given up and may still write keeps the others out until it ends: see _late.
            if turn is not None and (job is None or not job.is_given_up or proposal.hints.read_only):
                turn.leave()

    async def _turn(self, ready: Ready, barrier: object, timeout: float | None) -> Turn | None:
        """Wait for the call's turn at its barrier; None where the time passes first."""
        try:
            return await gate_of(barrier).enter(ready.proposal.hints.read_only, timeout)
        except asyncio.CancelledError:
            record_cancelled(self._journal, ready.proposal.call)
            raise

    def _job(self, ready: Ready, scope: CallScope, timeout: float | None, on_late: Callable[[Ended], None]) -> Job:
        proposal = ready.proposal
        tool, hints, arguments = proposal.tool, proposal.hints, proposal.arguments
        if tool.scope_parameter is not None:
            deadline = None if timeout is None else time.monotonic() + timeout
            own = CallScope(proposal.call, scope.conversation, deadline, self._blobs, scope.emit)
            arguments = {**arguments, tool.scope_parameter: own}
        retries = tool.retries if hints.idempotent or hints.read_only else 0
        return Job(tool, arguments, timeout, retries, on_late)

    def _timeout_of(self, ready: Ready, scope: CallScope) -> float | None:
        own = ready.proposal.tool.timeout
        timeout = self._timeout if own is None else own
        left = None if scope.deadline is None else scope.seconds_left
        return timeout if left is None else left if timeout is None else min(timeout, left)

    def _result(self, ready: Ready, end: Ended | Manner) -> ToolResult:
        """The result of a call that was run, within the limit."""
        call = ready.proposal.call
        if isinstance(end, str):
            result = timed_out_result(call, end, ready.proposal.hints.read_only)
        elif end.error is not None:
            result = failed(call.id, call.name, *failure(end.error, call.arguments))
        else:
            try:
                result = ToolResult(call.id, call.name, shaped(end.value))
            except ToolFailed as error:
                result = failed(call.id, call.name, "error", f"the call was run, but {error.reason}")
        content = limited(result.content, self._limit, self._blobs, self._can_read)
        if ready.is_edited:
            content = (*content, *limited((_edit_note(ready),), self._limit, self._blobs, self._can_read))
        return result if content is result.content else ToolResult(call.id, call.name, content, result.status)

    def _late(self, ready: Ready, record: Record, turn: Turn | None, end: Ended) -> None:
        """What a call that was given up came to; mostly called in its thread."""
        try:
            result = self._result(ready, end)
            record.ended_late(result.status, result.text)
        finally:
            if turn is not None:
                turn.leave()

    def _refused(self, ready: Ready, result: ToolResult) -> ToolResult:
        record_refused(self._journal, Refused(ready.proposal.call, result, ready.proposal.plain, ready.verdict))
        return result


def _has_changed(ready: Ready) -> bool:
    """Whether the state that the approval was given on is no longer there."""
    proposal = ready.proposal
    approved = proposal.intent
    if approved is None or approved.precondition is None or proposal.tool.intent is None:
        return False
    try:
        now = proposal.tool.intent(dict(proposal.arguments))
    except Exception:  # noqa: BLE001 - an intent that can no longer be told is a change
        return True
    return bool(now.precondition != approved.precondition)


def _edit_note(ready: Ready) -> Text:
    shown = json.dumps(dict(ready.proposal.plain), ensure_ascii=False)
    return Text(f"[the user changed the arguments; what was run: {shown}]")
