"""The policy: rules and a profile, as data, that decide on one call at a time.

Among the rules that match, deny > ask > allow, whatever their order; the profile applies only where none matches.
A policy is advice about calls; it is the sandbox that contains them. `rules.py` has the rules, `profiles.py` the
profiles, `policy_file.py` reads a policy from a file, `approver.py` asks a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

from ferrule.errors import PolicyError
from ferrule.execution.always import Always, SessionGrants
from ferrule.execution.command_patterns import split_command_pattern
from ferrule.execution.command_scope import find_uncovered_word
from ferrule.execution.profiles import ALLOW_ALL, Profile, judge_by_profile, list_folders, resolve_hints
from ferrule.execution.rule_matching import find_effect_outside
from ferrule.execution.rules import (
    STRICTNESS,
    Hints,
    PolicySubject,
    Rule,
    Verdict,
    is_of_server,
    make_choice_error,
    pick_stricter,
)
from ferrule.tools.intent import Effect, Intent


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules, a profile, and trusted origins.

    If `profile` is None it depends on a tool's origin: `all` for `code`, `ask` for others, and for tools that work in
    folders, such as those of the coding agent. `trusted` has patterns of
    the origins (besides `code`) whose annotations, intents and `approval="never"` may also loosen a verdict. `always`
    has the rules that "always" answers added: they override an ask of the profile, and nothing else. An executor adds
    to them for its own run; with `grants` the answers are stored there instead, for the whole session. `within` is a
    policy that this one can only tighten, such as that of the run above a sub-agent: the stricter verdict counts.
    `is_shared`: the rules are for more tools than one run offers, so that one which matches none is no mistake.

    Raises `PolicyError` for an unknown profile or an invalid rule.
    """

    rules: tuple[Rule, ...] = ()
    profile: Profile | None = None
    trusted: tuple[str, ...] = ()
    always: tuple[Rule, ...] = ()
    grants: SessionGrants | None = None
    within: Policy | None = None
    is_shared: bool = False
    matches_arguments: bool = field(init=False, repr=False, compare=False)
    """Whether a rule looks at arguments, so that the defaults of a function matter."""

    def __post_init__(self) -> None:
        if self.profile is not None and self.profile not in get_args(Profile):
            raise make_choice_error("the profile", self.profile, get_args(Profile))
        _check_rules("rules", self.rules)
        _check_rules("always", self.always)
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "always", tuple(self.always))
        trusted: object = self.trusted
        if not isinstance(trusted, tuple | list) or not all(isinstance(origin, str) for origin in trusted):
            raise PolicyError(f"trusted must be a tuple of patterns of origins, not {trusted!r}")
        reads = any(rule.arguments for rule in (*self.rules, *self.always))
        object.__setattr__(
            self, "matches_arguments", reads or (self.within is not None and self.within.matches_arguments)
        )

    def trusts(self, origin: str) -> bool:
        """Whether what a tool of this origin declares about itself may loosen a verdict."""
        return origin == "code" or any(fnmatchcase(origin, pattern) for pattern in self.trusted)

    def resolve_hints(self, tool: PolicySubject) -> Hints:
        """Return the effective annotations; missing ones have MCP's defaults, which are the worst case."""
        said = tool.annotations
        return resolve_hints(
            said.read_only, said.destructive, said.idempotent, said.open_world, self.trusts(tool.origin)
        )

    def judge(
        self,
        tool: PolicySubject,
        arguments: Mapping[str, Any],
        intent: Intent | None = None,
        workspace: Path | str | None = None,
    ) -> Verdict:
        """Decide on one call: each of its effects is judged separately, and the strictest verdict counts.

        `arguments` are JSON values. `workspace` is the folder outside of which all profiles but `all` ask, besides
        those that the tool works in; links are followed now, so judge again before a later run.
        """
        try:
            own = self._judge_alone(tool, arguments, intent, workspace)
        except AttributeError:
            if hasattr(tool, "origin"):
                raise
            raise PolicyError(f"a policy judges a Tool or a ToolSpec, such as tool(f), not {tool!r}") from None
        if self.within is None:
            return own
        return _tighten(own, self.within.judge(tool, arguments, intent, workspace))

    def _judge_alone(
        self, tool: PolicySubject, arguments: Mapping[str, Any], intent: Intent | None, workspace: Path | str | None
    ) -> Verdict:
        if intent is None:
            verdict = self._judge_effect(tool, arguments, None, workspace)
        else:
            effects = self._list_effects(tool, intent)
            verdict = self._judge_effect(tool, arguments, effects[0], workspace)
            for effect in effects[1:]:
                verdict = pick_stricter(verdict, self._judge_effect(tool, arguments, effect, workspace))
        if tool.approval == "always" and _may_be_asked(verdict):
            return Verdict("ask", f"{tool.name} always asks", "tool")
        if intent is not None and intent.asks and _may_be_asked(verdict):
            return Verdict("ask", f"{tool.name} asks for this call", "tool")
        return verdict

    def judge_each(
        self,
        tool: PolicySubject,
        arguments: Mapping[str, Any],
        intent: Intent | None = None,
        workspace: Path | str | None = None,
    ) -> list[tuple[Effect | None, Verdict]]:
        """Decide on each effect of a call by itself; None stands for anything that the tool might do."""
        judged = []
        for effect in self._list_effects(tool, intent):
            verdict, policy = self._judge_effect(tool, arguments, effect, workspace), self.within
            while policy is not None:
                verdict = _tighten(verdict, policy._judge_effect(tool, arguments, effect, workspace))
                policy = policy.within
            judged.append((effect, verdict))
        return judged

    def find_matching(
        self,
        tool: PolicySubject,
        arguments: Mapping[str, Any],
        effect: Effect | None,
        workspace: Path | str | None = None,
    ) -> list[Rule]:
        """Find all rules that match one effect of a call, of earlier "always" answers too, the strictest first."""
        policies: list[Policy] = [self]
        while policies[-1].within is not None:
            policies.append(policies[-1].within)
        folders, found = list_folders(tool, workspace), list[Rule]()
        for policy in policies:
            hints = policy.resolve_hints(tool)
            granted = policy.grants.rules if policy.grants is not None else ()
            for rule in (*policy.rules, *policy.always, *granted):
                is_match = _is_for(rule, tool, hints, arguments, effect, folders)
                if (is_match or rule.find_doubt(tool, hints, arguments, effect)) and rule not in found:
                    found.append(rule)
        return sorted(found, key=lambda rule: -STRICTNESS[rule.action])

    def find_outdated_always(self, tool: PolicySubject) -> Rule | None:
        """Find the last "always" for a server's tool whose definition is another now; None if one is up to date."""
        if not is_of_server(tool):
            return None
        granted = self.grants.rules if self.grants is not None else ()
        found = [rule for rule in (*self.always, *granted) if rule.names(tool) and rule.is_located(tool)]
        if any(rule.is_up_to_date(tool) for rule in found):
            return None
        if found:
            return found[-1]
        return None if self.within is None else self.within.find_outdated_always(tool)

    def _list_effects(self, tool: PolicySubject, intent: Intent | None) -> tuple[Effect | None, ...]:
        if intent is None or not intent.effects:
            return (None,)
        # The claimed effects of a tool that isn't trusted are judged in addition to anything that it might do.
        return intent.effects if self.trusts(tool.origin) else (None, *intent.effects)

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
                near = find_nearest_names(
                    missing[0], sorted({name for tool in named for name in _list_arguments(tool)})
                )
                cure = f"; did you mean {near[0]}?" if near else ""
                problems.append(
                    f"the rule {rule.action} for {rule.tool!r}: no matching tool has an argument {missing[0]!r}{cure}"
                )
            if (
                rule.command is not None
                and rule.tool != "*"
                and named
                and all(getattr(tool, "intent", True) is None for tool in named)
            ):
                problems.append(
                    f"the rule {rule.action} for {rule.describe()}: no matching tool says which commands it runs, "
                    "so it never matches"
                )
        return problems

    def _judge_effect(
        self, tool: PolicySubject, arguments: Mapping[str, Any], effect: Effect | None, workspace: Path | str | None
    ) -> Verdict:
        profile = self.profile or ("all" if tool.origin == "code" and not getattr(tool, "folders", ()) else "ask")
        if profile == "all" and not self.rules:
            return ALLOW_ALL
        folders = list_folders(tool, workspace)
        hints = self.resolve_hints(tool)
        found: Rule | None = None
        unclear: tuple[Rule, str] | None = None
        for rule in self.rules:
            if found is not None and STRICTNESS[rule.action] <= STRICTNESS[found.action]:
                continue
            if _is_for(rule, tool, hints, arguments, effect, folders):
                found = rule
            elif unclear is None and (doubt := rule.find_doubt(tool, hints, arguments, effect)):
                unclear = rule, doubt
        if found is not None and (unclear is None or found.action != "allow"):
            return Verdict(
                found.action, found.reason or f"a rule says {found.action} for {found.describe()}", "rule", found
            )
        verdict = judge_by_profile(profile, tool, hints, effect, is_trusted=self.trusts(tool.origin), folders=folders)
        if unclear is not None and verdict.action != "deny":
            rule, doubt = unclear
            said = f": {rule.reason}" if rule.reason else ""
            return Verdict("ask", f"a rule says {rule.action} for {rule.describe()}, and {doubt}{said}", "rule", rule)
        return self._loosen(verdict, tool, hints, arguments, effect, folders) if verdict.action == "ask" else verdict

    def _loosen(
        self,
        verdict: Verdict,
        tool: PolicySubject,
        hints: Hints,
        arguments: Mapping[str, Any],
        effect: Effect | None,
        folders: tuple[Path, ...],
    ) -> Verdict:
        """Apply what overrides an ask of the profile: a tool that never asks, and earlier "always" answers."""
        if tool.approval == "never" and self.trusts(tool.origin):
            return Verdict("allow", f"{tool.name} never asks", "tool")
        for rule in self.always if self.grants is None else (*self.always, *self.grants.rules):
            if _is_for(rule, tool, hints, arguments, effect, folders):
                return Verdict("allow", rule.reason or 'allowed by an earlier "always"', "always", rule)
        return verdict


