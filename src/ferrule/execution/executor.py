"""Runs every tool call: validates, authorizes, runs, shapes the result, records.

    executor = Executor(bound_registry, journal=FileJournal("calls.jsonl"))
    results = await executor.run_all(message.calls, scope)

This file schedules the calls of a message. `authorize.py` decides whether a call may run (with `policy.py` and
`approver.py`), `run_call.py` runs it. The loop that asks a model and passes it the results is `agent/loop.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ferrule.blobs import BlobStore
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import PolicyError, RegistryError
from ferrule.events import ToolStarted
from ferrule.execution.approver import Approver
from ferrule.execution.authorize import Authorizer
from ferrule.execution.conflicts import UsedPaths
from ferrule.execution.decisions import Decision, Pending
from ferrule.execution.journal import Journal, NullJournal, record_cancelled, record_pending
from ferrule.execution.policy import Policy
from ferrule.execution.proposals import PermittedCall, RefusedCall
from ferrule.execution.results import LIMIT, ResultLimits
from ferrule.execution.results import NAME as READ_RESULT
from ferrule.execution.run_call import CallRunner, CallWatch
from ferrule.tools.registry import BoundRegistry, ToolLike, ToolRegistry
from ferrule.tools.scope import CallScope

Call: TypeAlias = ToolCall | MalformedCall

_DEFAULT_POLICY = Policy()


class Executor:
    """Answers the calls of a model. It never raises for an error of a model or a tool: that is a result.

    `limit` is the most characters of text in one result; images have limits of their own (`results.py`). None leaves
    out nothing: for results that no model reads. What is left out is kept in `blobs`. `default_timeout`, in seconds,
    applies to tools without their own. `on_ask` says what happens if the policy asks and there is no approver. Raises
    `OSError` if the journal can't be written, and whatever an approver raises. A rule that names an unknown tool or
    argument is a `PolicyWarning`.
    """

    __slots__ = ("_authorizer", "_journal", "_runner", "blobs")

    def __init__(
        self,
        registry: BoundRegistry,
        *,
        policy: Policy | None = None,
        approver: Approver | None = None,
        journal: Journal | None = None,
        blobs: BlobStore | None = None,
        limit: int | None = LIMIT,
        default_timeout: float | None = None,
        on_ask: Literal["deny", "pause"] = "deny",
    ) -> None:
        self.blobs = blobs if blobs is not None else BlobStore()
        self._authorizer = Authorizer(
            registry, _DEFAULT_POLICY if policy is None else policy, approver, on_ask, default_timeout
        )
        self._journal = None if isinstance(journal, NullJournal) else journal
        can_read = READ_RESULT in registry
        limits = ResultLimits(self.blobs, sys.maxsize if limit is None else limit, can_read=can_read)
        if limit is None:
            limits = replace(limits, images=sys.maxsize, image_bytes=sys.maxsize)
        self._runner = CallRunner(self._authorizer, self._journal, limits, default_timeout)

    @property
    def policy(self) -> Policy:
        """The current policy, with the rules that "always" answers added."""
        return self._authorizer.policy

    async def run(
        self,
        call: Call,
        scope: CallScope,
        decision: Decision | None = None,
        *,
        on_start: Callable[[ToolStarted], None] | None = None,
        on_result: Callable[[ToolResult], None] | None = None,
    ) -> ToolResult | Pending:
        """Answer one call. See `run_all`."""
        if decision is not None:
            _check_bound(call, decision)
        has_started = False
        try:
            one = await self._authorizer.authorize(call, scope, decision)
            if isinstance(one, Pending):
                record_pending(self._journal, one)
                return one
            has_started = True
            if isinstance(one, RefusedCall):
                result = self._runner.refuse(one)
            else:
                result = await self._runner.run(one, scope, CallWatch(on_start, on_result))
        except asyncio.CancelledError:
            if not has_started:
                record_cancelled(self._journal, call)
            raise
        if on_result is not None:
            on_result(result)
        return result

    async def run_all(
        self,
        calls: Sequence[Call],
        scope: CallScope,
        *,
        decisions: Mapping[str, Decision] | None = None,
        on_start: Callable[[ToolStarted], None] | None = None,
        on_result: Callable[[ToolResult], None] | None = None,
    ) -> list[ToolResult | Pending]:
        """Answer calls: all are authorized first, in order, then they run; the answers are in call order.

        Calls run concurrently, except that `serial` tools run alone, tools of one Toolset instance that aren't
        `read_only` wait for each other, and a call that writes what another one reads or writes, by their intents,
        waits for the earlier ones. Nothing runs from the first `Pending` call on, so that the order holds when
        the rest is run later. `decisions`, by call id, are answers to an earlier `Pending`, made by `Pending.decide`;
        any other raises `PolicyError`. `on_start` is called when a call starts to run, which may be after a question
        about it, and `on_result` with each result as soon as there is one.

        On cancellation, async tools are stopped, sync ones abandoned, and every unanswered call is recorded as
        `cancelled`; results already passed to `on_result` remain valid. A call that kept its output
        (`CallScope.keep_output`) passes a result with it to `on_result` first.
        """
        decisions = decisions or {}
        if len(calls) == 1:  # by far the most common case
            return [await self.run(calls[0], scope, decisions.get(calls[0].id), on_start=on_start, on_result=on_result)]
        batch = _Batch(calls, CallWatch(on_start, on_result))
        runnable: list[PermittedCall | RefusedCall] = []
        held: list[PermittedCall | RefusedCall | Pending] = []
        try:
            for call in calls:
                if call.id in decisions:
                    _check_bound(call, decisions[call.id])
            for one in await self._authorizer.authorize_all(calls, scope, decisions):
                if held or isinstance(one, Pending):
                    held.append(one)
                else:
                    runnable.append(one)
            for group in _group_calls(runnable):
                await self._run_group(group, scope, batch)
        except asyncio.CancelledError:
            for call in batch.untouched:
                record_cancelled(self._journal, call)
            raise
        answers: list[ToolResult | Pending] = [batch.answers[place] for place in range(len(runnable))]
        for one in held:
            pending = _make_pending(one)
            record_pending(self._journal, pending)
            answers.append(pending)
        return answers

    async def _run_group(
        self, group: list[tuple[int, PermittedCall | RefusedCall]], scope: CallScope, batch: _Batch
    ) -> None:
        if len(group) == 1:
            # A task of its own would cost more than everything else here.
            await self._answer(*group[0], scope, batch)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                for place, one in group:
                    tasks.create_task(self._answer(place, one, scope, batch))
        except BaseExceptionGroup as errors:
            # The same error whether a call ran alone or with others.
            raise errors.exceptions[0] from errors

    async def _answer(self, place: int, one: PermittedCall | RefusedCall, scope: CallScope, batch: _Batch) -> None:
        batch.started.add(place)
        if isinstance(one, RefusedCall):
            result = self._runner.refuse(one)
        else:
            result = await self._runner.run(one, scope, batch.watch)
        batch.answers[place] = result
        if batch.watch.on_result is not None:
            batch.watch.on_result(result)


async def call_tool(
    tools: ToolLike,
    arguments: Mapping[str, Any] | str = "{}",
    *,
    name: str | None = None,
    policy: Policy | None = None,
    approver: Approver | None = None,
    workspace: Path | None = None,
) -> ToolResult:
    """Answer one call as if a model had made it: for tests, and programs of one call.

    `tools` is a tool or function, or a Toolset or registry with the tool's `name`. `arguments` are values by name, or
    the JSON text that a model would write. Without a `policy`, a tool from code runs, as the program itself calls it.
    What the policy asks and no approver decides is denied. Raises `RegistryError` for tools that can't be offered, and
    if `name` is missing though there are several.
    """
    async with ToolRegistry([tools]).open() as bound:
        if name is None and len(bound.tools) != 1:
            known = ", ".join(tool.name for tool in bound.tools) or "none"
            raise RegistryError(f"call_tool needs the name of one of the tools {known}: call_tool(…, name=…)")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        call = ToolCall("call_1", name if name is not None else bound.tools[0].name, text)
        tool = bound.get(call.name)
        if policy is None and tool is not None and tool.origin == "code":
            policy = Policy(profile="all")
        executor = Executor(bound, policy=policy, approver=approver)
        result = await executor.run(call, CallScope(workspace=workspace))
    assert isinstance(result, ToolResult), "an executor with on_ask='deny' never pauses"
    return result


@dataclass(slots=True)
class _Batch:
    """Calls that are answered together; `started` and `answers` refer to them by position."""

    calls: Sequence[Call]
    watch: CallWatch
    started: set[int] = field(default_factory=set)
    answers: dict[int, ToolResult] = field(default_factory=dict)

    @property
    def untouched(self) -> list[Call]:
        """The calls that haven't started."""
        return [call for place, call in enumerate(self.calls) if place not in self.started]


