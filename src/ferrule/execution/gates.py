"""Gates that keep the tools of one Toolset instance from running together: many readers, or one other.

Whoever comes first goes first, so calls keep the order in which they were made. A gate works across threads and event
loops, because an instance may be shared between them, and because a call that was given up leaves from its thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary


@dataclass(slots=True, eq=False)
class Turn:
    """The right to be inside a gate; `leave` gives it back, once, from any thread."""

    gate: Gate
    shared: bool
    loop: asyncio.AbstractEventLoop | None = None
    admitted: asyncio.Future[None] | None = None
    is_inside: bool = field(default=False)

    def leave(self) -> None:
        """Leave; a second time does nothing."""
        self.gate.left_by(self)


class Gate:
    """Lets in shared turns together, any other alone, in the order of arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: set[Turn] = set()
        self._waiting: deque[Turn] = deque()

    async def enter(self, shared: bool, seconds: float | None = None) -> Turn | None:
        """Wait for a turn; None where `seconds` pass first."""
        turn = Turn(self, shared)
        with self._lock:
            if not self._waiting and self._has_room(turn):
                self._admit(turn)
                return turn
            turn.loop = asyncio.get_running_loop()
            turn.admitted = turn.loop.create_future()
            self._waiting.append(turn)
        try:
            async with asyncio.timeout(seconds):
                await turn.admitted
        except TimeoutError:
            return None if self._withdrawn(turn) else turn
        except asyncio.CancelledError:
            if not self._withdrawn(turn):
                turn.leave()
            raise
        return turn

    def left_by(self, turn: Turn) -> None:
        """Take a turn back and let in who can come now."""
        with self._lock:
            if not turn.is_inside:
                return
            turn.is_inside = False
            self._inside.remove(turn)
        self._let_in()

    def _let_in(self) -> None:
        admitted = []
        with self._lock:
            while self._waiting and self._has_room(self._waiting[0]):
                turn = self._waiting.popleft()
                self._admit(turn)
                admitted.append(turn)
        for turn in admitted:
            assert turn.loop is not None
            assert turn.admitted is not None
            try:
                turn.loop.call_soon_threadsafe(_settle, turn.admitted)
            except RuntimeError:  # its loop was closed while it waited
                turn.leave()

    def _has_room(self, turn: Turn) -> bool:
        return not self._inside or (turn.shared and all(other.shared for other in self._inside))

    def _admit(self, turn: Turn) -> None:
        turn.is_inside = True
        self._inside.add(turn)

    def _withdrawn(self, turn: Turn) -> bool:
        with self._lock:
            if turn.is_inside:
                return False
            self._waiting.remove(turn)
        self._let_in()
        return True


def _settle(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


_gates: WeakKeyDictionary[Any, Gate] = WeakKeyDictionary()
_gates_lock = threading.Lock()


def gate_of(barrier: object) -> Gate:
    """The one gate of a barrier, for as long as the barrier lives."""
    with _gates_lock:
        gate = _gates.get(barrier)
        if gate is None:
            gate = _gates[barrier] = Gate()
        return gate
