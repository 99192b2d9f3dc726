"""The seccomp filter of a process that runs model-written Python: an allowlist with argument checks.

Unlisted calls fail with ENOSYS, so libraries fall back as on an older kernel; known but refused ones fail with EPERM,
which Python raises as PermissionError. No process is created, no program started, no address bound or connected to.
Other processes can't be reached by pid: every call that acts on a process accepts only this one's.
"""

import errno
import struct
from typing import Final

from ferrule.sandbox.linux.bpf import (
    ALLOW,
    NOTIFY,
    ArgumentCheck,
    ArgumentRule,
    Decision,
    assemble,
    get_high_offset,
    get_low_offset,
    refuse,
)
from ferrule.sandbox.linux.syscall_groups import (
    ALLOWED_FOR_PYTHON,
    CHANGES_MODES,
    CHANGES_OWNERS,
    DANGEROUS,
    REFUSED_FOR_PYTHON,
)
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, get_syscall_numbers

__all__ = ["PythonFilter", "make_fork_notify_filter"]

_EPERM: Final = refuse(errno.EPERM)
_ENOSYS: Final = refuse(errno.ENOSYS)
_OWN_PID: Final = 0x7EADBEE1  # a placeholder in the assembled program, larger than any pid
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
    """Rules for calls that depend on arguments. An `int` is compared by its lower half, all that the kernel reads."""
    own = ArgumentRule((ArgumentCheck(get_low_offset(0), (_OWN_PID,)),), _EPERM)
    known_ioctl = ArgumentRule((ArgumentCheck(get_low_offset(1), _TERMINALS + _PLAIN_IOCTLS),), refuse(errno.ENOTTY))
    stream_or_packets = ArgumentCheck(
        get_low_offset(1), (1, 5), mask=~(0x800 | 0x80000) & 0xFFFFFFFF
    )  # a datagram takes an address
    return {
        "ioctl": ArgumentRule(
            (ArgumentCheck(get_low_offset(1), (_FICLONE,), wanted=False),), refuse(errno.EOPNOTSUPP), then=known_ioctl
        ),
        "fcntl": ArgumentRule((ArgumentCheck(get_low_offset(1), _FCNTLS),), _EPERM),
        "prctl": ArgumentRule((ArgumentCheck(get_low_offset(0), _PRCTLS),), _EPERM),
        "arch_prctl": ArgumentRule(
            (ArgumentCheck(get_low_offset(0), (0x1021, 0x1022, 0x1023)),), _EPERM
        ),  # asking for a vector unit's state
        "prlimit64": ArgumentRule((ArgumentCheck(get_low_offset(0), (0, _OWN_PID)),), _EPERM),
        "kill": own,
        "tgkill": own,
        "clone": ArgumentRule((ArgumentCheck(get_low_offset(0), _THREAD),), _EPERM),
        "socketpair": ArgumentRule((ArgumentCheck(get_low_offset(0), (1,)), stream_or_packets), _EPERM),
        "getsockopt": ArgumentRule(
            (ArgumentCheck(get_low_offset(1), (_SOL_SOCKET,)), ArgumentCheck(get_low_offset(2), _SOCKET_OPTIONS)),
            refuse(errno.ENOPROTOOPT),
        ),
        "sendto": ArgumentRule(
            (
                ArgumentCheck(get_low_offset(4), (0,)),
                ArgumentCheck(get_high_offset(4), (0,)),
                ArgumentCheck(get_low_offset(3), (0, 0x40, 0x4000, 0x4040)),
            ),
            _EPERM,
        ),
        "recvfrom": ArgumentRule((ArgumentCheck(get_low_offset(3), (0,), mask=_OUT_OF_BAND),), _EPERM),
        "futex": ArgumentRule((ArgumentCheck(get_low_offset(1), _FUTEXES, mask=~(128 | 256) & 0xFFFFFFFF),), _ENOSYS),
        "mmap": ArgumentRule((ArgumentCheck(get_low_offset(3), (0,), mask=_MAP_HUGETLB),), _EPERM),
        "personality": ArgumentRule((ArgumentCheck(get_low_offset(0), (0xFFFFFFFF,)),), _EPERM),
    }


