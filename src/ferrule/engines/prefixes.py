"""Prefixes of ended generations, found again by their ids.

A turn that extends an earlier one then pays only for its new ids. The least recently used is dropped first, within a
limit in bytes. What is stored for a prefix is the decoder's own: the store knows its size alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class KeptState(Protocol):
    """What a decoder has computed for a prefix."""

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        ...


@dataclass(frozen=True, slots=True)
class Prefix:
    """`ids` and what was computed for them, which may have room for more."""

    ids: Ids
    state: KeptState

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.ids.nbytes + self.state.nbytes


class PrefixStore:
    """At most `limit` bytes of prefixes. Used by a single thread.

    `can_crop`: the beginning of an entry can be used without the rest. An entry that another one extends is then
    dropped, as the longer contains the shorter; otherwise both stay.
    """

    def __init__(self, limit: int, *, can_crop: bool = True) -> None:
        self._limit = limit
        self._can_crop = can_crop
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
        """The entry with the longest usable prefix of `ids`, and its length (0 and None if there is none)."""
        best, best_number = 0, -1
        for number, entry in reversed(self._entries.items()):
            # Only an entry with the id after the best prefix can be better, which excludes most.
            if best < min(len(entry.ids), len(ids)) and entry.ids[best] == ids[best]:
                length = common_prefix(entry.ids, ids)
                if length > best and (self._can_crop or length == len(entry.ids)):
                    best, best_number = length, number
        if not best:
            return 0, None
        self._entries.move_to_end(best_number)
        return best, self._entries[best_number]

    def takes(self, size: int) -> bool:
        """Whether a state of `size` bytes is small enough to be stored."""
        return size <= self._limit

    def add(self, ids: Ids, size: int, save: Callable[[Prefix | None], KeptState]) -> None:
        """Store what `save` copies, a state of `size` bytes; drop the entries that this one extends, then the least
        recently used.

        `save` gets the longest of the extended entries, whose state it may reuse if that has room left.
        """
        if not self.takes(size):
            return
        extended: Prefix | None = None
        for number, entry in list(self._entries.items()):
            shared = min(len(entry.ids), len(ids))
            contains = entry.ids[shared - 1] == ids[shared - 1] and common_prefix(entry.ids, ids) == shared
            if contains and shared == len(ids) and (self._can_crop or len(entry.ids) == shared):
                self._entries.move_to_end(number)
                return
            if contains and self._can_crop:
                self._drop(number)
                if extended is None or len(entry.ids) > len(extended.ids):
                    extended = entry
        self._insert(Prefix(ids.copy(), save(extended)))

    def set_limit(self, limit: int) -> None:
        """Set the limit in bytes, and drop what is above it."""
        self._limit = limit
        while self._size > limit:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._size = 0

    def _insert(self, prefix: Prefix) -> None:
        self._entries[self._next] = prefix
        self._next += 1
        self._size += prefix.size
        self.set_limit(self._limit)

    def _drop(self, number: int) -> None:
        self._size -= self._entries.pop(number).size


def common_prefix(one: Ids, other: Ids) -> int:
    """The length of the common prefix of two sequences of ids."""
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
