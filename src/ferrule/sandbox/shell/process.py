"""A contained process tree, whichever back end started it, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Contained", "Ending", "Start", "readable"]


@dataclass(frozen=True, slots=True)
class Ending:
    """A shell's end: its exit status, or the signal that ended it (a shell reports its child's as 128 + number)."""

    exit_code: int | None
    signal: int | None

    @classmethod
    def of_status(cls, status: int) -> Ending:
        """From a shell's status, in which more than 128 stands for a signal."""
        number = status - 128
        return cls(status, number if 0 < number < 65 else None)


@dataclass(frozen=True, slots=True)
class Start:
    """What is started: descriptors of standard input, output and errors, which stay the caller's."""

    argv: Sequence[str]
    environment: dict[str, str]
    streams: tuple[int, int, int]
    processes: int
    """How many processes and threads there may be at a time, where that can be limited."""
    file_size: int
    """Bytes of the longest file that may be written."""


class Contained(Protocol):
    """A tree of processes that ends as a whole."""

    async def ended(self) -> Ending:
        """Wait for the command itself, then end whatever it left behind. Raises `SandboxUnavailable` if none ran."""

    def terminate(self) -> None:
        """Ask its group to end (SIGTERM)."""

    def kill(self) -> None:
        """End all of it (SIGKILL)."""

    def close(self) -> None:
        """Give descriptors back."""


async def readable(descriptor: int) -> None:
    """Wait until a descriptor can be read: for a pidfd, until its process has ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _settle, future)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
