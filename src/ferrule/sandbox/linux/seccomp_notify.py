"""The supervisor's side of a seccomp user notification: who asks, and yes or no.

A call that waits is described by its number and its registers. Those can't change any more, so a decision about them
holds when the kernel goes on; what a register points to can, so nothing is ever decided by that.
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
    """One system call that waits for an answer: its caller's pid as the supervisor sees it, number and registers."""

    cookie: int
    pid: int
    number: int
    arguments: tuple[int, ...]


def receive_call(listener: int) -> HeldCall | None:
    """The next call that waits; blocks until there is one (poll the listener first), None where its caller has died."""
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    cookie, pid, _, number, _, _, *arguments = _REQUEST.unpack(request)
    return HeldCall(cookie, pid, number, tuple(arguments))


def allow(listener: int, asked: HeldCall) -> None:
    """Let the kernel carry the call out."""
    _answer(listener, asked, 0, _CONTINUE)


def refuse(listener: int, asked: HeldCall, error: int) -> None:
    """Answer the call with an errno."""
    _answer(listener, asked, -error, 0)


def add_descriptor(listener: int, asked: HeldCall, descriptor: int, number: int) -> None:
    """Opens a copy of a descriptor in the process that asks, at a number of its own; done before it is answered.

    Raises OSError, ENOENT where the caller has died meanwhile.
    """
    fcntl.ioctl(listener, _ADD_DESCRIPTOR, _DESCRIPTOR.pack(asked.cookie, _AT_NUMBER, descriptor, number, 0))


def _answer(listener: int, asked: HeldCall, error: int, flags: int) -> None:
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(asked.cookie, 0, error, flags))
    except OSError as failure:
        if failure.errno != errno.ENOENT:  # the caller has died meanwhile: nobody waits for the answer
            raise
