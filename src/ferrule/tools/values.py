"""What model-written code gave back, as text for a model and as JSON for a program."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ferrule.conversation import Image
from ferrule.sandbox.python.run import Opaque, Table

_SCALARS: Final = (str, bool, int, type(None))
_COLUMN: Final = 60
"""Characters of one field of a table; a text that is longer ends in `…`."""


def value_text(value: Any) -> str:
    """A value as a model reads it: text as it is, a table in columns, JSON values and what is near to them as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Table):
        return table_text(value)
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, Image):
        return f"[image, {value.media_type}]"
    if _is_array(value):
        return repr(value)
    return json.dumps(plain_json(value), ensure_ascii=False)


def table_text(table: Table) -> str:
    """A table as lines of aligned columns, its index first, and how many of its rows those are."""
    head = ["", *map(str, table.columns)]
    body = [[str(name), *map(_field, row)] for name, row in zip(table.index, table.rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(field.rjust(width) for field, width in zip(row, widths, strict=True)) for row in (head, *body)]
    if table.is_cut:
        lines.append(f"[{len(table.rows):,} of {table.total_rows:,} rows]")
    return "\n".join(line.rstrip() for line in lines)


def plain_json(value: Any) -> Any:
    """A value as JSON can hold it; what JSON has no word for becomes text, or an object that names its type."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _UNBOUNDED.get(value, "NaN")
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [plain_json(one) for one in value]
    if isinstance(value, set | frozenset):
        return [plain_json(one) for one in sorted(value, key=lambda one: (type(one).__name__, str(one)))]
    return _named(value)


def _object(value: Mapping[Any, Any]) -> Any:
    """A mapping; as pairs where its keys are no text, or would be the same text."""
    keys = [str(key) if isinstance(key, (*_SCALARS, float)) else None for key in value]
    if None in keys or len(set(keys)) < len(keys):
        return [[plain_json(key), plain_json(one)] for key, one in value.items()]
    return {str(key): plain_json(one) for key, one in value.items()}


def _named(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Image):
        return {"image": value.media_type, "base64": base64.b64encode(value.data).decode()}
    if isinstance(value, Table):
        return {
            "columns": plain_json(value.columns),
            "rows": plain_json(value.rows),
            "index": plain_json(value.index),
            "total_rows": value.total_rows,
        }
    if isinstance(value, Opaque):
        return {"type": value.type, "repr": value.text}
    return plain_json(value.tolist()) if _is_array(value) else str(value)


def images_in(value: Any) -> Iterator[Image]:
    """The images in a value, in order."""
    if isinstance(value, Image):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from images_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from images_in(one)


def _field(value: Any) -> str:
    text = str(value) if isinstance(value, str | float) else value_text(value)
    text = " ".join(text.splitlines())
    return text if len(text) <= _COLUMN else f"{text[: _COLUMN - 1]}…"


def _is_array(value: Any) -> bool:
    """Whether it is numpy's, without importing numpy to know."""
    return type(value).__module__ == "numpy" and hasattr(value, "tolist")


_UNBOUNDED: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
