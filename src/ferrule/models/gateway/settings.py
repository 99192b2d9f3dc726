"""Settings for the requests to one provider's address."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Seconds: TypeAlias = Annotated[float, Field(gt=0)]


class Timeouts(BaseModel):
    """How long each stage of a request may take, in seconds; `math.inf` for no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect: Seconds = 120
    """Until the provider begins to answer (`start()` has returned), for most when the headers arrive.

    A server that first loads the model sends them late; connecting has a much shorter limit."""
    first: Seconds = 120
    """From there until the first chunk."""
    silence: Seconds = 60
    """Between two chunks."""


class GatewaySettings(BaseModel):
    """How requests to one address are spaced, retried and given up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeouts: Timeouts = Timeouts()
    """How long each stage of a request may take."""
    attempts: Annotated[int, Field(ge=1)] = 4
    """The maximum number of attempts, including the first."""
    total_time: Seconds = 180
    """Seconds since its first attempt after which a request is not retried."""
    first_delay: Seconds = 0.5
    """Maximum seconds before the second attempt; the wait doubles with each further attempt."""
    longest_delay: Seconds = 30
    """Maximum seconds before any attempt; a provider's `Retry-After` may be longer."""
    longest_pause: Seconds = 3600
    """Maximum seconds of a provider's `Retry-After` for which nothing is sent; then it is tried again."""
    concurrency: Annotated[int, Field(ge=1)] = 1000
    """The maximum number of concurrent requests; fewer run after the provider reported an overload."""
    waiting: Annotated[int, Field(ge=0)] = 10_000
    """The maximum number of requests waiting for a slot; more are refused with `Overloaded`."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """How many requests may begin per minute, evenly spaced; None for no limit."""
    breaker_failures: Annotated[int, Field(ge=1)] = 10
    """After so many consecutive failures, requests fail at once for a while."""
    breaker_window: Seconds = 60
    """Seconds within which those failures must occur."""
    breaker_open: Seconds = 15
    """Seconds for which requests fail at once; then one is let through as a probe."""
