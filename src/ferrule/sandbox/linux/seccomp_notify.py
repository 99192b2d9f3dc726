"""The supervisor's side of seccomp user notifications: receive a held call, allow or refuse it.

A held call is described by its number and registers, which can't change any more, so a decision based on them still
holds when the kernel continues. The memory that a register points to can change, so nothing is decided by it.
"""

import errno
import fcntl
import struct
from dataclasses import dataclass
from typing import Final

__all__ = ["HeldCall", "add_descriptor", "allow", "receive_call", "refuse"]

_REQUEST: Final = struct.Struct("=QIIiIQ6Q")  # id, pid, flags; nr, arch, instruction_pointer, args
_ANSWER: Final = struct.Struct("=QqiI")  # id, value, error, flags
_RECEIVE: Final = 3 << 30 | _REQUEST.size << 16 | ord("!") << 8 | 0
_SEND: Final = 3 << 30 | _ANSWER.size << 16 | ord("!") << 8 | 1
_DESCRIPTOR: Final = struct.Struct("=QIIII")  # id, flags, descriptor here, number there, its flags
_ADD_DESCRIPTOR: Final = 1 << 30 | _DESCRIPTOR.size << 16 | ord("!") << 8 | 3
_CONTINUE: Final = 1
_AT_NUMBER: Final = 1


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A system call waiting for an answer: its caller's pid as the supervisor sees it, number and registers."""

    cookie: int
    pid: int
    number: int
    arguments: tuple[int, ...]


def receive_call(listener: int) -> HeldCall | None:
    """Receive the next held call, or None if its caller has died. Blocks; poll the listener first."""
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    cookie, pid, _, number, _, _, *arguments = _REQUEST.unpack(request)
    return HeldCall(cookie, pid, number, tuple(arguments))


def allow(listener: int, call: HeldCall) -> None:
    """Let the kernel execute the call."""
    _answer(listener, call, 0, _CONTINUE)


def refuse(listener: int, call: HeldCall, error: int) -> None:
    """Fail the call with an errno."""
    _answer(listener, call, -error, 0)


def add_descriptor(listener: int, call: HeldCall, descriptor: int, number: int) -> None:
    """Install a copy of a descriptor in the caller, at the given number; do so before answering.

    Raises OSError, ENOENT if the caller has died.
    """
    fcntl.ioctl(listener, _ADD_DESCRIPTOR, _DESCRIPTOR.pack(call.cookie, _AT_NUMBER, descriptor, number, 0))


def _answer(listener: int, call: HeldCall, error: int, flags: int) -> None:
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.cookie, 0, error, flags))
    except OSError as failure:
        if failure.errno != errno.ENOENT:  # the caller has died: nothing waits for the answer
            raise
