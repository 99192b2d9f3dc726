"""Providers of chunks for the gateway's tests: plain async generators that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from virtual_time import now

from ferrule.models.gateway import NOT_YET
from ferrule.models.gateway.retries import FailureKind, RequestFailure


class ProviderFault(Exception):
    """What an SDK might raise."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def fault(
    kind: FailureKind, message: str = "out of order", status: int | None = 500, retry_after=None
) -> ProviderFault:
    return ProviderFault(RequestFailure(kind, message, status, retry_after))


def failure_of(error: Exception) -> RequestFailure | None:
    return error.failure if isinstance(error, ProviderFault) else None


class Provider:
    """Does one step after another for each attempt, the last script from then on.

    A step is a chunk to give, a `float` of seconds to wait, or an exception to raise; those before `...` happen before
    the request is taken.
    """

    def __init__(self, *scripts) -> None:
        self.scripts = list(scripts)
        self.began: list[float] = []
        self.running = 0
        self.most_running = 0

    async def start(self) -> AsyncIterator[str]:
        script = list(self.scripts[min(len(self.began), len(self.scripts) - 1)])
        self.began.append(now())
        while ... in script:
            step = script.pop(0)
            if step is not ...:
                await _do(step)
        return self._chunks(script)

    async def _chunks(self, script) -> AsyncIterator[str]:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            for step in script:
                if isinstance(step, str) or step is NOT_YET:
                    yield step
                else:
                    await _do(step)
        finally:
            self.running -= 1


async def _do(step) -> None:
    if isinstance(step, float):
        await asyncio.sleep(step)
    else:
        raise step


async def pour(chunks: AsyncIterator[str], into: Callable[[str], object]) -> None:
    """Give each chunk on as it comes, so that those before a failure are seen."""
    async for chunk in chunks:
        into(chunk)


async def read(gateway, provider: Provider) -> list[str]:
    return [chunk async for chunk in gateway.stream(provider.start, failure_of)]
