"""The encodings of what libraries make: arrays, tables, figures. None of them is imported here; values bring their own.

A table that a run gives back is cut (`table`); one that it is given is whole, column by column (`frame`, `series`).
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final, Protocol

Tree = Any


class Encoder(Protocol):
    """What these encodings need of the one that calls them, `encoding.Encoder`."""

    rows: int | None

    @property
    def parts(self) -> int: ...
    def tree(self, value: Any) -> Tree: ...
    def under(self, key: str, value: Any) -> Tree: ...
    def blob(self, data: bytes, tag: str = "bytes", **fields: Any) -> Tree: ...
    def opaque(self, value: Any, reason: str) -> Tree: ...
    def omit(self, what: str) -> None: ...


_COLUMNS: Final = 500
"""Columns of a table that come back."""
_PLAIN: Final = "biufcmMSU"
"""The kinds of an array's items that are bytes and nothing else."""


def encoder_of(value: Any) -> Callable[[Encoder, Any], Tree] | None:
    """The encoder for a value of a library, found by where its class comes from; None where there is none."""
    for kind in type(value).__mro__:
        found = _ENCODERS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if found is not None:
            return found
    return None


def _array(encoder: Encoder, value: Any) -> Tree:
    if value.dtype.kind not in _PLAIN:
        return encoder.tree(value.tolist()) if value.dtype.kind == "O" else encoder.opaque(value, "repr")
    return encoder.blob(value.tobytes(), "array", dtype=value.dtype.str, shape=list(value.shape))


def _scalar(encoder: Encoder, value: Any) -> Tree:
    if value.dtype.kind in "mM":
        return encoder.tree(value.astype(f"{value.dtype.kind}8[us]").item())
    plain = value.item()
    return encoder.opaque(value, "repr") if type(plain) is type(value) else encoder.tree(plain)


def _absent(_: Encoder, __: Any) -> Tree:
    return None


def _frame(encoder: Encoder, value: Any) -> Tree:
    if encoder.rows is None:
        columns = [_column(encoder, value.iloc[:, place]) for place in range(value.shape[1])]
        return {"$": "frame", "names": _labels(encoder, value.columns), "of": columns, **_index(encoder, value.index)}
    rows = min(encoder.rows, encoder.parts // (min(value.shape[1], _COLUMNS) + 1) // 2)
    part = value.iloc[:rows, :_COLUMNS]
    if part.shape != value.shape:
        shown, whole = " x ".join(map(str, part.shape)), " x ".join(map(str, value.shape))
        encoder.omit(f"a table of {whole} (rows x columns), of which {shown} are here")
    names = _labels(encoder, part.columns)
    columns = [encoder.under(f"[{place}]", part.iloc[:, place].tolist()) for place in range(part.shape[1])]
    return {
        "$": "table",
        "names": names,
        "of": columns,
        "index": encoder.under(".index", part.index.tolist()),
        "total": len(value),
    }


def _series(encoder: Encoder, value: Any) -> Tree:
    if encoder.rows is None:
        name = encoder.under(".name", value.name)
        return {"$": "series", "name": name, "of": [_column(encoder, value)], **_index(encoder, value.index)}
    return _frame(encoder, value.to_frame(name=value.name if value.name is not None else 0))


def _column(encoder: Encoder, column: Any) -> Tree:
    """A whole column: its bytes where they are plain, else its items."""
    kind = getattr(column.dtype, "kind", "O")
    plain = kind in "biuf" and type(column.dtype).__module__.startswith("numpy")
    return encoder.tree(column.to_numpy() if plain else column.tolist())


def _index(encoder: Encoder, index: Any) -> dict[str, Tree]:
    return {"index": _column(encoder, index), "index_names": [encoder.tree(name) for name in index.names]}


def _labels(encoder: Encoder, index: Any) -> Tree:
    return encoder.under(".columns", index.tolist())


def _items(encoder: Encoder, value: Any) -> Tree:
    return encoder.tree(value.tolist())


def _figure(encoder: Encoder, value: Any) -> Tree:
    return encoder.blob(png(value.savefig), "image")


def _picture(encoder: Encoder, value: Any) -> Tree:
    return encoder.blob(png(value.save), "image")


def png(save: Callable[..., Any]) -> bytes:
    """What a figure's or picture's method to save itself writes as PNG."""
    file = io.BytesIO()
    save(file, format="png")
    return file.getvalue()


_ENCODERS: Final[dict[str, Callable[[Encoder, Any], Tree]]] = {
    "numpy.ndarray": _array,
    "numpy.generic": _scalar,
    "pandas.DataFrame": _frame,
    "pandas.Series": _series,
    "pandas.Index": _items,
    "pandas.NaTType": _absent,
    "pandas.NAType": _absent,
    "matplotlib.Figure": _figure,
    "PIL.Image": _picture,
}
