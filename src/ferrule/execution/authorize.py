"""May this call run? Its arguments are checked, the policy judges it, and whoever must be asked is asked.

Nothing of a tool runs here but its `intent`, and that not on the event loop's time.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import warnings
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import PolicyError, PolicyWarning, ToolFailed
from ferrule.execution.approver import Approver
from ferrule.execution.decisions import ApprovalRequest, Decision, Pending, hash_request
from ferrule.execution.error_results import (
    RaisedElsewhere,
    denied_result,
    describe_failure,
    error_result,
    malformed_result,
    unknown_tool_result,
)
from ferrule.execution.policy import Policy, Verdict, derive_always
from ferrule.execution.threads import Outcome, ThreadRun, await_outcome
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.registry import BoundRegistry
from ferrule.tools.scope import CallScope

_EDITS = 3
_SCALARS = (str, int, float, bool, type(None))
_PLAIN = frozenset(_SCALARS)
"""For nearly every argument it is enough to ask whether its type is one of these."""
_NOT_IN_TIME = "not started: what it would do was not known in time; it took no effect"


class _IntentTimeout(Exception):  # noqa: N818 - a moment, not an error
    """What a call would do was not known in time."""


# Not frozen, though nobody changes them: every call makes one of each, and freezing makes that take three times as
# long.
@dataclass(slots=True)
class ProposedCall:
    """A call with valid arguments, and the policy's verdict on it.

    `arguments` are the function's, `plain` the same as JSON values.
    """

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    plain: Mapping[str, Any]
    intent: Intent | None
    verdict: Verdict

    def deny(self, reason: str, by: str) -> RefusedCall:
        """This call, answered with a denial."""
        return RefusedCall(self.call, denied_result(self.call, reason), self.plain, Verdict("deny", reason, by))


@dataclass(slots=True)
class PermittedCall:
    """A call that may run, and why. `was_asked`: somebody said yes to exactly this call."""

    proposal: ProposedCall
    verdict: Verdict
    was_asked: bool = False
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is answered without being run. `arguments` are what was to be run, as far as it could be read."""

    call: ToolCall | MalformedCall
    result: ToolResult
    arguments: Any
    verdict: Verdict | None = None


