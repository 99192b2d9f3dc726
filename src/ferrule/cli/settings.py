"""Reads settings from a TOML file and `--set NAME=VALUE`, validated by a pydantic model.

The user's configuration file has such a model here; a front has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ferrule._util.toml_text import parse_toml
from ferrule.errors import SettingsError

Settings = TypeVar("Settings", bound=BaseModel)

_OTHERWISE_GIVEN = {
    "base_url": "use --base-url",
    "record": "use --record",
    "fallback": "use --fallback",
    "api_key": "a key is set in the environment, or saved by: ferrule keys set PROVIDER",
    "auth_token": "a token is set in the environment",
}
"""Options of models that are given otherwise, and how."""


class UserSettings(BaseModel):
    """The keys of the user's configuration file. Each is the default of the option of its name.

    Paths are relative to the file's folder; `~` is the home folder.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = None
    """The model, such as `openai:gpt-5`."""
    base_url: str | None = None
    """The address of that model's provider; not used for a model that is named elsewhere."""
    model_options: dict[str, str | int | float | bool] | None = None
    """Options of that model, by name, such as `dtype`; not used for a model that is named elsewhere."""
    mode: str | None = None
    """How calls are written for that model; not used for a model that is named elsewhere."""
    fallback: str | None = None
    """The model to ask if the first one fails."""
    system: str | None = None
    """What the model is told before a new conversation."""
    temperature: float | None = Field(None, ge=0)
    """How freely tokens are sampled."""
    seed: int | None = Field(None, ge=0)
    """Makes sampling repeatable."""
    max_tokens: int | None = Field(None, ge=1)
    """The most tokens of one message."""
    tools: list[str] | None = None
    """Tools to offer: Python files, which are trusted, folders, and `python`, `shell` or `coding`."""
    plugins: bool | None = None
    """Whether the tools of installed packages are offered."""
    mcp: list[str] | None = None
    """MCP servers to use, each by its command or address."""
    mcp_timeout: float | None = Field(None, ge=0.1)
    """How many seconds each server may take to start."""
    policy: str | None = None
    """The file of rules on what may run."""
    journal: str | None = None
    """The file in which every call is recorded."""
    store: str | None = None
    """The file in which conversations are saved; `history` reads it, too."""
    keep: bool | None = None
    """Whether conversations are saved."""
    cost: bool | None = None
    """Whether the tokens, seconds and price of each answer are shown."""
    analyze: dict[str, Any] | None = None
    """Settings of `analyze`, by the names that its `--set` takes."""
    prices: str | None = None
    """The file of prices, unless `FERRULE_PRICES` names one."""


def read_settings(
    kind: type[Settings],
    config: Path | None,
    changes: Sequence[str],
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings of a file, overridden by `--set`, and then by a command's own options (None if not given).

    `defaults` are overridden by all of them.

    Raises `SettingsError` for unknown settings and invalid values, and `OSError`.
    """
    data = dict(defaults or {}) | (_read_toml(config) if config is not None else {})
    data |= dict(_parse_change(change) for change in changes)
    data |= {name: value for name, value in (options or {}).items() if value is not None}
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        from ferrule.tools.settings_errors import describe_invalid_settings

        source = f"{config}: " if config is not None else ""
        raise SettingsError(f"{source}{describe_invalid_settings(error, kind.model_fields)}") from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_bytes())
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from error


def read_model_options(given: Sequence[str]) -> dict[str, Any]:
    """Read the values of `--model-option`. Raises `SettingsError` for one that has an option of its own."""
    found = dict(_parse_change(one, "--model-option") for one in given)
    for name, instead in _OTHERWISE_GIVEN.items():
        if name in found:
            raise SettingsError(f"--model-option {name}=…: {instead}")
    return found


def _parse_change(change: str, option: str = "--set") -> tuple[str, Any]:
    name, is_pair, text = change.partition("=")
    if not is_pair:
        raise SettingsError(f"{option} {change}: write it as NAME=VALUE")
    try:
        return name.strip(), parse_toml(f"value = {text}".encode())["value"]
    except ValueError:
        return name.strip(), text.strip()
