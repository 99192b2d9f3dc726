"""Rules: which calls each matches, and what happens to them; verdicts on calls.

`rule_matching.py` matches patterns, `command_patterns.py` those of commands; `policy.py` puts rules together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, get_args

from ferrule.errors import PolicyError
from ferrule.execution.command_patterns import guess_words, match_words, split_command_pattern
from ferrule.execution.rule_matching import match_argument, match_effect, may_cover_match
from ferrule.tools.intent import Effect, EffectKind
from ferrule.toolspec import Annotations, Approval, JSONSchema

Action = Literal["allow", "ask", "deny"]

VERBS = {"read": "reads", "write": "writes", "run": "runs", "net": "reaches"}
HINTS = ("read_only", "destructive", "idempotent", "open_world")
_LONGEST_DEFINITION = 50_000
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class PolicySubject(Protocol):
    """The part of a tool that a policy uses: a `ToolSpec` and a `Tool` both have it.

    A `Tool` also has `original_name`, its name before `prefixed` and `renamed`: rules that deny or ask match it too;
    and `folders`, see `list_folders` in `profiles.py`.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JSONSchema: ...
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

    `command` names a program by its words, such as `git status`; each word is a shell pattern, and more words may
    follow unless `exact` is true. It matches an effect that carries a program's words: see `command_patterns.py`. If
    the words can't be known, a rule that denies or asks makes the call ask (`find_doubt`).

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
    """Where the tool is defined (`Tool.location`, also without its line): an "always" answer isn't meant for another
    tool of the same name."""
    definition: str | None = None
    """For a tool of a server: its definition when an "always" was answered (`write_definition`), since the server may
    change it. A rule with a `location` and without a definition matches no tool of a server."""
    command: str | None = None
    exact: bool = False
    source: str = field(default="", compare=False)
    """Where this rule is written, such as `policy.toml: rules[2]`, for explanations."""

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise make_choice_error("a rule's action", self.action, get_args(Action))
        if self.effect is not None and self.effect not in get_args(EffectKind):
            raise make_choice_error("a rule's effect", self.effect, get_args(EffectKind))
        for field_name in ("annotations", "arguments"):
            if not isinstance(getattr(self, field_name), Mapping):
                given = getattr(self, field_name)
                raise PolicyError(f"{field_name} of a rule must be a mapping of names, not {given!r}")
        for name in self.annotations:
            if name not in HINTS:
                raise make_choice_error("an annotation of a rule", name, HINTS)
        self._check_patterns()

    def _check_patterns(self) -> None:
        patterns = {"tool": self.tool, "target": self.target or "", "reason": self.reason, **self.arguments}
        for name, pattern in {**patterns, "command": self.command or "-"}.items():
            if not isinstance(pattern, str):
                raise PolicyError(f"{name!r} of a rule must be text, not {pattern!r}")
        if not self.tool:
            raise PolicyError("a rule's tool must be a name or a pattern of names, not ''")
        if self.command is not None:
            split_command_pattern(self.command)
        elif self.exact:
            raise PolicyError("exact of a rule is for its command: add command, or leave exact out")

    def matches(self, tool: PolicySubject, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None) -> bool:
        """Whether this rule applies to a call of `tool` with `arguments` that has `effect`."""
        every = self.action == "allow"
        if (self.effect or self.target is not None) and not match_effect(effect, self.effect, self.target, every):
            return False
        return self._matches_beside_target(tool, hints, arguments, effect)

    def _matches_beside_target(
        self, tool: PolicySubject, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None
    ) -> bool:
        if not self.names(tool):
            return False
        is_answer = self.location is not None or self.definition is not None
        if is_answer and not (self.is_located(tool) and self.is_up_to_date(tool)):
            return False
        if any(getattr(hints, name) is not wanted for name, wanted in self.annotations.items()):
            return False
        every = self.action == "allow"
        if every and effect is not None and effect.is_protected and self.command is None and self.target is None:
            return False
        if self.command is not None and not self._matches_command(effect, every):
            return False
        return all(match_argument(arguments, name, pattern, every) for name, pattern in self.arguments.items())

    def is_located(self, tool: PolicySubject) -> bool:
        """Whether `tool` is defined where this rule says, if it says so."""
        if self.location is None:
            return True
        location = getattr(tool, "location", None)
        return location is not None and self.location in (location, strip_line(location))

    def is_up_to_date(self, tool: PolicySubject) -> bool:
        """Whether `tool` is still defined as it was when this rule was made, if an "always" made it."""
        if self.definition is not None:
            return self.definition == write_definition(tool)
        return self.location is None or not is_of_server(tool)

    def _matches_command(self, effect: Effect | None, every: bool) -> bool:
        if effect is None or self.command is None:
            return False
        words = effect.words
        if not words and not every and effect.kind == "run":
            words = guess_words(effect.target)
        return match_words(words, self.command, every, self.exact)

    def find_doubt(
        self, tool: PolicySubject, hints: Hints, arguments: Mapping[str, Any], effect: Effect | None
    ) -> str | None:
        """Why a rule that denies or asks may apply to `effect`, although it doesn't match it; None if it doesn't.

        Which program is run may not be known, and what is read or written may hold a path that the rule is for.
        """
        if self.action == "allow" or effect is None or not self.names(tool):
            return None
        if self.command is not None and effect.kind == "run" and not effect.words:
            return "which program this runs isn't known"
        if self.target is None or not may_cover_match(effect, self.effect, self.target):
            return None
        if not self._matches_beside_target(tool, hints, arguments, effect):
            return None
        if effect.target == "/":
            return f"which paths this {VERBS[effect.kind]} isn't known"
        return f"this {VERBS[effect.kind]} what is below {effect.target}; name single files"

    def describe(self) -> str:
        """What this rule is for, as a person would say it: its command, its target, or the tools that it names."""
        what = [repr(one) for one in (self.command, self.target) if one is not None]
        if not what:
            return self.tool
        return " on ".join(what) if self.tool == "*" else f"{' on '.join(what)} of {self.tool}"

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
    rule: Rule | None = field(default=None, compare=False)
    """The rule that decided, if one did."""


