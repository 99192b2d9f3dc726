"""Draws items: any of some alike, or in proportion to their weights."""

import random
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

Item = TypeVar("Item")


def pick(rng: random.Random, choices: Sequence[Item]) -> Item:
    """One of the choices; faster than `rng.choice`."""
    return choices[int(rng.random() * len(choices))]


class Wheel(Generic[Item]):
    """Items drawn in proportion to their weights."""

    __slots__ = ("_bounds", "_items", "_total")

    def __init__(self, weighted: Iterable[tuple[Item, float]]) -> None:
        pairs = list(weighted)
        self._items = [item for item, _ in pairs]
        self._bounds = list(accumulate(weight for _, weight in pairs))
        self._total = self._bounds[-1] if pairs else 0.0

    def __bool__(self) -> bool:
        return bool(self._items)

    def draw(self, rng: random.Random) -> Item:
        """One item."""
        return self._items[bisect(self._bounds, rng.random() * self._total, 0, len(self._items) - 1)]
