"""Attaches seccomp programs to this process, with or without a notification listener."""

import ctypes
import errno
import struct
from typing import Final

from ferrule.sandbox.linux.syscalls import PR_SET_NO_NEW_PRIVS, PreparedCall, call, invoke, prctl, prepare_call

__all__ = ["attach", "attach_with_listener", "has_seccomp", "prepare_attach", "set_no_new_privileges"]

_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3


def set_no_new_privileges() -> None:
    """Disable privilege gains from set-user-id files and file capabilities; Landlock and seccomp require it."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def prepare_attach(program: bytes) -> PreparedCall:
    """Prepare a call that filters all later system calls of this process and its children, irrevocably."""
    return prepare_call("seccomp", _SET_MODE_FILTER, 0, _make_header(program))


def attach(program: bytes) -> None:
    """Attach the program to this process."""
    invoke(prepare_attach(program))


def attach_with_listener(program: bytes) -> int:
    """Like `attach`; returns the (close-on-exec) descriptor that answers the program's notifications."""
    return call("seccomp", _SET_MODE_FILTER, _NEW_LISTENER, _make_header(program))


def has_seccomp() -> bool:
    """Whether the kernel supports filters: then an invalid program fails with EFAULT, not as an unknown call."""
    try:
        call("seccomp", _SET_MODE_FILTER, 0, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return True


class _Header(bytes):
    """A `struct sock_fprog` that keeps the program it points to alive."""

    program: ctypes.c_char_p


def _make_header(program: bytes) -> _Header:
    held = ctypes.c_char_p(program)
    header = _Header(struct.pack("@HP", len(program) // 8, ctypes.cast(held, ctypes.c_void_p).value))
    header.program = held
    return header
