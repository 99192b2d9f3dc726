"""What a failed request means for the next attempt, and how long to wait before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC
from random import Random
from typing import Literal, TypeAlias

from ferrule.errors import ProviderError

FailureKind: TypeAlias = Literal["overloaded", "failed", "refused", "bad"]


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why an attempt failed.

    `overloaded`: the provider asks for fewer requests (429, 503, 529). `failed`: it broke (another 5xx, a connection
    refused or reset). `refused`: it rejects the key or doesn't permit this (401, 403). `bad`: the request is wrong.
    Only the first two are retried. `retry_after` is the provider's: seconds, or a `Retry-After` header verbatim.
    `is_too_long`: the prompt exceeds the model's context. `refuses_tools`: the server takes no tools for this model.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | str | None = None
    is_too_long: bool = False
    refuses_tools: bool = False


class PromptTooLong(ProviderError):  # noqa: N818 - what is wrong with the prompt
    """The prompt exceeds the model's context."""


class ToolsRefused(ProviderError):  # noqa: N818 - what the server did
    """The server takes no tools for this model."""


def draw_backoff(attempts: int, first: float, longest: float, random: Random) -> float:
    """Seconds to wait after so many attempts: a random time in the upper half of an interval that doubles.

    Half of it is random, so that requests that failed together don't retry together ("equal jitter" in Marc Brooker's
    "Exponential Backoff and Jitter").
    """
    # The exponent is bounded because 2.0 ** 1024 overflows.
    interval = min(longest, first * 2.0 ** min(attempts - 1, 60))
    return interval * (1 + random.random()) / 2


def parse_retry_after(value: float | str | None, now: float) -> float:
    """The seconds in a `Retry-After`: a number, its text, or an HTTP date (RFC 9110, 10.2.3).

    0 if it can't be parsed. `now` is the time of day as returned by `time.time()`.
    """
    if value is None:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        # Imported only here: most providers send seconds.
        from email.utils import parsedate_to_datetime

        try:
            date = parsedate_to_datetime(str(value))
        except ValueError:
            return 0.0
        # A date without a zone is in UTC: HTTP has no other.
        moment = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
