"""What a person allowed for good in a workspace: "always" answers, kept in the user's own data folder.

They are loaded at the next start and override an ask of the profile, as in the session in which they were given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from ferrule.errors import PolicyError, SettingsError
from ferrule.execution.always import Always
from ferrule.execution.rules import Rule, strip_line
from ferrule.session.user_records import change_records, find_records, read_records

_FILE = "always.json"


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """One "always" answer: its workspace, what it allows, and when it was saved, in seconds since 1970."""

    workspace: str
    scope: str
    rules: tuple[Rule, ...]
    time: float

    @property
    def is_outdated(self) -> bool:
        """Whether it is for a server's tool, and was saved before definitions were: then it allows nothing any more."""
        return any((rule.location or "").startswith("mcp:") and rule.definition is None for rule in self.rules)


def save_always(workspace: Path, answers: Iterable[Always]) -> None:
    """Save "always" answers for a workspace, each once: that for a changed tool takes the place of the last one.

    Raises `SettingsError` for a damaged file, and `OSError`.
    """
    key = os.path.realpath(workspace)

    def change(records: dict[str, Any]) -> None:
        saved = records.setdefault(key, [])
        for answer in answers:
            rules = [_rule_to_json(rule) for rule in answer.rules]
            same = [one for one in saved if _has_rules(one, rules)]
            if any(one["rules"] == rules for one in same):
                continue
            saved[:] = [one for one in saved if one not in same]
            saved.append({"scope": answer.scope, "rules": rules, "time": time.time()})

    change_records(_FILE, change)


def _has_rules(saved: Any, rules: list[dict[str, Any]]) -> bool:
    """Whether a saved answer has these rules, apart from the definitions of their tools."""
    others = saved.get("rules") if isinstance(saved, dict) else None
    if not isinstance(others, list) or not all(isinstance(one, dict) for one in others):
        return False
    return [one | {"definition": None} for one in others] == [one | {"definition": None} for one in rules]


def list_saved(workspace: Path | None = None) -> list[SavedAnswer]:
    """The saved answers, of one workspace or of all, oldest first. Raises `SettingsError` and `OSError`."""
    records = read_records(_FILE)
    chosen = (
        records
        if workspace is None
        else {key: records[key] for key in (os.path.realpath(workspace),) if key in records}
    )
    try:
        return [
            SavedAnswer(key, one["scope"], tuple(map(_rule_from_json, one["rules"])), one["time"])
            for key, saved in chosen.items()
            for one in saved
        ]
    except (LookupError, TypeError, PolicyError) as error:
        path = find_records(_FILE)
        raise SettingsError(f"{path}: damaged: {error}; delete the file, and answer again what you are asked") from None


def load_saved_rules(workspace: Path) -> tuple[Rule, ...]:
    """The rules of the saved answers of a workspace. Raises `SettingsError` and `OSError`."""
    return tuple(rule for answer in list_saved(workspace) for rule in answer.rules)


def remove_saved(workspace: Path, number: int | None = None) -> int:
    """Remove the saved answer of this number, from 1, or all of a workspace; returns how many were removed.

    Raises `SettingsError` and `OSError`.
    """
    key, removed = os.path.realpath(workspace), 0

    def change(records: dict[str, Any]) -> None:
        nonlocal removed
        saved = records.get(key, [])
        kept = [one for index, one in enumerate(saved, 1) if number is not None and index != number]
        removed = len(saved) - len(kept)
        records[key] = kept
        if not kept:
            del records[key]

    change_records(_FILE, change)
    return removed


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    """The fields of a rule that differ from their defaults."""
    data: dict[str, Any] = {}
    for one in fields(rule):
        value = getattr(rule, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if one.compare and value != default:
            data[one.name] = dict(value) if isinstance(value, Mapping) else value
    if rule.location is not None:
        data["location"] = strip_line(rule.location)
    return data


def _rule_from_json(data: dict[str, Any]) -> Rule:
    rule = Rule(**data, source=str(find_records(_FILE)))
    if rule.action != "allow":
        raise PolicyError(f"an answer can only allow, not {rule.action}")
    return rule
