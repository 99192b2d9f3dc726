"""Encodes values of libraries: arrays, tables, figures. Imports none of them: a value's own methods are used.

A table in a result is cut (`table`); a table in the inputs is encoded whole, by columns (`frame`, `series`).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

Tree = Any


class ValueEncoder(Protocol):
    """The methods of `encoding.ValueEncoder` that these functions use."""

    rows: int | None

    @property
    def parts(self) -> int: ...
    def encode(self, value: Any) -> Tree: ...
    def count_parts(self, values: Iterable[Any]) -> int: ...
    def encode_part(self, key: str, value: Any) -> Tree: ...
    def encode_bytes(self, data: bytes, tag: str = "bytes", **fields: Any) -> Tree: ...
    def encode_opaque(self, value: Any, reason: str) -> Tree: ...
    def omit(self, what: str) -> None: ...


_MAX_COLUMNS: Final = 500
"""Columns of a table that a run returns."""
_PLAIN_KINDS: Final = "biufcmMSU"
"""Kinds of dtypes whose items are plain bytes."""
MAX_DIMENSIONS: Final = 32
"""Of an array."""
MAX_EMPTY_PARTS: Final = 100_000
"""Empty lists in an array without items, such as one of 10,000 rows and no columns."""


def find_encoder(value: Any) -> Callable[[ValueEncoder, Any], Tree] | None:
    """Return the encoder for a library's value, found by its class's module and name, or None."""
    for kind in type(value).__mro__:
        found = _ENCODERS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if found is not None:
            return found
    return None


def is_allowed_shape(shape: Sequence[Any]) -> bool:
    """Check an array's shape: few dimensions, and few empty parts if it is empty."""
    if len(shape) > MAX_DIMENSIONS or not all(type(side) is int and 0 <= side < 2**40 for side in shape):
        return False
    return 0 not in shape or math.prod(side for side in shape if side) <= MAX_EMPTY_PARTS


def _encode_array(encoder: ValueEncoder, value: Any) -> Tree:
    if value.dtype.kind == "O":
        return encoder.encode(value.tolist())
    if value.dtype.kind not in _PLAIN_KINDS or not is_allowed_shape(value.shape):
        return encoder.encode_opaque(value, "repr")
    return encoder.encode_bytes(value.tobytes(), "array", dtype=value.dtype.str, shape=list(value.shape))


def _encode_scalar(encoder: ValueEncoder, value: Any) -> Tree:
    if value.dtype.kind in "mM":
        return encoder.encode(value.astype(f"{value.dtype.kind}8[us]").item())
    plain = value.item()
    return encoder.encode_opaque(value, "repr") if type(plain) is type(value) else encoder.encode(plain)


def _encode_missing(_: ValueEncoder, __: Any) -> Tree:
    return None


def _encode_frame(encoder: ValueEncoder, value: Any) -> Tree:
    if encoder.rows is None:
        columns = [_encode_column(encoder, value.iloc[:, place]) for place in range(value.shape[1])]
        return {
            "$": "frame",
            "names": _encode_labels(encoder, value.columns),
            "of": columns,
            **_encode_index(encoder, value.index),
        }
    part = value.iloc[: encoder.rows, :_MAX_COLUMNS]
    # Uses half of the remaining parts, if the other rows cost as much as the first.
    row = encoder.count_parts(
        [part.index[:1].tolist(), *(part.iloc[:1, place].tolist() for place in range(part.shape[1]))]
    )
    part = part.iloc[: encoder.parts // (row + 1) // 2]
    names = _encode_labels(encoder, part.columns)
    columns = [encoder.encode_part(f"[{place}]", part.iloc[:, place].tolist()) for place in range(part.shape[1])]
    index = encoder.encode_part(".index", part.index.tolist())
    # If they cost more, the last columns were cut.
    rows = min(map(len, (index, *columns)))
    if (rows, len(names)) != value.shape:
        shown, whole = f"{rows} x {len(names)}", " x ".join(map(str, value.shape))
        encoder.omit(f"a table of {whole} (rows x columns), of which {shown} are here")
    return {
        "$": "table",
        "names": names,
        "of": [column[:rows] for column in columns[: len(names)]],
        "index": index[:rows],
        "total": len(value),
    }


def _encode_series(encoder: ValueEncoder, value: Any) -> Tree:
    if encoder.rows is None:
        name = encoder.encode_part(".name", value.name)
        return {
            "$": "series",
            "name": name,
            "of": [_encode_column(encoder, value)],
            **_encode_index(encoder, value.index),
        }
    return _encode_frame(encoder, value.to_frame(name=value.name if value.name is not None else 0))


def _encode_column(encoder: ValueEncoder, column: Any) -> Tree:
    """Encode a whole column: as bytes if its dtype is plain, else as items."""
    kind = getattr(column.dtype, "kind", "O")
    plain = kind in "biuf" and type(column.dtype).__module__.startswith("numpy")
    return encoder.encode(column.to_numpy() if plain else column.tolist())


def _encode_index(encoder: ValueEncoder, index: Any) -> dict[str, Tree]:
    return {"index": _encode_column(encoder, index), "index_names": [encoder.encode(name) for name in index.names]}


def _encode_labels(encoder: ValueEncoder, index: Any) -> Tree:
    return encoder.encode_part(".columns", index.tolist())


def _encode_index_items(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.encode(value.tolist())


def _encode_figure(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.encode_bytes(render_png(value.savefig), "image")


def _encode_picture(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.encode_bytes(render_png(value.save), "image")


def render_png(save: Callable[..., Any]) -> bytes:
    """Return the PNG that a figure's or picture's save method writes."""
    file = io.BytesIO()
    save(file, format="png")
    return file.getvalue()


_ENCODERS: Final[dict[str, Callable[[ValueEncoder, Any], Tree]]] = {
    "numpy.ndarray": _encode_array,
    "numpy.generic": _encode_scalar,
    "pandas.DataFrame": _encode_frame,
    "pandas.Series": _encode_series,
    "pandas.Index": _encode_index_items,
    "pandas.NaTType": _encode_missing,
    "pandas.NAType": _encode_missing,
    "matplotlib.Figure": _encode_figure,
    "PIL.Image": _encode_picture,
}
