"""The encodings of what libraries make: arrays, tables, figures. None of them is imported here; values bring their own.

A table that a run gives back is cut (`table`); one that it is given is whole, column by column (`frame`, `series`).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

Tree = Any


class ValueEncoder(Protocol):
    """What these encodings need of the one that calls them, `encoding.ValueEncoder`."""

    rows: int | None

    @property
    def parts(self) -> int: ...
    def tree(self, value: Any) -> Tree: ...
    def count_parts(self, values: Iterable[Any]) -> int: ...
    def under(self, key: str, value: Any) -> Tree: ...
    def blob(self, data: bytes, tag: str = "bytes", **fields: Any) -> Tree: ...
    def opaque(self, value: Any, reason: str) -> Tree: ...
    def omit(self, what: str) -> None: ...


_COLUMNS: Final = 500
"""Columns of a table that come back."""
_PLAIN: Final = "biufcmMSU"
"""The kinds of an array's items that are bytes and nothing else."""
SIDES: Final = 32
"""Dimensions of an array."""
EMPTY_PARTS: Final = 100_000
"""Lists that an array without items may become, such as one of 10,000 rows and no columns."""


def find_encoder(value: Any) -> Callable[[ValueEncoder, Any], Tree] | None:
    """The encoder for a value of a library, found by where its class comes from; None where there is none."""
    for kind in type(value).__mro__:
        found = _ENCODERS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if found is not None:
            return found
    return None


def is_shape(shape: Sequence[Any]) -> bool:
    """Whether an array may come in this shape: few sides, and where it is empty not many empty parts."""
    if len(shape) > SIDES or not all(type(side) is int and 0 <= side < 2**40 for side in shape):
        return False
    return 0 not in shape or math.prod(side for side in shape if side) <= EMPTY_PARTS


def _array(encoder: ValueEncoder, value: Any) -> Tree:
    if value.dtype.kind == "O":
        return encoder.tree(value.tolist())
    if value.dtype.kind not in _PLAIN or not is_shape(value.shape):
        return encoder.opaque(value, "repr")
    return encoder.blob(value.tobytes(), "array", dtype=value.dtype.str, shape=list(value.shape))


def _scalar(encoder: ValueEncoder, value: Any) -> Tree:
    if value.dtype.kind in "mM":
        return encoder.tree(value.astype(f"{value.dtype.kind}8[us]").item())
    plain = value.item()
    return encoder.opaque(value, "repr") if type(plain) is type(value) else encoder.tree(plain)


def _absent(_: ValueEncoder, __: Any) -> Tree:
    return None


def _encode_frame(encoder: ValueEncoder, value: Any) -> Tree:
    if encoder.rows is None:
        columns = [_column(encoder, value.iloc[:, place]) for place in range(value.shape[1])]
        return {
            "$": "frame",
            "names": _labels(encoder, value.columns),
            "of": columns,
            **_encode_index(encoder, value.index),
        }
    part = value.iloc[: encoder.rows, :_COLUMNS]
    # Half of the room, if the other rows weigh what the first does.
    row = encoder.count_parts(
        [part.index[:1].tolist(), *(part.iloc[:1, place].tolist() for place in range(part.shape[1]))]
    )
    part = part.iloc[: encoder.parts // (row + 1) // 2]
    names = _labels(encoder, part.columns)
    columns = [encoder.under(f"[{place}]", part.iloc[:, place].tolist()) for place in range(part.shape[1])]
    index = encoder.under(".index", part.index.tolist())
    # Where they weigh more, the last columns got no room.
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
        name = encoder.under(".name", value.name)
        return {"$": "series", "name": name, "of": [_column(encoder, value)], **_encode_index(encoder, value.index)}
    return _encode_frame(encoder, value.to_frame(name=value.name if value.name is not None else 0))


def _column(encoder: ValueEncoder, column: Any) -> Tree:
    """A whole column: its bytes where they are plain, else its items."""
    kind = getattr(column.dtype, "kind", "O")
    plain = kind in "biuf" and type(column.dtype).__module__.startswith("numpy")
    return encoder.tree(column.to_numpy() if plain else column.tolist())


def _encode_index(encoder: ValueEncoder, index: Any) -> dict[str, Tree]:
    return {"index": _column(encoder, index), "index_names": [encoder.tree(name) for name in index.names]}


def _labels(encoder: ValueEncoder, index: Any) -> Tree:
    return encoder.under(".columns", index.tolist())


def _items(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.tree(value.tolist())


def _figure(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.blob(render_png(value.savefig), "image")


def _picture(encoder: ValueEncoder, value: Any) -> Tree:
    return encoder.blob(render_png(value.save), "image")


def render_png(save: Callable[..., Any]) -> bytes:
    """What a figure's or picture's method to save itself writes as PNG."""
    file = io.BytesIO()
    save(file, format="png")
    return file.getvalue()


_ENCODERS: Final[dict[str, Callable[[ValueEncoder, Any], Tree]]] = {
    "numpy.ndarray": _array,
    "numpy.generic": _scalar,
    "pandas.DataFrame": _encode_frame,
    "pandas.Series": _encode_series,
    "pandas.Index": _items,
    "pandas.NaTType": _absent,
    "pandas.NAType": _absent,
    "matplotlib.Figure": _figure,
    "PIL.Image": _picture,
}
