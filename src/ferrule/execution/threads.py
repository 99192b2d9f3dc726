"""A blocking function in a thread of its own, which can be given up but never stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ferrule.execution.workers import run_in_worker


@dataclass(slots=True)
class Ended:
    """How a function ended: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


class OwnThread:
    """One run of `work` in a thread. Exactly one of two gets its end: who awaits `ended`, or `on_late`.

    `on_late` is called, in the thread or in the loop, where the run had been given up (time or cancellation), or where
    the loop was gone.
    """

    def __init__(self, work: Callable[[], Any], on_late: Callable[[Ended], None]) -> None:
        self._work = work
        self._on_late = on_late
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Ended] = self._loop.create_future()
        self._lock = threading.Lock()
        self._end: Ended | None = None
        self.is_given_up = False
        run_in_worker(self._run)

    async def ended(self, timeout: float | None) -> Ended | None:
        """Wait for the end; None where `timeout` seconds pass first, and the run is given up then."""
        try:
            if timeout is None:
                return await self._future
            async with asyncio.timeout(timeout):
                return await self._future
        except TimeoutError:
            return self._give_up()
        except asyncio.CancelledError:
            end = self._give_up()
            if end is not None:
                self._on_late(end)
            raise

    def _give_up(self) -> Ended | None:
        """Give the run up; where it has ended already, that end instead."""
        with self._lock:
            self.is_given_up = self._end is None
            return self._end

    def _run(self) -> None:
        try:
            end = Ended(self._work())
        except BaseException as error:  # noqa: BLE001 - whatever ends the work is its end
            end = Ended(error=error)
        with self._lock:
            self._end = end
            is_late = self.is_given_up
        if not is_late:
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop was closed
                is_late = True
        if is_late:
            self._on_late(end)

    def _deliver(self) -> None:
        if not self._future.done() and self._end is not None:
            self._future.set_result(self._end)
