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
from typing import Any, Literal, cast, final

from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.errors import ConversationError, FerruleError, PolicyError, PolicyWarning, ToolFailed
from ferrule.execution.always import Always, advise_allowing, derive_always, write_rule
from ferrule.execution.approver import Approver, Decide, confirms_edits, make_approver
from ferrule.execution.call_clock import pause_calls
from ferrule.execution.conflicts import is_same_change, may_write
from ferrule.execution.decisions import NOBODY, ApprovalRequest, Decision, Pending, hash_request
from ferrule.execution.error_results import (
    describe_failure,
    make_error_result,
    make_malformed_result,
    make_unknown_tool_result,
)
from ferrule.execution.policy import Policy
from ferrule.execution.profiles import list_folders
from ferrule.execution.proposals import (
    IntentTimeout,
    PermittedCall,
    ProposedCall,
    RefusedCall,
    convert_arguments,
    decode_for_journal,
    find_timeout,
    list_defaults,
    read_intent,
    to_json_value,
)
from ferrule.execution.rules import Verdict, write_definition
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Diff, Intent, is_judged_again
from ferrule.tools.registry import BoundRegistry
from ferrule.tools.scope import CallScope

_EDITS = 3
"""How often a program may answer with arguments that can't be used; a person may try until it works."""
_CHANGED = "what the call would do has changed since it was approved; look at it again"
_EXECUTOR = "executor"
_NOT_IN_TIME = "not started: finding out what it would do took too long; it had no effect"

_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""What Python's warnings remember, so that each problem is shown once."""


@final
@dataclass(slots=True)
class ApprovalQuestion:
    """A call that somebody must decide on: as it was proposed, and with the last edit."""

    original: ProposedCall
    proposal: ProposedCall
    request: ApprovalRequest
    edits: int = 0

    def complete_request(self) -> ApprovalRequest:
        """Return the request with all that is to be shown of the call."""
        if self.request.preview is None:
            self.request = replace(self.request, preview=self.request.find_preview())
        return self.request


