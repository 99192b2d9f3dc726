"""Reads the settings of a front from a TOML file and `--set NAME=VALUE`, validated by the front's pydantic model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ferrule.errors import SettingsError
from ferrule.tools.registry import find_nearest_names

Settings = TypeVar("Settings", bound=BaseModel)


def read_settings(
    kind: type[Settings], config: Path | None, changes: Sequence[str], options: Mapping[str, Any] | None = None
) -> Settings:
    """Read the settings of a file, overridden by `--set`, and then by a command's own options (None if not given).

    Raises `SettingsError` for unknown settings and invalid values, and `OSError`.
    """
    data = _read_toml(config) if config is not None else {}
    data |= dict(_parse_change(change) for change in changes)
    data |= {name: value for name, value in (options or {}).items() if value is not None}
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        source = f"{config}: " if config is not None else ""
        raise SettingsError(source + "; ".join(_describe_problems(error, kind))) from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error


def _parse_change(change: str) -> tuple[str, Any]:
    name, is_pair, text = change.partition("=")
    if not is_pair:
        raise SettingsError(f"--set {change}: write it as NAME=VALUE")
    try:
        return name.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), text.strip()


def _describe_problems(error: ValidationError, kind: type[BaseModel]) -> list[str]:
    problems = []
    for one in error.errors(include_url=False):
        place = ".".join(map(str, one["loc"]))
        if one["type"] == "extra_forbidden":
            near = ", ".join(find_nearest_names(place, kind.model_fields))
            known = f"the nearest: {near}" if near else f"there are {', '.join(kind.model_fields)}"
            problems.append(f"unknown setting {place!r}; {known}")
        else:
            problems.append(f"{place}: {one['msg'][0].lower()}{one['msg'][1:]}, not {one['input']!r}")
    return problems
