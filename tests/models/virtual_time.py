"""An event loop whose time passes only when it has nothing else to do: waits of minutes take none, to the second."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Selector(selectors.DefaultSelector):
    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None):
        if timeout is None:
            # Nothing is planned: another thread may still have something.
            ready = super().select(10)
            assert ready, "everything waits, and for nothing"
            return ready
        ready = super().select(0)
        if not ready:
            self.loop.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a loop of virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Seconds since the loop began."""
    return asyncio.get_running_loop().time() - 1000.0