class Authorizer:
    """Decides on calls. `policy` is the one in force: an "always" answer adds a rule to it.

    `timeout`, in seconds, is for the intents of tools that name none. Raises `PolicyError` where the policy isn't
    one, and warns with `PolicyWarning` of rules that name a tool or an argument that isn't on offer.
    """

    def __init__(
        self,
        registry: BoundRegistry,
        policy: Policy,
        approver: Approver | None,
        on_ask: Literal["deny", "pause"],
        timeout: float | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise PolicyError(f"policy must be a Policy, not {policy!r}; a profile is given as Policy(profile=...)")
        self.registry = registry
        self.policy = policy
        self._approver = approver
        self._on_ask = on_ask
        self._timeout = timeout
        self._defaults: dict[str, dict[str, Any]] = {}
        if policy.rules:
            for problem in policy.find_unused(registry.tools):
                warnings.warn(problem, PolicyWarning, stacklevel=3)

    async def authorize(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None = None
    ) -> PermittedCall | RefusedCall | Pending:
        """Whether a call may run. `decision` is one that was made on it before, bound by its hash."""
        if isinstance(call, MalformedCall):
            return RefusedCall(call, malformed_result(call), call.raw)
        tool = self.registry.get(call.name)
        if tool is None:
            result = unknown_tool_result(call, self.registry.nearest(call.name), self.registry.names)
            return RefusedCall(call, result, decode_for_journal(call.arguments))
        proposal = await self._propose(call, tool, call.arguments, scope)
        if isinstance(proposal, RefusedCall):
            return proposal
        verdict = proposal.verdict
        if verdict.action == "deny":
            return proposal.deny(verdict.reason, verdict.by)
        if verdict.action == "allow" and decision is None:
            return PermittedCall(proposal, verdict)
        return await self._ask(proposal, decision, scope)

    async def is_still_permitted(self, permitted: PermittedCall, scope: CallScope) -> bool:
        """Whether what a call was permitted on still holds, just before it runs.

        What somebody approved must have the same precondition; what the policy allowed, it must allow again, since a
        link may lead elsewhere by now.
        """
        proposal = permitted.proposal
        before = proposal.intent
        if before is None:
            return True
        if not permitted.was_asked:
            if scope.workspace is None:
                return True
            arguments = self._with_defaults(proposal.tool, proposal.plain)
            return self.policy.judge(proposal.tool, arguments, before, scope.workspace).action == "allow"
        if before.precondition is None:
            return True
        try:
            now = await self._read_intent(proposal.tool, proposal.arguments, scope)
        except (Exception, SystemExit):  # noqa: BLE001 - an intent that can no longer be read is a change
            return False
        return now is not None and now.precondition == before.precondition

    async def _propose(self, call: ToolCall, tool: Tool, text: str, scope: CallScope) -> ProposedCall | RefusedCall:
        intent = None
        try:
            arguments = tool.rules.bind(text)
            plain = {
                name: value if type(value) in _PLAIN else _to_json_value(value) for name, value in arguments.items()
            }
            if tool.intent is not None:
                intent = await self._read_intent(tool, arguments, scope)
            seen = self._with_defaults(tool, plain) if self.policy.rules else plain
            verdict = self.policy.judge(tool, seen, intent, scope.workspace)
        except _IntentTimeout:
            result = error_result(call.id, call.name, "timeout", _NOT_IN_TIME)
            return RefusedCall(call, result, decode_for_journal(text))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a check of the tool's own may raise anything
            status, reason = describe_failure(error, text)
            return RefusedCall(call, error_result(call.id, call.name, status, reason), decode_for_journal(text))
        return ProposedCall(call, tool, arguments, plain, intent, verdict)

    async def _read_intent(self, tool: Tool, arguments: Mapping[str, Any], scope: CallScope) -> Intent:
        """What a call would do; a blocking function is run in a thread.

        Raises `_IntentTimeout` where the tool's time, or the caller's, is up first, and whatever the function raises.
        """
        timeout = find_timeout(tool, self._timeout, scope)
        read, copied = tool.intent, dict(arguments)
        assert read is not None
        started = time.monotonic()
        if inspect.iscoroutinefunction(read):
            outcome = await await_outcome(partial(read, copied), {}, timeout)
        else:
            outcome = await ThreadRun(partial(copy_context().run, read, copied), _ignore_outcome).wait(timeout)
            if outcome is not None and inspect.isawaitable(outcome.value):
                left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
                outcome = await await_outcome(partial(_give_back, outcome.value), {}, left)
        if outcome is None:
            raise _IntentTimeout
        if isinstance(outcome.error, asyncio.CancelledError):
            raise RaisedElsewhere("CancelledError", str(outcome.error))  # nobody cancelled this call
        if outcome.error is not None:
            raise outcome.error
        intent = outcome.value
        if not isinstance(intent, Intent):
            raise ToolFailed(f"the intent of {tool.name} is a {type(intent).__name__}, not an Intent")
        return intent

    async def _ask(
        self, proposal: ProposedCall, decision: Decision | None, scope: CallScope
    ) -> PermittedCall | RefusedCall | Pending:
        """What people say to a call."""
        verdict = proposal.verdict
        request = self._make_request(proposal)
        if decision is not None and decision.hash == request.hash:
            outcome = await self._apply(proposal, decision, scope)
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        elif verdict.action == "allow":
            return PermittedCall(proposal, verdict)
        if self._approver is None:
            if self._on_ask == "pause":
                return Pending(proposal.call, verdict.reason, request)
            reason = f"this call needs approval and there is nobody to give it ({verdict.reason})"
            return proposal.deny(reason, "nobody")
        for _ in range(_EDITS):
            outcome = await self._apply(proposal, await self._approver.decide(request), scope)
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        return proposal.deny("the edited arguments were wrong every time", "executor")

    def _make_request(self, proposal: ProposedCall) -> ApprovalRequest:
        tool, verdict = proposal.tool, proposal.verdict
        always = None
        if verdict.action == "ask" and verdict.by == "profile":
            always = derive_always(tool, proposal.intent, self.policy.trusts(tool.origin)).scope
        seal = hash_request(tool.name, proposal.plain, proposal.intent)
        return ApprovalRequest(proposal.call, tool.name, proposal.plain, proposal.intent, verdict.reason, always, seal)

    async def _apply(
        self, proposal: ProposedCall, decision: Decision, scope: CallScope
    ) -> PermittedCall | RefusedCall | str:
        """What a decision makes of a proposal; a text where it is an edit with wrong arguments."""
        by = decision.by or "caller"
        if decision.action == "deny":
            return proposal.deny(decision.reason or "the user said no", by)
        if decision.action == "edit":
            return await self._apply_edit(proposal, decision, by, scope)
        reason = decision.reason
        if decision.action == "always" and proposal.verdict.by == "profile":
            tool = proposal.tool
            always = derive_always(tool, proposal.intent, self.policy.trusts(tool.origin))
            self.policy = self.policy.with_always(always)
            reason = f"always: {always.scope}"
        return PermittedCall(proposal, Verdict("allow", reason, by), was_asked=True)

    async def _apply_edit(
        self, proposal: ProposedCall, decision: Decision, by: str, scope: CallScope
    ) -> PermittedCall | RefusedCall | str:
        edited = await self._propose(proposal.call, proposal.tool, json.dumps(dict(decision.arguments or {})), scope)
        if isinstance(edited, RefusedCall):
            return edited.result.text
        if edited.verdict.action == "deny":
            return edited.deny(edited.verdict.reason, edited.verdict.by)
        # Whoever wrote the arguments agrees to them, so there is no asking again.
        return PermittedCall(edited, Verdict("allow", "edited", by), was_asked=True, is_edited=True)

    def _with_defaults(self, tool: Tool, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with the function's defaults among them, where a rule looks at arguments."""
        if not any(rule.arguments for rule in self.policy.rules):
            return plain
        if tool.name not in self._defaults:
            parameters = inspect.signature(tool.function).parameters.values()
            self._defaults[tool.name] = {
                one.name: _to_json_value(one.default)
                for one in parameters
                if one.default is not inspect.Parameter.empty
            }
        return {**self._defaults[tool.name], **plain}


def find_timeout(tool: Tool, default: float | None, scope: CallScope) -> float | None:
    """Seconds that a call may take: the tool's own time or the default, and never more than the caller has left."""
    timeout = default if tool.timeout is None else tool.timeout
    if scope.deadline is None:
        return timeout
    left = max(0.0, scope.deadline - time.monotonic())
    return left if timeout is None else min(timeout, left)


def _give_back(work: Awaitable[Any]) -> Awaitable[Any]:
    return work


def _ignore_outcome(_outcome: Outcome) -> None:
    """An intent that came too late tells nothing."""


def _to_json_value(value: Any) -> Any:
    """An argument as a JSON value."""
    if isinstance(value, _SCALARS):
        return value
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, fallback=str)
    except ValueError:  # bytes that are no text
        return str(value)


def decode_for_journal(arguments: str) -> Any:
    """Arguments that were refused, for the journal: decoded where that works, so that secrets are found by name."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