def _allow_only_itself(own: tuple[int, ...]) -> dict[str, Decision]:
    """For a tier without a pid namespace: calls that query a process may query only this one."""
    calls = ("getpgid", "getsid", "sched_getaffinity", "sched_getscheduler", "sched_getparam")
    itself: Decision = ArgumentRule((ArgumentCheck(get_low_offset(0), own),), _EPERM)
    return dict.fromkeys(calls, itself) | {
        "getpriority": ArgumentRule(
            (ArgumentCheck(get_low_offset(0), (0,)), ArgumentCheck(get_low_offset(1), own)), _EPERM
        )
    }


def _refuse_truncation() -> dict[str, Decision]:
    """For Landlock ABI 1 and 2, which can't restrict truncation: it only needs the file's own permissions."""
    # Landlock treats access modes 0 and 3 as not opening for writing.
    flags = {"open": 1, "openat": 2}
    return {"truncate": _EPERM} | {
        name: ArgumentRule((ArgumentCheck(get_low_offset(argument), (0x200, 0x203), mask=0x203, wanted=False),), _EPERM)
        for name, argument in flags.items()
    }


class PythonFilter:
    """A program assembled once; `build_program` fills in a pid, in microseconds."""

    def __init__(self, *, metadata: bool, truncation: bool = True, forks: bool = False, machine: str = MACHINE) -> None:
        """`metadata` allows changing modes and times of files, for use where mounts confine it to the own folder.
        Without it there is no pid namespace either, so querying other processes is refused.

        `truncation` leaves truncation to Landlock. `forks` allows forks (if the listener of `make_fork_notify_filter`
        agrees), but then refuses all signals, since the program knows only one pid.
        """
        decisions: dict[str, Decision] = dict.fromkeys(ALLOWED_FOR_PYTHON, ALLOW)
        decisions |= dict.fromkeys(DANGEROUS + REFUSED_FOR_PYTHON + CHANGES_OWNERS, _EPERM)
        decisions |= dict.fromkeys(CHANGES_MODES, ALLOW if metadata else _EPERM)
        decisions |= _make_argument_rules() | ({} if truncation else _refuse_truncation())
        if not metadata:
            decisions |= _allow_only_itself((0,) if forks else (0, _OWN_PID))
        if forks:
            decisions |= {
                "kill": _EPERM,
                "tgkill": _EPERM,
                "clone": ArgumentRule((ArgumentCheck(get_low_offset(0), _THREAD + _FORK),), _EPERM),
            }
            decisions["prlimit64"] = ArgumentRule((ArgumentCheck(get_low_offset(0), (0,)),), _EPERM)
        numbers = get_syscall_numbers(machine)
        by_number = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
        self._program = assemble(by_number, _ENOSYS, architecture=AUDIT_ARCH[machine])
        pid = struct.pack("=I", _OWN_PID)
        self._pid_offsets = [at for at in range(4, len(self._program), 8) if self._program[at : at + 4] == pid]

    def build_program(self, pid: int) -> bytes:
        """Build the program for a process with this pid in its own namespace."""
        program = bytearray(self._program)
        for offset in self._pid_offsets:
            struct.pack_into("=I", program, offset, pid)
        return bytes(program)


def make_fork_notify_filter(machine: str = MACHINE) -> bytes:
    """Make a program that notifies its listener of each fork and allows all else; attached before the main filter."""
    ask = ArgumentRule((ArgumentCheck(get_low_offset(0), _FORK),), ALLOW, then=NOTIFY)
    return assemble({get_syscall_numbers(machine)["clone"]: ask}, ALLOW, architecture=AUDIT_ARCH[machine])
