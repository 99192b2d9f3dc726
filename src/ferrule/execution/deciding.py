"""May this call run? Its arguments are checked, the policy judges it, and whoever must be asked is asked.

Nothing runs here but a tool's `intent`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import ToolFailed
from ferrule.execution.approver import Approver
from ferrule.execution.decisions import Decision, Pending, Request, request_hash
from ferrule.execution.policy import Hints, Policy, Verdict, always_for
from ferrule.execution.words import denied_result, failed, failure, malformed_result, unknown_tool_result
from ferrule.intent import Intent
from ferrule.registry import BoundRegistry
from ferrule.tool import Tool

_EDITS = 3
_SCALARS = (str, int, float, bool, type(None))
_PLAIN = frozenset(_SCALARS)
"""Of nearly every argument it is enough to ask whether its type is one of these."""


# Proposal and Ready aren't frozen, though nobody changes them: every call makes one of each, and freezing makes that
# take three times as long. So it is with Record and Ended.
@dataclass(slots=True)
class Proposal:
    """A call whose arguments are right, judged.

    `arguments` are the function's, `plain` the same as JSON values, `hints` the tool's annotations as they count.
    """

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    plain: Mapping[str, Any]
    hints: Hints
    intent: Intent | None
    verdict: Verdict

    def denied(self, reason: str, by: str) -> Refused:
        """This call, answered with a denial."""
        return Refused(self.call, denied_result(self.call, reason), self.plain, Verdict("deny", reason, by))


@dataclass(slots=True)
class Ready:
    """A call that may run, and why. `was_asked`: somebody said yes to exactly this."""

    proposal: Proposal
    verdict: Verdict
    was_asked: bool = False
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that is answered without being run. `arguments` are what was to be run, as far as it could be read."""

    call: ToolCall | MalformedCall
    result: ToolResult
    arguments: Any
    verdict: Verdict | None = None


class Desk:
    """Decides on calls. `policy` is the one in force: an "always" answer replaces it by one with a rule more."""

    def __init__(
        self, registry: BoundRegistry, policy: Policy, approver: Approver | None, on_ask: Literal["deny", "pause"]
    ) -> None:
        self.registry = registry
        self.policy = policy
        self._approver = approver
        self._on_ask = on_ask
        self._defaults: dict[str, dict[str, Any]] = {}

    def judged(self, call: ToolCall | MalformedCall, has_decision: bool) -> Ready | Refused | Proposal:
        """What is to be done with a call. A `Proposal` is for `asked`: one to ask about, or with a decision on it."""
        if isinstance(call, MalformedCall):
            return Refused(call, malformed_result(call), call.raw)
        tool = self.registry.get(call.name)
        if tool is None:
            result = unknown_tool_result(call, self.registry.nearest(call.name), self.registry.names)
            return Refused(call, result, written(call.arguments))
        proposal = self._proposal(call, tool, call.arguments)
        if isinstance(proposal, Refused):
            return proposal
        verdict = proposal.verdict
        if verdict.action == "deny":
            return proposal.denied(verdict.reason, verdict.by)
        return Ready(proposal, verdict) if verdict.action == "allow" and not has_decision else proposal

    def _proposal(self, call: ToolCall, tool: Tool, text: str) -> Proposal | Refused:
        try:
            hints = self.policy.hints(tool)
            arguments = tool.bind(text)
            plain = {name: value if type(value) in _PLAIN else _plain(value) for name, value in arguments.items()}
            intent = tool.intent(dict(arguments)) if tool.intent is not None else None
            if intent is not None and not isinstance(intent, Intent):
                raise ToolFailed(f"the intent of {tool.name} is a {type(intent).__name__}, not an Intent")
            verdict = self.policy.judge(tool, self._with_defaults(tool, plain), intent, hints)
        except Exception as error:  # noqa: BLE001 - a check of the tool's own may raise anything
            status, reason = failure(error, text)
            return Refused(call, failed(call.id, call.name, status, reason), written(text))
        return Proposal(call, tool, arguments, plain, hints, intent, verdict)

    async def asked(self, proposal: Proposal, decision: Decision | None) -> Ready | Refused | Pending:
        """What people say to a call; `decision` is one that was made on it before, bound by its hash."""
        verdict = proposal.verdict
        request = self._request(proposal)
        if decision is not None and decision.hash == request.hash:
            outcome = self._applied(proposal, decision)
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        elif verdict.action == "allow":
            return Ready(proposal, verdict)
        if self._approver is None:
            if self._on_ask == "pause":
                return Pending(proposal.call, verdict.reason, request)
            reason = f"this call needs approval and there is nobody to give it ({verdict.reason})"
            return proposal.denied(reason, "nobody")
        for _ in range(_EDITS):
            outcome = self._applied(proposal, await self._approver.decide(request))
            if not isinstance(outcome, str):
                return outcome
            request = replace(request, problem=outcome)
        return proposal.denied("the edited arguments were wrong every time", "executor")

    def _request(self, proposal: Proposal) -> Request:
        tool, verdict = proposal.tool, proposal.verdict
        always = None
        if verdict.action == "ask" and verdict.by == "profile":
            always = always_for(tool, proposal.intent, self.policy.trusts(tool.origin)).scope
        seal = request_hash(tool.name, proposal.plain, proposal.intent)
        return Request(proposal.call, tool.name, proposal.plain, proposal.intent, verdict.reason, always, seal)

    def _applied(self, proposal: Proposal, decision: Decision) -> Ready | Refused | str:
        """What a decision makes of a proposal; a text where it is an edit with wrong arguments."""
        by = decision.by or "caller"
        if decision.action == "deny":
            return proposal.denied(decision.reason or "the user said no", by)
        if decision.action == "edit":
            return self._edited(proposal, decision, by)
        reason = decision.reason
        if decision.action == "always" and proposal.verdict.by == "profile":
            tool = proposal.tool
            always = always_for(tool, proposal.intent, self.policy.trusts(tool.origin))
            self.policy = self.policy.with_always(always)
            reason = f"always: {always.scope}"
        return Ready(proposal, Verdict("allow", reason, by), was_asked=True)

    def _edited(self, proposal: Proposal, decision: Decision, by: str) -> Ready | Refused | str:
        edited = self._proposal(proposal.call, proposal.tool, json.dumps(dict(decision.arguments or {})))
        if isinstance(edited, Refused):
            return edited.result.text
        if edited.verdict.action == "deny":
            return edited.denied(edited.verdict.reason, edited.verdict.by)
        # Whoever wrote the arguments agrees to them, so there is no asking again.
        return Ready(edited, Verdict("allow", "edited", by), was_asked=True, is_edited=True)

    def _with_defaults(self, tool: Tool, plain: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the function's defaults among them, where a rule looks at arguments."""
        rules = self.policy.rules
        if not rules or not any(rule.arguments for rule in rules):
            return plain
        if tool.name not in self._defaults:
            parameters = inspect.signature(tool.function).parameters.values()
            self._defaults[tool.name] = {
                one.name: _plain(one.default) for one in parameters if one.default is not inspect.Parameter.empty
            }
        return {**self._defaults[tool.name], **plain}


def _plain(value: Any) -> Any:
    """An argument as a JSON value."""
    if isinstance(value, _SCALARS):
        return value
    try:
        return to_jsonable_python(value, fallback=str)
    except ValueError:  # bytes that are no text
        return str(value)


def written(arguments: str) -> Any:
    """Arguments that were refused, for the journal: decoded where that works, so that secrets are found by name."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
