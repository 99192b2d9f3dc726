"""How a rule's patterns meet the values of a call: text, lists, paths."""

from __future__ import annotations

import glob
import json
import posixpath
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from ferrule.intent import Effect, EffectKind


def any_matches(arguments: Mapping[str, Any], name: str, pattern: str, every: bool) -> bool:
    """Whether the argument `name` (`*`: any of them) matches; of a list every element, or one, by `every`.

    An argument that isn't there matches nothing. `every` asks nothing of an argument that `*` doesn't need.
    """
    values = list(arguments.values()) if name == "*" else [arguments[name]] if name in arguments else []
    checks = [_matches(value, pattern, every) for value in values]
    return bool(checks) and (all(checks) if every else any(checks))


def effect_matches(effect: Effect | None, kind: EffectKind | None, target: str | None) -> bool:
    """Whether an effect is of `kind` and at `target`, where those are given."""
    if effect is None or (kind is not None and effect.kind != kind):
        return False
    return target is None or fnmatchcase(_plain_target(effect), target)


def escaped(text: str) -> str:
    """A pattern that matches exactly this text."""
    return glob.escape(text)


def folder_below(effect: Effect) -> str:
    """A pattern for the folder of a read or written path and all below it; exactly the target for other effects."""
    target = _plain_target(effect)
    folder = posixpath.dirname(target) if effect.kind in ("read", "write") else ""
    return f"{escaped(folder)}/*" if folder not in ("", "/") else escaped(target)


def _plain_target(effect: Effect) -> str:
    # `src/../../etc/passwd` must not pass for something below `src/`.
    if effect.kind in ("read", "write") and effect.target:
        return posixpath.normpath(effect.target)
    return effect.target


def _matches(value: Any, pattern: str, every: bool) -> bool:
    if isinstance(value, str):
        return fnmatchcase(value, pattern)
    if isinstance(value, list) and value:
        checks = (_matches(element, pattern, every) for element in value)
        return all(checks) if every else any(checks)
    return fnmatchcase(json.dumps(value, ensure_ascii=False), pattern)
