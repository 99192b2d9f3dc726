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


def save_always(workspace: Path, answers: Iterable[Always]) -> None:
    """Save "always" answers for a workspace, each once. Raises `SettingsError` for a damaged file, and `OSError`."""
    key = os.path.realpath(workspace)

    def change(records: dict[str, Any]) -> None:
        saved = records.setdefault(key, [])
        for answer in answers:
            rules = [_rule_to_json(rule) for rule in answer.rules]
            if not any(isinstance(one, dict) and one.get("rules") == rules for one in saved):
                saved.append({"scope": answer.scope, "rules": rules, "time": time.time()})

    change_records(_FILE, change)


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
