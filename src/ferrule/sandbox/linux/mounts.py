"""Mounts, and a private root: an empty tmpfs with chosen host paths bind-mounted into it, read-only.

Uses the new mount calls (Linux 5.12, older than any Landlock): one `mount_setattr` makes a whole bound tree read-only,
where a remount would leave submounts writable. It only adds flags; a user namespace may not remove those of the host's
mounts.
"""

import os
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ferrule.sandbox.linux.syscalls import PreparedCall, call, invoke, prepare_call

__all__ = [
    "DEVICES",
    "Tree",
    "attach",
    "build_root",
    "change_root",
    "copy_tree",
    "copy_trees",
    "create_filesystem",
    "make_private",
    "make_read_only",
    "open_path",
    "prepare_scratch_mount",
]

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH, _AT_RECURSIVE, _OPEN_TREE_CLONE = 0x1000, 0x8000, 1
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 4, 0x40
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOEXEC = 1, 2, 4, 8
_FSCONFIG_SET_FLAG, _FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 0, 1, 6
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_IN_ROOT = 2, 4, 0x10
_CLOEXEC: Final = 1  # of fsopen and fsmount

DEVICES: Final = ("null", "zero", "full", "random", "urandom")
"""Names in `/dev` that any program may use."""

Tree = tuple[Path, int]  # its original path, and a descriptor of an unattached copy


def make_private() -> None:
    """Stop mounts from propagating to other namespaces, and from them."""
    call("mount", b"none", b"/", b"", _MS_REC | _MS_PRIVATE, b"")


def make_read_only(mount: str | int) -> None:
    """Make the mount at a path or descriptor read-only, nosuid and nodev, but not the mounts within it."""
    attributes = _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV
    if isinstance(mount, int):
        _set_attributes(mount, b"", _AT_EMPTY_PATH, attributes)
    else:
        _set_attributes(_AT_FDCWD, os.fsencode(mount), 0, attributes)


def open_path(path: str, root: int | None = None, *, or_link: bool = False) -> int:
    """Open a path (O_PATH) below the folder `root` or the process's root, without following symbolic links.

    `or_link` allows the last component to be a link and opens the link itself; mounted on itself, it can't be
    replaced. Raises OSError, ELOOP for a link.
    """
    resolve = _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS | (0 if root is None else _RESOLVE_IN_ROOT)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if or_link else 0), 0, resolve)
    return call("openat2", _AT_FDCWD if root is None else root, os.fsencode(path), how, len(how))


def copy_tree(descriptor: int, *, read_only: bool, devices: bool = False) -> int:
    """Copy a descriptor's tree with all mounts within it; returns a descriptor, not attached anywhere yet.

    The copy is nosuid, and nodev unless `devices`.
    """
    tree = call("open_tree", descriptor, b"", _OPEN_TREE_CLONE | _AT_RECURSIVE | _AT_EMPTY_PATH | os.O_CLOEXEC)
    attributes = _ATTR_NOSUID | (_ATTR_RDONLY if read_only else 0) | (0 if devices else _ATTR_NODEV)
    _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def create_filesystem(kind: str, options: Mapping[str, str | None], *, devices: bool = False) -> int:
    """Create a noexec file system; returns a descriptor, not attached anywhere yet.

    An option without a value is a flag.
    """
    filesystem = call("fsopen", kind.encode(), _CLOEXEC)
    try:
        for name, value in options.items():
            how = _FSCONFIG_SET_FLAG if value is None else _FSCONFIG_SET_STRING
            call("fsconfig", filesystem, how, name.encode(), 0 if value is None else value.encode(), 0)
        call("fsconfig", filesystem, _FSCONFIG_CMD_CREATE, 0, 0, 0)
        attributes = _ATTR_NOSUID | _ATTR_NOEXEC | (0 if devices else _ATTR_NODEV)
        return call("fsmount", filesystem, _CLOEXEC, attributes)
    finally:
        os.close(filesystem)


def attach(tree: int, mount_point: int) -> None:
    """Mount a tree on an open path."""
    call("move_mount", tree, b"", mount_point, b"", _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH)


def copy_trees(paths: Iterable[Path]) -> list[Tree]:
    """Copy the paths' trees, read-only, while this process can still reach the paths.

    Raises OSError if a path can't be opened.
    """
    devices = [Path("/dev", name) for name in DEVICES]
    plain = _ATTR_RDONLY | _ATTR_NOSUID
    return [(path, _copy_tree(path, plain | _ATTR_NODEV)) for path in paths] + [
        (path, _copy_tree(path, plain)) for path in devices if path.exists()
    ]


def build_root(trees: Iterable[Tree], links: Mapping[Path, str], *, scratch: Path) -> Path:
    """Build a root with the trees, the symbolic links and an empty folder `scratch`; returns its mount point.

    No link is on the way to a tree's mount point (`VisiblePaths.plan` ensures it): an absolute link in the new root
    would lead to the old one.
    """
    root = next(mount_point for mount_point in (Path("/tmp"), Path("/mnt"), Path("/proc")) if mount_point.is_dir())
    folders = {path: stat.S_ISDIR(os.fstat(tree).st_mode) for path, tree in trees}
    invoke(_prepare_tmpfs_mount(root, "size=1m,nr_inodes=2048"))
    for path, tree in trees:
        target = root / path.relative_to("/")
        (target if folders[path] else target.parent).mkdir(parents=True, exist_ok=True)
        if not folders[path]:
            target.touch()
        call("move_mount", tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    for path, points_to in links.items():
        target = root / path.relative_to("/")
        if not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(points_to)
    (root / scratch.relative_to("/")).mkdir(parents=True, exist_ok=True)
    make_read_only(str(root))
    return root


def change_root(root: Path | str) -> None:
    """Make `root` the process's root, and detach the old one with all its mounts."""
    os.chdir(root)
    here = b"."
    call("pivot_root", here, here)  # the old root now lies over the new one, at the same path
    call("umount2", here, _MNT_DETACH)
    os.chdir("/")


def prepare_scratch_mount(mount_point: Path, size: int, entries: int) -> PreparedCall:
    """Prepare a call that mounts an empty noexec tmpfs of `size` bytes and at most `entries` files."""
    return _prepare_tmpfs_mount(mount_point, f"size={size},nr_inodes={entries},mode=0755")


def _prepare_tmpfs_mount(mount_point: Path, options: str) -> PreparedCall:
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    return prepare_call("mount", b"tmpfs", os.fsencode(mount_point), b"tmpfs", flags, options.encode())


def _copy_tree(path: Path, attributes: int) -> int:
    name, empty = os.fsencode(path), b""
    tree = call("open_tree", _AT_FDCWD, name, _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC)
    _set_attributes(tree, empty, _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def _set_attributes(descriptor: int, path: bytes, flags: int, attributes: int) -> None:
    change = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", descriptor, path, flags, change, len(change))
