"""What a gateway reports: requests, failures, and latencies as histograms in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# Eight buckets to each doubling, from a tenth of a millisecond to more than three hours: a bucket's middle is
# within 4.5% of whatever fell into it.
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
    """Counts durations in buckets that grow by a fixed ratio. It isn't locked: its owner is."""

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

    def compute_quantile(self, share: float) -> float | None:
        """The middle of the bucket in which that share (0 to 1) of the durations is reached."""
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
    """What was sent to one address since the process began, how it went, and how things stand."""

    name: str
    """The provider and the address."""
    requests: int
    """Requests of which one attempt at least was sent."""
    attempts: int
    """Times that one was sent."""
    retries: int
    """Those of them that were not a request's first."""
    finished: int
    """Requests whose answer came whole."""
    failures: Mapping[str, int]
    """Failed attempts by kind: a `RequestFailure`'s, or `broken` for one that failed after its first chunk."""
    given_up: int
    """Attempts that were cancelled, or closed before their end, by the caller."""
    not_sent: int
    """Requests, or further attempts, that failed at once: the breaker was open, or too many waited."""
    running: int
    """Requests that have a slot now."""
    waiting: int
    """Requests that wait for a slot now."""
    concurrency: int
    """How many may run now."""
    breaker: Literal["closed", "open", "half open"]
    """Whether requests are let through now."""
    paused: float
    """Seconds for which the provider has asked to be left alone (`Retry-After`)."""
    first_chunk: LatencySummary
    """From sending an attempt to its first chunk."""
    last_chunk: LatencySummary
    """From sending an attempt to the end of its answer; what its reader took to read is part of it."""


@dataclass(slots=True)
class RequestCounters:
    """What is counted of the requests to one address. It isn't locked: its owner is."""

    requests: int = 0
    attempts: int = 0
    finished: int = 0
    given_up: int = 0
    not_sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    first_chunk: LatencyHistogram = field(default_factory=LatencyHistogram)
    last_chunk: LatencyHistogram = field(default_factory=LatencyHistogram)
