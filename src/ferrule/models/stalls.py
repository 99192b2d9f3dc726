"""How long an event loop was kept from its work, by a function that didn't return or by more than it could do.

A connection that isn't made in time says something of the provider only where this process minded it all that time:
it takes several turns of the loop to make one, and a time limit also passes while nobody looks.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

_TICK, _SHARE = 0.25, 0.01
"""Seconds between two looks at first, and later the share of the time since then. A loop whose turns take twice as long
as that counts as kept from its work half of the time."""


class Stalls:
    """The stalls of one event loop, noticed while somebody follows them. It is used in the loop's thread only."""

    __slots__ = ("_due", "_followers", "_lost", "_since", "_timer")

    def __init__(self) -> None:
        self._followers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._due = 0.0
        self._lost = 0.0

    @property
    def seconds(self) -> float:
        """Seconds lost, also to a stall that has just ended; only the difference of two such numbers says anything."""
        now = asyncio.get_running_loop().time()
        return self._lost if self._timer is None else self._lost + max(0.0, now - self._due)

    def follow(self) -> float:
        """Begin to look; the seconds lost before."""
        self._followers += 1
        now = self._since = asyncio.get_running_loop().time()
        if self._timer is None:
            self._set(now)
        elif self._due - now > _TICK:
            self._timer.cancel()
            self._set(now)
        return self._lost + max(0.0, now - self._due)

    def leave(self) -> None:
        """Look no more, unless somebody else still does."""
        self._followers -= 1
        if not self._followers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, now: float) -> None:
        self._due = now + max(_TICK, _SHARE * (now - self._since))
        self._timer = asyncio.get_running_loop().call_at(self._due, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        self._lost += max(0.0, now - self._due)
        self._set(now)


# None of them holds its loop, which would then never be let go.
_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Stalls] = WeakKeyDictionary()


def stalls_of(loop: asyncio.AbstractEventLoop) -> Stalls:
    """The one of a loop."""
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Stalls()
    return found
