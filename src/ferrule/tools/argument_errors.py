"""Wrong arguments as text that a model can act on: which field, what was given, what was expected.

The texts are the same on every run: no addresses, no links, no class paths. `schema_description.py` describes a JSON
Schema in words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ferrule.errors import ArgumentProblem

WHOLE = "arguments"
"""The field of a problem that concerns the arguments as a whole."""

MAX_PROBLEMS = 50
"""The maximum number of wrong fields reported for a call."""

_MAX_VALUE_LENGTH = 100
_MAX_NAME_LENGTH = 100
_MAX_NAMES = 100


def format_path(path: Sequence[str | int]) -> str:
    """`["stops", 2, "city"]` as `stops[2].city`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or WHOLE


def describe_value(value: Any) -> str:
    """A JSON value for a model: with its type, cut in the middle if it is long."""
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
    """The problem of an unknown field, naming the nearest known one."""
    # Only needed after a mistake, and slow to import.
    import difflib

    # The cost is quadratic in the lengths of the names.
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
    """The problem of a missing field."""
    return ArgumentProblem(format_path(path), "nothing", f"expected {expected}")
