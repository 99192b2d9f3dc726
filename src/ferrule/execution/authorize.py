"""Decides whether a call may run: checks its arguments, applies the policy, and asks the approver where necessary.

The only function of a tool that runs here is its `intent`, which doesn't block the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.errors import FerruleError, PolicyError, PolicyWarning, ToolFailed
from ferrule.execution.always import Always, derive_always, write_rule
from ferrule.execution.approver import Approver, confirms_edits
from ferrule.execution.call_clock import pause_calls
from ferrule.execution.conflicts import is_same_change
from ferrule.execution.decisions import ApprovalRequest, Decision, Pending, hash_request
from ferrule.execution.error_results import (
    describe_failure,
    make_error_result,
    make_malformed_result,
    make_unknown_tool_result,
)
from ferrule.execution.policy import Policy
from ferrule.execution.proposals import (
    PermittedCall,
    ProposedCall,
    RefusedCall,
    convert_arguments,
    decode_for_journal,
    list_defaults,
    to_json_value,
)
from ferrule.execution.read_intent import IntentTimeout, find_timeout, read_intent
from ferrule.execution.rules import Verdict, list_folders
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Intent
from ferrule.tools.registry import BoundRegistry
from ferrule.tools.scope import CallScope

_EDITS = 3
"""How often a program may answer with arguments that can't be used; a person may try until it works."""
_CHANGED = "what the call would do has changed since it was approved; look at it again"
_EXECUTOR = "executor"
_NOT_IN_TIME = "not started: finding out what it would do took too long; it had no effect"

_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""What Python's warnings remember, so that each problem is shown once."""


