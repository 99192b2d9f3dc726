"""The seccomp filter of a shell command: refuses only dangerous calls, since a command can be any program.

It complements a command's namespaces (which restrict files and processes) or Landlock (files, TCP and signals), and
refuses what those don't: more namespaces and mounts, risky kernel interfaces (io_uring, bpf, keys, perf, userfaultfd),
inspecting other processes and getting handles of them, unusual sockets, pushing input into a terminal, and changing a
file through a read-only descriptor.
"""

import errno
from typing import Final

from ferrule.sandbox.linux.bpf import ALLOW, ArgumentCheck, ArgumentRule, Decision, assemble, get_low_offset, refuse
from ferrule.sandbox.linux.syscall_groups import (
    ALLOWED_FOR_SHELL,
    CHANGES_MODES,
    CHANGES_OWNERS,
    DANGEROUS,
    NEW_NAMESPACES,
    SHARED_MEMORY,
)
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, NUMBERS, get_syscall_numbers

__all__ = ["make_shell_filter", "refuse_peer_handles"]

_EPERM: Final = refuse(errno.EPERM)
_ENOSYS: Final = refuse(errno.ENOSYS)
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_KIND: Final = ~(0x800 | 0x80000) & 0xFFFFFFFF  # a socket's type without SOCK_NONBLOCK and SOCK_CLOEXEC
_INTO_TERMINALS: Final = (0x5412, 0x541C, 0x5423, 0x545D)  # TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS
# FIOSETOWN, SIOCSPGRP: send a socket's signals to the named process.
_OWNERS: Final = (0x8901, 0x8902)
_TERMINALS_AND_SOCKETS: Final = (0x5400, 0x8900)  # by the type, which is the second byte
_KIND_OF_IOCTL: Final = 0xFF00
# Those that query a file, or write to a descriptor that was opened for writing: FIBMAP, FIGETBSZ, FS_IOC_GETFLAGS (also
# of 32 bits), FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FICLONE, FICLONERANGE.
_FILE_IOCTLS: Final = (
    *(0x0001, 0x0002, 0x80086601, 0x80046601, 0x80087601, 0x801C581F, 0xC020660B),
    *(0x40049409, 0x4020940D),
)
# F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT: they delay other openers of a file, or change its inode.
_LEASES_AND_HINTS: Final = (1024, 1026, 1036, 1038)
_SIGNAL_OWNERS: Final = (8, 15)  # F_SETOWN, F_SETOWN_EX
_SOL_SOCKET, _SO_PASSPIDFD, _SO_PEERPIDFD = 1, 76, 77
_MODE_TYPE: Final = 0o170000
_REGULAR_OR_PIPE: Final = (0, 0o100000, 0o010000)
_PERSONALITIES: Final = (0, 0xFFFFFFFF, 0x0008)  # Linux's default, a query, and 32-bit


def make_shell_filter(network: bool, unix: bool = False, *, namespaced: bool = True, machine: str = MACHINE) -> bytes:
    """Make a program for `linux.seccomp.attach`.

    `network` allows IPv4 and IPv6 stream and datagram sockets; the network namespace limits what they reach. `unix`
    also allows unix sockets with a path or name, not only socketpairs. No other kind is ever allowed (netlink, raw,
    packet, vsock). `namespaced`: mounts, pids and System V memory are the command's own; if not, the program refuses
    to change any file's mode, owner, times, flags or attributes, to set the limits and priorities of any process but
    the caller, to have signals sent to others, and to use shared memory.
    """
    numbers = NUMBERS if machine == MACHINE else get_syscall_numbers(machine)
    decisions: dict[str, Decision] = dict.fromkeys(DANGEROUS, _EPERM)
    decisions |= dict.fromkeys(ALLOWED_FOR_SHELL, ALLOW)
    decisions |= _make_argument_rules() | _make_socket_rules(network, unix)
    if namespaced:
        decisions |= dict.fromkeys(SHARED_MEMORY, ALLOW)
    else:
        decisions |= (
            dict.fromkeys(CHANGES_MODES + CHANGES_OWNERS, _EPERM) | _allow_only_caller() | _refuse_file_ioctls()
        )
    by_number = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
    # Numbers not in our tables are calls of a later kernel, not reviewed yet.
    known = set(numbers.values())
    by_number |= dict.fromkeys(known - by_number.keys(), ALLOW)
    return assemble(by_number, _ENOSYS, architecture=AUDIT_ARCH[machine])


