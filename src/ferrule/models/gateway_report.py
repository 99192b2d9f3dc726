"""What a gateway tells of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ferrule.models.latency import Histogram, Latency


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
    """Failed attempts by kind: a `Failure`'s, or `broken` for one that failed after its first chunk."""
    given_up: int
    """Attempts that were cancelled, or closed before their end, by who asked for them."""
    not_sent: int
    """Requests, or further attempts, that failed at once: the breaker was open, or too many waited."""
    running: int
    """Requests that have a place now."""
    waiting: int
    """Requests that wait for a place now."""
    concurrency: int
    """How many may run now."""
    breaker: Literal["closed", "open", "half open"]
    """Whether requests are let through now."""
    paused: float
    """Seconds for which the provider has asked not to be sent anything."""
    first_chunk: Latency
    """From sending an attempt to its first chunk."""
    last_chunk: Latency
    """From sending an attempt to the end of its answer; what its reader took to read is part of it."""


@dataclass(slots=True)
class Tally:
    """What is counted. It isn't locked: its owner is."""

    requests: int = 0
    attempts: int = 0
    finished: int = 0
    given_up: int = 0
    not_sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    first_chunk: Histogram = field(default_factory=Histogram)
    last_chunk: Histogram = field(default_factory=Histogram)
