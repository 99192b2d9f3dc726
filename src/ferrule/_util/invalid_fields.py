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


def describe_invalid_field(one: Any) -> str:
    """Describe one of pydantic's error details."""
    said: str = one["msg"].partition(", ")[0] if one["type"] in _SAID_TWICE else one["msg"]
    return f"{'.'.join(map(str, one['loc']))}: {said[0].lower()}{said[1:]}, not {one['input']!r}"