def _tighten(own: Verdict, outer: Verdict) -> Verdict:
    """The stricter verdict; of equal ones that of the policy itself, if just the profile of the outer one decided."""
    if outer.by == "profile" and outer.action == own.action:
        return own
    return pick_stricter(outer, own)


def _is_for(
    rule: Rule,
    tool: PolicySubject,
    hints: Hints,
    arguments: Mapping[str, Any],
    effect: Effect | None,
    folders: tuple[Path, ...],
) -> bool:
    """Whether a rule applies to an effect of a call, and covers it."""
    return rule.matches(tool, hints, arguments, effect) and not _exceeds_command(rule, effect, folders)


def _exceeds_command(rule: Rule, effect: Effect | None, folders: tuple[Path, ...]) -> bool:
    """Whether a command that `rule` allows has an effect outside of the folders, which the rule's target must name.

    Reading outside is also allowed by an exact command: that is what its words say. Any other doesn't cover further
    words that lead outside, or change what is run: see `command_scope.py`.
    """
    if rule.command is None or rule.action != "allow" or rule.target is not None:
        return False
    if not rule.exact and effect is not None:
        count = len(split_command_pattern(rule.command))
        if find_uncovered_word(effect.words, count, folders) is not None:
            return True
    if effect is not None and effect.kind == "read" and rule.exact:
        return False
    return find_effect_outside(effect, folders) is not None


