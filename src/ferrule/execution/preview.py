"""What a person is shown of a call before it runs, as data: complete, so that showing it touches no file.

`session/terminal/call_display.py` renders it as lines for a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.execution.rule_matching import find_effect_outside
from ferrule.tools.intent import Diff, Effect, Intent, Preview

_COMMAND = "$ "
"""How the preview of a tool that runs a command line begins."""


@dataclass(frozen=True, slots=True)
class EffectPreview:
    """An effect, and what needs attention about it.

    `outside` is the path outside of the workspace and the added folders that it reads or writes, links followed; None
    if there is none. `real_path` is where its target leads, links followed; None if that isn't a path. `is_changed`:
    this is the file whose change is the preview's `content`.
    """

    effect: Effect
    outside: str | None = None
    real_path: str | None = None
    is_changed: bool = False

    @property
    def leads_to(self) -> str | None:
        """The path outside, where the target doesn't say it itself."""
        return None if self.outside == self.effect.target else self.outside


@dataclass(frozen=True, slots=True)
class CallPreview:
    """What a call would do, as it was when somebody was asked.

    `content` is the preview of its intent: a change as a `Diff`, or a text, such as a command line after `$ `; empty if
    there is none. The parts of a command line are its effects: what each program runs, reads, writes and reaches.
    `arguments` and `defaults` are those of the request.
    """

    effects: tuple[EffectPreview, ...]
    content: Preview
    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any]

    @property
    def is_command(self) -> bool:
        """Whether the content is a command line, and below it notes of its tool in brackets."""
        return isinstance(self.content, str) and self.content.startswith(_COMMAND)

    def shows_whole(self, effect: Effect) -> bool:
        """Whether the content shows the command line of an effect, and on its first line no other."""
        return isinstance(self.content, str) and self.content.split("\n")[0] == f"{_COMMAND}{effect.target}"


def preview_effects(intent: Intent, folders: Sequence[str]) -> tuple[EffectPreview, ...]:
    """Find out what needs attention about the effects of an intent. Follows the links of their paths.

    `folders` are the workspace and those added to it; without any, nothing is outside.
    """
    changed, roots = _find_changed(intent, folders), [*map(Path, folders)]
    return tuple(
        EffectPreview(one, _find_outside(one, roots), _find_real_path(one), one == changed) for one in intent.effects
    )


def _find_changed(intent: Intent, folders: Sequence[str]) -> Effect | None:
    """The effect that writes the file of a change; None if there is none."""
    change = intent.preview
    if not isinstance(change, Diff):
        return None
    changed = _find_real_path(Effect("write", str(Path(folders[0], change.path)) if folders else change.path))
    if changed is None:
        return None
    return next((one for one in intent.effects if one.kind == "write" and _find_real_path(one) == changed), None)


def _find_outside(effect: Effect, folders: Sequence[Path]) -> str | None:
    try:
        return find_effect_outside(effect, folders)
    except (OSError, ValueError):  # a text that can't be a path
        return effect.target


def _find_real_path(effect: Effect) -> str | None:
    if effect.kind not in ("read", "write") or not effect.target or "://" in effect.target:
        return None
    try:
        return os.path.realpath(effect.target)
    except (OSError, ValueError):  # a text that can't be a path
        return None


def effect_to_json(effect: Effect) -> dict[str, Any]:
    """Convert an effect to JSON values."""
    return {
        "kind": effect.kind,
        "target": effect.target,
        "words": list(effect.words),
        "is_protected": effect.is_protected,
        "is_recursive": effect.is_recursive,
    }


def effect_from_json(data: Mapping[str, Any]) -> Effect:
    """Read an effect from the values of `effect_to_json`. Raises `LookupError` or `TypeError`."""
    return Effect(
        data["kind"],
        data["target"],
        tuple(data.get("words", ())),
        data.get("is_protected", False),
        data.get("is_recursive", False),
    )


def effect_preview_to_json(shown: EffectPreview) -> dict[str, Any]:
    """Convert an effect with its marks to JSON values."""
    marks = {"outside": shown.outside, "real_path": shown.real_path, "is_changed": shown.is_changed}
    return {**effect_to_json(shown.effect), **marks}


def effect_preview_from_json(data: Mapping[str, Any]) -> EffectPreview:
    """Read an effect with its marks. Raises `LookupError` or `TypeError`."""
    return EffectPreview(effect_from_json(data), data["outside"], data["real_path"], data["is_changed"])
