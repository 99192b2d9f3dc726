"""The user's configuration file: defaults of commands, in TOML.

It is `$FERRULE_CONFIG`, or `config.toml` in the user's configuration folder. A project's folder is never searched for
one: whoever writes a project's files can't choose a person's model, servers or policy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._util.user_folders import find_config_folder

if TYPE_CHECKING:
    from ferrule.cli.settings import UserSettings

VARIABLE = "FERRULE_CONFIG"
CONFIGURED = ("ask", "chat", "code", "analyze", "history")
"""The commands that have defaults in the file."""
_ONLY = {"history": ("store",), "analyze": ("model", "base_url", "fallback", "policy", "journal")}
"""The defaults of commands that don't have them all. An analysis has settings of its own, and tools for its plans."""


def find_config_file() -> Path | None:
    """The user's configuration file, if there is one. One that `FERRULE_CONFIG` names must exist."""
    named = os.environ.get(VARIABLE, "")
    path = Path(named) if named else find_config_folder() / "config.toml"
    return path if named or path.is_file() else None


def read_defaults(command: str | None) -> dict[str, Mapping[str, Any]]:
    """Read the defaults of a command's options, by command, as click takes them; the file is read only if it has some.

    Raises `SettingsError` for unknown keys and invalid values, and `OSError`.
    """
    path = find_config_file() if command in CONFIGURED else None
    if command is None or path is None:
        return {}
    from ferrule.cli.settings import UserSettings, read_settings
    from ferrule.models.prices import VARIABLE as PRICES
    from ferrule.sandbox.own_files import protect_own_file

    settings = read_settings(UserSettings, path, ())
    protect_own_file(path, "the user's configuration")
    folder = path.expanduser().absolute().parent
    if settings.prices is not None:
        os.environ.setdefault(PRICES, _resolve(settings.prices, folder))
    defaults = _list_defaults(settings, folder)
    kept = _ONLY.get(command)
    if kept is not None:
        defaults = {name: value for name, value in defaults.items() if name in kept}
    return {command: defaults}


def read_analysis_defaults() -> dict[str, Any]:
    """Read the table `[analyze]` of the file: settings of an analysis. Raises `SettingsError` and `OSError`."""
    from ferrule.cli.settings import UserSettings, read_settings

    path = find_config_file()
    return {} if path is None else read_settings(UserSettings, path, ()).analyze or {}


def _list_defaults(settings: UserSettings, folder: Path) -> dict[str, Any]:
    """List what is set, with paths relative to the file's folder."""
    from ferrule.cli.tool_sources import CONTAINED

    found = settings.model_dump(exclude_none=True, exclude={"prices", "analyze"})
    for name in ("policy", "journal", "store"):
        if name in found:
            found[name] = _resolve(found[name], folder)
    if "tools" in found:
        found["tools"] = [name if name in CONTAINED else _resolve(name, folder) for name in found["tools"]]
    return found


def _resolve(name: str, folder: Path) -> str:
    return str(folder / Path(name).expanduser())
