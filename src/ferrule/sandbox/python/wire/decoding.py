"""Decodes the trees of `encoding`. For any input, a decoder builds plain values or raises `WireError`.

The cost is bounded for hostile input too: parts are counted by weight, digits and depth are limited, every computation
is linear, and keys that are expensive to hash aren't hashed (see `hash_cost`): such a dictionary becomes an
`UnhashedDict`, such a set an `UnhashedSet`.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ferrule.sandbox.python.wire.encoding import (
    MAX_DATE_CHARACTERS,
    MAX_DECIMAL_CHARACTERS,
    MAX_DEPTH,
    MAX_FRACTION_BITS,
    MAX_INTEGER_BITS,
    MAX_PARTS,
    WEIGHTS,
)
from ferrule.sandbox.python.wire.frames import FrameBlobs, WireError
from ferrule.sandbox.python.wire.hash_cost import WORK, UnhashedDict, UnhashedSet, estimate_hash_work
from ferrule.sandbox.python.wire.library_values import is_allowed_shape

_DTYPE: Final = re.compile(r"[<>|=](?:[biufcSU]\d{1,7}|[mM]8(?:\[\d{0,6}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)")
_MAX_TREE_DEPTH: Final = MAX_DEPTH + 16
"""The encoder's limit, plus the levels of an answer or a table around a value."""
_MAX_CODE_POINT: Final = 0x10FFFF
_NOT_A_TIME: Final = -(2**63)
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


class ValueDecoder:
    """Decodes the trees of one frame, in order. `builders` adds tags that only one side decodes (`table`, `frame`).

    A frame from the parent (`is_trusted`) may have any number of parts, and hashing isn't limited.
    """

    def __init__(
        self, blobs: FrameBlobs, builders: Mapping[str, ValueBuilder] | None = None, *, is_trusted: bool = False
    ) -> None:
        self.blobs = blobs
        self._builders = {**_BUILDERS, **(builders or {})}
        self._depth = 0
        self._parts_left = math.inf if is_trusted else MAX_PARTS + _PARTS_MARGIN
        self._work_left = math.inf if is_trusted else WORK

    def decode(self, tree: Any) -> Any:
        """Return the value of a tree. Raises `WireError`."""
        if not isinstance(tree, list | dict):
            return tree
        self._depth += 1
        if self._depth > _MAX_TREE_DEPTH:
            raise WireError("a value is nested too deeply")
        try:
            if isinstance(tree, list):
                return self.decode_list(tree)
            if "$" not in tree:
                self.spend(2 * len(tree))
                return {key: item if type(item) in _LEAVES else self.decode(item) for key, item in tree.items()}
            self.spend(WEIGHTS[tree["$"]] - 1)
            return self._builders[tree["$"]](self, tree)
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001 - hostile fields make constructors raise whatever they like
            raise WireError(f"an invalid value: {type(error).__name__}") from None
        finally:
            self._depth -= 1

    def decode_list(self, tree: Any) -> list[Any]:
        """Return the values of a tree that must be a list. Raises `WireError`."""
        if not isinstance(tree, list):
            raise WireError("expected a list of values")
        self.spend(len(tree))
        return [item if type(item) in _LEAVES else self.decode(item) for item in tree]

    def take_blob(self, tree: Any) -> bytes:
        """Return the bytes that a tree refers to. Raises `WireError`."""
        if not isinstance(tree, dict):
            raise WireError("expected bytes")
        return self.blobs.take(tree.get("n"))

    def spend(self, parts: int) -> None:
        """Count parts. Raises `WireError` if a frame has too many."""
        self._parts_left -= parts
        if self._parts_left < 0:
            raise WireError("the frame has too many parts")

    def may_hash(self, keys: list[Any]) -> bool:
        """Check that hashing these keys stays within the frame's budget, and deduct its cost."""
        if self._work_left == math.inf:
            return True
        taken = estimate_hash_work(keys, int(self._work_left))
        if taken > self._work_left:
            return False
        self._work_left -= taken
        return True


class ValueBuilder(Protocol):
    """Builds the value of a tagged tree."""

    def __call__(self, decoder: ValueDecoder, tree: dict[str, Any], /) -> Any: ...


_PARTS_MARGIN: Final = 5000
"""Allowed beyond the encoder's limit, which its last value may exceed."""


