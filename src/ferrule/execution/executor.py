"""Runs every tool call: validates, authorizes, runs, shapes the result, records.

    executor = Executor(bound_registry, journal=FileJournal("calls.jsonl"))
    results = await executor.run_all(message.calls, scope)

This file schedules the calls of a message. `authorize.py` decides whether a call may run (with `policy.py` and
`approver.py`), `run_call.py` runs it. The loop that asks a model and passes it the results is `agent/loop.py`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ferrule.blobs import BlobStore
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import PolicyError, RegistryError, SettingsError
from ferrule.execution.approver import Approver, Decide
from ferrule.execution.authorize import ApprovalQuestion, Authorizer
from ferrule.execution.conflicts import UsedPaths
from ferrule.execution.decisions import Decision, Pending, check_bound, check_decisions
from ferrule.execution.journal import Journal, NullJournal, record_cancelled, record_pending
from ferrule.execution.policy import Policy
from ferrule.execution.proposals import PermittedCall, RefusedCall
from ferrule.execution.results import LIMIT, MOST_IMAGE_BYTES, MOST_IMAGES, ResultLimits
from ferrule.execution.results import NAME as READ_RESULT
from ferrule.execution.run_call import CallRunner, CallWatch
from ferrule.tools.registry import BoundRegistry, ToolLike, ToolRegistry
from ferrule.tools.scope import CallScope

Call: TypeAlias = ToolCall | MalformedCall
_Decided: TypeAlias = PermittedCall | RefusedCall
_Group: TypeAlias = list[tuple[int, _Decided]]
"""Calls that run concurrently, each with its place among all of them."""

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
        approver: Approver | Decide | None = None,
        journal: Journal | None = None,
        blobs: BlobStore | None = None,
        limit: int | None = LIMIT,
        default_timeout: float | None = None,
        on_ask: Literal["deny", "pause"] = "deny",
    ) -> None:
        if type(registry) is not BoundRegistry and not isinstance(registry, BoundRegistry | ToolRegistry):
            raise RegistryError(
                f"an Executor takes an opened registry, `async with ToolRegistry(…).open()`, not {registry!r}"
            )
        if journal is not None and not hasattr(journal, "make_key"):
            raise SettingsError(
                f"the journal of an Executor must be a Journal, such as FileJournal(path), not {journal!r}"
            )
        if on_ask not in ("deny", "pause"):
            raise SettingsError(f"on_ask must be 'deny' or 'pause', not {on_ask!r}")
        self.blobs = blobs if blobs is not None else BlobStore()
        if policy is None:
            policy = _DEFAULT_POLICY
        elif not isinstance(policy, Policy):
            raise PolicyError(f"policy must be a Policy, not {policy!r}; a profile is given as Policy(profile=...)")
        self._authorizer = Authorizer(registry, policy, approver, on_ask, default_timeout)
        self._journal = None if type(journal) is NullJournal else journal
        can_read = registry.get(READ_RESULT) is not None
        if limit is None:
            limits = ResultLimits(self.blobs, sys.maxsize, sys.maxsize, sys.maxsize, can_read)
        else:
            limits = ResultLimits(self.blobs, limit, MOST_IMAGES, MOST_IMAGE_BYTES, can_read)
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
        watch: CallWatch | None = None,
    ) -> ToolResult | Pending:
        """Answer one call. See `run_all`."""
        if decision is not None:
            check_bound(call, decision)
        try:
            judged = await self._authorizer.judge(call, scope, decision)
            one = await self._authorizer.ask(judged, scope) if type(judged) is ApprovalQuestion else judged
        except asyncio.CancelledError:
            record_cancelled(self._journal, call)
            raise
        if type(one) is PermittedCall:  # not `isinstance`: this is the path of nearly every call
            result = await self._runner.run(one, scope, watch or CallWatch())
        elif type(one) is RefusedCall:
            result = self._runner.refuse(one, watch)
        else:
            record_pending(self._journal, one)
            return one
        if watch is not None and watch.on_result is not None:
            watch.on_result(result)
        return result

    async def run_all(
        self,
        calls: Sequence[Call],
        scope: CallScope,
        *,
        decisions: Mapping[str, Decision] | None = None,
        watch: CallWatch | None = None,
    ) -> list[ToolResult | Pending]:
        """Answer calls: all are authorized first, in order, then they run; the answers are in call order.

        Calls run concurrently, except that `serial` tools run alone, tools of one Toolset instance that aren't
        `read_only` wait for each other, and a call that writes what another one reads or writes, by their intents,
        waits for the earlier ones. So does one whose intent fails, if an earlier one may write. Each of these is
        authorized again when its turn comes; what was approved is asked about again only if it has changed. Nothing
        runs from the first `Pending` call on, so that the order holds when the rest is run later. `decisions`, by call
        id, are answers to an earlier `Pending`, made by `Pending.decide`; any other raises `PolicyError`. `watch`
        follows the calls as they run.

        On cancellation, async tools are stopped, sync ones abandoned, and every unanswered call is recorded as
        `cancelled`; results already passed to the watch's `on_result` remain valid. A call that kept its output
        (`CallScope.keep_output`) passes a result with it to `on_result` first.
        """
        decisions = check_decisions(decisions) if decisions else {}
        batch = _Batch(calls, watch or CallWatch())
        runnable: list[_Decided] = []
        held: list[_Decided | Pending] = []
        try:
            for call in calls if decisions else ():
                if call.id in decisions:
                    check_bound(call, decisions[call.id])
            for one in await self._authorizer.authorize_all(calls, scope, decisions):
                if held or isinstance(one, Pending):
                    held.append(one)
                else:
                    runnable.append(one)
            held = [*await self._run_groups(runnable, scope, decisions, batch), *held]
        except asyncio.CancelledError:
            for call in batch.untouched:
                record_cancelled(self._journal, call)
            raise
        answers: list[ToolResult | Pending] = [batch.answers[place] for place in range(len(batch.answers))]
        for one in held:
            pending = _make_pending(one)
            record_pending(self._journal, pending)
            answers.append(pending)
        return answers

    async def _run_groups(
        self, runnable: Sequence[_Decided], scope: CallScope, decisions: Mapping[str, Decision], batch: _Batch
    ) -> list[_Decided | Pending]:
        """Run calls, those of each group concurrently; returns those from the first on that waits for a decision."""
        groups, affected = _group_calls(runnable, self._authorizer, batch.watch.is_serial)
        for number, group in enumerate(groups):
            ready, waiting = group, list[_Decided | Pending]()
            if affected:
                ready, waiting = await self._authorize_again(group, affected, scope, decisions)
            await self._run_group(ready, scope, batch)
            if waiting:
                return [*waiting, *(one for later in groups[number + 1 :] for _, one in later)]
        return []

    async def _authorize_again(
        self, group: _Group, affected: Set[int], scope: CallScope, decisions: Mapping[str, Decision]
    ) -> tuple[_Group, list[_Decided | Pending]]:
        """Decide again on those of a group that earlier calls may have changed; returns those that run and the rest."""
        ready: _Group = []
        for at, (place, one) in enumerate(group):
            again: _Decided | Pending = one
            if place in affected:
                decision = decisions.get(one.call.id) if isinstance(one, RefusedCall) else None
                again = await self._authorizer.authorize_again(one, scope, decision)
            if isinstance(again, Pending):
                return ready, [again, *(later for _, later in group[at + 1 :])]
            ready.append((place, again))
        return ready, []

    async def _run_group(self, group: _Group, scope: CallScope, batch: _Batch) -> None:
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

    async def _answer(self, place: int, one: _Decided, scope: CallScope, batch: _Batch) -> None:
        batch.started.add(place)
        if isinstance(one, RefusedCall):
            result = self._runner.refuse(one, batch.watch)
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
    approver: Approver | Decide | None = None,
    workspace: Path | str | None = None,
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
        call = ToolCall("call_1", name if name is not None else bound.tools[0].name, arguments)  # type: ignore[arg-type]
        tool = bound.get(call.name)
        if policy is None and tool is not None and tool.origin == "code":
            policy = Policy(profile="all")
        executor = Executor(bound, policy=policy, approver=approver)
        result = await executor.run(call, CallScope(workspace=None if workspace is None else Path(workspace)))
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
    runnable: Iterable[_Decided], authorizer: Authorizer, is_serial: bool
) -> tuple[list[_Group], Set[int]]:
    """Group the calls that may run concurrently, in order; a call of a serial tool is a group of its own, and if
    `is_serial`, so is each call.

    A call that conflicts with one of its group begins a new one, and so does one that couldn't be judged yet. The
    second value are the places of the calls that earlier ones may have changed by the time that they run.
    """
    groups: list[_Group] = []
    affected: set[int] = set()
    is_open = has_writer = False
    before, in_group = UsedPaths(), UsedPaths()
    for place, one in enumerate(runnable):
        proposal = one.proposal if isinstance(one, PermittedCall) else None
        intent = None if proposal is None else proposal.intent
        is_unjudged = isinstance(one, RefusedCall) and one.unjudged is not None and has_writer
        is_alone = is_serial or is_unjudged or (proposal is not None and proposal.tool.serial)
        if not is_open or is_alone or (intent is not None and in_group.conflicts_with(intent)):
            groups.append([])
            in_group = UsedPaths()
        if is_unjudged or (intent is not None and before.has_written(intent)):
            affected.add(place)
        if is_unjudged:
            before.add_unknown()
        elif intent is not None:
            before.add(intent)
            in_group.add(intent)
        has_writer = has_writer or (proposal is not None and authorizer.may_write(proposal))
        groups[-1].append((place, one))
        is_open = not is_alone
    return groups, affected


def _make_pending(one: _Decided | Pending) -> Pending:
    if isinstance(one, Pending):
        return one
    call = one.proposal.call if isinstance(one, PermittedCall) else one.call
    return Pending(call, "waits for the decision on an earlier call")
