"""What is wrong with the values given for a pydantic model, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import ValidationError

_SAID_TWICE: Final = ("int_parsing", "int_from_float", "float_parsing", "bool_parsing")
"""Errors that say after a comma what they say before it."""


def describe_invalid_fields(error: ValidationError) -> str:
    """Describe each wrong field, with what was given for it."""
    return "; ".join(describe_invalid_field(one) for one in error.errors(include_url=False))


def describe_invalid_field(one: Any, place: str = "") -> str:
    """Describe one of pydantic's error details; `place` names the value if the model around it has no name for it."""
    place = place or ".".join(map(str, one["loc"]))
    before = f"{place}: " if place else ""
    if one["type"] == "json_invalid":
        return before + _describe_invalid_json(one)
    if one["type"] == "extra_forbidden":
        return f"{before}unknown field"
    said: str = one["msg"].partition(", ")[0] if one["type"] in _SAID_TWICE else one["msg"]
    said = said.replace("Input should be", "must be", 1)
    return f"{before}{said[0].lower()}{said[1:]}, not {one['input']!r}"


def _describe_invalid_json(one: Any) -> str:
    reason = one["ctx"]["error"].replace("EOF while parsing", "the text ends inside")
    # The line of a file has been named already.
    is_line = len(one["input"].splitlines()) == 1
    return f"not valid JSON: {reason.replace(' at line 1 column', ' at column') if is_line else reason}"