def is_of_server(tool: PolicySubject) -> bool:
    """Whether a tool is an MCP server's, which may change the tool's definition at any time."""
    return tool.origin.startswith("mcp:")


def write_definition(tool: PolicySubject) -> str:
    """Write what a tool says of itself: its description, parameters and annotations. Equal texts are equal tools.

    What is very long is cut, with its hash.
    """
    hints = {name: value for name in HINTS if (value := getattr(tool.annotations, name)) is not None}
    # The last empty line ends the description, since none is in the JSON.
    schema = json.dumps(tool.parameters, ensure_ascii=False, indent=2, sort_keys=True)
    text = f"{tool.description}\n\nparameters: {schema}\nannotations: {json.dumps(hints)}\n"
    if len(text) <= _LONGEST_DEFINITION:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:_LONGEST_DEFINITION]}\n[{len(text):,} characters, with the SHA-256 {digest}]\n"


def strip_line(location: str) -> str:
    """A tool's location without the line: that of the same tool in the next version of its file."""
    place, _, line = location.rpartition(":")
    return f"{place})" if line.endswith(")") and line[:-1].isdigit() else location


def pick_stricter(first: Verdict, second: Verdict) -> Verdict:
    """Return the stricter of two verdicts; of equally strict ones that of a rule or an "always", else the first."""
    difference = STRICTNESS[second.action] - STRICTNESS[first.action]
    if difference == 0:
        return second if second.by == "rule" or (second.by == "always" and first.by == "profile") else first
    return second if difference > 0 else first


def make_choice_error(what: str, value: object, choices: tuple[str, ...]) -> PolicyError:
    """Make the error for a field that has none of its values."""
    return PolicyError(f"{what} must be one of {', '.join(map(repr, choices))}, not {value!r}")
