"""A shell command's own namespaces, nested in those of its launcher; entering them is fast, since nothing is copied.

The launcher's mounts exist already (`command_root`). Added here is what each command has to itself: its processes, its
System V memory, its `/dev/shm`, and mounts over paths that appeared since. It is the launcher's child that enters them,
with capabilities only in their user namespace.
"""

# Part of a program that should start fast and mostly opens descriptors.
# ruff: noqa: PTH123

import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import prepare_drop_capabilities
from ferrule.sandbox.linux.mounts import attach, copy_tree, create_filesystem, make_read_only, open_path
from ferrule.sandbox.linux.namespaces import bring_up_loopback
from ferrule.sandbox.linux.syscalls import call, invoke, prctl

__all__ = [
    "MountTable",
    "are_unchanged",
    "cover_paths",
    "drop_all_privileges",
    "enter_command_namespaces",
    "list_mounts",
]

MountTable = Mapping[str, Sequence[tuple[str, str]]]
"""The mounts at each path, lowest first: the device and the folder of it that is visible."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_PLAIN: Final = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_PR_SET_NAME, _PR_CAPBSET_DROP = 15, 24
_CAPABILITIES: Final = 64
_SHARED_MEMORY: Final = b"mode=1777,size=256m"


def list_mounts() -> MountTable:
    """The mounts of this process's mount namespace."""
    found: dict[str, list[tuple[str, str]]] = {}
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            _, _, device, root, path, *_ = line.split(b" ")
            found.setdefault(_unescape(path), []).append((device.decode(), _unescape(root)))
    return found


def are_unchanged(first: MountTable, paths: Sequence[str]) -> bool:
    """Whether each of the paths still has its first mounts.

    A mount disappears when a process outside deletes or replaces its mount point.
    """
    now = list_mounts()
    return all(path in first and now.get(path) == first[path] for path in paths)


def enter_command_namespaces(*, network: bool) -> None:
    """Forks. Returns only in the child, pid 1 of a new pid namespace, in new mount and IPC namespaces.

    `network` adds a network namespace with nothing but a loopback interface. Raises OSError.

    If this user is the machine's root, /proc is mounted read-only: root owns its files, so without any capability a
    command could name a program in kernel.core_pattern that the kernel would then run outside.
    """
    space = syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC
    syscalls.unshare(space | (syscalls.CLONE_NEWNET if network else 0))
    if os.fork():
        os._exit(0)
    call("prctl", _PR_SET_NAME, b"sandbox")
    if network:
        bring_up_loopback()
    call("mount", b"proc", b"/proc", b"proc", _PLAIN, b"")
    if os.getuid() == 0:
        make_read_only("/proc")
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, _SHARED_MEMORY)
    for capability in range(_CAPABILITIES):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel has fewer
            break


def cover_paths(covers: Sequence[tuple[str, str]]) -> None:
    """Mount over each path to make it read-only (`read`) or `hidden`. Raises OSError.

    A `write` mount changes nothing, except that a folder with a mount can't be renamed.
    """
    for path, access in covers:
        target = open_path(path, or_link=True)
        tree = _make_cover(target, access)
        attach(tree, target)
        os.close(target)
        os.close(tree)


def _make_cover(target: int, access: str) -> int:
    if access in ("read", "write"):
        return copy_tree(target, read_only=access == "read")
    if stat.S_ISDIR(os.fstat(target).st_mode):
        empty = create_filesystem("tmpfs", {"mode": "0000", "size": "4k"})
        make_read_only(empty)
        return empty
    nothing = open_path("/dev/null")
    try:
        return copy_tree(nothing, read_only=True)
    finally:
        os.close(nothing)


def drop_all_privileges() -> None:
    """Drop every capability, for good, and keep other processes, also children, from reading this one's memory."""
    invoke(prepare_drop_capabilities())
    prctl(syscalls.PR_SET_DUMPABLE, 0)


def _unescape(name: bytes) -> str:
    if b"\\" not in name:
        return os.fsdecode(name)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), name))
