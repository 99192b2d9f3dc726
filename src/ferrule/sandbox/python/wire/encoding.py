"""Encodes values as a tree of JSON and blobs (see `frames`), in either direction: inputs of a run and its results.

Never pickle: a decoder builds only types named in this file. A value without an encoding becomes its type and `repr`,
and one that is too large is cut; `omitted` lists both with their paths (`value['a'][3]`).

The decoder enforces every limit here too, so the answer of an honest child is never refused.
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

MAX_PARTS: Final = 100_000
"""Parts of a value that are encoded, each weighted by `WEIGHTS`; the rest is omitted."""
WEIGHTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bytes", "date", "datetime", "decimal", "escaped", "float", "int", "text", "time", "tuple"), 4),
    **dict.fromkeys(("complex", "dict", "file", "fraction", "frame", "frozenset", "opaque", "series"), 8),
    **dict.fromkeys(("set", "timedelta"), 8),
    **dict.fromkeys(("array", "image", "table"), 40),
}
"""Decoding cost of each tag, in plain parts. A part without a tag costs 1."""
MAX_INTEGER_BITS: Final = 1 << 20
"""About 315,000 decimal digits."""
MAX_FRACTION_BITS: Final = 1 << 13
"""For numerator and denominator each: constructing a fraction computes their greatest common divisor."""
MAX_DECIMAL_CHARACTERS: Final = 10_000
MAX_DATE_CHARACTERS: Final = 64
MAX_BLOB_BYTES: Final = 32 * 1024 * 1024
"""Bytes of text, arrays, images and files in one answer."""
MAX_DEPTH: Final = 64
MAX_ROWS: Final = 1000
"""Rows of a table that a run returns."""
MAX_INLINE_TEXT: Final = 256
"""Characters of a text that is written into the JSON; a longer one becomes a blob."""
MAX_INLINE_SEPARATORS: Final = 16
"""JSON separators in such a text; one with more becomes a blob."""
MAX_REPR: Final = 2000
MAX_OMITTED_LINE: Final = 1000
"""In characters."""


class ValueEncoder:
    """Encodes values into one frame, appending to `blobs` and `omitted`. `rows=None` keeps tables whole."""

    def __init__(self, *, rows: int | None = MAX_ROWS, parts: int = MAX_PARTS) -> None:
        self.rows = rows
        self.blobs: list[bytes] = []
        self.omitted: list[str] = []
        self._parts_left = parts
        self._bytes_left = MAX_BLOB_BYTES
        self._path: list[str] = []
        self._open: set[int] = set()

    @property
    def room(self) -> int:
        """Bytes left for blobs."""
        return self._bytes_left

    @property
    def parts(self) -> int:
        """Parts left."""
        return max(self._parts_left, 0)

    def encode_named(self, name: str, value: Any) -> Tree:
        """Return the tree of a value, called `name` in `omitted`. Never raises an `Exception`."""
        self._path = [name]
        self._open.clear()
        return self.encode(value)

    def encode(self, value: Any) -> Tree:
        """Return the tree of a value at the current path."""
        self._parts_left -= 1
        kind = type(value)
        if value is None or kind is bool:
            return value
        try:
            encode = _BY_TYPE.get(kind) or library_values.find_encoder(value) or _find_base_encoder(kind)
            tree = self.encode_opaque(value, "repr") if encode is None else self._encode_inside(encode, value)
        except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
            tree = self.encode_opaque(value, f"{type(error).__name__} while it was encoded")
        if type(tree) is dict and "$" in tree:
            self._parts_left -= WEIGHTS[tree["$"]] - 1
        return tree

    def encode_bytes(self, data: bytes, tag: str = "bytes", **fields: Any) -> Tree:
        """Add a blob and return its tree, or an opaque value if the blob exceeds the limit."""
        if len(data) > self._bytes_left:
            return self.encode_opaque(
                data[:0], f"{len(data)} bytes are over what is left of the limit of {MAX_BLOB_BYTES}"
            )
        self._bytes_left -= len(data)
        self.blobs.append(data)
        return {"$": tag, "n": len(data), **fields}

    def encode_opaque(self, value: Any, reason: str, write: Callable[[Any], str] = repr) -> Tree:
        """Encode a value as its type and `repr` (or the text that `write` returns), and add a line to `omitted`."""
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self.omit(f"{name} as its repr" if reason == "repr" else reason)
        try:
            text = str(write(value))
        except Exception as error:  # noqa: BLE001 - as above
            text = f"<{name}, whose repr raises {type(error).__name__}>"
        self.spend(text[:MAX_REPR])
        return {"$": "opaque", "type": name[:MAX_INLINE_TEXT], "text": text[:MAX_REPR], "reason": reason}

    def spend(self, text: str) -> None:
        """Count the separators of a text written into the JSON, since the decoder counts all separators alike."""
        self._parts_left -= _count_separators(text)

    def count_parts(self, values: Iterable[Any]) -> int:
        """Return the number of parts that values would take, without encoding them into this frame."""
        trial = ValueEncoder(rows=self.rows)
        trial.encode_items(values)
        return MAX_PARTS - trial.parts

    def omit(self, what: str) -> None:
        """Report that something at the current path is missing or cut."""
        if len(self.omitted) < 100:
            self.omitted.append(f"{''.join(self._path)}: {what}"[:MAX_OMITTED_LINE])

    def _encode_inside(self, encode: Callable[[ValueEncoder, Any], Tree], value: Any) -> Tree:
        if len(self._open) >= MAX_DEPTH:
            return self.encode_opaque(value, f"deeper than {MAX_DEPTH} levels")
        if id(value) in self._open:
            return self.encode_opaque(value, "it contains itself")
        self._open.add(id(value))
        try:
            return encode(self, value)
        finally:
            self._open.discard(id(value))

    def encode_items(self, values: Iterable[Any]) -> list[Tree]:
        """Return the trees of a sequence's items, as many as fit."""
        trees = []
        for place, value in enumerate(values):
            if self._parts_left <= 0:
                self.omit(f"only the first {place} are here: the rest has too many parts")
                break
            self._path.append(f"[{place}]")
            trees.append(self.encode(value))
            self._path.pop()
        return trees

    def encode_part(self, key: str, value: Any) -> Tree:
        """Return the tree of a part of the current value."""
        self._path.append(key)
        try:
            return self.encode(value)
        finally:
            self._path.pop()

    def encode_pairs(self, value: dict[Any, Any]) -> list[tuple[Tree, Tree]]:
        """Return the trees of a dictionary's keys and values, as many as fit."""
        trees: list[tuple[Tree, Tree]] = []
        for key, item in value.items():
            if self._parts_left <= 0:
                self.omit(f"only the first {len(trees)} are here: the rest has too many parts")
                break
            trees.append((self.encode_part(".keys()", key), self.encode_part(f"[{_format_key(key)}]", item)))
        return trees


