"""Trees of `encoding` as values again. Whatever the bytes say, a decoder builds plain values or raises `WireError`.

What that costs is bounded whoever wrote them: parts are counted by their weight, digits and depth are limited, nothing
is computed that takes more than linear time, and what can't be hashed cheaply isn't (see `hashing`): such a dictionary
is a `UnhashedDict`, such a set a `UnhashedSet`.
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
    DATE_CHARACTERS,
    DECIMAL_CHARACTERS,
    DEPTH,
    FRACTION_BITS,
    INTEGER_BITS,
    NODES,
    WEIGHTS,
)
from ferrule.sandbox.python.wire.frames import FrameBlobs, WireError
from ferrule.sandbox.python.wire.hash_cost import WORK, UnhashedDict, UnhashedSet, estimate_hash_work
from ferrule.sandbox.python.wire.library_values import is_shape

_DTYPE: Final = re.compile(r"[<>|=](?:[biufcSU]\d{1,7}|[mM]8(?:\[\d{0,6}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)")
_DEEPEST: Final = DEPTH + 16
"""An encoder's deepest value, and what an answer or a table has around it."""
_HIGHEST: Final = 0x10FFFF
_NOT_A_TIME: Final = -(2**63)
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


class ValueDecoder:
    """Decodes the trees of one frame, in their order. `builders` makes what only one side knows (`table`, `frame`).

    Of a frame from the parent (`is_trusted`) any number of parts is read, and everything is hashed that can be.
    """

    def __init__(
        self, blobs: FrameBlobs, builders: Mapping[str, ValueBuilder] | None = None, *, is_trusted: bool = False
    ) -> None:
        self.blobs = blobs
        self._builders = {**_BUILDERS, **(builders or {})}
        self._depth = 0
        self._parts = math.inf if is_trusted else NODES + _SPARE
        self._work = math.inf if is_trusted else WORK

    def value(self, tree: Any) -> Any:
        """The value of a tree. Raises `WireError`."""
        if not isinstance(tree, list | dict):
            return tree
        self._depth += 1
        if self._depth > _DEEPEST:
            raise WireError("a value that is nested too deeply")
        try:
            if isinstance(tree, list):
                return self.values(tree)
            if "$" not in tree:
                self.spend(2 * len(tree))
                return {key: item if type(item) in _LEAVES else self.value(item) for key, item in tree.items()}
            self.spend(WEIGHTS[tree["$"]] - 1)
            return self._builders[tree["$"]](self, tree)
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001 - hostile fields make constructors raise whatever they like
            raise WireError(f"a value that can't be: {type(error).__name__}") from None
        finally:
            self._depth -= 1

    def values(self, tree: Any) -> list[Any]:
        """The values of a tree that has to be a list. Raises `WireError`."""
        if not isinstance(tree, list):
            raise WireError("a value where there should be several")
        self.spend(len(tree))
        return [item if type(item) in _LEAVES else self.value(item) for item in tree]

    def blob(self, tree: Any) -> bytes:
        """The bytes that a tree names. Raises `WireError`."""
        if not isinstance(tree, dict):
            raise WireError("a value where there should be bytes")
        return self.blobs.take(tree.get("n"))

    def spend(self, parts: int) -> None:
        """Count so many parts. Raises `WireError` where they are more than a frame may have."""
        self._parts -= parts
        if self._parts < 0:
            raise WireError("a frame of too many parts")

    def may_hash(self, keys: list[Any]) -> bool:
        """Whether a table of these keys is cheap, after what the frame's others took."""
        if self._work == math.inf:
            return True
        taken = estimate_hash_work(keys, int(self._work))
        if taken > self._work:
            return False
        self._work -= taken
        return True


class ValueBuilder(Protocol):
    """Makes the value of a tree with a tag."""

    def __call__(self, decoder: ValueDecoder, tree: dict[str, Any], /) -> Any: ...


_SPARE: Final = 5000
"""Parts beyond an encoder's limit, which may go over it by those of the last value."""


