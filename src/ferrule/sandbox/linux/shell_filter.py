"""The seccomp filter of a shell's command: everything but what is dangerous, since a command is any program.

It stands beside a command's namespaces (which hold files and processes) or Landlock (which holds files, TCP and
signals), and refuses what those don't hold: more namespaces and mounts, the kernel's wider doors (io_uring, bpf, keys,
perf, userfaultfd), looking into other processes, handles of them, kinds of sockets, pushing input into a terminal, and
what changes a file through a descriptor that only reads it.
"""

import errno
from typing import Final

from ferrule.sandbox.linux.bpf import ALLOW, ArgumentCheck, ArgumentRule, Decision, assemble, low, refuse
from ferrule.sandbox.linux.syscall_groups import (
    CHANGES_MODES,
    CHANGES_OWNERS,
    DANGEROUS,
    NEW_NAMESPACES,
    SHARED_MEMORY,
    SHELL_MAY,
)
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, get_syscall_numbers

__all__ = ["refuse_peer_handles", "shell_filter"]

_EPERM: Final = refuse(errno.EPERM)
_ENOSYS: Final = refuse(errno.ENOSYS)
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_KIND: Final = ~(0x800 | 0x80000) & 0xFFFFFFFF  # a socket's type without SOCK_NONBLOCK and SOCK_CLOEXEC
_INTO_TERMINALS: Final = (0x5412, 0x541C, 0x5423, 0x545D)  # TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS
# FIOSETOWN, SIOCSPGRP: whoever is named gets signals of a socket.
_OWNERS: Final = (0x8901, 0x8902)
_TERMINALS_AND_SOCKETS: Final = (0x5400, 0x8900)  # by the kind, which is the second byte
_KIND_OF_IOCTL: Final = 0xFF00
# What tells of a file, and what writes to a descriptor that was opened for that: FIBMAP, FIGETBSZ, FS_IOC_GETFLAGS (of
# 32 bits too), FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FICLONE, FICLONERANGE.
_OF_FILES: Final = (
    *(0x0001, 0x0002, 0x80086601, 0x80046601, 0x80087601, 0x801C581F, 0xC020660B),
    *(0x40049409, 0x4020940D),
)
# F_SETLEASE, F_NOTIFY, F_SET_RW_HINT, F_SET_FILE_RW_HINT: whoever else opens the file waits, or its inode is changed.
_LASTING: Final = (1024, 1026, 1036, 1038)
_SIGNAL_OWNERS: Final = (8, 15)  # F_SETOWN, F_SETOWN_EX
_SOL_SOCKET, _SO_PASSPIDFD, _SO_PEERPIDFD = 1, 76, 77
_MODE_TYPE: Final = 0o170000
_REGULAR_OR_PIPE: Final = (0, 0o100000, 0o010000)
_PERSONALITIES: Final = (0, 0xFFFFFFFF, 0x0008)  # Linux's own, asking for it, and 32 bits


def shell_filter(network: bool, unix: bool = False, *, namespaced: bool = True, machine: str = MACHINE) -> bytes:
    """A program for `linux.seccomp.attach`.

    `network`: sockets of IPv4 and IPv6 are there, streams and datagrams; what they reach is up to the network
    namespace. `unix`: sockets with a path or a name, too; without it only pairs, which lead nowhere. No other kind ever
    (netlink, raw, packet, vsock). `namespaced`: mounts, pids and System V memory are the command's own; where they are
    not, this program keeps a command from changing any file's mode, owner, times, flags and attributes, from setting
    limits and priorities of any process but the caller, from having another signalled, and from shared memory.
    """
    numbers = get_syscall_numbers(machine)
    decisions: dict[str, Decision] = dict.fromkeys(DANGEROUS, _EPERM)
    decisions |= dict.fromkeys(SHELL_MAY, ALLOW)
    decisions |= _make_argument_rules() | _make_socket_rules(network, unix)
    if namespaced:
        decisions |= dict.fromkeys(SHARED_MEMORY, ALLOW)
    else:
        decisions |= (
            dict.fromkeys(CHANGES_MODES + CHANGES_OWNERS, _EPERM) | _allow_only_caller() | _refuse_file_ioctls()
        )
    by_number = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
    # Numbers that no table here knows are calls of a later kernel: nobody has judged them yet.
    known = set(numbers.values())
    by_number |= dict.fromkeys(known - by_number.keys(), ALLOW)
    return assemble(by_number, _ENOSYS, architecture=AUDIT_ARCH[machine])


