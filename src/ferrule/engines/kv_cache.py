"""Keys and values of running conversations in numpy.

They share one array with a place for each, numbered from 0 without gaps, so that a step over all of them is a slice
and not a gather. The scheduler assigns the places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
        for place, length in enumerate(lengths[:old_places]):
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