def _make_argument_rules() -> dict[str, Decision]:
    return {
        "clone": ArgumentRule((ArgumentCheck(get_low_offset(0), (0,), mask=NEW_NAMESPACES),), _EPERM),
        "clone3": _ENOSYS,  # its flags are in memory, which a filter can't read; libraries fall back to clone
        "ioctl": ArgumentRule((ArgumentCheck(get_low_offset(1), _INTO_TERMINALS, wanted=False),), _EPERM),
        "fcntl": ArgumentRule((ArgumentCheck(get_low_offset(1), _LEASES_AND_HINTS, wanted=False),), _EPERM),
        "getsockopt": refuse_peer_handles(),
        "setsockopt": refuse_peer_handles(),
        "personality": ArgumentRule((ArgumentCheck(get_low_offset(0), _PERSONALITIES),), _EPERM),
        "mknod": ArgumentRule((ArgumentCheck(get_low_offset(1), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
        "mknodat": ArgumentRule((ArgumentCheck(get_low_offset(2), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
    }


def refuse_peer_handles() -> ArgumentRule:
    """For getsockopt and setsockopt: refuse SO_PEERPIDFD and SO_PASSPIDFD as an older kernel does.

    A handle of the peer process would reach outside a pid namespace.
    """
    named = ArgumentRule(
        (ArgumentCheck(get_low_offset(2), (_SO_PASSPIDFD, _SO_PEERPIDFD), wanted=False),), refuse(errno.ENOPROTOOPT)
    )
    return ArgumentRule((ArgumentCheck(get_low_offset(1), (_SOL_SOCKET,)),), ALLOW, then=named)


def _refuse_file_ioctls() -> dict[str, Decision]:
    """Landlock has no right for file ioctls: flags, encryption, verity and defragmentation need no write access."""
    by_kind = ArgumentRule(
        (ArgumentCheck(get_low_offset(1), _TERMINALS_AND_SOCKETS, mask=_KIND_OF_IOCTL),), refuse(errno.ENOTTY)
    )
    file_checks = ArgumentRule((ArgumentCheck(get_low_offset(1), _FILE_IOCTLS, wanted=False),), ALLOW, then=by_kind)
    return {
        "ioctl": ArgumentRule(
            (ArgumentCheck(get_low_offset(1), _INTO_TERMINALS + _OWNERS, wanted=False),), _EPERM, then=file_checks
        ),
        "fcntl": ArgumentRule(
            (ArgumentCheck(get_low_offset(1), _LEASES_AND_HINTS + _SIGNAL_OWNERS, wanted=False),), _EPERM
        ),
    }


def _allow_only_caller() -> dict[str, Decision]:
    by_pid = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
    decisions: dict[str, Decision] = {
        name: ArgumentRule((ArgumentCheck(get_low_offset(0), (0,)),), _EPERM) for name in by_pid
    }
    decisions["setpriority"] = ArgumentRule(
        (ArgumentCheck(get_low_offset(0), (0,)), ArgumentCheck(get_low_offset(1), (0,))), _EPERM
    )  # PRIO_PROCESS, the caller
    decisions["ioprio_set"] = ArgumentRule(
        (ArgumentCheck(get_low_offset(0), (1,)), ArgumentCheck(get_low_offset(1), (0,))), _EPERM
    )  # IOPRIO_WHO_PROCESS
    return decisions


def _make_socket_rules(network: bool, unix: bool) -> dict[str, Decision]:
    families = ((_INET, _INET6) if network else ()) + ((_UNIX,) if unix else ())
    kinds = (
        (_STREAM, _DATAGRAM, _PACKETS) if unix else (_STREAM, _PACKETS)
    )  # a pair's datagram sockets can send to an address
    socket_kinds = (*((_STREAM, _DATAGRAM) if network else ()), *((_STREAM, _DATAGRAM, _PACKETS) if unix else ()))
    decisions: dict[str, Decision] = {
        "socketpair": ArgumentRule(
            (ArgumentCheck(get_low_offset(0), (_UNIX,)), ArgumentCheck(get_low_offset(1), kinds, mask=_KIND)), _EPERM
        ),
        "socket": _EPERM,
    }
    if families:
        checks = (
            ArgumentCheck(get_low_offset(0), families),
            ArgumentCheck(get_low_offset(1), tuple(dict.fromkeys(socket_kinds)), mask=_KIND),
        )
        decisions["socket"] = ArgumentRule(checks, _EPERM)
    else:
        decisions |= dict.fromkeys(("connect", "bind", "listen", "accept", "accept4"), _EPERM)
    return decisions
