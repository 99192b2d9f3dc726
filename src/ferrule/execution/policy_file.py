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

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import ValidationError

from ferrule.errors import PolicyError
from ferrule.execution.policy import Policy
from ferrule.execution.profiles import Profile
from ferrule.execution.rules import Action, Rule
from ferrule.tools.intent import EffectKind
from ferrule.tools.registry import find_nearest_names

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
        raise PolicyError("\n".join(_describe_problems(error, source))) from None
    rules = tuple(_make_rule(rule, f"{source}: rules[{number}]") for number, rule in enumerate(checked.rules))
    return Policy(rules, checked.profile, tuple(checked.trusted))


def _make_rule(data: RuleData, source: str) -> Rule:
    try:
        return Rule(**dict(data), source=source)
    except PolicyError as error:
        raise PolicyError(f"{source}: {error}") from None


def read_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file. Raises `PolicyError`, whose text names the file and field."""
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise PolicyError(f"{path}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path}: not TOML: {error}") from error
    return parse_policy(data, str(path))


def _describe_problems(error: ValidationError, source: str) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
        if problem["type"] == "extra_forbidden":
            lines.append(f"{source}: {place}: unknown field; {_suggest(problem['loc'])}")
        elif problem["type"] == "missing":
            lines.append(f"{source}: {place}: is missing; add it")
        else:
            lines.append(f"{source}: {place}: got {problem['input']!r}; {problem['msg'].lower()}")
    return lines


def _suggest(location: tuple[int | str, ...]) -> str:
    """Suggest a field for an unknown one. Removing a field may widen a policy, so that is never the advice."""
    fields = (RuleData if len(location) > 1 else PolicyData).model_fields
    near = find_nearest_names(str(location[-1]), fields)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(fields)}"
