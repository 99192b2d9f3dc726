"""Counts the functions that a piece of work calls: what its cost is, on any machine and under any load."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any


async def count_functions(work: Callable[[], Any]) -> int:
    """Count the calls of functions, also of built-in ones, in this thread while `work` runs."""
    count = 0

    def count_one(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_one)
    try:
        done = work()
        if isinstance(done, Awaitable):
            await done
    finally:
        sys.setprofile(before)
    return count


async def is_linear(work: Callable[[int], Any], size: int, factor: int = 4) -> bool:
    """Whether work on `factor` times as much calls at most as many times more functions, and a tenth."""
    small, large = await count_functions(lambda: work(size)), await count_functions(lambda: work(factor * size))
    return large <= 1.1 * factor * small
