"""What is wrong with the values given for a pydantic model, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def describe_invalid_fields(error: ValidationError) -> str:
    """Describe each wrong field, with what was given for it."""
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg'][0].lower()}{one['msg'][1:]}, not {one['input']!r}"
        for one in error.errors(include_url=False)
    )
