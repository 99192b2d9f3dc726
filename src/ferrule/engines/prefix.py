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
    """`ids` and their `keys_values` (see `KeyValueCache.view`), which may have room for more positions.

    `cache_key` is the conversation's, where it has one.
    """

    ids: Ids
    keys_values: Array
    cache_key: str | None

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.ids.nbytes + self.keys_values.nbytes


class PrefixStore:
    """At most `limit` bytes of prefixes. Used by one thread."""

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
        for number, entry in reversed(self._entries.items()):
            # Only one that has the id after the best prefix can be better: most are ruled out by that.
            if best < min(len(entry.ids), len(ids)) and entry.ids[best] == ids[best]:
                length = common_prefix(entry.ids, ids)
                if length > best:
                    best, best_number = length, number
        if not best:
            return 0, None
        self._entries.move_to_end(best_number)
        return best, self._entries[best_number]

    def takes(self, keys_values: Array) -> bool:
        """Whether these are not too large to be kept."""
        return keys_values.nbytes <= self._limit

    def add(self, ids: Ids, keys_values: Array, cache_key: str | None) -> None:
        """Keep a copy; drop the same key's entry and those that this one extends, then the least recently used.

        Of an entry that is extended and has room left, only the new positions are copied.
        """
        if not self.takes(keys_values):
            return
        extended: Prefix | None = None
        for number, entry in list(self._entries.items()):
            shared = min(len(entry.ids), len(ids))
            contains = entry.ids[shared - 1] == ids[shared - 1] and common_prefix(entry.ids, ids) == shared
            if contains and shared == len(ids) and cache_key in (None, entry.cache_key):
                self._entries.move_to_end(number)
                return
            extends = contains and shared < len(ids)
            is_same = cache_key is not None and entry.cache_key == cache_key
            if is_same or (extends and entry.cache_key in (None, cache_key)):
                self._drop(number)
                if extends and (extended is None or len(entry.ids) > len(extended.ids)):
                    extended = entry
        self._insert(Prefix(ids.copy(), self._copied(keys_values, extended), cache_key))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._size = 0

    def _copied(self, keys_values: Array, extended: Prefix | None) -> Array:
        layers, heads, length, head_dim = keys_values.shape
        if extended is not None and extended.keys_values.shape[2] >= length:
            kept, known = extended.keys_values, len(extended.ids)
        else:
            # A quarter more than needed, for the next turn: memory that is not touched yet takes no room.
            kept, known = np.empty((layers, heads, length + length // 4, head_dim), np.float32), 0
        kept[:, :, known:length] = keys_values[:, :, known:]
        return kept

    def _insert(self, prefix: Prefix) -> None:
        self._entries[self._next] = prefix
        self._next += 1
        self._size += prefix.size
        while self._size > self._limit:
            self._drop(next(iter(self._entries)))

    def _drop(self, number: int) -> None:
        self._size -= self._entries.pop(number).size


def common_prefix(one: Ids, other: Ids) -> int:
    """How many ids two sequences begin with alike."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
