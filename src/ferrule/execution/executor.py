"""The one door for calls: validate, permit, run, shape, record.

    executor = Executor(bound_registry, journal=FileJournal("calls.jsonl"))
    results = await executor.run_all(message.calls, scope)

Here a batch of calls is brought into order. `deciding.py` says whether a call may run (with `policy.py` and
`approver.py`), `performing.py` takes it through the rest. The loop that asks a model and hands it these results is
`pipeline.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ferrule.blobs import BlobStore
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import PolicyError
from ferrule.execution.approver import Approver
from ferrule.execution.deciding import Desk, Proposal, Ready, Refused
from ferrule.execution.decisions import Decision, Pending
from ferrule.execution.journal import Journal, NullJournal
from ferrule.execution.performing import Performer
from ferrule.execution.policy import Policy
from ferrule.execution.read_result import NAME as READ_RESULT
from ferrule.execution.recording import record_cancelled, record_pending, record_refused
from ferrule.execution.shaping import LIMIT
from ferrule.registry import BoundRegistry
from ferrule.scope import CallScope

Call: TypeAlias = ToolCall | MalformedCall

_DEFAULT_POLICY = Policy()


class Executor:
    """Answers the calls of a model. It never raises for what a model or a tool did wrong: that is a result.

    `limit` counts characters of text in one result; the whole of what is cut is kept in `blobs`. `default_timeout`, in
    seconds, is for tools that name none. Where the policy asks and there is no approver, `on_ask` says what happens.
    `OSError` gets out where the journal can't be written, and whatever an approver raises.
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
        self.blobs = blobs if blobs is not None else BlobStore()
        self._desk = Desk(registry, policy or _DEFAULT_POLICY, approver, on_ask)
        self._journal = journal or NullJournal()
        self._performer = Performer(self._journal, self.blobs, limit, READ_RESULT in registry, default_timeout)

    @property
    def policy(self) -> Policy:
        """The policy in force, with the rules that "always" answers added."""
        return self._desk.policy

    async def run(self, call: Call, scope: CallScope, decision: Decision | None = None) -> ToolResult | Pending:
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

        Calls run together, but for `serial` tools, which run alone, and tools of one Toolset instance that aren't
        `read_only`, which wait for each other. From the first call that is `Pending` on nothing runs, so that the
        order holds when the rest is run later. `decisions`, by call id, are answers to a `Pending` of before, bound by
        `Pending.decide`; one that isn't raises `PolicyError`. `on_result` gets each result as soon as it is there.

        Cancelled, it stops async tools, gives up sync ones, records every call without an answer as `cancelled`, and
        raises `CancelledError`; what `on_result` got by then stands.
        """
        batch = _Batch(calls, on_result)
        runnable: list[Ready | Refused] = []
        held: list[Ready | Refused | Pending] = []
        try:
            for call in calls:
                decision = _bound(call, decisions) if decisions else None
                one: Ready | Refused | Proposal | Pending = self._desk.judged(call, decision is not None)
                if isinstance(one, Proposal):
                    one = await self._desk.asked(one, decision)
                if held or isinstance(one, Pending):
                    held.append(one)
                else:
                    runnable.append(one)
            if len(runnable) == 1:  # by far the most
                await self._answer(0, runnable[0], scope, batch)
            else:
                for group in _groups(runnable):
                    await self._run_group(group, scope, batch)
        except asyncio.CancelledError:
            for call in batch.untouched:
                record_cancelled(self._journal, call)
            raise
        answers: list[ToolResult | Pending] = [batch.answers[place] for place in range(len(runnable))]
        for one in held:
            pending = _held_back(one)
            record_pending(self._journal, pending)
            answers.append(pending)
        return answers

    async def _run_group(self, group: list[tuple[int, Ready | Refused]], scope: CallScope, batch: _Batch) -> None:
        if len(group) == 1:
            # A task of its own would cost more than the rest of the way through here.
            await self._answer(*group[0], scope, batch)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                for place, one in group:
                    tasks.create_task(self._answer(place, one, scope, batch))
        except BaseExceptionGroup as errors:
            # The same error whether a call ran alone or beside others.
            raise errors.exceptions[0] from errors

    async def _answer(self, place: int, one: Ready | Refused, scope: CallScope, batch: _Batch) -> None:
        batch.begun.add(place)
        if isinstance(one, Refused):
            result = one.result
            record_refused(self._journal, one)
        else:
            result = await self._performer.perform(one, scope)
        batch.answers[place] = result
        if batch.on_result is not None:
            batch.on_result(result)


@dataclass(slots=True)
class _Batch:
    """Calls that are answered together, and how far they are, by place."""

    calls: Sequence[Call]
    on_result: Callable[[ToolResult], None] | None
    begun: set[int] = field(default_factory=set)
    answers: dict[int, ToolResult] = field(default_factory=dict)

    @property
    def untouched(self) -> list[Call]:
        """The calls that nothing was done about yet."""
        return [call for place, call in enumerate(self.calls) if place not in self.begun]


def _groups(runnable: Iterable[Ready | Refused]) -> list[list[tuple[int, Ready | Refused]]]:
    """The calls that may run together, in order; a serial tool's is a group of its own."""
    groups: list[list[tuple[int, Ready | Refused]]] = []
    is_open = False
    for place, one in enumerate(runnable):
        is_serial = isinstance(one, Ready) and one.proposal.tool.serial
        if not is_open or is_serial:
            groups.append([])
        groups[-1].append((place, one))
        is_open = not is_serial
    return groups


def _held_back(one: Ready | Refused | Pending) -> Pending:
    if isinstance(one, Pending):
        return one
    call = one.proposal.call if isinstance(one, Ready) else one.call
    return Pending(call, "waits for the decision on an earlier call")


def _bound(call: Call, decisions: Mapping[str, Decision]) -> Decision | None:
    decision = decisions.get(call.id)
    if decision is not None and decision.hash is None:
        raise PolicyError(f"the decision on {call.id!r} isn't bound to what it was made on; use Pending.decide")
    return decision
