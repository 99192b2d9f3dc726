"""The part of Seatbelt's profile language that is used here: ordered rules, of which the last match decides.

Paths are never part of the text. Each is a parameter, `(param "P0")`, whose value is a separate argument of
`sandbox-exec`, so that a file's name can't end a string or a rule.
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
    """A complete profile: its text, and the paths of its parameters `P0`, `P1`, …"""

    text: str
    paths: tuple[str, ...]

    def build_command(self, tool: Path, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` under this profile with `tool`, a `sandbox-exec`."""
        parameters = [part for number, path in enumerate(self.paths) for part in ("-D", f"P{number}={path}")]
        return [str(tool), *parameters, "-p", self.text, "--", *argv]


class ProfileBuilder:
    """Collects rules in order, starting with `(deny default)`."""

    def __init__(self) -> None:
        self._lines = ["(version 1)", "(deny default)"]
        self._numbers: dict[str, int] = {}

    def add(self, *lines: str) -> None:
        """Add rules without paths, verbatim."""
        self._lines += lines

    def add_path_rule(self, operations: str, *, below: Iterable[str] = (), at: Iterable[str] = ()) -> None:
        """Add one rule for the paths `below` with their content, and the paths `at` alone; none without paths.

        A rule without a filter would apply to every file. Paths must be absolute and real, without links, since the
        kernel compares those. Raises ValueError for others.
        """
        inside = tuple(dict.fromkeys(below))
        # It isn't documented whether `subpath` matches a file.
        exactly = tuple(dict.fromkeys((*at, *inside)))
        filters = [f"(subpath {self._parameter(path)})" for path in inside]
        filters += [f"(literal {self._parameter(path)})" for path in exactly]
        if filters:
            self._lines.append(f"({operations} {' '.join(filters)})")

    def build(self) -> Profile:
        """Build the profile from the rules so far."""
        return Profile("\n".join(self._lines), tuple(self._numbers))

    def _parameter(self, path: str) -> str:
        if not path.startswith("/") or "\0" in path or any(part in {".", ".."} for part in path.split("/")):
            raise ValueError(f"a profile's paths must be absolute and real, not {path!r}")
        return f'(param "P{self._numbers.setdefault(path, len(self._numbers))}")'