def _format_key(key: Any) -> str:
    """Format a key as part of a path."""
    try:
        return str(repr(key))[:80]
    except Exception:  # noqa: BLE001 - a key's own method may raise anything
        return f"<{type(key).__name__}>"


def _count_separators(text: str) -> int:
    return sum(map(text.count, SEPARATORS))


def _encode_text(encoder: ValueEncoder, value: str) -> Tree:
    if len(value) <= MAX_INLINE_TEXT and _count_separators(value) <= MAX_INLINE_SEPARATORS:
        encoder.spend(value)
        return str(value)
    try:
        return encoder.encode_bytes(value.encode(), "text")
    except UnicodeEncodeError:
        # A lone surrogate: written as JSON escapes, since the `surrogatepass` codec is slow for each one.
        return encoder.encode_bytes(json.dumps(value).encode(), "escaped")


def _encode_integer(encoder: ValueEncoder, value: int) -> Tree:
    value = int(value)
    if -(2**63) <= value < 2**63:
        return value
    bits = value.bit_length()
    if bits > MAX_INTEGER_BITS:
        reason = f"an integer of {bits:,} bits is over the limit of {MAX_INTEGER_BITS:,}"
        return encoder.encode_opaque(value, reason, format_integer)
    return {"$": "int", "hex": hex(value)}