def _group_calls(
    runnable: Iterable[PermittedCall | RefusedCall],
) -> list[list[tuple[int, PermittedCall | RefusedCall]]]:
    """Group the calls that may run concurrently, in order; a call of a serial tool is a group of its own.

    A call that conflicts with one of its group begins a new one.
    """
    groups: list[list[tuple[int, PermittedCall | RefusedCall]]] = []
    is_open = False
    before = in_group = None
    for place, one in enumerate(runnable):
        is_serial = isinstance(one, PermittedCall) and one.proposal.tool.serial
        intent = one.proposal.intent if isinstance(one, PermittedCall) else None
        conflicts = intent is not None and in_group is not None and in_group.conflicts_with(intent)
        if not is_open or is_serial or conflicts:
            groups.append([])
            in_group = None
        if isinstance(one, PermittedCall) and intent is not None:
            before, in_group = before or UsedPaths(), in_group or UsedPaths()
            one.follows_conflict = before.has_written(intent)
            before.add(intent)
            in_group.add(intent)
        groups[-1].append((place, one))
        is_open = not is_serial
    return groups


def _make_pending(one: PermittedCall | RefusedCall | Pending) -> Pending:
    if isinstance(one, Pending):
        return one
    call = one.proposal.call if isinstance(one, PermittedCall) else one.call
    return Pending(call, "waits for the decision on an earlier call")


def _check_bound(call: Call, decision: Decision) -> None:
    if not isinstance(decision, Decision):
        raise PolicyError(f"the decision on {call.id!r} must be a Decision, not {decision!r}")
    if decision.hash is None:
        raise PolicyError(f"the decision on {call.id!r} isn't bound to a request; use Pending.decide")
