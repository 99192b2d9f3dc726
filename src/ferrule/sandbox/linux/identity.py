"""Makes a process an unprivileged user without capabilities, in its own user namespace where available."""

import ctypes
import os
import struct
from pathlib import Path
from typing import Final

from ferrule.sandbox.linux.syscalls import (
    CLONE_NEWUSER,
    PR_SET_KEEPCAPS,
    PreparedCall,
    call,
    invoke,
    prctl,
    prepare_call,
    unshare,
)

__all__ = [
    "NOBODY",
    "become_nobody",
    "become_root_of_namespace",
    "enter_same_user_namespace",
    "enter_user_namespace",
    "has_user",
    "prepare_drop_capabilities",
]

NOBODY: Final = 65534
CAP_DAC_READ_SEARCH: Final = 1 << 2  # as a mask
_CAPABILITY_VERSION: Final = 0x20080522


def enter_user_namespace(flags: int) -> None:
    """Enter a new user namespace and those in `flags`; its root maps to this user or, if that is root, to nobody.

    Don't map to uid 0: RLIMIT_NPROC doesn't apply to it, and it owns the host's files. A map to another user must be
    written from outside the namespace, which a helper process does. Raises OSError.
    """
    if os.geteuid() != 0 or not has_user(NOBODY):
        user, group = os.geteuid(), os.getegid()
        unshare(CLONE_NEWUSER | flags)
        _write_maps("self", (0, user), (0, group))
        return
    os.setgroups([])
    started, start = os.pipe()
    helper = os.fork()
    if helper == 0:
        _write_maps_from_outside(started, start, os.getppid())
    os.close(started)
    try:
        unshare(CLONE_NEWUSER | flags)
        os.write(start, b"!")
    finally:
        os.close(start)
        status = os.waitpid(helper, 0)[1]
    if status:
        raise OSError(os.waitstatus_to_exitcode(status), "could not write the uid map of the user namespace")


def enter_same_user_namespace(flags: int) -> None:
    """Enter a new user namespace that keeps this user's uid, and the namespaces in `flags`.

    Root still owns root's files there, but has no capabilities over other users' files. Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    _write_maps("self", (user, user), (group, group))


def become_root_of_namespace() -> None:
    """Switch to the namespace's root, unprivileged outside; until then a process keeps its original uid."""
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def become_nobody() -> None:
    """Switch from root to nobody but keep the capability to read, since Python may be installed in root's home.

    Landlock then limits what can be read. Raises OSError if that user doesn't exist.
    """
    os.setgroups([])
    prctl(PR_SET_KEEPCAPS, 1)
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    invoke(prepare_drop_capabilities(keep=CAP_DAC_READ_SEARCH))


def prepare_drop_capabilities(keep: int = 0) -> PreparedCall:
    """Prepare a call that drops all capabilities outside the mask `keep`.

    The bounding set is left alone: with no_new_privs and without exec nothing can be gained through it.
    """
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    return prepare_call("capset", header, struct.pack("=IIIIII", keep, keep, 0, 0, 0, 0))


def read_capabilities() -> int:
    """The mask of effective capabilities."""
    header, data = struct.pack("=Ii", _CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    call("capget", header, ctypes.addressof(data))
    return int(data[0] | data[3] << 32)


def _write_maps_from_outside(started: int, start: int, process: int) -> None:
    os.close(start)
    status = 0
    try:
        if os.read(started, 1):
            _write_maps(str(process), (0, NOBODY), (0, NOBODY))
    except OSError as error:
        status = error.errno or 1
    finally:
        os._exit(status)


def _write_maps(process: str, user: tuple[int, int], group: tuple[int, int]) -> None:
    """Map one user and one group of a new user namespace, each an inner and an outer id."""
    folder = Path("/proc", process)
    (folder / "setgroups").write_text("deny")
    (folder / "gid_map").write_text(f"{group[0]} {group[1]} 1")
    (folder / "uid_map").write_text(f"{user[0]} {user[1]} 1")


def has_user(user: int) -> bool:
    """Whether this user namespace maps a uid."""
    rows = (line.split() for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(int(first) <= user < int(first) + int(count) for first, _, count in rows)
