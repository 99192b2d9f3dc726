"""A shell command's own namespaces, below those that a launcher was started in: made at once, since nothing is copied.

The launcher's mounts are there already, as bubblewrap made them; what is added is what each command has for itself: its
processes, its System V memory, its `/dev/shm`, covers over what was not there yet. Whoever makes them is the launcher's
child, and root of no more than their user namespace.
"""

# A program's part that should start fast, and opens descriptors more than paths.
# ruff: noqa: PTH112, PTH123

import fcntl
import os
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import dropping_capabilities
from ferrule.sandbox.linux.mounts import make_read_only
from ferrule.sandbox.linux.syscalls import call, make, prctl

__all__ = ["Mounts", "cover", "enter_own_space", "is_as_it_was", "mounts", "renounce"]

Mounts = Mapping[str, Sequence[tuple[str, str]]]
"""By place, each mount there, the lowest first: the device, and the folder of it that is seen."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND = 2, 4, 8, 1 << 12
_PLAIN: Final = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_PR_SET_NAME, _PR_CAPBSET_DROP = 15, 24
_CAPABILITIES: Final = 64
_SHARED_MEMORY: Final = b"mode=1777,size=256m"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def mounts() -> Mounts:
    """What this process's mount namespace holds now."""
    found: dict[str, list[tuple[str, str]]] = {}
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            _, _, device, root, place, *_ = line.split(b" ")
            found.setdefault(_unescaped(place), []).append((device.decode(), _unescaped(root)))
    return found


def is_as_it_was(first: Mounts, places: Sequence[str]) -> bool:
    """Whether each of the places is still mounted on as it was first.

    A mount is gone as soon as what it lies on was deleted or replaced by whoever is outside.
    """
    now = mounts()
    return all(place in first and now.get(place) == first[place] for place in places)


def enter_own_space(*, network: bool) -> None:
    """On return this process is another: pid 1 of a new pid namespace, in new mount and IPC namespaces.

    `network`: and in a network namespace that holds a loopback and nothing else. Raises OSError.

    Where this user is the machine's root, /proc can't be written: as its files are root's, naming a program in
    kernel.core_pattern would be enough to have it run outside, without any capability.
    """
    space = syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC
    syscalls.unshare(space | (syscalls.CLONE_NEWNET if network else 0))
    if os.fork():
        os._exit(0)
    call("prctl", _PR_SET_NAME, b"sandbox")
    if network:
        _raise_loopback()
    call("mount", b"proc", b"/proc", b"proc", _PLAIN, b"")
    if os.getuid() == 0:
        make_read_only("/proc")
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, _SHARED_MEMORY)
    for capability in range(_CAPABILITIES):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel knows fewer
            break


def cover(covers: Sequence[tuple[str, str]]) -> None:
    """Mount over each path, so that it can be `read` and not changed, or is `hidden`. Raises OSError.

    With `write` the mount is there for its own sake: a folder that has one can't be renamed.
    """
    for path, access in covers:
        place = os.fsencode(path)
        if access in ("read", "write"):
            call("mount", place, place, b"", _MS_BIND, b"")
        elif os.path.isdir(path):
            call("mount", b"tmpfs", place, b"tmpfs", _PLAIN, b"mode=0111,size=4k")
        else:
            call("mount", b"/dev/null", place, b"", _MS_BIND, b"")
        if access != "write":
            make_read_only(path)


def renounce() -> None:
    """Give up every capability, for this process and what it becomes; its memory is its own, also from its children."""
    make(dropping_capabilities())
    prctl(syscalls.PR_SET_DUMPABLE, 0)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _unescaped(name: bytes) -> str:
    if b"\\" not in name:
        return os.fsdecode(name)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), name))
