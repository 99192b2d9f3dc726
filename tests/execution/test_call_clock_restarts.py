"""A call whose tool gives signs of life gets its timeout anew, up to a limit."""

import asyncio
import time
from collections.abc import Collection

import pytest

from ferrule.execution.call_clock import MOST_TIMEOUTS, CallClock


@pytest.mark.parametrize(("restarts", "waited"), [(0, 4.0), (1, 6.0), (3, 10.0), (100, 4.0 * MOST_TIMEOUTS)])
async def test_each_sign_of_life_restarts_the_timeout(
    monkeypatch: pytest.MonkeyPatch, restarts: int, waited: float
) -> None:
    now, left = 1000.0, restarts
    task = asyncio.create_task(asyncio.sleep(3600))
    clock = CallClock()

    async def pass_time(_awaited: Collection[object], timeout: float, return_when: str) -> None:
        """Let half of the timeout pass and give a sign of life, as long as there are some; then let all of it pass."""
        nonlocal now, left
        if left:
            left -= 1
            now += min(2.0, timeout)
            clock.restart()
        else:
            now += timeout

    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        patch.setattr(asyncio, "wait", pass_time)
        await clock.wait(task, 4.0)
    assert now - 1000.0 == waited
    task.cancel()
