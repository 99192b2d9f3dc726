"""The few calls that a view of one's own takes."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x1000, 0x2000, 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def keep_to_oneself() -> None:
    """Enter namespaces of mounts, of the host's name and of System V objects, whose changes nobody else sees."""
    _checked(_libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC))
    _mount(None, Path("/"), None, MS_REC | MS_PRIVATE)


def mount_memory(place: Path, options: str = "mode=755") -> None:
    """An empty folder in memory, which everybody may pass through."""
    _mount(b"none", place, b"tmpfs", 0, options.encode())


def bind(path: Path, place: Path) -> None:
    """Let a folder be seen at another place too."""
    _mount(bytes(path), place, None, MS_BIND | MS_REC)


def move(place: Path, to: Path) -> None:
    """Move what is mounted at a place."""
    _mount(bytes(place), to, None, MS_MOVE)


def _mount(source: bytes | None, place: Path, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _checked(_libc.mount(source, bytes(place), kind, ctypes.c_ulong(flags), options))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
