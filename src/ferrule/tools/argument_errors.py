"""Wrong arguments as text that a model can act on: which field, what was given, what was expected.

The texts are the same on every run: no addresses, no links, no class paths. `schema_description.py`
describes a JSON Schema in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.errors import FerruleError

WHOLE = "arguments"
"""The field of a problem that concerns all the arguments at once."""

MAX_PROBLEMS = 50
"""How many wrong fields of a call are named."""

_MAX_VALUE_LENGTH = 100
_MAX_NAME_LENGTH = 100
_MAX_NAMES = 100


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """One wrong field: its path (`stops[2].city`), the value given (empty if that adds nothing), and what is wrong."""

    field: str
    given: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: got {self.given}; {self.reason}" if self.given else f"{self.field}: {self.reason}"


class ArgumentsInvalid(FerruleError):  # noqa: N818 - it says what the arguments are, as the result's status does
    """The arguments of a call don't fit its tool; the text names each wrong field, one a line."""

    def __init__(self, problems: Iterable[ArgumentProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("Wrong arguments:\n" + "\n".join(f"- {problem}" for problem in self.problems))

    def __reduce__(self) -> tuple[type[ArgumentsInvalid], tuple[tuple[ArgumentProblem, ...]]]:
        return type(self), (self.problems,)


def format_path(path: Sequence[str | int]) -> str:
    """`["stops", 2, "city"]` as `stops[2].city`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or WHOLE


def describe_value(value: Any) -> str:
    """A JSON value as a model reads it: named by its kind, cut in the middle where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _MAX_VALUE_LENGTH:
        half = _MAX_VALUE_LENGTH // 2
        text = f"{text[:half]}…{text[-half:]}"
    if isinstance(value, str):
        return f"the string {text}"
    if isinstance(value, bool) or value is None:
        return text
    kind = {int: "number", float: "number", list: "list", dict: "object"}.get(type(value), "value")
    return f"the {kind} {text}"


def report_unknown_field(path: Sequence[str | int], known: Sequence[str]) -> ArgumentProblem:
    """The problem of a field that doesn't exist, naming the nearest of those that do."""
    # Only a mistake needs it, and it is slow to import.
    import difflib

    # What it costs grows as the square of the names' lengths.
    name, likely = str(path[-1]), [one for one in known[:_MAX_NAMES] if len(one) <= _MAX_NAME_LENGTH]
    nearest = difflib.get_close_matches(name, likely, n=1, cutoff=0.5) if len(name) <= _MAX_NAME_LENGTH else []
    if nearest:
        cure = f"did you mean {nearest[0]}?"
    elif known:
        cure = "the names are " + ", ".join([*known[:_MAX_NAMES], *(["…"] if len(known) > _MAX_NAMES else [])])
    else:
        cure = "leave it out: there are no parameters here"
    return ArgumentProblem(format_path(path), "", f"unknown parameter; {cure}")


def report_missing_field(path: Sequence[str | int], expected: str) -> ArgumentProblem:
    """The problem of a field that must be given and wasn't."""
    return ArgumentProblem(format_path(path), "nothing", f"expected {expected}")
