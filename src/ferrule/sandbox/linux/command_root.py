"""The namespaces of a launcher of shell commands, and the root that those see: the machine's own, with mounts over it.

What is mounted keeps every restriction that the machine's own mounts have, those within other mounts too: flags are
added to a copy of a whole tree and never taken away. No path is followed through a symbolic link: a command that runs
beside this may replace a folder by one. A link that is protected is mounted on itself, and so can't be replaced.
"""

# Part of a program that should start fast: paths are text.
# ruff: noqa: PTH110, PTH112, PTH120

import os
import signal
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import drop_capabilities_call, enter_same_user_namespace
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
from ferrule.sandbox.linux.namespaces import raise_loopback, wait_and_end

__all__ = ["Mount", "enter_command_root"]

Mount = tuple[str, str, str]
"""What is mounted, where, and of what: `read` or `write` and the path that is seen there; `empty` and the mode of a
folder that nothing can be put into; `proc` and `dev`, of nothing."""

_AROUND_THE_COMMANDS: Final = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWPID
)
# Where the new root is put together. Nothing that is shown lies here.
_PLACE: Final = "/proc"
# What each command's own namespaces are made with: CAP_SETPCAP, CAP_NET_ADMIN, CAP_SYS_ADMIN. No command keeps them.
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
    """On return this process is another: pid 1 in namespaces of its own, of the same user, among the mounts.

    The first mount is that of `/`. `network`: and in a network namespace with a loopback and nothing else. The process
    that called waits for it, without descriptors, and ends as it ends. Raises OSError, in either process.
    """
    enter_same_user_namespace(_AROUND_THE_COMMANDS | (syscalls.CLONE_NEWNET if network else 0))
    launcher = os.fork()
    if launcher:
        wait_and_end(launcher)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    syscalls.sethostname(b"sandbox")
    if network:
        raise_loopback()
    make_private()
    _build_root(mounts)
    syscalls.make(drop_capabilities_call(keep=_CAPABILITIES))


def _build_root(mounts: Sequence[Mount]) -> None:
    place = open_path(_PLACE)
    (kind, _, source), *over = mounts
    root = _make_tree(kind, source)
    attach(root, place)
    os.close(place)
    mounted = {"/": False}  # by path, whether what lies there is a folder of ours
    for kind, path, source in over:
        tree = _make_tree(kind, source)
        is_folder = kind not in ("read", "write") or os.path.isdir(source)
        around = next(each for each in _list_parent_folders(path) if each in mounted)
        if mounted[around]:
            _make_place(root, around, path, is_folder=is_folder)
        place = open_path(path, root, or_link=True)
        attach(tree, place)
        os.close(place)
        if kind == "dev":
            _fill_devices(tree)
        os.close(tree)
        mounted[path] = source != path
    empty = [path for kind, path, _ in over if kind == "empty"]
    # Last, when all that lies in them is mounted: what a command put there would be there for the next one.
    for path in empty:
        covered = open_path(path, root)
        make_read_only(covered)
        os.close(covered)
    os.fchdir(root)
    os.close(root)
    change_root(".")


def _make_tree(kind: str, source: str) -> int:
    """A descriptor of what is to be mounted."""
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


def _make_place(root: int, around: str, path: str, *, is_folder: bool) -> None:
    """Make what is mounted on, in a folder of ours, where a command may have put something else."""
    folder = open_path(around, root)
    names = os.path.relpath(path, around).split("/")
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
    """Put into `/dev` what programs expect to be there, and then let nothing be put there any more."""
    for name in (*DEVICES, "tty"):
        if os.path.exists(f"/dev/{name}"):
            os.close(os.open(name, _MAKING_A_FILE, 0o644, dir_fd=folder))
            _attach_device(folder, name)
    for name in ("shm", "pts"):
        os.mkdir(name, 0o755, dir_fd=folder)
    for name, target in _LINKS.items():
        os.symlink(target, name, dir_fd=folder)
    terminals = create_filesystem("devpts", {"newinstance": None, "ptmxmode": "0666", "mode": "0620"}, devices=True)
    place = open_path("pts", folder)
    attach(terminals, place)
    os.close(place)
    os.close(terminals)
    make_read_only(folder)


def _attach_device(folder: int, name: str) -> None:
    source, place = open_path(f"/dev/{name}"), open_path(name, folder)
    tree = copy_tree(source, read_only=True, devices=True)
    attach(tree, place)
    for descriptor in (source, place, tree):
        os.close(descriptor)
