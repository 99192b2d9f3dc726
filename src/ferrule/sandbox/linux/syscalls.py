"""System calls that Python has no function for, under their own names; failures raise OSError with the errno.

`syscall(2)` takes plain integers for all of them, so one prototype is enough.
"""

import ctypes
import os
from collections.abc import Collection
from typing import Final, NamedTuple

from ferrule.sandbox.linux.syscall_numbers import NUMBERS

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_KEEPCAPS: Final = 8
PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_CHILD_SUBREAPER: Final = 36

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * 7
_PADDING: Final = (0,) * 6


class PreparedCall(NamedTuple):
    """A prepared system call: its name for errors, its registers, and the memory they point to."""

    name: str
    registers: tuple[int, ...]
    held: tuple[bytes, ...]


def prepare_call(name: str, *arguments: int | bytes) -> PreparedCall:
    """Prepare a call to make later; bytes are passed by address and must only be read."""
    held = tuple(each for each in arguments if isinstance(each, bytes))
    registers = [_get_address(each) if isinstance(each, bytes) else each for each in arguments]
    return PreparedCall(name, (NUMBERS.get(name, -1), *registers, *_PADDING[len(registers) :]), held)


def invoke(call: PreparedCall) -> int:
    """Make the call and return its result. Raises OSError; ENOSYS if this machine has no number for it.

    In a freshly forked process every touched object can cost a page copy, so all other work is done in `prepare_call`.
    """
    result = int(_syscall(*call.registers))
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{call.name}: {os.strerror(errno)}")
    return result


def call(name: str, *arguments: int | bytes) -> int:
    """Prepare and make a call at once; see `prepare_call` and `invoke`."""
    return invoke(prepare_call(name, *arguments))


def _get_address(memory: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(memory), ctypes.c_void_p).value or 0


def unshare(flags: int) -> None:
    call("unshare", flags)


def prctl(option: int, value: int = 0) -> int:
    return call("prctl", option, value)


def close_range(first: int, last: int) -> None:
    call("close_range", first, last)


def sethostname(name: bytes) -> None:
    call("sethostname", name, len(name))


def prepare_close_all_but(keep: Collection[int]) -> list[PreparedCall]:
    """Prepare calls that close every descriptor not in `keep`, one per gap."""
    calls, first = [], 0
    for kept in sorted(keep):
        if kept > first:
            calls.append(prepare_call("close_range", first, kept - 1))
        first = kept + 1
    return [*calls, prepare_call("close_range", first, 0x7FFF_FFFF)]
