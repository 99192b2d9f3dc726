"""System calls that Python has no function for, each named after its own; a failure is an OSError with its errno.

`syscall(2)` takes every one of them with plain integers, so one prototype serves.
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


class Ready(NamedTuple):
    """A system call made ready: its name for an error, its registers, and what those point to."""

    name: str
    registers: tuple[int, ...]
    held: tuple[bytes, ...]


def prepare_call(name: str, *arguments: int | bytes) -> Ready:
    """A call to be made later; bytes are given by their address, to be read only."""
    held = tuple(given for given in arguments if isinstance(given, bytes))
    registers = [_address(given) if isinstance(given, bytes) else given for given in arguments]
    return Ready(name, (NUMBERS.get(name, -1), *registers, *_PADDING[len(registers) :]), held)


def make(call: Ready) -> int:
    """The result of the call. Raises OSError with its errno, ENOSYS for one that this machine has no number for.

    In a process that was just forked each object that is touched costs the copy of a page; so what can be is done
    before, and this is all that is left to do.
    """
    result = int(_syscall(*call.registers))
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{call.name}: {os.strerror(errno)}")
    return result


def call(name: str, *arguments: int | bytes) -> int:
    """The result of a system call, made at once; as `make` and `prepare_call`."""
    return make(prepare_call(name, *arguments))


def _address(given: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(given), ctypes.c_void_p).value or 0


def unshare(flags: int) -> None:
    call("unshare", flags)


def prctl(option: int, value: int = 0) -> int:
    return call("prctl", option, value)


def close_range(first: int, last: int) -> None:
    call("close_range", first, last)


def sethostname(name: bytes) -> None:
    call("sethostname", name, len(name))


def close_all_but_calls(keep: Collection[int]) -> list[Ready]:
    """Calls that close every descriptor of the process that isn't in `keep`: one for each gap between those."""
    calls, first = [], 0
    for kept in sorted(keep):
        if kept > first:
            calls.append(prepare_call("close_range", first, kept - 1))
        first = kept + 1
    return [*calls, prepare_call("close_range", first, 0x7FFF_FFFF)]
