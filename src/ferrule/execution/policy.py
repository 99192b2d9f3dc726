"""The policy: rules and a profile, as data, that decide on one call at a time.

Among the rules that match, deny > ask > allow, whatever their order; the profile applies only where none matches.
A policy is advice about calls; it is the sandbox that contains them. `policy_file.py` reads a policy from a file,
`approver.py` asks a person.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from ferrule.errors import PolicyError
from ferrule.execution.rule_matching import (
    escape_pattern,
    find_path_outside,
    make_folder_pattern,
    match_argument,
    match_effect,
)
from ferrule.tools.intent import Effect, EffectKind, Intent
from ferrule.toolspec import Annotations, Approval

Action = Literal["allow", "ask", "deny"]
Profile = Literal["plan", "ask", "accept-edits", "auto", "all"]

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class PolicySubject(Protocol):
    """The part of a tool that a policy uses: a `ToolSpec` and a `Tool` both have it.

    A `Tool` also has `original_name`, its name before `prefixed` and `renamed`: rules that deny or ask match it too.
    """

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
    """The effective annotations of a tool: the worst case where they are missing or not trusted."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: which calls it matches, and what happens to them.

    `tool`, `target` and the values of `arguments` are shell patterns (`*`, `?`, `[ab]`; `*` also matches slashes and
    line ends). Each hint in `annotations` must have the given value. `arguments` maps argument names (`*` for any
    argument) to patterns for the text of the value, or for its JSON if it isn't a string; in a list, an allow rule
    requires every element to match, the others one. `effect` and `target` match one effect of the call's intent. All
    given fields must match. A value such as `/ws/../etc/passwd` doesn't match an allow rule for `/ws/*`, but matches a
    deny rule for `/etc/*`: see `rule_matching.py`. A rule that denies or asks also matches a tool by its original name
    before `prefixed` and `renamed`.

    Raises `PolicyError` for an invalid field.
    """

    action: Action
    tool: str = "*"
    annotations: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    effect: EffectKind | None = None
    target: str | None = None
    reason: str = ""
    location: str | None = None
    """Where the tool is defined (`Tool.location`): an "always" answer isn't meant for another tool of the same name."""

    def __post_init__(self) -> None:
        _check_choice("a rule's action", self.action, get_args(Action))
        if self.effect is not None:
            _check_choice("a rule's effect", self.effect, get_args(EffectKind))
        for field_name in ("annotations", "arguments"):
            if not isinstance(getattr(self, field_name), Mapping):
                given = getattr(self, field_name)
                raise PolicyError(f"{field_name} of a rule must be a mapping of names, not {given!r}")
        for name in self.annotations:
            _check_choice("an annotation of a rule", name, _HINTS)
        patterns = {"tool": self.tool, "target": self.target or "", "reason": self.reason, **self.arguments}
        for name, pattern in patterns.items():
            if not isinstance(pattern, str):
                raise PolicyError(f"{name!r} of a rule must be text, not {pattern!r}")
        if not self.tool:
            raise PolicyError("a rule's tool must be a name or a pattern of names, not ''")

    def matches(self, tool: PolicySubject, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None) -> bool:
        """Whether this rule applies to a call of `tool` with `arguments` that has `effect`."""
        if not self.names(tool):
            return False
        if self.location is not None and getattr(tool, "location", None) != self.location:
            return False
        if any(getattr(hints, name) is not wanted for name, wanted in self.annotations.items()):
            return False
        every = self.action == "allow"
        if (self.effect or self.target is not None) and not match_effect(effect, self.effect, self.target, every):
            return False
        return all(match_argument(arguments, name, pattern, every) for name, pattern in self.arguments.items())

    def names(self, tool: PolicySubject) -> bool:
        """Whether this rule's pattern matches the name of `tool`."""
        if fnmatchcase(tool.name, self.tool):
            return True
        original = getattr(tool, "original_name", None)
        return self.action != "allow" and original is not None and fnmatchcase(original, self.tool)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to a call, why, and who decided.

    `by` is `rule`, `profile`, `tool` (its own approval), `always` (an earlier answer), or who was asked.
    """

    action: Action
    reason: str = ""
    by: str = "profile"


_ALL = Verdict("allow", "the profile all allows everything")


@dataclass(frozen=True, slots=True)
class Always:
    """The rules that an "always" answer adds, and a description of their scope for the person who gives it."""

    scope: str
    rules: tuple[Rule, ...]


class SessionGrants:
    """The rules that "always" answers add in a session.

    They apply to every run and executor whose `Policy` has this object, and to copies of it by `dataclasses.replace`.
    Thread-safe.
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self.rules: tuple[Rule, ...] = tuple(rules)
        """The rules so far, without duplicates, in the order in which they were added."""

    def add(self, always: Always) -> None:
        """Add the rules of one answer."""
        with self._lock:
            self.rules += tuple(rule for rule in always.rules if rule not in self.rules)


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules, a profile, and trusted origins.

    If `profile` is None it depends on a tool's origin: `all` for `code`, `ask` for others. `trusted` has patterns of
    the origins (besides `code`) whose annotations, intents and `approval="never"` may also loosen a verdict. `always`
    has the rules that "always" answers added: they override an ask of the profile, and nothing else. An executor adds
    to them for its own run; with `grants` the answers are stored there instead, for the whole session. `within` is a
    policy that this one can only tighten, such as that of the run above a sub-agent: the stricter verdict counts.

    Raises `PolicyError` for an unknown profile or an invalid rule.
    """

    rules: tuple[Rule, ...] = ()
    profile: Profile | None = None
    trusted: tuple[str, ...] = ()
    always: tuple[Rule, ...] = ()
    grants: SessionGrants | None = None
    within: Policy | None = None

    def __post_init__(self) -> None:
        if self.profile is not None:
            _check_choice("the profile", self.profile, get_args(Profile))
        _check_rules("rules", self.rules)
        _check_rules("always", self.always)
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "always", tuple(self.always))
        _check_origins(self.trusted)

    def trusts(self, origin: str) -> bool:
        """Whether what a tool of this origin declares about itself may loosen a verdict."""
        return origin == "code" or any(fnmatchcase(origin, pattern) for pattern in self.trusted)

    def resolve_hints(self, tool: PolicySubject) -> Hints:
        """Return the effective annotations; missing ones have MCP's defaults, which are the worst case."""
        said = tool.annotations
        return _resolve_hints(
            said.read_only, said.destructive, said.idempotent, said.open_world, self.trusts(tool.origin)
        )

    def judge(
        self,
        tool: PolicySubject,
        arguments: Mapping[str, Any],
        intent: Intent | None = None,
        workspace: Path | None = None,
    ) -> Verdict:
        """Decide on one call: each of its effects is judged separately, and the strictest verdict counts.

        `arguments` are JSON values. `workspace` is the folder outside of which the profiles `accept-edits` and `auto`
        ask; links are followed now, so judge again before a later run.
        """
        own = self._judge_alone(tool, arguments, intent, workspace)
        return own if self.within is None else pick_stricter(self.within.judge(tool, arguments, intent, workspace), own)

    def _judge_alone(
        self, tool: PolicySubject, arguments: Mapping[str, Any], intent: Intent | None, workspace: Path | None
    ) -> Verdict:
        if intent is None:
            verdict = self._judge_effect(tool, arguments, None, workspace)
        else:
            effects: tuple[Effect | None, ...] = intent.effects or (None,)
            if not self.trusts(tool.origin):
                # Its claimed effects are judged in addition to, not instead of, anything that it might do.
                effects = (None, *intent.effects)
            verdict = self._judge_effect(tool, arguments, effects[0], workspace)
            for effect in effects[1:]:
                verdict = pick_stricter(verdict, self._judge_effect(tool, arguments, effect, workspace))
        if tool.approval == "always" and _may_be_asked(verdict):
            return Verdict("ask", f"{tool.name} always asks", "tool")
        if intent is not None and intent.asks and _may_be_asked(verdict):
            return Verdict("ask", f"{tool.name} asks for this call", "tool")
        return verdict

    def with_always(self, always: Always) -> Policy:
        """Return the policy after an "always" answer: itself if it has `grants`, which then store the answer."""
        within = None if self.within is None else self.within.with_always(always)
        if self.grants is None:
            return replace(self, always=self.always + always.rules, within=within)
        self.grants.add(always)
        return self if within is self.within else replace(self, within=within)

    def narrow(self, within: Policy) -> Policy:
        """Return this policy as one that allows nothing beyond `within`."""
        if self.within is within:
            return self
        return replace(self, within=within if self.within is None else self.within.narrow(within))

    def find_unused(self, tools: Iterable[PolicySubject]) -> list[str]:
        """Find rules that name an unknown tool or argument; returns a sentence for each.

        Builds the schemas of `tools`. Raises `ToolDefinitionError` for a type without a schema.
        """
        from ferrule.tools.registry import find_nearest_names

        tools, problems = tuple(tools), []
        for rule in self.rules:
            named = [tool for tool in tools if rule.names(tool)]
            if not named and tools:
                names = [tool.name for tool in tools]
                near = find_nearest_names(rule.tool, names)
                cure = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
                problems.append(f"the rule {rule.action} for {rule.tool!r} matches no tool; {cure}")
            missing = [
                name for name in rule.arguments if name != "*" and not any(_has_argument(tool, name) for tool in named)
            ]
            if named and missing:
                problems.append(
                    f"the rule {rule.action} for {rule.tool!r}: no matching tool has an argument {missing[0]!r}"
                )
        return problems

    def _judge_effect(
        self, tool: PolicySubject, arguments: Mapping[str, Any], effect: Effect | None, workspace: Path | None
    ) -> Verdict:
        profile = self.profile or ("all" if tool.origin == "code" else "ask")
        if not self.rules and profile == "all":
            return _ALL
        hints, found = self.resolve_hints(tool), None
        for rule in self.rules:
            if found is not None and _STRICTNESS[rule.action] <= _STRICTNESS[found.action]:
                continue
            if rule.matches(tool, hints, arguments, effect):
                found = rule
        if found is not None:
            return Verdict(found.action, found.reason or f"a rule says {found.action} for {found.tool}", "rule")
        verdict = self._judge_by_profile(profile, tool, hints, effect, workspace)
        if verdict.action != "ask":
            return verdict
        if tool.approval == "never" and self.trusts(tool.origin):
            return Verdict("allow", f"{tool.name} never asks", "tool")
        granted = self.always if self.grants is None else (*self.always, *self.grants.rules)
        if any(rule.matches(tool, hints, arguments, effect) for rule in granted):
            return Verdict("allow", 'allowed by an earlier "always"', "always")
        return verdict

    def _judge_by_profile(
        self, profile: Profile, tool: PolicySubject, hints: Hints, effect: Effect | None, workspace: Path | None
    ) -> Verdict:
        if profile == "all":
            return _ALL
        if profile in ("accept-edits", "auto"):
            problem = _find_outside_access(profile, tool, effect, workspace)
            if problem is not None:
                return Verdict("ask", f"the profile {profile} asks before {tool.name} may {problem}")
        if _only_reads(hints, effect):
            return Verdict("allow", f"the profile {profile} allows reading")
        if profile == "plan":
            return Verdict("deny", "the profile plan allows only reading; plan the change instead of making it")
        if profile == "accept-edits" and effect is not None and effect.kind == "write":
            return Verdict("allow", "the profile accept-edits allows writing")
        if profile == "auto" and self.trusts(tool.origin) and tool.annotations.destructive is not True:
            return Verdict("allow", "the profile auto allows what isn't annotated as destructive")
        return Verdict("ask", f"the profile {profile} asks before {_describe_effect(tool, effect)}")


