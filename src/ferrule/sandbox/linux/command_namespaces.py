"""A shell command's own namespaces, below those that a launcher was started in: made at once, since nothing is copied.

The launcher's mounts are there already (`command_root`); what is added is what each command has for itself: its
processes, its System V memory, its `/dev/shm`, covers over what was not there yet. Whoever makes them is the launcher's
child, with capabilities in their user namespace alone.
"""

# A program's part that should start fast, and opens descriptors more than paths.
# ruff: noqa: PTH123

import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import drop_capabilities_call
from ferrule.sandbox.linux.mounts import attach, copy_tree, create_filesystem, make_read_only, open_path
from ferrule.sandbox.linux.namespaces import raise_loopback
from ferrule.sandbox.linux.syscalls import call, make, prctl

__all__ = [
    "MountTable",
    "are_unchanged",
    "cover_paths",
    "drop_all_privileges",
    "enter_command_namespaces",
    "list_mounts",
]

MountTable = Mapping[str, Sequence[tuple[str, str]]]
"""By place, each mount there, the lowest first: the device, and the folder of it that is seen."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_PLAIN: Final = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_PR_SET_NAME, _PR_CAPBSET_DROP = 15, 24
_CAPABILITIES: Final = 64
_SHARED_MEMORY: Final = b"mode=1777,size=256m"


def list_mounts() -> MountTable:
    """What this process's mount namespace holds now."""
    found: dict[str, list[tuple[str, str]]] = {}
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            _, _, device, root, place, *_ = line.split(b" ")
            found.setdefault(_unescape(place), []).append((device.decode(), _unescape(root)))
    return found


def are_unchanged(first: MountTable, places: Sequence[str]) -> bool:
    """Whether each of the places is still mounted on as it was first.

    A mount is gone as soon as what it lies on was deleted or replaced by whoever is outside.
    """
    now = list_mounts()
    return all(place in first and now.get(place) == first[place] for place in places)


def enter_command_namespaces(*, network: bool) -> None:
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
        raise_loopback()
    call("mount", b"proc", b"/proc", b"proc", _PLAIN, b"")
    if os.getuid() == 0:
        make_read_only("/proc")
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, _SHARED_MEMORY)
    for capability in range(_CAPABILITIES):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel knows fewer
            break


def cover_paths(covers: Sequence[tuple[str, str]]) -> None:
    """Mount over each path, so that it can be `read` and not changed, or is `hidden`. Raises OSError.

    With `write` the mount is there for its own sake: a folder that has one can't be renamed.
    """
    for path, access in covers:
        place = open_path(path, or_link=True)
        tree = _make_cover(place, access)
        attach(tree, place)
        os.close(place)
        os.close(tree)


def _make_cover(place: int, access: str) -> int:
    if access in ("read", "write"):
        return copy_tree(place, read_only=access == "read")
    if stat.S_ISDIR(os.fstat(place).st_mode):
        empty = create_filesystem("tmpfs", {"mode": "0111", "size": "4k"})
        make_read_only(empty)
        return empty
    nothing = open_path("/dev/null")
    try:
        return copy_tree(nothing, read_only=True)
    finally:
        os.close(nothing)


def drop_all_privileges() -> None:
    """Give up every capability, for this process and what it becomes; its memory is its own, also from its children."""
    make(drop_capabilities_call())
    prctl(syscalls.PR_SET_DUMPABLE, 0)


def _unescape(name: bytes) -> str:
    if b"\\" not in name:
        return os.fsdecode(name)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), name))
