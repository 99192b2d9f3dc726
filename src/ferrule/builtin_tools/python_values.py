"""Renders the values of model-written code, as text for a model and as JSON for a program."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from ferrule.conversation import Image
from ferrule.sandbox.python.result import DataTable, Opaque, UnhashedDict, UnhashedSet
from ferrule.sandbox.python.wire.display import format_array, format_fraction, format_integer, format_value, is_writable

_SCALARS: Final = (str, bool, int, type(None))
_COLUMN: Final = 60
"""Characters of one field of a table; a longer text ends in `…`."""
_BITS: Final = 1 << 16
"""The largest integer written in decimal: some 20,000 digits."""
_ITEMS: Final = 100_000
"""The most items of an array written as JSON; a larger one is written as numpy prints it."""


def render_value(value: Any) -> str:
    """Render a value for a model: text unchanged, a table in columns, JSON and similar values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, DataTable):
        return render_table(value)
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, Image):
        return f"[image, {value.media_type}]"
    if _is_array(value):
        return format_array(value)
    if type(value) is int:
        # Decimal has no limit of digits, but takes quadratic time.
        return str(Decimal(value)) if value.bit_length() <= _BITS else format_integer(value)
    return json.dumps(to_plain_json(value), ensure_ascii=False)


def render_table(table: DataTable) -> str:
    """Render a table as lines of aligned columns, its index first, and the number of rows if it is cut."""
    head = ["", *map(_format_field, table.columns)]
    body = [[_format_field(name), *map(_format_field, row)] for name, row in zip(table.index, table.rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(field.rjust(width) for field, width in zip(row, widths, strict=True)) for row in (head, *body)]
    if table.is_cut:
        lines.append(f"[{len(table.rows):,} of {table.total_rows:,} rows]")
    return "\n".join(line.rstrip() for line in lines)


def to_plain_json(value: Any) -> Any:
    """Convert a value to JSON; what JSON can't express becomes text, or an object that names its type."""
    if isinstance(value, int) and not is_writable(value):
        return {"int": hex(value)}
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _UNBOUNDED.get(value, "NaN")
    if isinstance(value, Mapping):
        return _convert_mapping(value)
    if isinstance(value, list | tuple):
        return [to_plain_json(one) for one in value]
    if isinstance(value, set | frozenset):
        return [to_plain_json(one) for one in sorted(value, key=lambda one: (type(one).__name__, _to_text(one)))]
    if isinstance(value, UnhashedDict):
        return [[to_plain_json(key), to_plain_json(one)] for key, one in value.items]
    if isinstance(value, UnhashedSet):
        return [to_plain_json(one) for one in value.items]
    return _convert_other(value)


def _convert_mapping(value: Mapping[Any, Any]) -> Any:
    """Convert a mapping, to pairs if its keys aren't text or would become the same text."""
    keys = [_to_text(key) if isinstance(key, (*_SCALARS, float)) else None for key in value]
    if None in keys or len(set(keys)) < len(keys):
        return [[to_plain_json(key), to_plain_json(one)] for key, one in value.items()]
    return {_to_text(key): to_plain_json(one) for key, one in value.items()}


def _convert_other(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Image):
        return {"image": value.media_type, "base64": base64.b64encode(value.data).decode()}
    if isinstance(value, DataTable):
        return {
            "columns": to_plain_json(value.columns),
            "rows": to_plain_json(value.rows),
            "index": to_plain_json(value.index),
            "total_rows": value.total_rows,
        }
    if isinstance(value, Opaque):
        return {"type": value.type, "repr": value.text}
    if not _is_array(value):
        return _to_text(value)
    if value.size > _ITEMS:
        return {"array": value.dtype.str, "shape": list(value.shape), "repr": format_array(value)}
    items = value.tolist()
    # `tolist` of an extended float returns the float itself.
    return _to_text(value) if type(items) is type(value) else to_plain_json(items)


def _to_text(value: Any) -> str:
    """Convert a value to text; `str` would fail for a long integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return format_integer(value)
    if isinstance(value, Fraction):
        return format_fraction(value)
    return format_value(value) if isinstance(value, tuple | frozenset) else str(value)


def find_images(value: Any) -> Iterator[Image]:
    """Find the images in a value, in order."""
    if isinstance(value, Image):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from find_images(one)
    elif isinstance(value, UnhashedDict):
        yield from find_images([one for _, one in value.items])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from find_images(one)


def _format_field(value: Any) -> str:
    text = str(value) if isinstance(value, str | float) else render_value(value)
    text = " ".join(text.splitlines())
    return text if len(text) <= _COLUMN else f"{text[: _COLUMN - 1]}…"


def _is_array(value: Any) -> bool:
    """Whether a value is a numpy array or scalar, without importing numpy."""
    return type(value).__module__ == "numpy" and hasattr(value, "tolist")


_UNBOUNDED: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