def _find_outside_access(
    profile: Profile, tool: PolicySubject, effect: Effect | None, workspace: Path | None
) -> str | None:
    """Describe an effect outside the workspace, or under `auto` on the network; None for any other effect."""
    if effect is None:
        return "reach the network" if profile == "auto" and tool.annotations.open_world is True else None
    if effect.kind == "net":
        return f"reach {effect.target or 'the network'}" if profile == "auto" else None
    if workspace is None or effect.kind not in ("read", "write"):
        return None
    outside = find_path_outside(effect.target, workspace)
    return None if outside is None else f"{effect.kind} outside the workspace: {outside}"


def _may_be_asked(verdict: Verdict) -> bool:
    """Whether a tool that asks for approval overrides this verdict."""
    return verdict.action == "allow" or (verdict.action == "ask" and verdict.by == "profile")


def _has_argument(tool: PolicySubject, argument: str) -> bool:
    """Whether a tool may have an argument of this name, by its schema."""
    schema = getattr(tool, "parameters", None)
    if not isinstance(schema, Mapping) or schema.get("additionalProperties", True) is not False:
        return True
    return argument in schema.get("properties", {})


def _check_rules(name: str, rules: object) -> None:
    if isinstance(rules, str):
        raise PolicyError(f"{name} must be rules, not {rules!r}; pass a profile as Policy(profile={rules!r})")
    if isinstance(rules, Rule):
        raise PolicyError(f"{name} must be a tuple of rules, not one rule; pass ({rules!r},)")
    wrong = [rule for rule in rules if not isinstance(rule, Rule)] if isinstance(rules, Iterable) else [rules]
    if wrong:
        raise PolicyError(f"{name} must contain only Rule(...), not {wrong[0]!r}")


