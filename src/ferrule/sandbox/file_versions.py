"""Tells whether a file or folder has changed, by evidence that no program can set: its inode and its change time.

A modification time isn't evidence: a program can set it back, and a folder that is moved in keeps that of everything in
it. The kernel's clock for files advances in steps, so a file that changed just now can change again unnoticed. It
may be tens of milliseconds late on a busy virtual machine.
"""

# Paths are strings here: looked at by the hundred for each command.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar, TypeVarTuple

__all__ = ["Inode", "Version", "cache_by_version", "is_settled", "make_version", "read_clock", "read_version"]

_TICK: Final = 20_000_000  # the longest step of the kernel's clock for files (10 ms), with a margin
_SECOND: Final = 1_000_000_000
# CLOCK_REALTIME_COARSE, for which `time` has no name.
_CLOCK: Final = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
_CACHED: Final = 1024

Version: TypeAlias = tuple[int, int, int, int]
"""A file's device, inode, change time in nanoseconds, and size in bytes."""
Others = TypeVarTuple("Others")
Made = TypeVar("Made")

Inode: TypeAlias = tuple[int, int]
"""What all names of a file share: its device and its number there."""


def make_version(status: os.stat_result) -> Version:
    """The version of a file with this status."""
    return status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size


def read_version(path: str) -> Version | None:
    """The version of what a path leads to; None if there is nothing, or if it may change again unnoticed."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return make_version(status) if is_settled(status.st_ctime_ns) else None


def read_clock() -> int:
    """The kernel's clock for files, in nanoseconds: no later than the change time of whatever changes from now on."""
    return time.clock_gettime_ns(_CLOCK)


def is_settled(changed: int, read: int | None = None) -> bool:
    """Whether any change after `read` (now) alters a change time; within one step of the clock it doesn't.

    Both are in nanoseconds, `read` by `read_clock`. Some file systems keep whole seconds only, or even ones.
    """
    return (read or time.clock_gettime_ns(_CLOCK)) - changed > (_TICK if changed % _SECOND else 2 * _SECOND)


def cache_by_version(missing: Made) -> Callable[[Callable[[str, *Others], Made]], Callable[[str, *Others], Made]]:
    """Make a function of a path return its last result until what the path leads to has changed.

    Without anything there it isn't called, and the result is `missing`.
    """

    def decorate(make: Callable[[str, *Others], Made]) -> Callable[[str, *Others], Made]:
        @lru_cache(maxsize=_CACHED)
        def keep(_version: Version, path: str, others: tuple[*Others]) -> Made:
            return make(path, *others)

        def get(path: str, *others: *Others) -> Made:
            # Before anything else is read, which may only be newer. Inlined, since commands ask by the hundred.
            try:
                status = os.stat(path)
            except OSError:
                return missing
            if not is_settled(changed := status.st_ctime_ns):
                return make(path, *others)
            return keep((status.st_dev, status.st_ino, changed, status.st_size), path, others)

        return get

    return decorate
