"""Seatbelt's profile language, as far as it is used here: rules in order, of which the last that matches decides.

Paths never stand in the text. Each is a parameter, `(param "P0")`, whose value goes to `sandbox-exec` as an argument of
its own, so that no name of a file can end a string or a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SANDBOX_EXEC", "Profile", "ProfileBuilder"]

SANDBOX_EXEC: Final = Path("/usr/bin/sandbox-exec")


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile: its text, and the paths that its parameters `P0`, `P1`, … stand for."""

    text: str
    paths: tuple[str, ...]

    def build_command(self, tool: Path, argv: Sequence[str]) -> list[str]:
        """The arguments that have `tool`, a `sandbox-exec`, become `argv` under this profile."""
        parameters = [part for number, path in enumerate(self.paths) for part in ("-D", f"P{number}={path}")]
        return [str(tool), *parameters, "-p", self.text, "--", *argv]


class ProfileBuilder:
    """Takes rules in order, from `(deny default)` on."""

    def __init__(self) -> None:
        self._lines = ["(version 1)", "(deny default)"]
        self._numbers: dict[str, int] = {}

    def add(self, *lines: str) -> None:
        """Rules that name no path, as they are."""
        self._lines += lines

    def add_path_rule(self, operations: str, *, below: Iterable[str] = (), at: Iterable[str] = ()) -> None:
        """One rule for paths with all that lies below them, and for paths alone; none where there is no path.

        A rule without a filter would hold for every file. Paths are absolute and real, without links, since the kernel
        compares those. Raises ValueError for others.
        """
        inside = tuple(dict.fromkeys(below))
        # Whether `subpath` takes a file for a folder of nothing but itself isn't written down anywhere.
        exactly = tuple(dict.fromkeys((*at, *inside)))
        filters = [f"(subpath {self._parameter(path)})" for path in inside]
        filters += [f"(literal {self._parameter(path)})" for path in exactly]
        if filters:
            self._lines.append(f"({operations} {' '.join(filters)})")

    def build(self) -> Profile:
        """What was taken so far."""
        return Profile("\n".join(self._lines), tuple(self._numbers))

    def _parameter(self, path: str) -> str:
        if not path.startswith("/") or "\0" in path or any(part in {".", ".."} for part in path.split("/")):
            raise ValueError(f"a profile's paths are absolute and real, not {path!r}")
        return f'(param "P{self._numbers.setdefault(path, len(self._numbers))}")'
