"""Keys that change: a function that is asked for the key before every request, in place of a text."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ferrule.errors import ModelError

KeyFunction: TypeAlias = Callable[[], "str | Awaitable[str]"]
"""Returns the key for the next request, sync or async: from a vault, a file, a service that rotates keys."""

_KEPT = 8


class KeySource:
    """Asks a function for keys. `seen` are the last ones: none of them may appear in a message."""

    def __init__(self, ask: KeyFunction, model: str) -> None:
        self._ask = ask
        self._model = model
        self.seen: list[str] = []

    async def fetch(self) -> str:
        """Return the key for the next request. A blocking function runs in a thread.

        Raises `ModelError` for a function that fails, or returns what can't be a key.
        """
        try:
            if inspect.iscoroutinefunction(self._ask):
                given = await self._ask()
            else:
                given = await asyncio.to_thread(self._ask)
                if inspect.isawaitable(given):
                    given = await given
        except Exception as error:
            # Not its text: what fetches a secret may have it in its error.
            raise ModelError(
                f"{self._model}: the function given as api_key raised {type(error).__name__}; nothing was sent"
            ) from error
        if not isinstance(given, str) or not (key := given.strip()) or not key.isascii() or not key.isprintable():
            kind = "a text that can't be a key" if isinstance(given, str) else type(given).__name__
            raise ModelError(f"{self._model}: the function given as api_key must return a key, and returned {kind}")
        if key not in self.seen:
            self.seen = [*self.seen[1 - _KEPT :], key]
        return key
