"""What may run: rules and a profile, as data, that judge one call each time they are asked.

Among the rules that match, deny > ask > allow, whatever their order; the profile answers only where none matches.
A policy steers; what contains a call is the sandbox. Reading one from a file is `policy_file.py`, asking a person
`approver.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, Protocol

from ferrule.execution.matching import any_matches, effect_matches, escaped, folder_below
from ferrule.intent import Effect, EffectKind, Intent
from ferrule.toolspec import Annotations, Approval

Action = Literal["allow", "ask", "deny"]
Profile = Literal["plan", "ask", "accept-edits", "auto", "all"]

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class Judged(Protocol):
    """What a policy looks at of a tool: a `ToolSpec` and a `Tool` both have it."""

    @property
    def name(self) -> str: ...
    @property
    def annotations(self) -> Annotations: ...
    @property
    def origin(self) -> str: ...
    @property
    def approval(self) -> Approval | None: ...


@dataclass(frozen=True, slots=True)
class Hints:
    """A tool's annotations as they count: what was not said, or said by an origin that isn't trusted, at its worst."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it matches, and what then happens.

    `tool`, `target` and the values of `arguments` are shell patterns (`*`, `?`, `[ab]`; `*` crosses slashes and
    lines). `annotations` wants each hint to be so. `arguments` matches by argument name (`*` for any of them) the
    text of a value, its JSON where it is no string; of a list, an allow rule wants every element, the others one.
    `effect` and `target` match one effect of the call's intent. Everything that is given must match.
    """

    action: Action
    tool: str = "*"
    annotations: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    effect: EffectKind | None = None
    target: str | None = None
    reason: str = ""

    def matches(self, tool: Judged, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None) -> bool:
        """Whether this rule speaks of a call of `tool` with `arguments` that has `effect`."""
        if not fnmatchcase(tool.name, self.tool):
            return False
        if any(getattr(hints, name) is not wanted for name, wanted in self.annotations.items()):
            return False
        if (self.effect or self.target is not None) and not effect_matches(effect, self.effect, self.target):
            return False
        every = self.action == "allow"
        return all(any_matches(arguments, name, pattern, every) for name, pattern in self.arguments.items())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen with one call, why, and whose word it was.

    `by` is `rule`, `profile`, `tool` (its own approval), `always` (an earlier answer), or whoever was asked.
    """

    action: Action
    reason: str = ""
    by: str = "profile"


_ALL = Verdict("allow", "the profile all lets everything run")