def _make_argument_rules() -> dict[str, Decision]:
    return {
        "clone": ArgumentRule((ArgumentCheck(low(0), (0,), mask=NEW_NAMESPACES),), _EPERM),
        "clone3": _ENOSYS,  # its flags are in memory, where a filter can't look; libraries fall back to clone
        "ioctl": ArgumentRule((ArgumentCheck(low(1), _INTO_TERMINALS, wanted=False),), _EPERM),
        "fcntl": ArgumentRule((ArgumentCheck(low(1), _LASTING, wanted=False),), _EPERM),
        "getsockopt": refuse_peer_handles(),
        "setsockopt": refuse_peer_handles(),
        "personality": ArgumentRule((ArgumentCheck(low(0), _PERSONALITIES),), _EPERM),
        "mknod": ArgumentRule((ArgumentCheck(low(1), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
        "mknodat": ArgumentRule((ArgumentCheck(low(2), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
    }


def refuse_peer_handles() -> ArgumentRule:
    """For getsockopt and setsockopt: SO_PEERPIDFD and SO_PASSPIDFD are unknown, as to an older kernel.

    A handle of the process at the other end would reach out of a pid namespace.
    """
    named = ArgumentRule(
        (ArgumentCheck(low(2), (_SO_PASSPIDFD, _SO_PEERPIDFD), wanted=False),), refuse(errno.ENOPROTOOPT)
    )
    return ArgumentRule((ArgumentCheck(low(1), (_SOL_SOCKET,)),), ALLOW, then=named)


def _refuse_file_ioctls() -> dict[str, Decision]:
    """Landlock has no right for the ioctls of files: flags, encryption, verity, defragmentation need no writing."""
    by_kind = ArgumentRule((ArgumentCheck(low(1), _TERMINALS_AND_SOCKETS, mask=_KIND_OF_IOCTL),), refuse(errno.ENOTTY))
    told = ArgumentRule((ArgumentCheck(low(1), _OF_FILES, wanted=False),), ALLOW, then=by_kind)
    return {
        "ioctl": ArgumentRule((ArgumentCheck(low(1), _INTO_TERMINALS + _OWNERS, wanted=False),), _EPERM, then=told),
        "fcntl": ArgumentRule((ArgumentCheck(low(1), _LASTING + _SIGNAL_OWNERS, wanted=False),), _EPERM),
    }


def _allow_only_caller() -> dict[str, Decision]:
    by_pid = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
    decisions: dict[str, Decision] = {name: ArgumentRule((ArgumentCheck(low(0), (0,)),), _EPERM) for name in by_pid}
    decisions["setpriority"] = ArgumentRule(
        (ArgumentCheck(low(0), (0,)), ArgumentCheck(low(1), (0,))), _EPERM
    )  # PRIO_PROCESS, the caller
    decisions["ioprio_set"] = ArgumentRule(
        (ArgumentCheck(low(0), (1,)), ArgumentCheck(low(1), (0,))), _EPERM
    )  # IOPRIO_WHO_PROCESS
    return decisions


def _make_socket_rules(network: bool, unix: bool) -> dict[str, Decision]:
    families = ((_INET, _INET6) if network else ()) + ((_UNIX,) if unix else ())
    kinds = (_STREAM, _DATAGRAM, _PACKETS) if unix else (_STREAM, _PACKETS)  # a pair's datagrams may take an address
    socket_kinds = (*((_STREAM, _DATAGRAM) if network else ()), *((_STREAM, _DATAGRAM, _PACKETS) if unix else ()))
    decisions: dict[str, Decision] = {
        "socketpair": ArgumentRule((ArgumentCheck(low(0), (_UNIX,)), ArgumentCheck(low(1), kinds, mask=_KIND)), _EPERM),
        "socket": _EPERM,
    }
    if families:
        checks = (
            ArgumentCheck(low(0), families),
            ArgumentCheck(low(1), tuple(dict.fromkeys(socket_kinds)), mask=_KIND),
        )
        decisions["socket"] = ArgumentRule(checks, _EPERM)
    else:
        decisions |= dict.fromkeys(("connect", "bind", "listen", "accept", "accept4"), _EPERM)
    return decisions