@dataclass(slots=True)
class _Question:
    """A call that somebody must decide on: as it was proposed, and with the last edit."""

    original: ProposedCall
    proposal: ProposedCall
    request: ApprovalRequest
    edits: int = 0


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
        if policy.rules and not policy.is_shared:
            for problem in policy.find_unused(_list_with_nested(registry.tools)):
                # Not at the line that runs the tools, which is ferrule's own: the rule was written elsewhere.
                warnings.warn_explicit(problem, PolicyWarning, "<policy>", 0, registry=_warned)

    async def authorize(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None = None
    ) -> PermittedCall | RefusedCall | Pending:
        """Decide whether a call may run. `decision` was made on it earlier; its hash binds it to the call."""
        outcome = await self._judge_call(call, scope, decision)
        return await self._ask(outcome, scope) if isinstance(outcome, _Question) else outcome

    async def authorize_all(
        self, calls: Sequence[ToolCall | MalformedCall], scope: CallScope, decisions: Mapping[str, Decision]
    ) -> list[PermittedCall | RefusedCall | Pending]:
        """Decide on the calls of one message, in order.

        An approver that has `decide_all` is asked about all of them at once, after each was judged; any other about
        one after the other, each of which is judged just before.
        """
        if getattr(self._approver, "decide_all", None) is None:
            return [await self.authorize(call, scope, decisions.get(call.id)) for call in calls]
        outcomes = [await self._judge_call(call, scope, decisions.get(call.id)) for call in calls]
        questions = {place: one for place, one in enumerate(outcomes) if isinstance(one, _Question)}
        decided = await self._ask_together(questions, scope) if len(questions) > 1 else {}
        return [
            decided[place] if place in decided
            else await self._ask(one, scope) if isinstance(one, _Question)
            else one
            for place, one in enumerate(outcomes)
        ]  # fmt: skip

    async def authorize_running(self, permitted: PermittedCall, intent: Intent, scope: CallScope) -> Verdict:
        """Decide whether a running call may also do what `intent` says. Raises what the approver raises."""
        if not isinstance(intent, Intent):
            raise ToolFailed(f"CallScope.authorize needs an Intent, not {intent!r}")
        before = permitted.proposal
        # Several running calls may ask at once: an "always" to one may answer the next.
        async with self._asking:
            verdict = self._judge(before, intent, scope)
            if verdict.action != "ask":
                return verdict
            outcome = await self._ask(
                self._make_question(replace(before, intent=intent, verdict=verdict, is_running=True), scope), scope
            )
        assert isinstance(outcome, PermittedCall | RefusedCall), "a running call doesn't pause"
        assert outcome.verdict is not None
        if isinstance(outcome, PermittedCall) and outcome.comment:
            permitted.comment = "\n".join(filter(None, (permitted.comment, outcome.comment)))
        return outcome.verdict

    async def recheck(self, permitted: PermittedCall, scope: CallScope) -> PermittedCall | RefusedCall:
        """Check a call just before it runs, and ask again if necessary.

        A call that the policy allowed is judged again, since a link may lead elsewhere by now. One that somebody
        approved must have the same precondition. If an earlier call of the same message has changed it, it may still
        make the same change; otherwise the approver is shown the new one.
        """
        proposal = permitted.proposal
        before = proposal.intent
        if before is None:
            return permitted
        if not permitted.was_asked:
            has_folders = list_folders(proposal.tool, scope.workspace)
            is_allowed = not has_folders or self._judge(proposal, before, scope).action == "allow"
            return permitted if is_allowed else proposal.deny(_CHANGED, _EXECUTOR)
        if before.precondition is None and not permitted.follows_conflict:
            return permitted
        try:
            now = await self._read_intent(proposal.tool, proposal.arguments, scope)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an intent that fails now counts as changed
            if isinstance(error, IntentTimeout):
                return proposal.deny(_CHANGED, _EXECUTOR)
            call = proposal.call
            status, reason = describe_failure(error, call.arguments)
            if not permitted.follows_conflict:
                return proposal.deny(f"{_CHANGED}: {reason}", _EXECUTOR)
            # Its own earlier call is what the model must hear about.
            result = make_error_result(call.id, call.name, status, reason)
            return RefusedCall(call, result, proposal.plain, permitted.verdict)
        is_same = now.precondition == before.precondition and before.precondition is not None
        if is_same or (permitted.follows_conflict and is_same_change(before, now)):
            return permitted
        if permitted.follows_conflict:
            return await self._ask_again(permitted, now, scope)
        return proposal.deny(_CHANGED, _EXECUTOR)

    async def _ask_again(self, permitted: PermittedCall, now: Intent, scope: CallScope) -> PermittedCall | RefusedCall:
        """Ask about a call that does something else since an earlier one of its message has run."""
        proposal = replace(permitted.proposal, intent=now, verdict=self._judge(permitted.proposal, now, scope))
        if proposal.verdict.action == "deny" or self._approver is None:
            return proposal.deny(_CHANGED if self._approver is None else proposal.verdict.reason, _EXECUTOR)
        question = self._make_question(proposal, scope)
        question.request = replace(question.request, is_changed=True)
        outcome = await self._ask(question, scope)
        assert isinstance(outcome, PermittedCall | RefusedCall), "there is an approver"
        if isinstance(outcome, PermittedCall):
            outcome.edited_from = outcome.edited_from or permitted.edited_from
            outcome.comment = outcome.comment or permitted.comment
        return outcome

    async def _judge_call(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None
    ) -> PermittedCall | RefusedCall | _Question:
        """Check and judge a call, and apply an earlier decision on it."""
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
        question = self._make_question(proposal, scope)
        if decision is not None and decision.hash == question.request.hash:
            return await self._apply(question, decision, scope) or question
        return PermittedCall(proposal, verdict) if verdict.action == "allow" else question

    async def _propose(self, call: ToolCall, tool: Tool, text: str, scope: CallScope) -> ProposedCall | RefusedCall:
        intent = None
        try:
            arguments = tool.rules.bind(text)
            plain = convert_arguments(arguments)
            if tool.intent is not None:
                intent = await self._read_intent(tool, arguments, scope)
            seen = self._add_defaults(tool, plain)
            verdict = self.policy.judge(tool, seen, intent, scope.workspace)
        except IntentTimeout:
            result = make_error_result(call.id, call.name, "timeout", _NOT_IN_TIME)
            return RefusedCall(call, result, decode_for_journal(text))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's own checks may raise anything
            status, reason = describe_failure(error, text)
            return RefusedCall(call, make_error_result(call.id, call.name, status, reason), decode_for_journal(text))
        return ProposedCall(call, tool, arguments, plain, intent, verdict)

    async def _read_intent(self, tool: Tool, arguments: Mapping[str, Any], scope: CallScope) -> Intent:
        return await read_intent(tool, arguments, find_timeout(tool, self._timeout, scope))

    def _judge(self, proposal: ProposedCall, intent: Intent | None, scope: CallScope) -> Verdict:
        """Judge a call anew, with what it would do by now."""
        seen = self._add_defaults(proposal.tool, proposal.plain)
        return self.policy.judge(proposal.tool, seen, intent, scope.workspace)

    async def _ask(self, question: _Question, scope: CallScope) -> PermittedCall | RefusedCall | Pending:
        """Ask the approver about a call, until it decides."""
        approver = self._approver
        if approver is None:
            return self._answer_without_approver(question)
        while True:
            with pause_calls():
                answer = approver.decide(question.request)
                if not inspect.isawaitable(answer):
                    raise PolicyError(f"{type(approver).__name__}.decide must be async, and return a Decision")
                decision = await answer
            outcome = await self._apply(question, decision, scope)
            if outcome is not None:
                return outcome

    def _answer_without_approver(self, question: _Question) -> RefusedCall | Pending:
        proposal, reason = question.proposal, question.proposal.verdict.reason
        if self._on_ask == "pause" and not proposal.is_running:
            return Pending(proposal.call, reason, question.request)
        cause = "a running call can't wait" if self._on_ask == "pause" else "nobody can be asked"
        return proposal.deny(f"this call needs approval, and {cause} ({reason})", "nobody")

    async def _ask_together(
        self, questions: Mapping[int, _Question], scope: CallScope
    ) -> dict[int, PermittedCall | RefusedCall]:
        """Ask an approver with `decide_all` about several calls, until it has decided on all of them."""
        approver: Any = self._approver
        waiting, outcomes = dict(questions), dict[int, PermittedCall | RefusedCall]()
        while waiting:
            with pause_calls():
                decisions = await approver.decide_all([question.request for question in waiting.values()])
            if len(decisions) != len(waiting) or all(decision is None for decision in decisions):
                raise PolicyError(
                    f"{type(approver).__name__}.decide_all must return a Decision or None for each of the "
                    f"{len(waiting)} calls, and decide at least one"
                )
            policies = self.policy, self.policy.grants and self.policy.grants.rules
            for (place, question), decision in zip(tuple(waiting.items()), decisions, strict=True):
                outcome = None if decision is None else await self._apply(question, decision, scope)
                if outcome is not None:
                    outcomes[place] = outcome
                    del waiting[place]
            if policies != (self.policy, self.policy.grants and self.policy.grants.rules):
                outcomes.update(self._judge_waiting(waiting, scope))
        return outcomes

    def _judge_waiting(self, waiting: dict[int, _Question], scope: CallScope) -> dict[int, PermittedCall | RefusedCall]:
        """Remove and return the calls that needn't be asked about any more, after an "always" to another one."""
        outcomes: dict[int, PermittedCall | RefusedCall] = {}
        for place, question in tuple(waiting.items()):
            proposal = question.proposal
            verdict = self._judge(proposal, proposal.intent, scope)
            if verdict.action == "allow" and proposal is question.original:
                outcomes[place] = PermittedCall(proposal, verdict)
                del waiting[place]
        return outcomes

    def _make_question(self, proposal: ProposedCall, scope: CallScope) -> _Question:
        return _Question(proposal, proposal, self._make_request(proposal, scope))

    def _make_request(self, proposal: ProposedCall, scope: CallScope) -> ApprovalRequest:
        tool, verdict = proposal.tool, proposal.verdict
        always = self._derive_always(proposal, scope) if verdict.action == "ask" else None
        grants, folders = self.policy.grants, list_folders(tool, scope.workspace)
        defaults = list_defaults(tool, proposal.plain)
        return ApprovalRequest(
            proposal.call,
            tool.name,
            proposal.plain,
            proposal.intent,
            verdict.reason,
            None if always is None else always.scope,
            hash_request(tool.name, proposal.plain, defaults, proposal.intent),
            is_running=proposal.is_running,
            workspace=str(folders[0]) if folders else None,
            always_rules=() if always is None else tuple(map(write_rule, always.rules)),
            can_save=always is not None and grants is not None and grants.save is not None,
            added_folders=tuple(map(str, folders[1:])),
            defaults=defaults,
        )

    def _derive_always(self, proposal: ProposedCall, scope: CallScope) -> Always | None:
        """What an "always" to a call would allow; None if it would not help, or nothing is narrow enough."""
        if proposal.verdict.by != "profile":
            return None
        tool = proposal.tool
        return derive_always(tool, proposal.intent, self.policy.trusts(tool.origin), scope.workspace)

    async def _apply(
        self, question: _Question, decision: Decision, scope: CallScope
    ) -> PermittedCall | RefusedCall | None:
        """Apply a decision on a call. Returns None if it must be asked about again, with the request changed."""
        proposal = question.proposal
        if not isinstance(decision, Decision):
            raise PolicyError(f"a decision on {proposal.call.id!r} must be a Decision, not {decision!r}")
        by = decision.by or "caller"
        if decision.action == "deny":
            return proposal.deny(decision.reason or "the user said no", by)
        if decision.action == "edit":
            return await self._apply_edit(question, decision, scope)
        if decision.action not in ("allow", "always"):
            raise PolicyError(f"the decision {decision.action!r} on {proposal.call.id!r} is unknown")
        is_edited = proposal.plain != question.original.plain
        reason = decision.reason or ("edited" if is_edited else "")
        always = self._derive_always(proposal, scope) if decision.action == "always" else None
        if always is not None:
            problem = self._save(always) if decision.scope == "project" else ""
            if problem:
                question.request = replace(question.request, problem=problem)
                return None
            self.policy = self.policy.with_always(always)
            reason = f"always: {always.scope}"
        edited_from = question.original.plain if is_edited else None
        verdict = Verdict("allow", reason, by)
        return PermittedCall(proposal, verdict, was_asked=True, edited_from=edited_from, comment=decision.comment)

    def _save(self, always: Always) -> str:
        """Save an "always" for later sessions; returns the problem if that isn't possible."""
        grants = self.policy.grants
        if grants is None or grants.save is None:
            raise PolicyError('an "always" for the project can only be given where the policy has grants with `save`')
        try:
            grants.save(always)
        except (FerruleError, OSError) as error:
            return f"this answer can't be saved, and may be given for the session only: {error}"
        return ""

    async def _apply_edit(
        self, question: _Question, decision: Decision, scope: CallScope
    ) -> PermittedCall | RefusedCall | None:
        """Validate, judge and preview the edited call. A person is then shown it; a program meant what it said."""
        question.edits += 1
        is_shown = confirms_edits(self._approver)
        before, problem = question.proposal, ""
        if before.is_running:
            problem = "the call is running; its arguments can't be changed any more"
        else:
            edited = await self._propose(before.call, before.tool, json.dumps(dict(decision.arguments or {})), scope)
            if isinstance(edited, RefusedCall):
                problem = edited.result.text
            elif edited.verdict.action == "deny":
                if not is_shown:
                    return edited.deny(edited.verdict.reason, edited.verdict.by)
                problem = f"the policy denies this: {edited.verdict.reason}"
            else:
                question.proposal = edited
                if not is_shown:
                    return await self._apply(question, replace(decision, action="allow"), scope)
                question.request = replace(self._make_request(edited, scope), is_edited=True)
                return None
        if not is_shown and question.edits >= _EDITS:
            return before.deny("the edited arguments were invalid every time", _EXECUTOR)
        question.request = replace(question.request, problem=problem)
        return None

    def _add_defaults(self, tool: Tool, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the function's defaults to the arguments, if a rule looks at arguments."""
        if not self.policy.matches_arguments:
            return plain
        if tool.name not in self._defaults:
            parameters = inspect.signature(tool.function).parameters.values()
            self._defaults[tool.name] = {
                one.name: to_json_value(one.default) for one in parameters if one.default is not inspect.Parameter.empty
            }
        return {**self._defaults[tool.name], **plain}


def _list_with_nested(tools: Iterable[Tool]) -> Iterator[Tool]:
    """These tools, and those of agents among them, which the policy judges too."""
    for tool in tools:
        yield tool
        list_nested = getattr(tool.function, "list_nested_tools", None)
        if list_nested is not None:
            yield from _list_with_nested(list_nested())
