"""What a request's failure is told as, whichever SDK raised it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FailureKind: TypeAlias = Literal["overloaded", "failed", "stalled", "refused", "bad"]


@dataclass(frozen=True, slots=True)
class Failure:
    """What an exception of a provider's SDK means.

    `overloaded`: the provider asks for fewer requests (429, 503, 529). `failed`: it broke (another 5xx, a connection
    refused or reset). `stalled`: this process was too busy to see in time what came. `refused`: it doesn't know the key
    or doesn't permit this (401, 403). `bad`: the request is wrong. Only the first three are tried again. `retry_after`
    is the provider's: seconds, or a `Retry-After` header as it came. `timed_out`: a time limit has passed; whether that
    is the provider's failure or a stall is for the gateway to find out.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | str | None = None
    timed_out: bool = False
