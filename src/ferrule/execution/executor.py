"""The one door for calls: validate, permit, run, shape, record.

    executor = Executor(bound_registry, journal=FileJournal("calls.jsonl"))
    results = await executor.run_all(message.calls, scope)

Each stage is a room of its own: `deciding.py` (with `policy.py` and `approver.py`), `running.py`, `shaping.py`,
`journal.py`. The loop that asks a model and gives it these results is `pipeline.py`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from ferrule.blobs import BlobStore
from ferrule.conversation import MalformedCall, Text, ToolCall, ToolResult
from ferrule.errors import PolicyError, ToolFailed
from ferrule.execution.approver import Approver
from ferrule.execution.deciding import Desk, Ready, Refused
from ferrule.execution.decisions import Decision, Pending
from ferrule.execution.gates import Turn, gate_of
from ferrule.execution.journal import Journal, NullJournal, Permission
from ferrule.execution.policy import Policy
from ferrule.execution.read_result import NAME as READ_RESULT
from ferrule.execution.running import Job, end_of
from ferrule.execution.shaping import LIMIT, limited, shaped
from ferrule.execution.threads import Ended
from ferrule.execution.words import Manner, denied_result, failed, failure, not_started_result, timed_out_result
from ferrule.registry import BoundRegistry
from ferrule.scope import CallScope
from ferrule.tool import Tool

Call = ToolCall | MalformedCall
"""What is answered here."""


class Executor:
    """Runs the calls of a model. It never raises for what a model or a tool did wrong: that is a result.

    `limit` counts characters of text in one result; the whole of what is cut is kept in `blobs`. `default_timeout`, in
    seconds, is for tools that name none. Where the policy asks and there is no approver, `on_ask` says what happens.
    It raises `OSError` where its journal can't be written, and what an approver raises.
    """

    def __init__(
        self,
        registry: BoundRegistry,
        *,
        policy: Policy | None = None,
        approver: Approver | None = None,
        journal: Journal | None = None,
        blobs: BlobStore | None = None,
        limit: int = LIMIT,
        default_timeout: float | None = None,
        on_ask: Literal["deny", "pause"] = "deny",
    ) -> None:
        self._desk = Desk(registry, policy or Policy(), approver, on_ask)
        self._journal = journal or NullJournal()
        self.blobs = blobs or BlobStore()
        self._limit = limit
        self._default_timeout = default_timeout
        self._is_async: dict[str, bool] = {}

    @property
    def policy(self) -> Policy:
        """The policy in force, with the rules that "always" answers added."""
        return self._desk.policy

    async def run(
        self, call: Call, scope: CallScope, decision: Decision | None = None
    ) -> ToolResult | Pending:
        """Answer one call: see `run_all`."""
        decisions = None if decision is None else {call.id: decision}
        return (await self.run_all((call,), scope, decisions=decisions))[0]

    async def run_all(
        self,
        calls: Sequence[Call],
        scope: CallScope,
        *,
        decisions: Mapping[str, Decision] | None = None,
        on_result: Callable[[ToolResult], None] | None = None,
    ) -> list[ToolResult | Pending]:
        """Answer calls: all are decided first, in order, then they run; the answers are in call order.

        `decisions`, by call id, are answers to a `Pending` of before, bound by `Pending.decide`. Calls run together
        but for `serial` tools, which run alone, and the tools of one Toolset instance that aren't `read_only`. From
        the first `Pending` on nothing runs, so that order is kept when the rest is run later. `on_result` is called
        with each result as soon as it is there.

        Cancelled, it stops async tools, gives up sync ones, records what has no answer yet as `cancelled`, and
        raises `CancelledError`; what `on_result` has been given by then stands.
        """
        batch = _Batch(calls, on_result)
        try:
            decided = [await self._decided(call, decisions) for call in calls]
            held = next((place for place, one in enumerate(decided) if isinstance(one, Pending)), len(decided))
            for group in _groups(decided[:held]):
                await self._run_group(group, scope, batch)
        except BaseException:
            for call in batch.untouched():
                self._refused(call, _arguments(call), "cancelled", None, "the run was stopped")
            raise
        return [*batch.results(held), *(self._paused(call, one) for call, one in zip(calls[held:], decided[held:], strict=True))]
