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
    "NamespaceHandles",
    "bring_up_loopback",
    "enter_namespaces",
    "prepare_child_namespaces",
    "prepare_return",
    "wait_and_exit",
]

_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1

_ZYGOTE_NAMESPACES = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWPID
)


class NamespaceHandles(NamedTuple):
    """Descriptors that a zygote opens in advance, since it has no /proc later."""

    process: int
    """A pidfd of the zygote; its children's pid namespaces are nested in its own."""
    mounts: int
    """Its mount namespace."""
    size: int
    """Its `statm`."""
    maps: int
    """Its `maps`."""


def enter_namespaces(paths: list[Path], links: Mapping[Path, str], scratch: Path) -> NamespaceHandles:
    """Forks. Returns only in the child, which is pid 1 of new namespaces, with a root that holds only the paths.

    The parent closes all descriptors, waits and exits with the child's status. Raises OSError, in either process.
    """
    enter_user_namespace(_ZYGOTE_NAMESPACES)
    zygote = os.fork()
    if zygote:
        become_root_of_namespace()
        wait_and_exit(zygote)
    make_private()
    trees = copy_trees(paths)
    own = [_open(f"/proc/self/{name}") for name in ("ns/mnt", "statm", "maps")]
    handles = NamespaceHandles(os.pidfd_open(os.getpid()), *own)
    become_root_of_namespace()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    syscalls.sethostname(b"sandbox")
    change_root(build_root(trees, links, scratch=scratch))
    return handles


def prepare_child_namespaces(handles: NamespaceHandles) -> list[syscalls.PreparedCall]:
    """Prepare calls that make the next forked child pid 1 of a new pid namespace, in a mount namespace of its own.

    Re-enter the zygote's pid namespace first: one whose first child is pending or was forked can't nest another.
    """
    new = syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS
    return [
        syscalls.prepare_call("setns", handles.process, syscalls.CLONE_NEWPID),
        syscalls.prepare_call("unshare", new),
    ]


def prepare_return(handles: NamespaceHandles) -> list[syscalls.PreparedCall]:
    """Prepare calls that undo this after the fork: only the child keeps its mounts, and threads can start again."""
    return [
        syscalls.prepare_call("setns", handles.process, syscalls.CLONE_NEWPID),
        syscalls.prepare_call("setns", handles.mounts, syscalls.CLONE_NEWNS),
    ]


def bring_up_loopback() -> None:
    """Bring up the network namespace's loopback interface. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def wait_and_exit(child: int) -> NoReturn:
    """Close all descriptors, wait for a child, and exit with its status or signal."""
    syscalls.close_range(0, 0x7FFF_FFFF)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
