"""What is wrong with settings: of a configuration file, of a command, or of a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ferrule._util.invalid_fields import describe_invalid_field
from ferrule.tools.registry import find_nearest_names

if TYPE_CHECKING:
    from pydantic import ValidationError


def describe_invalid_settings(error: ValidationError, known: Iterable[str], kind: str = "setting") -> str:
    """Describe each wrong setting on one line, with the nearest names for one that isn't `known`.

    `kind` is what a message calls one: a setting, or the field of a file.
    """
    names = tuple(known)
    problems = []
    for one in error.errors(include_url=False):
        if one["type"] != "extra_forbidden":
            problems.append(describe_invalid_field(one))
            continue
        place = ".".join(map(str, one["loc"]))
        near = find_nearest_names(place, names)
        hint = f"the nearest: {', '.join(near)}" if near else f"there are {', '.join(names)}"
        problems.append(f"unknown {kind} {place!r}; {hint}")
    return "; ".join(problems)
