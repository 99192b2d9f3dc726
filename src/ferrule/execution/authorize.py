"""Decides whether a call may run: checks its arguments, applies the policy, and asks the approver where necessary.

The only function of a tool that runs here is its `intent`, which doesn't block the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import warnings
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import PolicyError, PolicyWarning, ToolFailed
from ferrule.execution.always import derive_always
from ferrule.execution.approver import Approver
from ferrule.execution.call_clock import pause_calls
from ferrule.execution.decisions import ApprovalRequest, Decision, Pending, hash_request
from ferrule.execution.error_results import (
    RaisedElsewhere,
    describe_failure,
    make_denied_result,
    make_error_result,
    make_malformed_result,
    make_unknown_tool_result,
)
from ferrule.execution.policy import Policy
from ferrule.execution.rules import Verdict
from ferrule.execution.threads import Outcome, ThreadRun, await_outcome
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.registry import BoundRegistry
from ferrule.tools.scope import CallScope

_EDITS = 3
_SCALARS = (str, int, float, bool, type(None))
_PLAIN = frozenset(_SCALARS)
"""Nearly every argument has one of these types, which are JSON values already."""
_NOT_IN_TIME = "not started: finding out what it would do took too long; it had no effect"


class _IntentTimeout(Exception):  # noqa: N818 - a timeout, not an error of the tool
    """The intent of a call timed out."""


# Not frozen, although never changed: every call creates one of each, which takes three times as long if frozen.
@dataclass(slots=True)
class ProposedCall:
    """A call with valid arguments, and the policy's verdict on it.

    `arguments` are what the function gets, `plain` the same as JSON values. `is_running`: the call runs already, and
    `intent` is what it asks for in addition.
    """

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    plain: Mapping[str, Any]
    intent: Intent | None
    verdict: Verdict
    is_running: bool = False

    def deny(self, reason: str, by: str) -> RefusedCall:
        """Refuse this call; `by` is who denied it."""
        return RefusedCall(self.call, make_denied_result(self.call, reason), self.plain, Verdict("deny", reason, by))


@dataclass(slots=True)
class PermittedCall:
    """A call that may run, and why. `was_asked`: somebody approved exactly this call."""

    proposal: ProposedCall
    verdict: Verdict
    was_asked: bool = False
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that is answered without being run. `arguments` are those of the call, decoded if possible."""

    call: ToolCall | MalformedCall
    result: ToolResult
    arguments: Any
    verdict: Verdict | None = None


_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""What Python's warnings remember, so that each problem is shown once."""