def _dictionary(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    keys, items = decoder.values(tree["keys"]), decoder.values(tree["of"])
    pairs = zip(keys, items, strict=True)
    return dict(pairs) if decoder.may_hash(keys) else UnhashedDict(tuple(pairs))


def _text(decoder: ValueDecoder, tree: dict[str, Any]) -> str:
    return decoder.blob(tree).decode()


def _escaped(decoder: ValueDecoder, tree: dict[str, Any]) -> str:
    data = decoder.blob(tree)
    text = json.loads(data.decode("ascii")) if data.startswith(b'"') else None
    if not isinstance(text, str):
        raise WireError("an escaped text that is none")
    return text


def _integer(_: ValueDecoder, tree: dict[str, Any]) -> int:
    digits = tree["hex"]
    if not isinstance(digits, str) or len(digits) > INTEGER_BITS // 4 + 4:
        raise WireError("a number of too many digits")
    return int(digits, 16)


def _fraction(decoder: ValueDecoder, tree: dict[str, Any]) -> fractions.Fraction:
    above, below = decoder.values(tree["of"])
    # Only whole numbers: of a text or a decimal a fraction would write out the power of ten in its exponent.
    if type(above) is not int or type(below) is not int:
        raise WireError("a fraction of something else than two whole numbers")
    if max(above.bit_length(), below.bit_length()) > FRACTION_BITS:
        raise WireError("a fraction of too many digits")
    return fractions.Fraction(above, below)


def _float(_: ValueDecoder, tree: dict[str, Any]) -> float:
    return _UNBOUNDED[tree["is"]]


def _complex(decoder: ValueDecoder, tree: dict[str, Any]) -> complex:
    return complex(*(_number(part) for part in decoder.values(tree["of"])))


def _timedelta(decoder: ValueDecoder, tree: dict[str, Any]) -> datetime.timedelta:
    return datetime.timedelta(*(_number(part) for part in decoder.values(tree["of"])))


def _number(value: Any) -> float:
    if type(value) is float or (type(value) is int and value.bit_length() < 64):
        return float(value) if type(value) is float else value
    raise WireError("something else where a number should be")


def _written(read: Callable[[str], Any], most: int) -> ValueBuilder:
    def build(_: ValueDecoder, tree: dict[str, Any]) -> Any:
        text = tree["is"]
        if not isinstance(text, str) or len(text) > most:
            raise WireError("a value that is written at too great a length")
        return read(text)

    return build


def _gathered(make: Callable[[list[Any]], Any]) -> ValueBuilder:
    def build(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
        members = decoder.values(tree["of"])
        return make(members) if decoder.may_hash(members) else UnhashedSet(tuple(members))

    return build


def _array(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    import numpy as np

    dtype, shape = tree["dtype"], tree["shape"]
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise WireError("an array of unknown items")
    if not isinstance(shape, list) or not is_shape(shape):
        raise WireError("an array of impossible shape")
    array = np.frombuffer(decoder.blob(tree), dtype=dtype).reshape(shape).copy()
    kind, order = array.dtype.kind, array.dtype.str[0]
    if kind == "b":
        return array.view("u1") != 0
    if kind == "U" and array.size and array.reshape(-1).view(f"{order}u4").max() > _HIGHEST:
        raise WireError("an array of text with characters that don't exist")
    if kind == "M" and array.dtype.str.endswith("8") and (array.view(f"{order}i8") != _NOT_A_TIME).any():
        raise WireError("an array of dates without a unit")
    return array


_UNBOUNDED: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_BUILDERS: Final[dict[str, ValueBuilder]] = {
    "int": _integer,
    "float": _float,
    "text": _text,
    "escaped": _escaped,
    "bytes": lambda decoder, tree: decoder.blob(tree),
    "tuple": lambda decoder, tree: tuple(decoder.values(tree["of"])),
    "set": _gathered(set),
    "frozenset": _gathered(frozenset),
    "dict": _dictionary,
    "datetime": _written(datetime.datetime.fromisoformat, DATE_CHARACTERS),
    "date": _written(datetime.date.fromisoformat, DATE_CHARACTERS),
    "time": _written(datetime.time.fromisoformat, DATE_CHARACTERS),
    "timedelta": _timedelta,
    "decimal": _written(decimal.Decimal, DECIMAL_CHARACTERS),
    "fraction": _fraction,
    "complex": _complex,
    "array": _array,
}
