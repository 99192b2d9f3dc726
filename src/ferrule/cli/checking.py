"""What is wrong with the tool files of some folders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ferrule.discovery import DiscoveryProblem
from ferrule.errors import RegistryError, SettingsError
from ferrule.registry import ToolRegistry
from ferrule.tools import calculator


@dataclass(frozen=True, slots=True)
class Checked:
    """The names that folders offer, and their problems."""

    names: tuple[str, ...]
    problems: tuple[DiscoveryProblem, ...]


def check(folders: Iterable[Path]) -> Checked:
    """Read the folders as `--tools` would. Raises `SettingsError` for one that isn't there.

    A name that is used twice, here or by a tool that comes with ferrule, is a problem of its folder.
    """
    taken = ToolRegistry([calculator])
    names: list[str] = []
    problems: list[DiscoveryProblem] = []
    for folder in folders:
        if not folder.is_dir():
            raise SettingsError(f"there is no folder {str(folder)!r} to find tools in")
        try:
            found = ToolRegistry.discover(folder)
            taken = taken.add(found)
        except RegistryError as error:
            problems.append(DiscoveryProblem(folder, str(error)))
            continue
        names += found.names
        problems += found.problems
    return Checked(tuple(names), tuple(problems))
