"""The seccomp filter of a process that runs model-written Python: a list of what is allowed, arguments checked.

What isn't listed is unknown (ENOSYS), so that a library falls back as on an older kernel; what is known and refused
answers EPERM, which Python shows as PermissionError. No process is ever made, no program started, no address bound or
connected to. Other processes are out of reach by number: every call that acts on a process takes this one's alone.
"""

import errno
import struct
from typing import Final

from ferrule.sandbox.linux.bpf import ALLOW, NOTIFY, ArgumentCheck, ArgumentRule, Decision, assemble, high, low, refuse
from ferrule.sandbox.linux.syscall_groups import CHANGES_MODES, CHANGES_OWNERS, DANGEROUS, PYTHON_MAY, PYTHON_MAY_NOT
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, get_syscall_numbers

__all__ = ["PythonFilter", "make_fork_filter"]

_EPERM: Final = refuse(errno.EPERM)
_ENOSYS: Final = refuse(errno.ENOSYS)
_OWN_PID: Final = 0x7EADBEE1  # stands for it in the assembled program; larger than any pid
_THREAD: Final = (0x003D0F00, 0x007D0F00)  # the flags of pthread_create: glibc's, musl's
_FORK: Final = (0x01200011, 0x00000011)  # of fork(): with and without the child's thread id to be set and cleared
_TERMINALS: Final = (0x5401, 0x802C542A, 0x5413)  # TCGETS, TCGETS2 (isatty), TIOCGWINSZ
_PLAIN_IOCTLS: Final = (0x541B, 0x5421, 0x5450, 0x5451)  # FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_FICLONE: Final = 0x40049409  # two files share their blocks; pathlib's copy gives up only where that isn't supported
# F_DUPFD to F_SETLKW, locks of open files, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Not: owners and signals of descriptors,
# leases, F_NOTIFY, F_SETPIPE_SZ (a megabyte of kernel memory each), seals.
_FCNTLS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
# Names, and what can only be read or tightened. Not: the death signal, dumpability, timer and speculation controls.
_PRCTLS: Final = (2, 3, 15, 16, 21, 23, 38, 39)
# SO_TYPE, SO_ERROR, SO_SNDBUF, SO_RCVBUF, SO_RCVTIMEO, SO_SNDTIMEO, SO_PROTOCOL, SO_DOMAIN. Not: who is at the other
# end, by number (SO_PEERCRED) or by a handle (SO_PEERPIDFD).
_SOCKET_OPTIONS: Final = (3, 4, 7, 8, 20, 21, 38, 39)
_SOL_SOCKET: Final = 1
_FUTEXES: Final = (0, 1, 3, 4, 5, 9, 10)  # wait, wake, requeue; not the priority-inheriting ones
_MAP_HUGETLB: Final = 0x40000  # pages of a pool that is the whole machine's
_OUT_OF_BAND: Final = 1


def _make_argument_rules() -> dict[str, Decision]:
    """The calls that depend on their arguments. An `int` is compared by its lower half, all that the kernel reads."""
    own = ArgumentRule((ArgumentCheck(low(0), (_OWN_PID,)),), _EPERM)
    known_ioctl = ArgumentRule((ArgumentCheck(low(1), _TERMINALS + _PLAIN_IOCTLS),), refuse(errno.ENOTTY))
    stream_or_packets = ArgumentCheck(
        low(1), (1, 5), mask=~(0x800 | 0x80000) & 0xFFFFFFFF
    )  # a datagram takes an address
    return {
        "ioctl": ArgumentRule(
            (ArgumentCheck(low(1), (_FICLONE,), wanted=False),), refuse(errno.EOPNOTSUPP), then=known_ioctl
        ),
        "fcntl": ArgumentRule((ArgumentCheck(low(1), _FCNTLS),), _EPERM),
        "prctl": ArgumentRule((ArgumentCheck(low(0), _PRCTLS),), _EPERM),
        "arch_prctl": ArgumentRule(
            (ArgumentCheck(low(0), (0x1021, 0x1022, 0x1023)),), _EPERM
        ),  # asking for a vector unit's state
        "prlimit64": ArgumentRule((ArgumentCheck(low(0), (0, _OWN_PID)),), _EPERM),
        "kill": own,
        "tgkill": own,
        "clone": ArgumentRule((ArgumentCheck(low(0), _THREAD),), _EPERM),
        "socketpair": ArgumentRule((ArgumentCheck(low(0), (1,)), stream_or_packets), _EPERM),
        "getsockopt": ArgumentRule(
            (ArgumentCheck(low(1), (_SOL_SOCKET,)), ArgumentCheck(low(2), _SOCKET_OPTIONS)), refuse(errno.ENOPROTOOPT)
        ),
        "sendto": ArgumentRule(
            (
                ArgumentCheck(low(4), (0,)),
                ArgumentCheck(high(4), (0,)),
                ArgumentCheck(low(3), (0, 0x40, 0x4000, 0x4040)),
            ),
            _EPERM,
        ),
        "recvfrom": ArgumentRule((ArgumentCheck(low(3), (0,), mask=_OUT_OF_BAND),), _EPERM),
        "futex": ArgumentRule((ArgumentCheck(low(1), _FUTEXES, mask=~(128 | 256) & 0xFFFFFFFF),), _ENOSYS),
        "mmap": ArgumentRule((ArgumentCheck(low(3), (0,), mask=_MAP_HUGETLB),), _EPERM),
        "personality": ArgumentRule((ArgumentCheck(low(0), (0xFFFFFFFF,)),), _EPERM),
    }


