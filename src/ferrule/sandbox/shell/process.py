"""A contained process tree, whichever back end started it, and how it ended."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["CommandStart", "ContainedProcess", "ShellExit", "describe_start", "wait_until_readable"]


@dataclass(frozen=True, slots=True)
class ShellExit:
    """A shell's end: its exit status, or the signal that ended it (a shell reports its child's as 128 + number)."""

    exit_code: int | None
    signal: int | None

    @classmethod
    def from_status(cls, status: int) -> ShellExit:
        """From a shell's status, in which more than 128 stands for a signal."""
        number = status - 128
        return cls(status, number if 0 < number < 65 else None)


@dataclass(frozen=True, slots=True)
class CommandStart:
    """What is started: descriptors of standard input, output and errors, which stay the caller's."""

    argv: Sequence[str]
    environment: dict[str, str]
    streams: tuple[int, int, int]
    processes: int
    """How many processes and threads there may be at a time, where that can be limited."""
    file_size: int
    """Bytes of the longest file that may be written."""


def describe_start(start: CommandStart) -> dict[str, Any]:
    """What a launcher is told of a command, but for where and how it is contained."""
    return {"argv": list(start.argv), "environment": start.environment, "limits": _resource_limits(start)}


def _resource_limits(start: CommandStart) -> dict[int, int]:
    """Hard limits by resource. The kernel doesn't count the processes of root, so for root that one stops nothing."""
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: start.file_size,
        resource.RLIMIT_NPROC: start.processes,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }


class ContainedProcess(Protocol):
    """A tree of processes that ends as a whole."""

    async def wait_until_ended(self) -> ShellExit:
        """Wait for the command itself, then end whatever it left behind. Raises `SandboxUnavailable` if none ran."""

    def terminate(self) -> None:
        """Ask its group to end (SIGTERM)."""

    def kill(self) -> None:
        """End all of it (SIGKILL)."""

    def close(self) -> None:
        """Give descriptors back."""


async def wait_until_readable(descriptor: int) -> None:
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
