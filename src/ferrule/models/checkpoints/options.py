"""The options of a local model, by name, and what each may be: they come from a command line or a file, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ferrule.errors import SettingsError


class EngineOptions(TypedDict, total=False):
    """How an engine is opened. The first two are of both engines, the others of transformers' alone."""

    max_batch: int | None
    """The most conversations that are computed at once."""
    context_length: int | None
    """The most ids of a conversation, if fewer than the checkpoint allows."""
    dtype: str | None
    """What it computes in: `float32`, `bfloat16`, `float16`, or `auto`, as the checkpoint says."""
    device_map: Any
    """Where the weights are: `cpu`, `cuda`, `cuda:1`, `mps`, or a map of several devices. Without it, `cuda` if there
    is one, or else `cpu`."""
    trust_remote_code: bool | None
    """Whether Python files of the checkpoint may be run."""
    kv_memory: int | None
    """The most bytes of keys and values that it keeps."""


_COUNTS = {"max_batch": 1, "context_length": 1, "kv_memory": 0}
"""The least that each may be."""
_SWITCHES = ("strict_tools", "trust_remote_code")
_TEXTS = ("name", "dialect", "revision")
_OTHERS = ("engine", "history", "image_tokens", "dtype", "device_map")
"""Those that what uses them checks."""


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `SettingsError` for an option that a local model doesn't have, and for a value of the wrong type."""
    for name, value in options.items():
        if name not in (*_COUNTS, *_SWITCHES, *_TEXTS, *_OTHERS):
            known = ", ".join(EngineOptions.__annotations__)
            raise SettingsError(f"a local model has no option {name!r}; those of its engine are {known}")
        if value is not None and (expected := _find_mistake(name, value)) is not None:
            raise SettingsError(f"{name} must be {expected}, not {value!r}")


def _find_mistake(name: str, value: Any) -> str | None:
    """What an option must be, if a value isn't that."""
    least = _COUNTS.get(name)
    if least is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        return f"a whole number from {least} up"
    if name in _SWITCHES and not isinstance(value, bool):
        return "true or false"
    return "a text" if name in _TEXTS and not isinstance(value, str) else None