def _allow_only_itself(own: tuple[int, ...]) -> dict[str, Decision]:
    """For a tier without a pid namespace: what tells of a process tells of this one alone."""
    calls = ("getpgid", "getsid", "sched_getaffinity", "sched_getscheduler", "sched_getparam")
    itself: Decision = ArgumentRule((ArgumentCheck(low(0), own),), _EPERM)
    return dict.fromkeys(calls, itself) | {
        "getpriority": ArgumentRule((ArgumentCheck(low(0), (0,)), ArgumentCheck(low(1), own)), _EPERM)
    }


def _refuse_truncation() -> dict[str, Decision]:
    """For a Landlock that can't (ABI 1, 2): truncating needs no more than the file's own permissions there."""
    # Access modes 0 and 3 open a file for neither reading nor writing in Landlock's eyes.
    flags = {"open": 1, "openat": 2}
    return {"truncate": _EPERM} | {
        name: ArgumentRule((ArgumentCheck(low(argument), (0x200, 0x203), mask=0x203, wanted=False),), _EPERM)
        for name, argument in flags.items()
    }


class PythonFilter:
    """The program, assembled once; `program` puts a process's id into it, in microseconds."""

    def __init__(self, *, metadata: bool, truncation: bool = True, forks: bool = False, machine: str = MACHINE) -> None:
        """`metadata`: modes and times of files may change, where a mount keeps that to the process's own folder. Where
        none does, there is no pid namespace either, and nothing is told of other processes.

        `truncation`: Landlock decides about truncating. `forks`: a process may be made (if the listener of
        `make_fork_filter` agrees), and in turn no signal is sent at all, since the program knows only one pid.
        """
        decisions: dict[str, Decision] = dict.fromkeys(PYTHON_MAY, ALLOW)
        decisions |= dict.fromkeys(DANGEROUS + PYTHON_MAY_NOT + CHANGES_OWNERS, _EPERM)
        decisions |= dict.fromkeys(CHANGES_MODES, ALLOW if metadata else _EPERM)
        decisions |= _make_argument_rules() | ({} if truncation else _refuse_truncation())
        if not metadata:
            decisions |= _allow_only_itself((0,) if forks else (0, _OWN_PID))
        if forks:
            decisions |= {
                "kill": _EPERM,
                "tgkill": _EPERM,
                "clone": ArgumentRule((ArgumentCheck(low(0), _THREAD + _FORK),), _EPERM),
            }
            decisions["prlimit64"] = ArgumentRule((ArgumentCheck(low(0), (0,)),), _EPERM)
        numbers = get_syscall_numbers(machine)
        by_number = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
        self._program = assemble(by_number, _ENOSYS, architecture=AUDIT_ARCH[machine])
        pid = struct.pack("=I", _OWN_PID)
        self._places = [at for at in range(4, len(self._program), 8) if self._program[at : at + 4] == pid]

    def program(self, pid: int) -> bytes:
        """The program for the process with this id, as it sees itself."""
        program = bytearray(self._program)
        for place in self._places:
            struct.pack_into("=I", program, place, pid)
        return bytes(program)


def make_fork_filter(machine: str = MACHINE) -> bytes:
    """A program that asks its listener about each fork and lets all else pass; attached before the filter proper."""
    ask = ArgumentRule((ArgumentCheck(low(0), _FORK),), ALLOW, then=NOTIFY)
    return assemble({get_syscall_numbers(machine)["clone"]: ask}, ALLOW, architecture=AUDIT_ARCH[machine])
