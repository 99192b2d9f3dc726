"""Attaching a seccomp program to this process, and asking for the answers to its questions."""

import ctypes
import errno
import struct
from typing import Final

from ferrule.sandbox.linux.syscalls import PR_SET_NO_NEW_PRIVS, Ready, call, make, prctl, prepare_call

__all__ = ["attach", "attach_call", "attach_listening", "has_seccomp", "set_no_new_privileges"]

_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3


def set_no_new_privileges() -> None:
    """No set-user-id file or file capability gives this process anything from here on; Landlock and seccomp want it."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def attach_call(program: bytes) -> Ready:
    """A call after which every system call of this process and its children is judged by the program, for good."""
    return prepare_call("seccomp", _SET_MODE_FILTER, 0, _make_header(program))


def attach(program: bytes) -> None:
    """Makes that call."""
    make(attach_call(program))


def attach_listening(program: bytes) -> int:
    """As `attach`, and returns the descriptor that answers the program's questions (close-on-exec)."""
    return call("seccomp", _SET_MODE_FILTER, _NEW_LISTENER, _make_header(program))


def has_seccomp() -> bool:
    """Whether the kernel takes filters: an impossible program is refused as a bad address, not as an unknown call."""
    try:
        call("seccomp", _SET_MODE_FILTER, 0, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return True


class _Header(bytes):
    """A `struct sock_fprog`, which keeps the program where it says it is."""

    program: ctypes.c_char_p


def _make_header(program: bytes) -> _Header:
    held = ctypes.c_char_p(program)
    header = _Header(struct.pack("@HP", len(program) // 8, ctypes.cast(held, ctypes.c_void_p).value))
    header.program = held
    return header
