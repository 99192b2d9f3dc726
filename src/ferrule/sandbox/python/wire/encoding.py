"""Values as a tree of JSON and blobs (see `wire`), from either side: what a run is given and what it gives back.

Never pickle: a decoder builds only what this file names. What has no encoding comes as its type and its `repr`, what
is too large is cut; both are told in `omitted`, each with its place (`value['a'][3]`).

Every limit here is one that a decoder enforces too, so that what an honest child gives back is never refused.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ferrule.sandbox.python.wire import library_values
from ferrule.sandbox.python.wire.display import format_fraction, format_integer
from ferrule.sandbox.python.wire.frames import SEPARATORS

Tree = Any

NODES: Final = 100_000
"""Parts of a value that are encoded, each counted as often as `WEIGHTS` says; the rest is left out."""
WEIGHTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bytes", "date", "datetime", "decimal", "escaped", "float", "int", "text", "time", "tuple"), 4),
    **dict.fromkeys(("complex", "dict", "file", "fraction", "frame", "frozenset", "opaque", "series"), 8),
    **dict.fromkeys(("set", "timedelta"), 8),
    **dict.fromkeys(("array", "image", "table"), 40),
}
"""By tag: how many plain parts it costs a decoder as much time as. A part without a tag weighs 1."""
INTEGER_BITS: Final = 1 << 20
"""Of an integer that is encoded: some 315,000 decimal digits."""
FRACTION_BITS: Final = 1 << 13
"""Of either part of a fraction: whoever makes one divides the two by what they have in common."""
DECIMAL_CHARACTERS: Final = 10_000
DATE_CHARACTERS: Final = 64
BLOB_BYTES: Final = 32 * 1024 * 1024
"""Bytes of text, arrays, images and files in one answer."""
DEPTH: Final = 64
ROWS: Final = 1000
"""Rows of a table that come back."""
SHORT: Final = 256
"""Text up to here stays in the JSON."""
FEW: Final = 16
"""Separators of JSON that a text may hold to stay in it."""
REPR: Final = 2000
LINE: Final = 1000
"""Characters of one line of `omitted`."""


class ValueEncoder:
    """Encodes values into one frame. `blobs` and `omitted` grow as it does; `rows` None keeps tables whole."""

    def __init__(self, *, rows: int | None = ROWS, parts: int = NODES) -> None:
        self.rows = rows
        self.blobs: list[bytes] = []
        self.omitted: list[str] = []
        self._nodes = parts
        self._bytes = BLOB_BYTES
        self._path: list[str] = []
        self._open: set[int] = set()

    @property
    def room(self) -> int:
        """Bytes that can still be encoded."""
        return self._bytes

    @property
    def parts(self) -> int:
        """Parts that can still be encoded."""
        return max(self._nodes, 0)

    def named(self, name: str, value: Any) -> Tree:
        """The tree of a value that is called `name` in `omitted`. Never raises an `Exception`."""
        self._path = [name]
        self._open.clear()
        return self.tree(value)

    def tree(self, value: Any) -> Tree:
        """The tree of a value at the current path."""
        self._nodes -= 1
        kind = type(value)
        if value is None or kind is bool:
            return value
        try:
            encode = _BY_TYPE.get(kind) or library_values.find_encoder(value) or _of_base(kind)
            tree = self.opaque(value, "repr") if encode is None else self._inside(encode, value)
        except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
            tree = self.opaque(value, f"{type(error).__name__} while it was encoded")
        if type(tree) is dict and "$" in tree:
            self._nodes -= WEIGHTS[tree["$"]] - 1
        return tree

    def blob(self, data: bytes, tag: str = "bytes", **fields: Any) -> Tree:
        """The tree of some bytes, or of their absence where they are over the limit."""
        if len(data) > self._bytes:
            return self.opaque(data[:0], f"{len(data)} bytes are over what is left of the limit of {BLOB_BYTES}")
        self._bytes -= len(data)
        self.blobs.append(data)
        return {"$": tag, "n": len(data), **fields}

    def opaque(self, value: Any, reason: str, write: Callable[[Any], str] = repr) -> Tree:
        """The type and `repr` of a value, or what `write` makes of it, and a line in `omitted`."""
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self.omit(f"{name} as its repr" if reason == "repr" else reason)
        try:
            text = str(write(value))
        except Exception as error:  # noqa: BLE001 - as above
            text = f"<{name}, whose repr raises {type(error).__name__}>"
        self.spend(text[:REPR])
        return {"$": "opaque", "type": name[:SHORT], "text": text[:REPR], "reason": reason}

    def spend(self, text: str) -> None:
        """Count the separators of a text that stays in the JSON, where nobody can tell them from those of JSON."""
        self._nodes -= _separators(text)

    def count_parts(self, values: Iterable[Any]) -> int:
        """How many parts some values come to, of which nothing is kept."""
        trial = ValueEncoder(rows=self.rows)
        trial.each(values)
        return NODES - trial.parts

    def omit(self, what: str) -> None:
        """Tell that something at the current path isn't all there."""
        if len(self.omitted) < 100:
            self.omitted.append(f"{''.join(self._path)}: {what}"[:LINE])

    def _inside(self, encode: Callable[[ValueEncoder, Any], Tree], value: Any) -> Tree:
        if len(self._open) >= DEPTH:
            return self.opaque(value, f"deeper than {DEPTH} levels")
        if id(value) in self._open:
            return self.opaque(value, "it contains itself")
        self._open.add(id(value))
        try:
            return encode(self, value)
        finally:
            self._open.discard(id(value))

    def each(self, values: Iterable[Any]) -> list[Tree]:
        """The trees of a sequence's items, as many as there is room for."""
        trees = []
        for place, value in enumerate(values):
            if self._nodes <= 0:
                self.omit(f"only the first {place} are here: the rest has too many parts")
                break
            self._path.append(f"[{place}]")
            trees.append(self.tree(value))
            self._path.pop()
        return trees

    def under(self, key: str, value: Any) -> Tree:
        """The tree of a part of the current value."""
        self._path.append(key)
        try:
            return self.tree(value)
        finally:
            self._path.pop()

    def pairs(self, value: dict[Any, Any]) -> list[tuple[Tree, Tree]]:
        """The trees of a dictionary's keys and values, as many as there is room for."""
        trees: list[tuple[Tree, Tree]] = []
        for key, item in value.items():
            if self._nodes <= 0:
                self.omit(f"only the first {len(trees)} are here: the rest has too many parts")
                break
            trees.append((self.under(".keys()", key), self.under(f"[{_short(key)}]", item)))
        return trees


