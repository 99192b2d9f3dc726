"""What can be set about the requests to one provider's address."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Seconds: TypeAlias = Annotated[float, Field(gt=0)]


class Timeouts(BaseModel):
    """How long each stage of a request may take, in seconds; `math.inf` for no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect: Seconds = 120
    """Until the provider has begun to answer (`start()` has returned), which for most is when the headers are there.

    A server that first loads the model sends them late; a connection that isn't made is given up much earlier."""
    first: Seconds = 120
    """From there until the first chunk."""
    silence: Seconds = 60
    """Between two chunks."""


class GatewaySettings(BaseModel):
    """How requests to one address are spaced, tried again and given up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeouts: Timeouts = Timeouts()
    """How long each stage of a request may take."""
    attempts: Annotated[int, Field(ge=1)] = 4
    """How often a request is tried in all, the first time included."""
    total_time: Seconds = 180
    """Seconds since its first attempt after which a request is not tried again."""
    first_delay: Seconds = 0.5
    """Seconds, at most, before the second attempt; the wait doubles with each attempt after that."""
    longest_delay: Seconds = 30
    """Seconds that the wait before an attempt grows to; a provider's `Retry-After` may ask for more."""
    longest_pause: Seconds = 3600
    """Seconds of a provider's `Retry-After`, at most, for which nothing is sent; then it is asked again."""
    concurrency: Annotated[int, Field(ge=1)] = 1000
    """The most requests that run at once; fewer do after the provider said that it is overloaded."""
    waiting: Annotated[int, Field(ge=0)] = 10_000
    """The most requests that wait for a slot; those beyond are refused with `Overloaded`."""
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    """How many requests may begin a minute, evenly spaced; None for no limit."""
    breaker_failures: Annotated[int, Field(ge=1)] = 10
    """After so many failures in a row, requests fail at once for a while."""
    breaker_window: Seconds = 60
    """Seconds within which those failures must fall."""
    breaker_open: Seconds = 15
    """Seconds for which requests fail at once; then one is let through to see whether the provider is back."""