class Authorizer:
    """Decides on calls. `policy` is the current one: an "always" answer adds a rule to it.

    `timeout`, in seconds, applies to the intents of tools without their own. A rule that names an unknown tool or
    argument is a `PolicyWarning`.
    """

    __slots__ = ("_approver", "_asking", "_defaults", "_on_ask", "_timeout", "policy", "registry")

    def __init__(
        self,
        registry: BoundRegistry,
        policy: Policy,
        approver: Approver | Decide | None,
        on_ask: Literal["deny", "pause"],
        timeout: float | None = None,
    ) -> None:
        self.registry = registry
        self.policy = policy
        if approver is not None and (isinstance(approver, type) or not callable(getattr(approver, "decide", None))):
            approver = make_approver(approver)
        self._approver = cast("Approver | None", approver)
        self._on_ask = on_ask
        self._timeout = timeout
        self._asking: asyncio.Lock | None = None
        self._defaults: dict[str, dict[str, Any]] = {}
        if policy.rules and not policy.is_shared:
            for problem in policy.find_unused(_list_with_nested(registry.tools)):
                # Not at the line that runs the tools, which is ferrule's own: the rule was written elsewhere.
                warnings.warn_explicit(problem, PolicyWarning, "<policy>", 0, registry=_warned)

    async def authorize(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None
    ) -> PermittedCall | RefusedCall | Pending:
        """Decide whether a call may run: `judge`, then `ask` if there is a question."""
        outcome = await self.judge(call, scope, decision)
        return await self.ask(outcome, scope) if type(outcome) is ApprovalQuestion else outcome

    async def authorize_all(
        self, calls: Sequence[ToolCall | MalformedCall], scope: CallScope, decisions: Mapping[str, Decision]
    ) -> list[PermittedCall | RefusedCall | Pending]:
        """Decide on the calls of one message, in order.

        An approver that has `decide_all` is asked about all of them at once, after each was judged; any other about
        one after the other, each of which is judged just before.
        """
        each = [(call, decisions.get(call.id) if decisions else None) for call in calls]
        if getattr(self._approver, "decide_all", None) is None:
            return [await self.authorize(call, scope, decision) for call, decision in each]
        outcomes = [await self.judge(call, scope, decision) for call, decision in each]
        questions = {place: one for place, one in enumerate(outcomes) if isinstance(one, ApprovalQuestion)}
        decided = await self._ask_together(questions, scope) if len(questions) > 1 else {}
        return [
            decided[place] if place in decided
            else await self.ask(one, scope) if isinstance(one, ApprovalQuestion)
            else one
            for place, one in enumerate(outcomes)
        ]  # fmt: skip

    def may_write(self, proposal: ProposedCall) -> bool:
        """Whether a call may change what later ones would do."""
        if proposal.intent is not None:
            return may_write(proposal.intent)
        return not all(self.policy.resolve_hints(tool).read_only for tool in _list_with_nested([proposal.tool]))

    async def authorize_running(self, permitted: PermittedCall, intent: Intent, scope: CallScope) -> Verdict:
        """Decide whether a running call may also do what `intent` says. Raises what the approver raises."""
        if not isinstance(intent, Intent):
            raise ToolFailed(f"CallScope.authorize needs an Intent, not {intent!r}")
        before = permitted.proposal
        # Several running calls may ask at once: an "always" to one may answer the next.
        self._asking = self._asking or asyncio.Lock()
        async with self._asking:
            verdict = self._judge(before, intent, scope)
            if verdict.action != "ask":
                return verdict
            outcome = await self.ask(
                self._make_question(replace(before, intent=intent, verdict=verdict, is_running=True), scope), scope
            )
        assert isinstance(outcome, PermittedCall | RefusedCall), "a running call doesn't pause"
        assert outcome.verdict is not None
        if isinstance(outcome, PermittedCall) and outcome.comment:
            permitted.comment = "\n".join(filter(None, (permitted.comment, outcome.comment)))
        return outcome.verdict

    async def authorize_again(
        self, one: PermittedCall | RefusedCall, scope: CallScope, decision: Decision | None = None
    ) -> PermittedCall | RefusedCall | Pending:
        """Decide on a call that an earlier one of its message, which has run by now, may have changed.

        One that was approved and still makes the same change isn't asked about again. `decision` is for one that
        couldn't be judged before.
        """
        token = is_judged_again.set(True)
        try:
            if isinstance(one, RefusedCall):
                return await self.authorize(one.call, scope, decision)
            return await self._judge_again(one, scope)
        finally:
            is_judged_again.reset(token)

    async def _judge_again(self, one: PermittedCall, scope: CallScope) -> PermittedCall | RefusedCall | Pending:
        before, proposal = one.proposal.intent, one.proposal
        assert before is not None, "an earlier call can only change what an intent says"
        try:
            now = await self._read_intent(proposal.tool, proposal.arguments, scope)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's own checks may raise anything
            return RefusedCall(
                proposal.call, _make_failed(proposal.call, error, proposal.call.arguments), proposal.plain, one.verdict
            )
        proposal = replace(proposal, intent=now, verdict=self._judge(proposal, now, scope))
        if one.was_asked and (_is_same_state(before, now) or is_same_change(before, now)):
            return replace(one, proposal=proposal)
        if proposal.verdict.action == "deny":
            return proposal.deny(proposal.verdict.reason, proposal.verdict.by)
        if proposal.verdict.action == "allow" and not one.was_asked:
            return PermittedCall(proposal, proposal.verdict)
        if one.was_asked and self._approver is None and self._on_ask == "deny":
            return proposal.deny(_CHANGED, _EXECUTOR)
        question = self._make_question(proposal, scope)
        question.request = replace(question.request, is_changed=one.was_asked)
        outcome = await self.ask(question, scope)
        if isinstance(outcome, PermittedCall):
            outcome.edited_from = outcome.edited_from or one.edited_from
            outcome.comment = outcome.comment or one.comment
        return outcome

    async def recheck(self, permitted: PermittedCall, scope: CallScope) -> PermittedCall | RefusedCall:
        """Check a call just before it runs.

        A call that the policy allowed is judged again, since a link may lead elsewhere by now. One that somebody
        approved must have the same precondition.
        """
        proposal = permitted.proposal
        before = proposal.intent
        if before is None:
            return permitted
        if not permitted.was_asked:
            has_folders = list_folders(proposal.tool, scope.workspace)
            is_allowed = not has_folders or self._judge(proposal, before, scope).action == "allow"
            return permitted if is_allowed else proposal.deny(_CHANGED, _EXECUTOR)
        if before.precondition is None:
            return permitted
        try:
            now = await self._read_intent(proposal.tool, proposal.arguments, scope)
        except IntentTimeout:
            return proposal.deny(_CHANGED, _EXECUTOR)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an intent that fails now counts as changed
            return proposal.deny(f"{_CHANGED}: {describe_failure(error, proposal.call.arguments)[1]}", _EXECUTOR)
        return permitted if _is_same_state(before, now) else proposal.deny(_CHANGED, _EXECUTOR)

    async def judge(
        self, call: ToolCall | MalformedCall, scope: CallScope, decision: Decision | None
    ) -> PermittedCall | RefusedCall | ApprovalQuestion:
        """Check and judge a call, and apply `decision`, which was made on it earlier and is bound to it by its hash."""
        if isinstance(call, MalformedCall):
            return RefusedCall(call, make_malformed_result(call), call.raw)
        try:
            tool = self.registry.get(call.name)
        except AttributeError:
            raise ConversationError(f"an executor answers ToolCalls, not {call!r}") from None
        if tool is None:
            result = make_unknown_tool_result(call, self.registry.find_nearest(call.name), self.registry.names)
            return RefusedCall(call, result, decode_for_journal(call.arguments))
        proposal = await self._propose(call, tool, call.arguments, scope)
        if type(proposal) is RefusedCall:
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
        intent = plain = None
        try:
            arguments = tool.rules.bind(text)
            plain = convert_arguments(arguments)
            if tool.intent is not None:
                intent = await self._read_intent(tool, arguments, scope)
            seen = self._add_defaults(tool, plain) if self.policy.matches_arguments else plain
            verdict = self.policy.judge(tool, seen, intent, scope.workspace)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the tool's own checks may raise anything
            unjudged = None if plain is None or tool.intent is None or intent is not None else tool
            return RefusedCall(call, _make_failed(call, error, text), decode_for_journal(text), unjudged=unjudged)
        return ProposedCall(call, tool, arguments, plain, intent, verdict)

    async def _read_intent(self, tool: Tool, arguments: Mapping[str, Any], scope: CallScope) -> Intent:
        return await read_intent(tool, arguments, find_timeout(tool, self._timeout, scope))

    def _judge(self, proposal: ProposedCall, intent: Intent | None, scope: CallScope) -> Verdict:
        """Judge a call anew, with what it would do by now."""
        seen = self._add_defaults(proposal.tool, proposal.plain) if self.policy.matches_arguments else proposal.plain
        return self.policy.judge(proposal.tool, seen, intent, scope.workspace)

    async def ask(self, question: ApprovalQuestion, scope: CallScope) -> PermittedCall | RefusedCall | Pending:
        """Ask the approver about a call, until it decides."""
        approver = self._approver
        if approver is None:
            return self._answer_without_approver(question, scope)
        is_shown = confirms_edits(approver)
        while True:
            with pause_calls():
                answer = approver.decide(question.complete_request() if is_shown else question.request)
                if not inspect.isawaitable(answer):
                    raise PolicyError(f"{type(approver).__name__}.decide must be async, and return a Decision")
                decision = await answer
            outcome = await self._apply(question, decision, scope)
            if outcome is not None:
                return outcome

    def _answer_without_approver(self, question: ApprovalQuestion, scope: CallScope) -> RefusedCall | Pending:
        proposal, reason = question.proposal, question.proposal.verdict.reason
        if self._on_ask == "pause" and not proposal.is_running:
            return Pending(proposal.call, reason, question.complete_request())
        cause = "a running call can't wait" if self._on_ask == "pause" else "nobody can be asked"
        advice = advise_allowing(self._derive_always(proposal, scope))
        return proposal.deny(f"this call needs approval, and {cause} ({reason}); {advice}", NOBODY)

    async def _ask_together(
        self, questions: Mapping[int, ApprovalQuestion], scope: CallScope
    ) -> dict[int, PermittedCall | RefusedCall]:
        """Ask an approver with `decide_all` about several calls, until it has decided on all of them."""
        approver: Any = self._approver
        is_shown = confirms_edits(approver)
        waiting, outcomes = dict(questions), dict[int, PermittedCall | RefusedCall]()
        while waiting:
            with pause_calls():
                requests = [one.complete_request() if is_shown else one.request for one in waiting.values()]
                decisions = await approver.decide_all(requests)
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

    def _judge_waiting(
        self, waiting: dict[int, ApprovalQuestion], scope: CallScope
    ) -> dict[int, PermittedCall | RefusedCall]:
        """Remove and return the calls that needn't be asked about any more, after an "always" to another one."""
        outcomes: dict[int, PermittedCall | RefusedCall] = {}
        for place, question in tuple(waiting.items()):
            proposal = question.proposal
            verdict = self._judge(proposal, proposal.intent, scope)
            if verdict.action == "allow" and proposal is question.original:
                outcomes[place] = PermittedCall(proposal, verdict)
                del waiting[place]
        return outcomes

    def _make_question(self, proposal: ProposedCall, scope: CallScope) -> ApprovalQuestion:
        return ApprovalQuestion(proposal, proposal, self._make_request(proposal, scope))

    def _make_request(self, proposal: ProposedCall, scope: CallScope) -> ApprovalRequest:
        tool, verdict = proposal.tool, proposal.verdict
        always = self._derive_always(proposal, scope) if verdict.action == "ask" else None
        changed, definition_change = self._describe_outdated_always(proposal)
        grants, folders = self.policy.grants, list_folders(tool, scope.workspace)
        defaults = list_defaults(tool, proposal.plain)
        return ApprovalRequest(
            proposal.call,
            tool.name,
            proposal.plain,
            proposal.intent,
            verdict.reason + changed,
            None if always is None else always.scope,
            hash_request(tool.name, proposal.plain, defaults, proposal.intent, definition_change),
            is_running=proposal.is_running,
            workspace=str(folders[0]) if folders else None,
            always_rules=() if always is None else tuple(map(write_rule, always.rules)),
            can_save=always is not None and grants is not None and grants.save is not None,
            added_folders=tuple(map(str, folders[1:])),
            defaults=defaults,
            definition_change=definition_change,
            origin=tool.origin,
        )

    def _describe_outdated_always(self, proposal: ProposedCall) -> tuple[str, Diff | None]:
        """Describe why an "always" for a server's tool doesn't count any more, with the change; empty if none does."""
        tool = proposal.tool
        rule = self.policy.find_outdated_always(tool) if proposal.verdict.by == "profile" else None
        if rule is None:
            return "", None
        if rule.definition is None:
            return '; an earlier "always" was kept without the definition of this tool, so it doesn\'t count', None
        changed = Diff(tool.name, rule.definition, write_definition(tool))
        return '; the server has changed this tool since the last "always"', changed

    def _derive_always(self, proposal: ProposedCall, scope: CallScope) -> Always | None:
        """What an "always" to a call would allow; None if it would not help, or nothing is narrow enough."""
        if proposal.verdict.by != "profile":
            return None
        tool = proposal.tool
        return derive_always(tool, proposal.intent, self.policy.trusts(tool.origin), scope.workspace)

    async def _apply(
        self, question: ApprovalQuestion, decision: Decision, scope: CallScope
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
        self, question: ApprovalQuestion, decision: Decision, scope: CallScope
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
            return before.deny(
                f"the edited arguments were invalid every time: {problem.removeprefix('error: ')}", _EXECUTOR
            )
        question.request = replace(question.request, problem=problem)
        return None

    def _add_defaults(self, tool: Tool, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the function's defaults to the arguments, as rules on arguments see them."""
        if tool.name not in self._defaults:
            parameters = inspect.signature(tool.function).parameters.values()
            self._defaults[tool.name] = {
                one.name: to_json_value(one.default) for one in parameters if one.default is not inspect.Parameter.empty
            }
        return {**self._defaults[tool.name], **plain}


def _make_failed(call: ToolCall, error: BaseException, arguments: str) -> ToolResult:
    """Answer a call whose arguments are invalid, or whose intent failed."""
    if isinstance(error, IntentTimeout):
        return make_error_result(call.id, call.name, "timeout", _NOT_IN_TIME)
    return make_error_result(call.id, call.name, *describe_failure(error, arguments))


def _is_same_state(before: Intent, now: Intent) -> bool:
    """Whether a call still relies on the state that it relied on, and said so."""
    return before.precondition is not None and now.precondition == before.precondition


def _list_with_nested(tools: Iterable[Tool]) -> Iterator[Tool]:
    """These tools, and those of agents among them, which the policy judges too."""
    for tool in tools:
        yield tool
        list_nested = getattr(tool.function, "list_nested_tools", None)
        if list_nested is not None:
            yield from _list_with_nested(list_nested())
