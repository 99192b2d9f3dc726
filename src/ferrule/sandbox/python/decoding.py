"""Trees of `encoding` as values again. Whatever the bytes say, a decoder builds plain values or raises `WireError`."""

from __future__ import annotations

import datetime
import decimal
import fractions
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ferrule.sandbox.python.encoding import DEPTH
from ferrule.sandbox.python.wire import Blobs, WireError

_ODD_KEYS: Final = 1000
"""Members of a set or keys of a dictionary that are neither text nor small numbers.

Their hashes can be chosen, and many that are equal would keep the parent busy for minutes."""
_DTYPE: Final = re.compile(r"[<>|=][biufcmMSU]\d{1,7}(\[\d{0,6}[a-zA-Z]{1,2}\])?")


class Decoder:
    """Decodes the trees of one frame, in their order. `builders` makes what only one side knows (`table`, `frame`)."""

    def __init__(self, blobs: Blobs, builders: Mapping[str, Builder] | None = None) -> None:
        self.blobs = blobs
        self._builders = {**_BUILDERS, **(builders or {})}
        self._depth = 0

    def value(self, tree: Any) -> Any:
        """The value of a tree. Raises `WireError`."""
        if not isinstance(tree, list | dict):
            return tree
        self._depth += 1
        if self._depth > DEPTH * 3:
            raise WireError("a value that is nested too deeply")
        try:
            if isinstance(tree, list):
                return [self.value(item) for item in tree]
            if "$" not in tree:
                return {key: self.value(item) for key, item in tree.items()}
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
        return [self.value(item) for item in tree]

    def blob(self, tree: Any) -> bytes:
        """The bytes that a tree names. Raises `WireError`."""
        if not isinstance(tree, dict):
            raise WireError("a value where there should be bytes")
        return self.blobs.take(tree.get("n"))


class Builder(Protocol):
    """Makes the value of a tree with a tag."""

    def __call__(self, decoder: Decoder, tree: dict[str, Any], /) -> Any: ...


def _checked(keys: list[Any]) -> list[Any]:
    odd = sum(not (key is None or isinstance(key, str | bytes | bool | float) or _is_small(key)) for key in keys)
    if odd > _ODD_KEYS:
        raise WireError("too many keys that are neither text nor numbers")
    return keys


def _is_small(key: Any) -> bool:
    return isinstance(key, int) and -(2**63) <= key < 2**63


def _dictionary(decoder: Decoder, tree: dict[str, Any]) -> dict[Any, Any]:
    pairs = [(decoder.value(key), decoder.value(value)) for key, value in tree["of"]]
    _checked([key for key, _ in pairs])
    return dict(pairs)


def _text(decoder: Decoder, tree: dict[str, Any]) -> str:
    return decoder.blob(tree).decode("utf-8", "surrogatepass")


def _written(read: Callable[[str], Any]) -> Builder:
    return lambda _, tree: read(str(tree["is"])[:10_000])


def _made(make: Callable[..., Any]) -> Builder:
    return lambda decoder, tree: make(*decoder.values(tree["of"]))


def _gathered(make: Callable[[list[Any]], Any]) -> Builder:
    return lambda decoder, tree: make(_checked(decoder.values(tree["of"])))


def _array(decoder: Decoder, tree: dict[str, Any]) -> Any:
    import numpy as np

    dtype, shape = tree["dtype"], tree["shape"]
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise WireError("an array of unknown items")
    if not all(type(side) is int and 0 <= side < 2**40 for side in shape) or len(shape) > 32:
        raise WireError("an array of impossible shape")
    return np.frombuffer(decoder.blob(tree), dtype=dtype).reshape(shape).copy()


_BUILDERS: Final[dict[str, Builder]] = {
    "int": lambda _, tree: int(tree["hex"], 16),
    "float": lambda _, tree: float(tree["is"][:4]),
    "text": _text,
    "bytes": lambda decoder, tree: decoder.blob(tree),
    "tuple": lambda decoder, tree: tuple(decoder.values(tree["of"])),
    "set": _gathered(set),
    "frozenset": _gathered(frozenset),
    "dict": _dictionary,
    "datetime": _written(datetime.datetime.fromisoformat),
    "date": _written(datetime.date.fromisoformat),
    "time": _written(datetime.time.fromisoformat),
    "timedelta": _made(datetime.timedelta),
    "decimal": _written(decimal.Decimal),
    "fraction": _made(fractions.Fraction),
    "complex": _made(complex),
    "array": _array,
}
