"""The examples of a rule, which are checked when it is read: what it matches, and what it doesn't.

An example is a text: a command line for a rule with `command`, else a path or an address for one with `target`, the
value of the argument for one with a single argument, and the name of a tool for any other. Or it is a table of
arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ferrule.errors import PolicyError
from ferrule.execution.rules import Hints, Rule
from ferrule.tools.intent import Effect
from ferrule.toolspec import ToolSpec

Example = str | dict[str, Any]


MOST_EXAMPLES = 1000
MOST_CHARACTERS = 30_000
"""Of all examples of a file together: each may be a command line, which takes time to read."""


def check_cost(examples: Sequence[Example], source: str) -> None:
    """Check that the examples of a file aren't too many to be checked quickly. Raises `PolicyError`."""
    characters = sum(len(str(example)) for example in examples)
    if len(examples) > MOST_EXAMPLES or characters > MOST_CHARACTERS:
        raise PolicyError(
            f"{source}: matches and not_matches have {len(examples):,} examples of {characters:,} characters in all; "
            f"at most {MOST_EXAMPLES:,} of {MOST_CHARACTERS:,} are checked, so keep fewer"
        )


def check_examples(rule: Rule, matches: Iterable[Example], not_matches: Iterable[Example]) -> None:
    """Check that a rule matches the examples in `matches` and none in `not_matches`.

    An allow rule matches a command line if it matches all that the line does, another one if it matches a part.
    Raises `PolicyError`, which names the example and says what it was judged as.
    """
    for is_wanted, examples in ((True, matches), (False, not_matches)):
        for example in examples:
            matched, judged = _judge_example(rule, example)
            if matched is not is_wanted:
                field, found = ("matches", "doesn't match") if is_wanted else ("not_matches", "matches")
                raise PolicyError(
                    f"{field}: the rule {rule.action} for {rule.describe():.100} {found} {example!r:.100}, "
                    f"judged as {judged:.200}; correct the rule or the example"
                )


def _judge_example(rule: Rule, example: Example) -> tuple[bool, str]:
    """Whether the rule matches an example, and what the example was taken for."""
    if isinstance(example, dict):
        return _match_arguments(rule, example), "a call with these arguments"
    if rule.command is not None:
        return _match_command_line(rule, example)
    if rule.target is not None:
        effects = (Effect(rule.effect or "read", example),)
        return _match_effects(rule, effects), f"the effect {_describe(effects)}"
    if len(rule.arguments) == 1:
        (name,) = rule.arguments
        return _match_arguments(rule, {name: example}), f"a call with {name} = {example!r}"
    return rule.names(ToolSpec(example, "", {})), "the name of a tool"


def _match_command_line(rule: Rule, example: str) -> tuple[bool, str]:
    from ferrule.sandbox.shell.command_line import parse_command_line

    line = parse_command_line(example, os.getcwd(), looks=False)  # noqa: PTH109 - a text is wanted
    if line.problem and find_spec("tree_sitter_bash") is None:
        raise PolicyError(f"its examples can't be checked: {line.problem}")
    if line.problem:
        return False, f"a command line that can't be read: {line.problem}"
    return _match_effects(rule, line.effects), _describe(line.effects)


def _match_effects(rule: Rule, effects: tuple[Effect, ...]) -> bool:
    # What else the rule asks for isn't in the example.
    alone = replace(rule, tool="*", arguments={}, annotations={}, location=None)
    matched = [alone.matches(_ANY_TOOL, _ANY_HINTS, {}, effect) for effect in effects]
    return bool(matched) and (all(matched) if rule.action == "allow" else any(matched))


def _match_arguments(rule: Rule, arguments: Mapping[str, Any]) -> bool:
    alone = Rule(rule.action, arguments=rule.arguments)
    return alone.matches(_ANY_TOOL, _ANY_HINTS, arguments, None)


def _describe(effects: tuple[Effect, ...]) -> str:
    return ", ".join(f"{effect.kind} {effect.target}".rstrip() for effect in effects) or "nothing"


_ANY_TOOL = ToolSpec("any", "", {})
_ANY_HINTS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
