"""Keys and values that outlive a generation, found again by the ids that they were computed from.

A turn that extends an earlier one pays for its new ids only. What is least recently used goes first, within a bound
in bytes. Where one entry extends another, the longer is kept: it holds all of the shorter. Only entries of another
conversation, told by `cache_key`, stay beside it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.safetensors import Array

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prefix:
    """`keys_values` (see `KeyValueCache.saved`) of all `ids`; `cache_key` is the conversation's, where it has one."""

    ids: Ids
    keys_values: Array
    cache_key: str | None

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.ids.nbytes + self.keys_values.nbytes


class PrefixStore:
    """At most `limit` bytes of prefixes. Looking one up reads every entry's ids: 3 µs each, for 500 ids."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[int, Prefix] = OrderedDict()
        self._size = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes that are kept now."""
        return self._size

    def find(self, ids: Ids) -> tuple[int, Prefix | None]:
        """The entry with the longest common prefix with `ids`, and that length (0 and None where there is none)."""
        best, best_number = 0, -1
        for number, entry in self._entries.items():
            length = common_prefix(entry.ids, ids)
            if length > best:
                best, best_number = length, number
        if not best:
            return 0, None
        self._entries.move_to_end(best_number)
        return best, self._entries[best_number]

    def fits(self, size: int) -> bool:
        """Whether `size` bytes could be kept at all: if not, a copy need not be made."""
        return size <= self._limit

    def add(self, prefix: Prefix) -> None:
        """Keep a prefix; drop what it replaces (the same key's, and those that it extends), then the oldest."""
        for number, entry in list(self._entries.items()):
            alike = common_prefix(entry.ids, prefix.ids)
            if alike == len(prefix.ids) and prefix.cache_key in (None, entry.cache_key):
                self._entries.move_to_end(number)
                return
            same_key = prefix.cache_key is not None and entry.cache_key == prefix.cache_key
            if same_key or (alike == len(entry.ids) and entry.cache_key in (None, prefix.cache_key)):
                self._drop(number)
        self._entries[self._next] = prefix
        self._next += 1
        self._size += prefix.size
        while self._size > self._limit:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._size = 0

    def _drop(self, number: int) -> None:
        self._size -= self._entries.pop(number).size


def common_prefix(one: Ids, other: Ids) -> int:
    """How many ids two sequences begin with alike."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