@dataclass(frozen=True, slots=True)
class Always:
    """The rules that an "always" answer adds, and their scope in words for who gives it."""

    scope: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules, a profile, and the origins that are trusted.

    `profile` None goes by a tool's origin: `all` for `code`, `ask` for every other. `trusted` holds patterns of
    origins whose annotations, intents and `approval="never"` may also loosen (`code` always is). `always` holds the
    rules that people's "always" answers added: they override the profile's ask, and nothing else.
    """

    rules: tuple[Rule, ...] = ()
    profile: Profile | None = None
    trusted: tuple[str, ...] = ()
    always: tuple[Rule, ...] = ()

    def trusts(self, origin: str) -> bool:
        """Whether what a tool of that origin says of itself may loosen a judgement."""
        return origin == "code" or any(fnmatchcase(origin, pattern) for pattern in self.trusted)

    def hints(self, tool: Judged) -> Hints:
        """The annotations as they count; what wasn't said has MCP's defaults, which are the worst case."""
        said = tool.annotations
        return _counted(said.read_only, said.destructive, said.idempotent, said.open_world, self.trusts(tool.origin))

    def judge(
        self, tool: Judged, arguments: Mapping[str, Any], intent: Intent | None = None, hints: Hints | None = None
    ) -> Verdict:
        """The verdict on one call: each of its effects is judged by itself, and the strictest counts.

        `hints` saves working them out a second time.
        """
        hints = hints or self.hints(tool)
        effects: tuple[Effect | None, ...] = intent.effects if intent is not None and intent.effects else (None,)
        if intent is not None and not self.trusts(tool.origin):
            # What it says it would do counts as well as, not instead of, all that it might do.
            effects = (None, *intent.effects)
        verdict = self._judge_effect(tool, hints, arguments, effects[0])
        for effect in effects[1:]:
            verdict = stricter(verdict, self._judge_effect(tool, hints, arguments, effect))
        is_for_the_tool = verdict.action == "allow" or (verdict.action == "ask" and verdict.by == "profile")
        if tool.approval == "always" and is_for_the_tool:
            return Verdict("ask", f"{tool.name} always asks", "tool")
        if intent is not None and intent.asks and is_for_the_tool:
            return Verdict("ask", f"{tool.name} asks for this call", "tool")
        return verdict

    def with_always(self, always: Always) -> Policy:
        """This policy after an "always" answer."""
        return replace(self, always=self.always + always.rules)

    def _judge_effect(self, tool: Judged, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None) -> Verdict:
        found: Rule | None = None
        for rule in self.rules:
            if found is not None and _STRICTNESS[rule.action] <= _STRICTNESS[found.action]:
                continue
            if rule.matches(tool, hints, arguments, effect):
                found = rule
        if found is not None:
            return Verdict(found.action, found.reason or f"a rule says {found.action} for {found.tool}", "rule")
        verdict = self._profile_verdict(tool, hints, effect)
        if verdict.action != "ask":
            return verdict
        if tool.approval == "never" and self.trusts(tool.origin):
            return Verdict("allow", f"{tool.name} never asks", "tool")
        if any(rule.matches(tool, hints, arguments, effect) for rule in self.always):
            return Verdict("allow", "allowed before, always", "always")
        return verdict

    def _profile_verdict(self, tool: Judged, hints: Hints, effect: Effect | None) -> Verdict:
        profile = self.profile or ("all" if tool.origin == "code" else "ask")
        if profile == "all":
            return _ALL
        if _only_reads(hints, effect):
            return Verdict("allow", f"the profile {profile} lets reading run")
        if profile == "plan":
            return Verdict("deny", "the profile plan lets only reading run; plan the change instead of making it")
        if profile == "accept-edits" and effect is not None and effect.kind == "write":
            return Verdict("allow", "the profile accept-edits lets writing run")
        if profile == "auto" and self.trusts(tool.origin) and tool.annotations.destructive is not True:
            return Verdict("allow", "the profile auto lets run what isn't said to be destructive")
        return Verdict("ask", f"the profile {profile} asks before {_what(tool, effect)}")


@cache  # there are 162 of them, and every call asks for one
def _counted(
    read_only: bool | None, destructive: bool | None, idempotent: bool | None, open_world: bool | None, trusted: bool
) -> Hints:
    """Annotations as they count."""
    reads = read_only is True and trusted
    harmless = (destructive is False and trusted) or (destructive is None and reads)
    return Hints(
        read_only=reads,
        destructive=not harmless,
        idempotent=idempotent is True and trusted,
        open_world=not (open_world is False and trusted),
    )


def stricter(first: Verdict, second: Verdict) -> Verdict:
    """The stricter of two verdicts; where they are equal a rule's word counts, else the first."""
    difference = _STRICTNESS[second.action] - _STRICTNESS[first.action]
    return second if difference > 0 or (difference == 0 and second.by == "rule") else first


def always_for(tool: Judged, intent: Intent | None, trusted: bool) -> Always:
    """What an "always" to this call would cover.

    Without effects (or with effects that an untrusted origin claims) every call of the tool; with them calls that
    do no more than this one, where a path stands for all that is in its folder and below.
    """
    name = escaped(tool.name)
    if intent is None or not intent.effects or not trusted:
        return Always(f"every call of {tool.name}", (Rule("allow", name),))
    targets = {effect: folder_below(effect) for effect in intent.effects}
    rules = tuple(Rule("allow", name, effect=effect.kind, target=target) for effect, target in targets.items())
    scopes = dict.fromkeys(f"{effect.kind} {target}" for effect, target in targets.items())
    return Always(f"{tool.name}: {', '.join(scopes)}", rules)


def _only_reads(hints: Hints, effect: Effect | None) -> bool:
    if effect is None:
        return hints.read_only
    return effect.kind == "read" or (effect.kind == "net" and hints.read_only)


def _what(tool: Judged, effect: Effect | None) -> str:
    if effect is None:
        return f"{tool.name}, which isn't known to read only"
    return f"{tool.name} may {_VERBS[effect.kind]} {effect.target}".rstrip()


_VERBS = {"read": "read", "write": "write", "run": "run", "net": "reach"}
