"""How long requests took, in bounded memory: a histogram whose buckets grow by a fixed ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Eight buckets to each doubling, from a tenth of a millisecond to more than three hours: a bucket's middle is
# within 4.5% of whatever fell into it.
_SMALLEST = 1e-4
_PER_DOUBLING = 8
_BUCKETS = 27 * _PER_DOUBLING


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles in seconds, of `count` requests; None where there were none."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


class Histogram:
    """Counts durations by their logarithm. It isn't locked: its owner is."""

    def __init__(self) -> None:
        # Sparse, as a process may talk to many addresses and the durations of one are much alike.
        self._counts: dict[int, int] = {}
        self.count = 0

    def add(self, seconds: float) -> None:
        """Count one duration; what lies outside of the range falls into the first or last bucket."""
        place = int(math.log2(seconds / _SMALLEST) * _PER_DOUBLING) if seconds > _SMALLEST else 0
        place = min(place, _BUCKETS - 1)
        self._counts[place] = self._counts.get(place, 0) + 1
        self.count += 1

    def quantile(self, share: float) -> float | None:
        """The middle of the bucket in which that share (0 to 1) of the durations is reached."""
        reached, wanted = 0, share * self.count
        for place in sorted(self._counts):
            reached += self._counts[place]
            if reached >= wanted:
                return float(_SMALLEST * 2.0 ** ((place + 0.5) / _PER_DOUBLING))
        return None

    def summary(self) -> Latency:
        """What is reported of it."""
        return Latency(self.count, self.quantile(0.5), self.quantile(0.95), self.quantile(0.99))