def _decode_dict(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    keys, items = decoder.decode_list(tree["keys"]), decoder.decode_list(tree["of"])
    pairs = zip(keys, items, strict=True)
    return dict(pairs) if decoder.may_hash(keys) else UnhashedDict(tuple(pairs))


def _decode_text(decoder: ValueDecoder, tree: dict[str, Any]) -> str:
    return decoder.take_blob(tree).decode()


def _decode_escaped(decoder: ValueDecoder, tree: dict[str, Any]) -> str:
    data = decoder.take_blob(tree)
    text = json.loads(data.decode("ascii")) if data.startswith(b'"') else None
    if not isinstance(text, str):
        raise WireError("invalid escaped text")
    return text


def _decode_integer(_: ValueDecoder, tree: dict[str, Any]) -> int:
    digits = tree["hex"]
    if not isinstance(digits, str) or len(digits) > MAX_INTEGER_BITS // 4 + 4:
        raise WireError("an integer has too many digits")
    return int(digits, 16)


def _decode_fraction(decoder: ValueDecoder, tree: dict[str, Any]) -> fractions.Fraction:
    above, below = decoder.decode_list(tree["of"])
    # Integers only: a fraction made from text or a decimal would compute the power of ten of its exponent.
    if type(above) is not int or type(below) is not int:
        raise WireError("a fraction's parts are not integers")
    if max(above.bit_length(), below.bit_length()) > MAX_FRACTION_BITS:
        raise WireError("a fraction has too many digits")
    return fractions.Fraction(above, below)


def _decode_float(_: ValueDecoder, tree: dict[str, Any]) -> float:
    return _NON_FINITE[tree["is"]]


def _decode_complex(decoder: ValueDecoder, tree: dict[str, Any]) -> complex:
    return complex(*(_check_number(part) for part in decoder.decode_list(tree["of"])))


def _decode_timedelta(decoder: ValueDecoder, tree: dict[str, Any]) -> datetime.timedelta:
    return datetime.timedelta(*(_check_number(part) for part in decoder.decode_list(tree["of"])))


def _check_number(value: Any) -> float:
    if type(value) is float or (type(value) is int and value.bit_length() < 64):
        return float(value) if type(value) is float else value
    raise WireError("expected a number")


def _make_string_decoder(read: Callable[[str], Any], most: int) -> ValueBuilder:
    def build(_: ValueDecoder, tree: dict[str, Any]) -> Any:
        text = tree["is"]
        if not isinstance(text, str) or len(text) > most:
            raise WireError("the text of a value is too long")
        return read(text)

    return build


def _make_set_decoder(make: Callable[[list[Any]], Any]) -> ValueBuilder:
    def build(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
        members = decoder.decode_list(tree["of"])
        return make(members) if decoder.may_hash(members) else UnhashedSet(tuple(members))

    return build


def _decode_array(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    import numpy as np

    dtype, shape = tree["dtype"], tree["shape"]
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise WireError("an array has an unknown dtype")
    if not isinstance(shape, list) or not is_allowed_shape(shape):
        raise WireError("an array has an invalid shape")
    array = np.frombuffer(decoder.take_blob(tree), dtype=dtype).reshape(shape).copy()
    kind, order = array.dtype.kind, array.dtype.str[0]
    if kind == "b":
        return array.view("u1") != 0
    if kind == "U" and array.size and array.reshape(-1).view(f"{order}u4").max() > _MAX_CODE_POINT:
        raise WireError("an array of text has invalid characters")
    if kind == "M" and array.dtype.str.endswith("8") and (array.view(f"{order}i8") != _NOT_A_TIME).any():
        raise WireError("an array of dates has no unit")
    return array


_NON_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_BUILDERS: Final[dict[str, ValueBuilder]] = {
    "int": _decode_integer,
    "float": _decode_float,
    "text": _decode_text,
    "escaped": _decode_escaped,
    "bytes": lambda decoder, tree: decoder.take_blob(tree),
    "tuple": lambda decoder, tree: tuple(decoder.decode_list(tree["of"])),
    "set": _make_set_decoder(set),
    "frozenset": _make_set_decoder(frozenset),
    "dict": _decode_dict,
    "datetime": _make_string_decoder(datetime.datetime.fromisoformat, MAX_DATE_CHARACTERS),
    "date": _make_string_decoder(datetime.date.fromisoformat, MAX_DATE_CHARACTERS),
    "time": _make_string_decoder(datetime.time.fromisoformat, MAX_DATE_CHARACTERS),
    "timedelta": _decode_timedelta,
    "decimal": _make_string_decoder(decimal.Decimal, MAX_DECIMAL_CHARACTERS),
    "fraction": _decode_fraction,
    "complex": _decode_complex,
    "array": _decode_array,
}