def _may_be_asked(verdict: Verdict) -> bool:
    """Whether a tool that asks for approval overrides this verdict."""
    return verdict.action == "allow" or (verdict.action == "ask" and verdict.by == "profile")


def _has_argument(tool: PolicySubject, argument: str) -> bool:
    """Whether a tool may have an argument of this name, by its schema."""
    schema = getattr(tool, "parameters", None)
    if not isinstance(schema, Mapping) or schema.get("additionalProperties", True) is not False:
        return True
    return argument in schema.get("properties", {})


def _list_arguments(tool: PolicySubject) -> Iterable[str]:
    schema = getattr(tool, "parameters", None)
    return schema.get("properties", {}) if isinstance(schema, Mapping) else ()


def _check_rules(name: str, rules: object) -> None:
    if isinstance(rules, str):
        raise PolicyError(f"{name} must be rules, not {rules!r}; pass a profile as Policy(profile={rules!r})")
    if isinstance(rules, Rule):
        raise PolicyError(f"{name} must be a tuple of rules, not one rule; pass ({rules!r},)")
    wrong = [rule for rule in rules if not isinstance(rule, Rule)] if isinstance(rules, Iterable) else [rules]
    if wrong:
        raise PolicyError(f"{name} must contain only Rule(...), not {wrong[0]!r}")