class Authorizer:
    """Decides on calls. `policy` is the current one: an "always" answer adds a rule to it.

    `timeout`, in seconds, applies to the intents of tools without their own. Raises `PolicyError` if `policy` isn't a
    `Policy`; a rule that names an unknown tool or argument is a `PolicyWarning`.
    """

    __slots__ = ("_approver", "_asking", "_defaults", "_on_ask", "_timeout", "policy", "registry")

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
        self._asking = asyncio.Lock()
        self._defaults: dict[str, dict[str, Any]] = {}
        if policy.rules:
            for problem in policy.find_unused(_list_with_nested(registry.tools)):
                # Not at the line that runs the tools, which is ferrule's own: the rule was written elsewhere.
                warnings.warn_explicit(problem, PolicyWarning, "<policy>", 0, registry=_warned)

    async def authorize(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None = None
    ) -> PermittedCall | RefusedCall | Pending:
        """Decide whether a call may run. `decision` was made on it earlier; its hash binds it to the call."""
        if isinstance(call, MalformedCall):
            return RefusedCall(call, make_malformed_result(call), call.raw)
        tool = self.registry.get(call.name)
        if tool is None:
            result = make_unknown_tool_result(call, self.registry.find_nearest(call.name), self.registry.names)
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

    async def authorize_running(self, permitted: PermittedCall, intent: Intent, scope: CallScope) -> Verdict:
        """Decide whether a running call may also do what `intent` says. Raises what the approver raises."""
        if not isinstance(intent, Intent):
            raise ToolFailed(f"CallScope.authorize needs an Intent, not {intent!r}")
        before = permitted.proposal
        seen = self._add_defaults(before.tool, before.plain)
        # Several running calls may ask at once: an "always" to one may answer the next.
        async with self._asking:
            verdict = self.policy.judge(before.tool, seen, intent, scope.workspace)
            if verdict.action != "ask":
                return verdict
            outcome = await self._ask(replace(before, intent=intent, verdict=verdict, is_running=True), None, scope)
        assert isinstance(outcome, PermittedCall | RefusedCall), "a running call doesn't pause"
        assert outcome.verdict is not None
        return outcome.verdict

    async def is_still_permitted(self, permitted: PermittedCall, scope: CallScope) -> bool:
        """Whether a call is still permitted, just before it runs.

        A call that somebody approved must have the same precondition; one that the policy allowed is judged again,
        since a link may lead elsewhere by now.
        """
        proposal = permitted.proposal
        before = proposal.intent
        if before is None:
            return True
        if not permitted.was_asked:
            if scope.workspace is None:
                return True
            arguments = self._add_defaults(proposal.tool, proposal.plain)
            return self.policy.judge(proposal.tool, arguments, before, scope.workspace).action == "allow"
        if before.precondition is None:
            return True
        try:
            now = await self._read_intent(proposal.tool, proposal.arguments, scope)
        except (Exception, SystemExit):  # noqa: BLE001 - an intent that fails now counts as changed
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
            seen = self._add_defaults(tool, plain) if self.policy.rules else plain
            verdict = self.policy.judge(tool, seen, intent, scope.workspace)
        except _IntentTimeout:
            result = make_error_result(call.id, call.name, "timeout", _NOT_IN_TIME)
            return RefusedCall(call, result, decode_for_journal(text))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's own checks may raise anything
            status, reason = describe_failure(error, text)
            return RefusedCall(call, make_error_result(call.id, call.name, status, reason), decode_for_journal(text))
        return ProposedCall(call, tool, arguments, plain, intent, verdict)

    async def _read_intent(self, tool: Tool, arguments: Mapping[str, Any], scope: CallScope) -> Intent:
        """Find out what a call would do; a blocking intent runs in a thread.

        Raises `_IntentTimeout` after the tool's timeout or the caller's deadline, and whatever the intent raises.
        """
        timeout = find_timeout(tool, self._timeout, scope)
        read, copied = tool.intent, dict(arguments)
        assert read is not None
        started = time.monotonic()
        if inspect.iscoroutinefunction(read):
            outcome = await await_outcome(partial(read, copied), {}, timeout)
        else:
            run = ThreadRun(partial(copy_context().run, read, copied), _ignore_outcome)
            outcome = await run.wait(timeout) or "abandoned"
            if isinstance(outcome, Outcome) and inspect.isawaitable(outcome.value):
                left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
                outcome = await await_outcome(partial(_return_awaitable, outcome.value), {}, left)
        if isinstance(outcome, str):
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
        """Ask the approver about a call, or apply an earlier decision on it."""
        verdict = proposal.verdict
        request = self._make_request(proposal, scope)
        if decision is not None and decision.hash == request.hash:
            outcome = await self._apply(proposal, decision, scope)
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        elif verdict.action == "allow":
            return PermittedCall(proposal, verdict)
        if self._approver is None:
            if self._on_ask == "pause" and not proposal.is_running:
                return Pending(proposal.call, verdict.reason, request)
            cause = "a running call can't wait" if self._on_ask == "pause" else "nobody can be asked"
            return proposal.deny(f"this call needs approval, and {cause} ({verdict.reason})", "nobody")
        for _ in range(_EDITS):
            with pause_calls():
                answer = self._approver.decide(request)
                if not inspect.isawaitable(answer):
                    raise PolicyError(f"{type(self._approver).__name__}.decide must be async, and return a Decision")
                decided = await answer
            outcome = await self._apply(proposal, decided, scope)
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        return proposal.deny("the edited arguments were invalid every time", "executor")

    def _make_request(self, proposal: ProposedCall, scope: CallScope) -> ApprovalRequest:
        tool, verdict = proposal.tool, proposal.verdict
        always = None
        if verdict.action == "ask" and verdict.by == "profile":
            derived = derive_always(tool, proposal.intent, self.policy.trusts(tool.origin), scope.workspace)
            always = None if derived is None else derived.scope
        request_hash = hash_request(tool.name, proposal.plain, proposal.intent)
        return ApprovalRequest(
            proposal.call, tool.name, proposal.plain, proposal.intent, verdict.reason, always, request_hash,
            is_running=proposal.is_running,
        )  # fmt: skip

    async def _apply(
        self, proposal: ProposedCall, decision: Decision, scope: CallScope
    ) -> PermittedCall | RefusedCall | str:
        """Apply a decision to a proposal. Returns the problem as text if it is an edit with invalid arguments."""
        if not isinstance(decision, Decision):
            raise PolicyError(f"a decision on {proposal.call.id!r} must be a Decision, not {decision!r}")
        by = decision.by or "caller"
        if decision.action == "deny":
            return proposal.deny(decision.reason or "the user said no", by)
        if decision.action == "edit":
            if proposal.is_running:
                return "the call is running; its arguments can't be changed any more"
            return await self._apply_edit(proposal, decision, by, scope)
        if decision.action not in ("allow", "always"):
            raise PolicyError(f"the decision {decision.action!r} on {proposal.call.id!r} is unknown")
        reason = decision.reason
        if decision.action == "always" and proposal.verdict.by == "profile":
            tool = proposal.tool
            always = derive_always(tool, proposal.intent, self.policy.trusts(tool.origin), scope.workspace)
            if always is not None:
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
        # Whoever edited the arguments approves of them, so nobody is asked again.
        return PermittedCall(edited, Verdict("allow", "edited", by), was_asked=True, is_edited=True)

    def _add_defaults(self, tool: Tool, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the function's defaults to the arguments, if a rule looks at arguments."""
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


def _list_with_nested(tools: Iterable[Tool]) -> Iterator[Tool]:
    """These tools, and those of agents among them, which the policy judges too."""
    for tool in tools:
        yield tool
        list_nested = getattr(tool.function, "list_nested_tools", None)
        if list_nested is not None:
            yield from _list_with_nested(list_nested())


def find_timeout(tool: Tool, default: float | None, scope: CallScope) -> float | None:
    """Return how many seconds a call may take: the tool's timeout or the default, but no longer than the deadline."""
    timeout = default if tool.timeout is None else tool.timeout
    if scope.deadline is None:
        return timeout
    left = max(0.0, scope.deadline - time.monotonic())
    return left if timeout is None else min(timeout, left)


def _return_awaitable(work: Awaitable[Any]) -> Awaitable[Any]:
    return work


def _ignore_outcome(_outcome: Outcome) -> None:
    """Ignore an intent that came too late."""


def _to_json_value(value: Any) -> Any:
    """Convert an argument to a JSON value."""
    if isinstance(value, _SCALARS):
        return value
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, fallback=str)
    except ValueError:  # bytes that aren't UTF-8
        return str(value)


def decode_for_journal(arguments: str) -> Any:
    """Decode refused arguments for the journal where possible, so that secrets are found by name."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