def _short(key: Any) -> str:
    """A key as part of a path."""
    try:
        return str(repr(key))[:80]
    except Exception:  # noqa: BLE001 - a key's own method may raise anything
        return f"<{type(key).__name__}>"


def _separators(text: str) -> int:
    return sum(map(text.count, SEPARATORS))


def _text(encoder: ValueEncoder, value: str) -> Tree:
    if len(value) <= SHORT and _separators(value) <= FEW:
        encoder.spend(value)
        return str(value)
    try:
        return encoder.blob(value.encode(), "text")
    except UnicodeEncodeError:
        # Half a surrogate pair: as JSON writes it, since a codec that lets it pass takes a while for each.
        return encoder.blob(json.dumps(value).encode(), "escaped")


def _integer(encoder: ValueEncoder, value: int) -> Tree:
    value = int(value)
    if -(2**63) <= value < 2**63:
        return value
    bits = value.bit_length()
    if bits > INTEGER_BITS:
        reason = f"an integer of {bits:,} bits is over the limit of {INTEGER_BITS:,}"
        return encoder.opaque(value, reason, format_integer)
    return {"$": "int", "hex": hex(value)}


def _fraction(encoder: ValueEncoder, value: fractions.Fraction) -> Tree:
    parts = int(value.numerator), int(value.denominator)
    bits = max(part.bit_length() for part in parts)
    if bits > FRACTION_BITS:
        reason = f"a fraction of {bits:,} bits is over the limit of {FRACTION_BITS:,}"
        return encoder.opaque(value, reason, format_fraction)
    return {"$": "fraction", "of": [encoder.tree(part) for part in parts]}


def _decimal(encoder: ValueEncoder, value: decimal.Decimal) -> Tree:
    text = str(value)
    if len(text) > DECIMAL_CHARACTERS:
        return encoder.opaque(
            value, f"a decimal of {len(text):,} characters is over the limit of {DECIMAL_CHARACTERS:,}"
        )
    return {"$": "decimal", "is": text}


def _float(_: ValueEncoder, value: float) -> Tree:
    value = float(value)
    return value if math.isfinite(value) else {"$": "float", "is": repr(value)}


def _dictionary(encoder: ValueEncoder, value: dict[Any, Any]) -> Tree:
    pairs = encoder.pairs(value)
    if all(type(key) is str and key != "$" for key, _ in pairs):
        return dict(pairs)
    return {"$": "dict", "keys": [key for key, _ in pairs], "of": [item for _, item in pairs]}


def _tagged(tag: str, parts: Callable[[Any], Iterable[Any]]) -> Callable[[ValueEncoder, Any], Tree]:
    return lambda encoder, value: {"$": tag, "of": encoder.each(parts(value))}


def _whole(tag: str, parts: Callable[[Any], Iterable[Any]]) -> Callable[[ValueEncoder, Any], Tree]:
    """As `_tagged`, for what is nothing without its last part."""
    return lambda encoder, value: {"$": tag, "of": [encoder.tree(part) for part in parts(value)]}


def _written(tag: str, write: Callable[[Any], str]) -> Callable[[ValueEncoder, Any], Tree]:
    return lambda _, value: {"$": tag, "is": write(value)}


_BY_TYPE: Final[dict[type, Callable[[ValueEncoder, Any], Tree]]] = {
    str: _text,
    int: _integer,
    float: _float,
    list: ValueEncoder.each,
    dict: _dictionary,
    tuple: _tagged("tuple", tuple),
    set: _tagged("set", list),
    frozenset: _tagged("frozenset", list),
    bytes: lambda encoder, value: encoder.blob(bytes(value)),
    bytearray: lambda encoder, value: encoder.blob(bytes(value)),
    datetime.datetime: _written("datetime", lambda value: value.isoformat()),
    datetime.date: _written("date", lambda value: value.isoformat()),
    datetime.time: _written("time", lambda value: value.isoformat()),
    datetime.timedelta: _whole("timedelta", lambda value: (value.days, value.seconds, value.microseconds)),
    decimal.Decimal: _decimal,
    fractions.Fraction: _fraction,
    complex: _whole("complex", lambda value: (value.real, value.imag)),
}


def _of_base(kind: type) -> Callable[[ValueEncoder, Any], Tree] | None:
    """The encoder of the nearest builtin type that a class is made from (an enumeration, a named tuple)."""
    return next((_BY_TYPE[base] for base in kind.__mro__ if base in _BY_TYPE), None)
