"""Reads a policy from TOML or plain data, and validates each field.

profile = "ask"
trusted = ["project"]

[[rules]]
tool = "bash"
arguments = { command = "rm *" }
action = "deny"
reason = "move files to the bin instead"
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict
from pydantic_core import ValidationError

from ferrule._util import toml_text
from ferrule.errors import PolicyError
from ferrule.execution.policy import Policy
from ferrule.execution.profiles import Profile
from ferrule.execution.rule_examples import Example, check_cost, check_examples
from ferrule.execution.rules import Action, Rule
from ferrule.sandbox.own_files import protect_own_file
from ferrule.tools.intent import EffectKind
from ferrule.tools.registry import find_nearest_names

_MOST_PROBLEMS = 10
_LISTS = ("list_type", "tuple_type", "too_short")
_Hint = Literal["read_only", "destructive", "idempotent", "open_world"]


class RuleData(BaseModel):
    """A rule: see `policy.Rule`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Action
    tool: str = "*"
    annotations: dict[_Hint, bool] = {}
    arguments: dict[str, str] = {}
    effect: EffectKind | None = None
    target: str | None = None
    command: str | None = None
    exact: bool = False
    reason: str = ""
    matches: list[Example] = []
    """Examples that the rule matches: see `rule_examples.py`."""
    not_matches: list[Example] = []
    """Examples that it doesn't match."""


class PolicyData(BaseModel):
    """A whole policy: see `policy.Policy`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    profile: Profile | None = None
    trusted: list[str] = []
    rules: list[RuleData] = []


def parse_policy(data: Mapping[str, Any], source: str = "policy") -> Policy:
    """Parse a policy from plain data. Raises `PolicyError`, whose text starts with `source` and names the field."""
    try:
        checked = PolicyData.model_validate(dict(data))
    except ValidationError as error:
        raise PolicyError("\n".join(describe_invalid_data(error, source, PolicyData))) from None
    return check_policy(checked, source)


def check_policy(data: PolicyData, source: str, section: str = "") -> Policy:
    """Make a policy as `make_policy` does, and check the examples of its rules. Raises `PolicyError`."""
    policy = make_policy(data, source, section)
    check_cost([example for rule in data.rules for example in (*rule.matches, *rule.not_matches)], source)
    for rule, given in zip(policy.rules, data.rules, strict=True):
        try:
            check_examples(rule, given.matches, given.not_matches)
        except PolicyError as error:
            raise PolicyError(f"{rule.source}: {error}") from None
    return policy


def make_policy(data: PolicyData, source: str, section: str = "") -> Policy:
    """Make a policy from validated data, which is in a `section` of its source, such as `policy.`.

    Raises `PolicyError`, whose text starts with `source` and names the rule.
    """
    rules = tuple(_make_rule(rule, f"{source}: {section}rules[{number}]") for number, rule in enumerate(data.rules))
    return Policy(rules, data.profile, tuple(data.trusted))


def _make_rule(data: RuleData, source: str) -> Rule:
    fields = {name: value for name, value in dict(data).items() if name not in ("matches", "not_matches")}
    try:
        return Rule(**fields, source=source)
    except PolicyError as error:
        raise PolicyError(f"{source}: {error}") from None


def read_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file, which tools can't change from then on.

    Raises `PolicyError`, whose text names the file and field.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: can't be read: {error.strerror or error}") from error
    protect_own_file(path, "a policy of this session")
    return parse_policy(parse_toml(data, str(path)), str(path))


def parse_toml(data: bytes, source: str) -> dict[str, Any]:
    """Parse the bytes of a TOML file. Raises `PolicyError`, whose text starts with `source`."""
    try:
        return toml_text.parse_toml(data)
    except ValueError as error:
        raise PolicyError(f"{source}: {error}") from error


def describe_invalid_data(error: ValidationError, source: str, model: type[BaseModel]) -> list[str]:
    """Describe the first invalid fields of a file that `model` describes, in lines that start with `source`."""
    lines, problems = [], error.errors(include_url=False)
    for problem in problems[:_MOST_PROBLEMS]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
        place = f"{source}: {place}" if place else source
        if problem["type"] == "extra_forbidden":
            lines.append(f"{place}: unknown field; {_suggest(model, problem['loc'])}")
        elif problem["type"] == "missing":
            lines.append(f"{place}: is missing; add it")
        elif problem["type"] == "value_error":
            lines.append(f"{place}: {problem['ctx']['error']}")
        elif problem["type"] in _LISTS:
            lines.append(f"{place}: got {problem['input']!r:.100}; expected a list{_give_example(problem['input'])}")
        else:
            lines.append(f"{place}: got {problem['input']!r:.100}; {problem['msg'].lower()}")
    left_out = len(problems) - len(lines)
    return [*lines, f"{source}: {left_out:,} more invalid fields"] if left_out else lines


def _give_example(value: Any) -> str:
    """How a text would be written as a list of words, as programs and their arguments are."""
    words = value.split() if isinstance(value, str) else []
    return f", such as {json.dumps(words, ensure_ascii=False)}" if words else " that isn't empty"


def _suggest(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Suggest a field for an unknown one. Removing a field may widen a policy, so that is never the advice."""
    fields = list(_find_model(model, location[:-1]).model_fields)
    # Of the sections of the file itself: what is in a list of them could be in any.
    sections = {name: field.annotation for name, field in model.model_fields.items() if len(location) == 1}
    for name, section in sections.items():
        if isinstance(section, type) and issubclass(section, BaseModel) and location[-1] in section.model_fields:
            return f"it belongs under [{name}]"
    near = find_nearest_names(str(location[-1]), fields)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(fields)}"


def _find_model(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    """The model of what is at a location; keys and indices of dicts and lists in it lead to that of their values."""
    for part in location:
        described = model.model_fields.get(str(part))
        if described is None:
            continue
        inner = [one for one in _list_types(described.annotation) if issubclass(one, BaseModel)]
        model = inner[0] if inner else model
    return model


def _list_types(annotation: Any) -> list[type]:
    """The classes in a type, such as `Rule` in `list[Rule] | None`."""
    arguments = get_args(annotation)
    if arguments:
        return [one for argument in arguments for one in _list_types(argument)]
    return [annotation] if isinstance(annotation, type) else []
