"""What a gateway reports: requests, failures, and latencies as histograms in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# Eight buckets per doubling, from a tenth of a millisecond to more than three hours: the middle of a bucket is within
# 4.5% of every value in it.
_SMALLEST = 1e-4
_PER_DOUBLING = 8
_BUCKETS = 27 * _PER_DOUBLING


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Quantiles in seconds, of `count` requests; None where there were none."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


class LatencyHistogram:
    """Counts durations in buckets that grow by a fixed ratio. It is not locked: its owner is."""

    def __init__(self) -> None:
        # Sparse, as a process may use many addresses and the durations of one are similar.
        self._counts: dict[int, int] = {}
        self.count = 0

    def add(self, seconds: float) -> None:
        """Count one duration; values outside the range go into the first or last bucket."""
        place = int(math.log2(seconds / _SMALLEST) * _PER_DOUBLING) if seconds > _SMALLEST else 0
        place = min(place, _BUCKETS - 1)
        self._counts[place] = self._counts.get(place, 0) + 1
        self.count += 1

    def compute_quantile(self, share: float) -> float | None:
        """The middle of the bucket that contains the quantile `share` (0 to 1)."""
        reached, wanted = 0, share * self.count
        for place in sorted(self._counts):
            reached += self._counts[place]
            if reached >= wanted:
                return float(_SMALLEST * 2.0 ** ((place + 0.5) / _PER_DOUBLING))
        return None

    def summarize(self) -> LatencySummary:
        """Its count and quantiles."""
        return LatencySummary(
            self.count, self.compute_quantile(0.5), self.compute_quantile(0.95), self.compute_quantile(0.99)
        )


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """What was sent to one address since the process began, the outcomes, and the current state."""

    name: str
    """The provider and the address."""
    requests: int
    """Requests with at least one attempt sent."""
    attempts: int
    """Attempts sent."""
    retries: int
    """The attempts that were not a request's first."""
    finished: int
    """Requests with a complete answer."""
    failures: Mapping[str, int]
    """Failed attempts by kind: a `RequestFailure`'s, or `broken` for one that failed after its first chunk."""
    given_up: int
    """Attempts that the caller cancelled, or closed before their end."""
    not_sent: int
    """Requests or retries that failed at once: the breaker was open, or too many waited."""
    running: int
    """Requests that currently have a slot."""
    waiting: int
    """Requests that currently wait for a slot."""
    concurrency: int
    """How many may currently run."""
    breaker: Literal["closed", "open", "half open"]
    """Whether requests are currently let through."""
    paused: float
    """Seconds that the provider has asked to wait (`Retry-After`)."""
    first_chunk: LatencySummary
    """From sending an attempt to its first chunk."""
    last_chunk: LatencySummary
    """From sending an attempt to the end of its answer, including the time that its reader took."""


@dataclass(slots=True)
class RequestCounters:
    """Counters of the requests to one address. They are not locked: their owner is."""

    requests: int = 0
    attempts: int = 0
    finished: int = 0
    given_up: int = 0
    not_sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    first_chunk: LatencyHistogram = field(default_factory=LatencyHistogram)
    last_chunk: LatencyHistogram = field(default_factory=LatencyHistogram)
