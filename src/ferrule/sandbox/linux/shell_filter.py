"""The seccomp filter of a shell's command: everything but what is dangerous, since a command is any program.

It stands beside bubblewrap's namespaces (which hold files and processes) or Landlock (which holds files, TCP and
signals), and refuses what those don't hold: more namespaces and mounts, the kernel's wider doors (io_uring, bpf, keys,
perf, userfaultfd), looking into other processes, kinds of sockets, and pushing input into a terminal.
"""

import errno
from typing import Final

from ferrule.sandbox.linux.bpf import ALLOW, Check, Decision, Rule, assembled, low, refuse
from ferrule.sandbox.linux.call_groups import (
    CHANGES_MODES,
    CHANGES_OWNERS,
    DANGEROUS,
    NEW_NAMESPACES,
    SHARED_MEMORY,
    SHELL_MAY,
)
from ferrule.sandbox.linux.numbers import AUDIT_ARCH, MACHINE, numbers_of

__all__ = ["shell_filter"]

_EPERM: Final = refuse(errno.EPERM)
_ENOSYS: Final = refuse(errno.ENOSYS)
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_KIND: Final = ~(0x800 | 0x80000) & 0xFFFFFFFF  # a socket's type without SOCK_NONBLOCK and SOCK_CLOEXEC
_INTO_TERMINALS: Final = (0x5412, 0x541C, 0x5423, 0x545D)  # TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS
_MODE_TYPE: Final = 0o170000
_REGULAR_OR_PIPE: Final = (0, 0o100000, 0o010000)
_PERSONALITIES: Final = (0, 0xFFFFFFFF, 0x0008)  # Linux's own, asking for it, and 32 bits


def shell_filter(network: bool, unix: bool = False, *, namespaced: bool = True, machine: str = MACHINE) -> bytes:
    """A program for `linux.seccomp.attach`, or for `bwrap --seccomp FD`.

    `network`: sockets of IPv4 and IPv6 are there, streams and datagrams; what they reach is up to the network
    namespace. `unix`: sockets with a path or a name, too; without it only pairs, which lead nowhere. No other kind ever
    (netlink, raw, packet, vsock). `namespaced`: mounts, pids and System V memory are the command's own; where they are
    not, this program keeps a command from changing any file's mode, owner, times and attributes, from setting limits
    and priorities of any process but the caller, and from shared memory.
    """
    numbers = numbers_of(machine)
    decisions: dict[str, Decision] = dict.fromkeys(DANGEROUS, _EPERM)
    decisions |= dict.fromkeys(SHELL_MAY, ALLOW)
    decisions |= _arguments() | _sockets(network, unix)
    if namespaced:
        decisions |= dict.fromkeys(SHARED_MEMORY, ALLOW)
    else:
        decisions |= dict.fromkeys(CHANGES_MODES + CHANGES_OWNERS, _EPERM) | _of_the_caller_alone()
    by_number = {numbers[name]: decision for name, decision in decisions.items() if name in numbers}
    # Numbers that no table here knows are calls of a later kernel: nobody has judged them yet.
    known = set(numbers.values())
    by_number |= dict.fromkeys(known - by_number.keys(), ALLOW)
    return assembled(by_number, _ENOSYS, architecture=AUDIT_ARCH[machine])


def _arguments() -> dict[str, Decision]:
    return {
        "clone": Rule((Check(low(0), (0,), mask=NEW_NAMESPACES),), _EPERM),
        "clone3": _ENOSYS,  # its flags are in memory, where a filter can't look; libraries fall back to clone
        "ioctl": Rule((Check(low(1), _INTO_TERMINALS, wanted=False),), _EPERM),
        "personality": Rule((Check(low(0), _PERSONALITIES),), _EPERM),
        "mknod": Rule((Check(low(1), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
        "mknodat": Rule((Check(low(2), _REGULAR_OR_PIPE, mask=_MODE_TYPE),), _EPERM),
    }


def _of_the_caller_alone() -> dict[str, Decision]:
    by_pid = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
    decisions: dict[str, Decision] = {name: Rule((Check(low(0), (0,)),), _EPERM) for name in by_pid}
    decisions["setpriority"] = Rule((Check(low(0), (0,)), Check(low(1), (0,))), _EPERM)  # PRIO_PROCESS, the caller
    decisions["ioprio_set"] = Rule((Check(low(0), (1,)), Check(low(1), (0,))), _EPERM)  # IOPRIO_WHO_PROCESS
    return decisions


def _sockets(network: bool, unix: bool) -> dict[str, Decision]:
    families = ((_INET, _INET6) if network else ()) + ((_UNIX,) if unix else ())
    kinds = (_STREAM, _DATAGRAM, _PACKETS) if unix else (_STREAM, _PACKETS)  # a pair's datagrams may take an address
    socket_kinds = (*((_STREAM, _DATAGRAM) if network else ()), *((_STREAM, _DATAGRAM, _PACKETS) if unix else ()))
    decisions: dict[str, Decision] = {
        "socketpair": Rule((Check(low(0), (_UNIX,)), Check(low(1), kinds, mask=_KIND)), _EPERM),
        "socket": _EPERM,
    }
    if families:
        checks = (Check(low(0), families), Check(low(1), tuple(dict.fromkeys(socket_kinds)), mask=_KIND))
        decisions["socket"] = Rule(checks, _EPERM)
    else:
        decisions |= dict.fromkeys(("connect", "bind", "listen", "accept", "accept4"), _EPERM)
    return decisions
