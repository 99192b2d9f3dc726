"""A contained process tree of any back end, and how it ended."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CommandStart", "ContainedProcess", "ShellExit", "describe_start", "wait_until_readable"]


@dataclass(frozen=True, slots=True)
class ShellExit:
    """How a shell ended: its exit status, or the signal (which it reports for its child as 128 + number)."""

    exit_code: int | None
    signal: int | None

    @classmethod
    def from_status(cls, status: int) -> ShellExit:
        """Parse a shell's status, in which more than 128 means a signal."""
        number = status - 128
        return cls(status, number if 0 < number < 65 else None)


@dataclass(frozen=True, slots=True)
class CommandStart:
    """A command to start; the caller keeps ownership of `streams` (standard input, output, errors)."""

    argv: Sequence[str]
    environment: dict[str, str] = field(repr=False)
    streams: tuple[int, int, int]
    processes: int
    """The limit on processes and threads at a time, where it can be enforced."""
    file_size: int
    """The maximum size of a written file, in bytes."""


def describe_start(start: CommandStart) -> dict[str, Any]:
    """A launcher request for a command, without where and how it is contained."""
    return {"argv": list(start.argv), "environment": start.environment, "limits": _list_resource_limits(start)}


def _list_resource_limits(start: CommandStart) -> dict[int, int]:
    """Hard limits by resource. RLIMIT_NPROC has no effect for root, whose processes the kernel doesn't count."""
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: start.file_size,
        resource.RLIMIT_NPROC: start.processes,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }


class ContainedProcess(Protocol):
    """A process tree that ends as a whole."""

    async def wait_until_ended(self) -> ShellExit:
        """Wait for the command, then end whatever it left behind. Raises `SandboxUnavailable` if none ran."""

    def terminate(self) -> None:
        """Ask its group to end (SIGTERM)."""

    def kill(self) -> None:
        """Kill the whole tree (SIGKILL)."""

    def close(self) -> None:
        """Close its descriptors."""


async def wait_until_readable(descriptor: int) -> None:
    """Wait until a descriptor is readable; for a pidfd, until its process has ended."""
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
