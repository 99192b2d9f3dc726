"""A seccomp filter as ordinary containers have it: whatever makes, enters or changes a namespace is refused.

Written apart from ferrule's own filters, so that the container tier is not tested in a world of its own making.
"""

import ctypes
import errno
import os
import struct

from escaping.system_calls import numbers

REFUSED = (
    "unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
    "mount_setattr", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "io_uring_setup",
)  # fmt: skip
NEW_NAMESPACES = 0x7E020080
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def install() -> None:
    """Filter this process and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    instructions = ctypes.create_string_buffer(program())
    description = struct.pack("HxxxxxxP", len(instructions.raw) // 8, ctypes.addressof(instructions))
    if libc.syscall(numbers()["seccomp"], SECCOMP_SET_MODE_FILTER, 0, description) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program() -> bytes:
    """The filter, as the kernel takes it."""
    number_of = numbers()
    lines = [(LOAD, 0, 0, NUMBER)]
    for name in REFUSED:
        lines += [(JUMP_IF_EQUAL, 0, 1, number_of[name]), (RETURN, 0, 0, ERRNO | errno.EPERM)]
    lines += [(JUMP_IF_EQUAL, 0, 1, number_of["clone3"]), (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    lines += [(JUMP_IF_EQUAL, 0, 3, number_of["clone"]), (LOAD, 0, 0, FIRST_ARGUMENT)]
    lines += [(JUMP_IF_ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, ERRNO | errno.EPERM), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