def _check_origins(trusted: object) -> None:
    if not isinstance(trusted, tuple | list) or not all(isinstance(origin, str) for origin in trusted):
        raise PolicyError(f"trusted must be a tuple of patterns of origins, not {trusted!r}")


def _check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise PolicyError(f"{what} must be one of {', '.join(map(repr, choices))}, not {value!r}")


_HINTS = ("read_only", "destructive", "idempotent", "open_world")


@cache  # there are 162 combinations, and every call looks one up
def _resolve_hints(
    read_only: bool | None, destructive: bool | None, idempotent: bool | None, open_world: bool | None, trusted: bool
) -> Hints:
    """Resolve annotations to their effective values."""
    reads = read_only is True and trusted
    harmless = (destructive is False and trusted) or (destructive is None and reads)
    return Hints(
        read_only=reads,
        destructive=not harmless,
        idempotent=idempotent is True and trusted,
        open_world=not (open_world is False and trusted),
    )


def pick_stricter(first: Verdict, second: Verdict) -> Verdict:
    """Return the stricter of two verdicts; of equally strict ones that of a rule, else the first."""
    difference = _STRICTNESS[second.action] - _STRICTNESS[first.action]
    return second if difference > 0 or (difference == 0 and second.by == "rule") else first


def derive_always(tool: PolicySubject, intent: Intent | None, trusted: bool) -> Always:
    """Derive what an "always" to this call would allow.

    Without effects, or with effects claimed by an untrusted origin, that is every call of the tool. With effects it is
    calls that do no more than this one, where a path stands for everything in its folder and below.
    """
    name, location = escape_pattern(tool.name), getattr(tool, "location", None)
    if intent is None or not intent.effects or not trusted:
        return Always(f"every call of {tool.name}", (Rule("allow", name, location=location),))
    targets = {effect: make_folder_pattern(effect) for effect in intent.effects}
    rules = tuple(
        Rule("allow", name, effect=effect.kind, target=target, location=location) for effect, target in targets.items()
    )
    scopes = dict.fromkeys(f"{effect.kind} {target}" for effect, target in targets.items())
    return Always(f"{tool.name}: {', '.join(scopes)}", rules)


def _only_reads(hints: Hints, effect: Effect | None) -> bool:
    if effect is None:
        return hints.read_only
    return effect.kind == "read" or (effect.kind == "net" and hints.read_only)


def _describe_effect(tool: PolicySubject, effect: Effect | None) -> str:
    if effect is None:
        return f"{tool.name}, which isn't known to be read-only"
    return f"{tool.name} may {_VERBS[effect.kind]} {effect.target}".rstrip()


_VERBS = {"read": "read", "write": "write", "run": "run", "net": "reach"}