def _encode_fraction(encoder: ValueEncoder, value: fractions.Fraction) -> Tree:
    parts = int(value.numerator), int(value.denominator)
    bits = max(part.bit_length() for part in parts)
    if bits > MAX_FRACTION_BITS:
        reason = f"a fraction of {bits:,} bits is over the limit of {MAX_FRACTION_BITS:,}"
        return encoder.encode_opaque(value, reason, format_fraction)
    return {"$": "fraction", "of": [encoder.encode(part) for part in parts]}


def _encode_decimal(encoder: ValueEncoder, value: decimal.Decimal) -> Tree:
    text = str(value)
    if len(text) > MAX_DECIMAL_CHARACTERS:
        return encoder.encode_opaque(
            value, f"a decimal of {len(text):,} characters is over the limit of {MAX_DECIMAL_CHARACTERS:,}"
        )
    return {"$": "decimal", "is": text}


def _encode_float(_: ValueEncoder, value: float) -> Tree:
    value = float(value)
    return value if math.isfinite(value) else {"$": "float", "is": repr(value)}


def _encode_dict(encoder: ValueEncoder, value: dict[Any, Any]) -> Tree:
    pairs = encoder.encode_pairs(value)
    if all(type(key) is str and key != "$" for key, _ in pairs):
        return dict(pairs)
    return {"$": "dict", "keys": [key for key, _ in pairs], "of": [item for _, item in pairs]}


def _make_items_encoder(tag: str, parts: Callable[[Any], Iterable[Any]]) -> Callable[[ValueEncoder, Any], Tree]:
    return lambda encoder, value: {"$": tag, "of": encoder.encode_items(parts(value))}


def _make_fields_encoder(tag: str, parts: Callable[[Any], Iterable[Any]]) -> Callable[[ValueEncoder, Any], Tree]:
    """Like `_make_items_encoder`, for a value that needs all of its parts."""
    return lambda encoder, value: {"$": tag, "of": [encoder.encode(part) for part in parts(value)]}


def _make_string_encoder(tag: str, write: Callable[[Any], str]) -> Callable[[ValueEncoder, Any], Tree]:
    return lambda _, value: {"$": tag, "is": write(value)}


_BY_TYPE: Final[dict[type, Callable[[ValueEncoder, Any], Tree]]] = {
    str: _encode_text,
    int: _encode_integer,
    float: _encode_float,
    list: ValueEncoder.encode_items,
    dict: _encode_dict,
    tuple: _make_items_encoder("tuple", tuple),
    set: _make_items_encoder("set", list),
    frozenset: _make_items_encoder("frozenset", list),
    bytes: lambda encoder, value: encoder.encode_bytes(bytes(value)),
    bytearray: lambda encoder, value: encoder.encode_bytes(bytes(value)),
    datetime.datetime: _make_string_encoder("datetime", lambda value: value.isoformat()),
    datetime.date: _make_string_encoder("date", lambda value: value.isoformat()),
    datetime.time: _make_string_encoder("time", lambda value: value.isoformat()),
    datetime.timedelta: _make_fields_encoder(
        "timedelta", lambda value: (value.days, value.seconds, value.microseconds)
    ),
    decimal.Decimal: _encode_decimal,
    fractions.Fraction: _encode_fraction,
    complex: _make_fields_encoder("complex", lambda value: (value.real, value.imag)),
}


def _find_base_encoder(kind: type) -> Callable[[ValueEncoder, Any], Tree] | None:
    """Return the encoder of the nearest built-in base class (of an enumeration, a named tuple)."""
    return next((_BY_TYPE[base] for base in kind.__mro__ if base in _BY_TYPE), None)
