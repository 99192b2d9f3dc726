"""Keys and values: those of running conversations (`KeyValueCache`), and those kept for later (`PrefixStore`).

Running conversations share one array with a place for each, numbered from 0 without gaps, so that a step over all of
them is a slice and not a gather. The scheduler assigns the places.

Prefixes outlive a generation and are found again by their ids, so that a turn that extends an earlier one pays only for
its new ids. The least recently used is dropped first, within a limit in bytes. If one entry extends another, only the
longer is kept, which contains the shorter.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ferrule.engines.config import DecoderConfig
from ferrule.engines.weights import Array


class KeyValueCache:
    """`data` is (layers, places, kv_heads keys then kv_heads values, capacity, head_dim), float32.

    Positions that were never written are zeros: their weight is zero, but they must not be NaN.
    """

    def __init__(self, config: DecoderConfig) -> None:
        self._config = config
        self.data = self._make_zeros(0, 0)

    def _make_zeros(self, places: int, capacity: int) -> Array:
        config = self._config
        return np.zeros((config.layers, places, 2 * config.kv_heads, capacity, config.head_dim), np.float32)

    def clear(self) -> None:
        """Clear the cache and release its memory."""
        self.data = self._make_zeros(0, 0)

    def reserve(self, places: int, capacity: int, lengths: Sequence[int]) -> None:
        """Make room for `places` of `capacity` positions, keeping the first `lengths[i]` of place i."""
        _, old_places, _, old_capacity, _ = self.data.shape
        if places <= old_places and capacity <= old_capacity:
            return
        # Doubling keeps the copies few. Zeroed memory that is not touched takes no space.
        grown = self._make_zeros(_power_of_two(max(places, old_places)), max(_power_of_two(capacity), old_capacity))
        for place, length in enumerate(lengths):
            grown[:, place, :, :length] = self.data[:, place, :, :length]
        self.data = grown

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one place to another."""
        self.data[:, target, :, :length] = self.data[:, source, :, :length]

    def view(self, place: int, length: int) -> Array:
        """The first `length` positions, (layers, 2 kv_heads, length, head_dim), as a view to copy from."""
        return self.data[:, place, :, :length]

    def restore(self, place: int, kept: Array, length: int) -> None:
        """Write the first `length` positions of a copy of such a view."""
        self.data[:, place, :, :length] = kept[:, :, :length]


def _power_of_two(value: int) -> int:
    return max(1 << (value - 1).bit_length(), 1)


Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prefix:
    """`ids` and their `keys_values` (see `KeyValueCache.view`), which may have room for more positions."""

    ids: Ids
    keys_values: Array

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.ids.nbytes + self.keys_values.nbytes


class PrefixStore:
    """At most `limit` bytes of prefixes. Used by a single thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[int, Prefix] = OrderedDict()
        self._size = 0
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The bytes currently stored."""
        return self._size

    def find(self, ids: Ids) -> tuple[int, Prefix | None]:
        """The entry with the longest common prefix with `ids`, and its length (0 and None if there is none)."""
        best, best_number = 0, -1
        for number, entry in reversed(self._entries.items()):
            # Only an entry with the id after the best prefix can be better, which excludes most.
            if best < min(len(entry.ids), len(ids)) and entry.ids[best] == ids[best]:
                length = common_prefix(entry.ids, ids)
                if length > best:
                    best, best_number = length, number
        if not best:
            return 0, None
        self._entries.move_to_end(best_number)
        return best, self._entries[best_number]

    def takes(self, keys_values: Array) -> bool:
        """Whether these are small enough to be stored."""
        return keys_values.nbytes <= self._limit

    def add(self, ids: Ids, keys_values: Array) -> None:
        """Store a copy; drop the entries that this one extends, then the least recently used.

        If an extended entry has space left, only the new positions are copied.
        """
        if not self.takes(keys_values):
            return
        extended: Prefix | None = None
        for number, entry in list(self._entries.items()):
            shared = min(len(entry.ids), len(ids))
            contains = entry.ids[shared - 1] == ids[shared - 1] and common_prefix(entry.ids, ids) == shared
            if contains and shared == len(ids):
                self._entries.move_to_end(number)
                return
            if contains:
                self._drop(number)
                if extended is None or len(entry.ids) > len(extended.ids):
                    extended = entry
        self._insert(Prefix(ids.copy(), self._copy(keys_values, extended)))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._size = 0

    def _copy(self, keys_values: Array, extended: Prefix | None) -> Array:
        layers, heads, length, head_dim = keys_values.shape
        if extended is not None and extended.keys_values.shape[2] >= length:
            kept, known = extended.keys_values, len(extended.ids)
        else:
            # A quarter more than needed, for the next turn: memory that is not touched yet takes no space.
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
    """The length of the common prefix of two sequences of ids."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
