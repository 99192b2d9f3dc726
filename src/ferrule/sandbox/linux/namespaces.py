"""The namespaces of a zygote and of each of its children."""

import contextlib
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import become_root_of_namespace, enter_user_namespace
from ferrule.sandbox.linux.mounts import build_root, change_root, copy_trees, make_private

__all__ = [
    "Home",
    "enter_namespaces",
    "leave_for_next_child_calls",
    "raise_loopback",
    "return_home_calls",
    "wait_and_end",
]

_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1

_AROUND_THE_ZYGOTE = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWPID
)


class Home(NamedTuple):
    """Descriptors that a zygote keeps of what it can no longer open: it has no /proc."""

    process: int
    """Itself, whose pid namespace it forks below."""
    mounts: int
    """Its mount namespace."""
    size: int
    """Its `statm`."""
    maps: int
    """Its `maps`."""


def enter_namespaces(paths: list[Path], links: Mapping[Path, str], scratch: Path) -> Home:
    """On return this process is another: pid 1 in namespaces of its own, with a root that holds the paths alone.

    The process that called waits for it, without descriptors, and ends as it ends. Raises OSError, in either process.
    """
    enter_user_namespace(_AROUND_THE_ZYGOTE)
    zygote = os.fork()
    if zygote:
        become_root_of_namespace()
        wait_and_end(zygote)
    make_private()
    trees = copy_trees(paths)
    own = [_open(f"/proc/self/{name}") for name in ("ns/mnt", "statm", "maps")]
    home = Home(os.pidfd_open(os.getpid()), *own)
    become_root_of_namespace()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    syscalls.sethostname(b"sandbox")
    change_root(build_root(trees, links, scratch=scratch))
    return home


def leave_for_next_child_calls(home: Home) -> list[syscalls.Ready]:
    """Calls after which the next fork's child is pid 1 of a new namespace, and shares its mounts with this one alone.

    Back home first: a pid namespace that waits for its first child, or had it, can't have one below it.
    """
    new = syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS
    return [syscalls.prepare_call("setns", home.process, syscalls.CLONE_NEWPID), syscalls.prepare_call("unshare", new)]


def return_home_calls(home: Home) -> list[syscalls.Ready]:
    """Calls that undo that after the fork: the child alone keeps its mounts, and here threads can start again."""
    return [
        syscalls.prepare_call("setns", home.process, syscalls.CLONE_NEWPID),
        syscalls.prepare_call("setns", home.mounts, syscalls.CLONE_NEWNS),
    ]


def raise_loopback() -> None:
    """Have the network namespace's loopback up. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def wait_and_end(child: int) -> NoReturn:
    """Wait for a child without keeping anything open, and end as it ends."""
    syscalls.close_range(0, 0x7FFF_FFFF)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
