"""`AsyncClosing`: what is closed at the end of an `async with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class AsyncClosing(ABC):
    """An async context manager that is itself the value of its block, and closes at the end of it."""

    __slots__ = ()

    @abstractmethod
    async def aclose(self) -> None:
        """Close it. Can be called again."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
