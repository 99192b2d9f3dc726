"""Explains what a policy says of a call, and of the calls that a journal recorded: what would change under it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.execution.journal import read_recorded_intent
from ferrule.execution.policy import Policy
from ferrule.execution.proposals import convert_arguments
from ferrule.execution.rules import HINTS, Action, PolicySubject, Rule, Verdict
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import Annotations, ToolSpec

_BY_POLICY = ("rule", "profile", "tool", "always")
"""Who decides, in a journal, where nobody was asked."""


@dataclass(frozen=True, slots=True)
class ExplainedEffect:
    """The verdict on one effect of a call (None: anything that the tool might do), and all rules that match it."""

    effect: Effect | None
    verdict: Verdict
    matching: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on a call, and how each of its effects was judged."""

    verdict: Verdict
    effects: tuple[ExplainedEffect, ...]


def explain_call(
    policy: Policy,
    tool: PolicySubject,
    arguments: Mapping[str, Any],
    intent: Intent | None = None,
    workspace: Path | str | None = None,
) -> Explanation:
    """Explain what `policy` says of a call; the arguments are those of `Policy.judge`."""
    effects = tuple(
        ExplainedEffect(effect, verdict, tuple(policy.find_matching(tool, arguments, effect, workspace)))
        for effect, verdict in policy.judge_each(tool, arguments, intent, workspace)
    )
    return Explanation(policy.judge(tool, arguments, intent, workspace), effects)


async def explain_tool_call(policy: Policy, tool: Tool, text: str, workspace: Path | str | None = None) -> Explanation:
    """Explain what `policy` says of a call of `tool` with these arguments, a JSON text. Nothing but its intent runs.

    Raises `ArgumentsInvalid`, and what the intent raises.
    """
    arguments = tool.rules.bind(text)
    intent = None if tool.intent is None else tool.intent(dict(arguments))
    if inspect.isawaitable(intent):
        intent = await intent
    defaults = {
        one.name: one.default
        for one in inspect.signature(tool.function).parameters.values()
        if one.default is not inspect.Parameter.empty and one.name in tool.spec.parameters.get("properties", {})
    }
    return explain_call(policy, tool, convert_arguments({**defaults, **arguments}), intent, workspace)


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A recorded call, and the verdict of a policy on it. `before` is what the policy then in force said."""

    key: str
    time: float
    tool: str
    arguments: Any
    before: Action
    verdict: Verdict

    @property
    def is_changed(self) -> bool:
        """Whether the two policies disagree."""
        return self.before != self.verdict.action


@dataclass(frozen=True, slots=True)
class JournalVerdicts:
    """The calls of a journal, judged anew; `skipped` were never judged: malformed, or of an older journal."""

    calls: tuple[JudgedCall, ...]
    skipped: int

    @property
    def counts(self) -> Counter[tuple[Action, Action]]:
        """How many calls there are of each pair of verdicts, before and now."""
        return Counter((call.before, call.verdict.action) for call in self.calls)


def judge_journal(
    entries: Iterable[Mapping[str, Any]], policy: Policy, workspace: Path | str | None = None
) -> JournalVerdicts:
    """Judge the recorded calls by `policy`, from what the journal says of their tools and effects.

    Answers that a person gave count as asked. Secrets were scrubbed, so a rule on one doesn't match.
    """
    calls, skipped = [], 0
    for entry in entries:
        if entry.get("event") not in ("started", "refused"):
            continue
        try:
            calls.append(_judge_entry(entry, policy, workspace))
        except (LookupError, TypeError, ValueError):
            skipped += 1
    return JournalVerdicts(tuple(calls), skipped)


def _judge_entry(entry: Mapping[str, Any], policy: Policy, workspace: Path | str | None) -> JudgedCall:
    hints = entry.get("annotations", {})
    annotations = Annotations(**{name: hints.get(name) for name in HINTS})
    tool = ToolSpec(entry["tool"], "", {}, annotations, entry["origin"], entry.get("approval"))
    verdict = policy.judge(tool, entry["arguments"], read_recorded_intent(entry), workspace)
    before: Action = entry["decision"] if entry["by"] in _BY_POLICY else "ask"
    return JudgedCall(entry["key"], entry["time"], tool.name, entry["arguments"], before, verdict)
