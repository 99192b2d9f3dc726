"""Who a process is: an unprivileged user without capabilities, in a user namespace of its own where there is one."""

import ctypes
import os
import struct
from pathlib import Path
from typing import Final

from ferrule.sandbox.linux.syscalls import (
    CLONE_NEWUSER,
    PR_SET_KEEPCAPS,
    Ready,
    call,
    make,
    prctl,
    prepare_call,
    unshare,
)

__all__ = [
    "NOBODY",
    "become_nobody",
    "become_root_of_namespace",
    "drop_capabilities_call",
    "enter_same_user_namespace",
    "enter_user_namespace",
    "has_user",
]

NOBODY: Final = 65534
CAP_DAC_READ_SEARCH: Final = 1 << 2  # as a mask
_CAPABILITY_VERSION: Final = 0x20080522


def enter_user_namespace(flags: int) -> None:
    """A new user namespace, and with it whatever namespaces `flags` name; its root is this user, or for root, nobody.

    Root's own number is not the one to take: limits on processes don't count for it, and its files are the machine's.
    The map to another user has to be written from outside, which a helper process does. Raises OSError.
    """
    if os.geteuid() != 0 or not has_user(NOBODY):
        user, group = os.geteuid(), os.getegid()
        unshare(CLONE_NEWUSER | flags)
        _write_maps("self", (0, user), (0, group))
        return
    os.setgroups([])
    prepare_call, go = os.pipe()
    helper = os.fork()
    if helper == 0:
        _write_maps_from_outside(prepare_call, go, os.getppid())
    os.close(prepare_call)
    try:
        unshare(CLONE_NEWUSER | flags)
        os.write(go, b"!")
    finally:
        os.close(go)
        status = os.waitpid(helper, 0)[1]
    if status:
        raise OSError(os.waitstatus_to_exitcode(status), "the map of the user namespace could not be written")


def enter_same_user_namespace(flags: int) -> None:
    """A new user namespace in which this user has the number that it has outside, with the namespaces of `flags`.

    Root's files are root's in it; over what belongs to anybody else it has no power that capabilities gave. Raises
    OSError.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    _write_maps("self", (user, user), (group, group))


def become_root_of_namespace() -> None:
    """The namespace's own root, unprivileged outside: until then a process keeps the number that it came with."""
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def become_nobody() -> None:
    """From root to an unprivileged user that keeps one capability, to read: Python may lie in root's own folder.

    What may be read at all is then Landlock's to say. Raises OSError where that user isn't to be had.
    """
    os.setgroups([])
    prctl(PR_SET_KEEPCAPS, 1)
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    make(drop_capabilities_call(keep=CAP_DAC_READ_SEARCH))


def drop_capabilities_call(keep: int = 0) -> Ready:
    """A call after which only the capabilities in the mask `keep` are left, if they were there.

    The bounding set stays as it is: with no_new_privs and without exec nothing is ever gained through it.
    """
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    return prepare_call("capset", header, struct.pack("=IIIIII", keep, keep, 0, 0, 0, 0))


def capabilities() -> int:
    """The mask of those that are in force."""
    header, data = struct.pack("=Ii", _CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    call("capget", header, ctypes.addressof(data))
    return int(data[0] | data[3] << 32)


def _write_maps_from_outside(prepare_call: int, go: int, process: int) -> None:
    os.close(go)
    status = 0
    try:
        if os.read(prepare_call, 1):
            _write_maps(str(process), (0, NOBODY), (0, NOBODY))
    except OSError as error:
        status = error.errno or 1
    finally:
        os._exit(status)


def _write_maps(process: str, user: tuple[int, int], group: tuple[int, int]) -> None:
    """One user and one group of a new user namespace: their numbers in it, and outside."""
    folder = Path("/proc", process)
    (folder / "setgroups").write_text("deny")
    (folder / "gid_map").write_text(f"{group[0]} {group[1]} 1")
    (folder / "uid_map").write_text(f"{user[0]} {user[1]} 1")


def has_user(user: int) -> bool:
    """Whether this user namespace has a user of that number."""
    rows = (line.split() for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(int(first) <= user < int(first) + int(count) for first, _, count in rows)
