"""The namespaces of a launcher of shell commands, and the root they see: the machine's root with mounts over it.

The mounts keep every restriction of the machine's own mounts, nested ones included: flags are added to a copy of a
whole tree and never removed. No path is followed through a symbolic link, since a concurrent command may replace a
folder by one. A protected link is mounted on itself, so that it can't be replaced.
"""

# Part of a program that should start fast, so paths are strings.
# ruff: noqa: PTH110, PTH112, PTH120

import os
import signal
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import enter_same_user_namespace, prepare_drop_capabilities
from ferrule.sandbox.linux.mounts import (
    DEVICES,
    attach,
    change_root,
    copy_tree,
    create_filesystem,
    make_private,
    make_read_only,
    open_path,
)
from ferrule.sandbox.linux.namespaces import bring_up_loopback, wait_and_exit

__all__ = ["Mount", "enter_command_root"]

Mount = tuple[str, str, str]
"""Kind, mount point and source: for `read` and `write` the path to show there; for `empty`, an empty folder that can't
be written, its mode; for `proc` and `dev` nothing."""

_LAUNCHER_NAMESPACES: Final = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWPID
)
# Where the new root is assembled; nothing visible is below it.
_ROOT_MOUNT_POINT: Final = "/proc"
# Needed to create each command's namespaces: CAP_SETPCAP, CAP_NET_ADMIN, CAP_SYS_ADMIN. No command keeps them.
_CAPABILITIES: Final = 1 << 8 | 1 << 12 | 1 << 21
_MAKING_A_FILE: Final = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_COVER: Final = "64k"
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def enter_command_root(mounts: Sequence[Mount], *, network: bool) -> None:
    """Forks. Returns only in the child, pid 1 of new namespaces with the same user, in which the mounts are made.

    The first mount is `/`. `network` adds a network namespace with nothing but a loopback interface. The parent closes
    all descriptors, waits and exits with the child's status. Raises OSError, in either process.
    """
    enter_same_user_namespace(_LAUNCHER_NAMESPACES | (syscalls.CLONE_NEWNET if network else 0))
    launcher = os.fork()
    if launcher:
        wait_and_exit(launcher)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    syscalls.sethostname(b"sandbox")
    if network:
        bring_up_loopback()
    make_private()
    _build_root(mounts)
    syscalls.invoke(prepare_drop_capabilities(keep=_CAPABILITIES))


def _build_root(mounts: Sequence[Mount]) -> None:
    mount_point = open_path(_ROOT_MOUNT_POINT)
    (kind, _, source), *over = mounts
    root = _make_tree(kind, source)
    attach(root, mount_point)
    os.close(mount_point)
    mounted = {"/": False}  # whether the mount at each path is a folder that we created
    for kind, path, source in over:
        tree = _make_tree(kind, source)
        is_folder = kind not in ("read", "write") or os.path.isdir(source)
        enclosing = next(each for each in _list_parent_folders(path) if each in mounted)
        if mounted[enclosing]:
            _create_mount_point(root, enclosing, path, is_folder=is_folder)
        mount_point = open_path(path, root, or_link=True)
        attach(tree, mount_point)
        os.close(mount_point)
        if kind == "dev":
            _fill_devices(tree)
        os.close(tree)
        mounted[path] = source != path
    empty = [path for kind, path, _ in over if kind == "empty"]
    # Last, once everything in them is mounted: files that a command created there would be seen by the next one.
    for path in empty:
        covered = open_path(path, root)
        make_read_only(covered)
        os.close(covered)
    os.fchdir(root)
    os.close(root)
    change_root(".")


def _make_tree(kind: str, source: str) -> int:
    """Create or copy the tree to mount; returns a descriptor."""
    if kind == "empty":
        return create_filesystem("tmpfs", {"size": _COVER, "mode": source})
    if kind == "proc":
        return create_filesystem("proc", {})
    if kind == "dev":
        return create_filesystem("tmpfs", {"size": _COVER, "mode": "0755"})
    path = open_path(source, or_link=True)
    try:
        return copy_tree(path, read_only=kind == "read")
    finally:
        os.close(path)


def _list_parent_folders(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _create_mount_point(root: int, enclosing: str, path: str, *, is_folder: bool) -> None:
    """Create a mount point in a folder of ours, where a command may have put something else."""
    folder = open_path(enclosing, root)
    names = os.path.relpath(path, enclosing).split("/")
    for name in names if is_folder else names[:-1]:
        if not _is_folder(folder, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o755, dir_fd=folder)
        inner = open_path(name, folder)
        os.close(folder)
        folder = inner
    if not is_folder:
        os.close(os.open(names[-1], _MAKING_A_FILE, 0o644, dir_fd=folder))
    os.close(folder)


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _fill_devices(folder: int) -> None:
    """Fill `/dev` with what programs expect there, then make it read-only."""
    for name in (*DEVICES, "tty"):
        if os.path.exists(f"/dev/{name}"):
            os.close(os.open(name, _MAKING_A_FILE, 0o644, dir_fd=folder))
            _attach_device(folder, name)
    for name in ("shm", "pts"):
        os.mkdir(name, 0o755, dir_fd=folder)
    for name, target in _LINKS.items():
        os.symlink(target, name, dir_fd=folder)
    terminals = create_filesystem("devpts", {"newinstance": None, "ptmxmode": "0666", "mode": "0620"}, devices=True)
    mount_point = open_path("pts", folder)
    attach(terminals, mount_point)
    os.close(mount_point)
    os.close(terminals)
    make_read_only(folder)


def _attach_device(folder: int, name: str) -> None:
    source, mount_point = open_path(f"/dev/{name}"), open_path(name, folder)
    tree = copy_tree(source, read_only=True, devices=True)
    attach(tree, mount_point)
    for descriptor in (source, mount_point, tree):
        os.close(descriptor)
