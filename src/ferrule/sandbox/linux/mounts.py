"""Mounts, and a root of one's own: an empty tmpfs, into which chosen paths of the host are bound, read-only.

The new mount calls (Linux 5.12, older than any Landlock) are used, since one `mount_setattr` makes a whole bound tree
read-only, with what is mounted below it, where a remount would leave the submounts writable. It adds flags, and takes
none away that the host's own mounts have, which a user namespace may not.
"""

import os
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ferrule.sandbox.linux.syscalls import Ready, call, make, prepare_call

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
    "mount_scratch_call",
    "open_path",
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
"""The names of those in `/dev` that any program may use."""

Tree = tuple[Path, int]  # where it was, and a descriptor of a copy that is mounted nowhere yet


def make_private() -> None:
    """No mount made here reaches another namespace, and none from there appears here."""
    call("mount", b"none", b"/", b"", _MS_REC | _MS_PRIVATE, b"")


def make_read_only(place: str | int) -> None:
    """The mount at a place, or of a descriptor: nothing is written through it, it gives no privileges, and no devices.

    What is mounted within it stays as it is.
    """
    attributes = _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV
    if isinstance(place, int):
        _set_attributes(place, b"", _AT_EMPTY_PATH, attributes)
    else:
        _set_attributes(_AT_FDCWD, os.fsencode(place), 0, attributes)


def open_path(path: str, root: int | None = None, *, or_link: bool = False) -> int:
    """A descriptor of a path (O_PATH) below the folder `root`, or of the machine's; no part of it is a symbolic link.

    `or_link`: but for the last, which is opened itself. Mounted on itself, a link can't be replaced. Raises OSError,
    ELOOP where there is a link.
    """
    resolve = _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS | (0 if root is None else _RESOLVE_IN_ROOT)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if or_link else 0), 0, resolve)
    return call("openat2", _AT_FDCWD if root is None else root, os.fsencode(path), how, len(how))


def copy_tree(descriptor: int, *, read_only: bool, devices: bool = False) -> int:
    """A copy of what a descriptor names and of all that is mounted within it, as a descriptor, mounted nowhere yet.

    It gives no privileges, and `devices` on it work or don't.
    """
    tree = call("open_tree", descriptor, b"", _OPEN_TREE_CLONE | _AT_RECURSIVE | _AT_EMPTY_PATH | os.O_CLOEXEC)
    attributes = _ATTR_NOSUID | (_ATTR_RDONLY if read_only else 0) | (0 if devices else _ATTR_NODEV)
    _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def create_filesystem(kind: str, options: Mapping[str, str | None], *, devices: bool = False) -> int:
    """A new file system as a descriptor, mounted nowhere yet, of which nothing can be executed.

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


def attach(tree: int, place: int) -> None:
    """Mount a tree on what a descriptor names."""
    call("move_mount", tree, b"", place, b"", _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH)


def copy_trees(paths: Iterable[Path]) -> list[Tree]:
    """Copies of the paths' trees, read-only. They are taken first, by whoever may still reach the paths.

    Raises OSError where a path can't be opened.
    """
    devices = [Path("/dev", name) for name in DEVICES]
    plain = _ATTR_RDONLY | _ATTR_NOSUID
    return [(path, _copy_tree(path, plain | _ATTR_NODEV)) for path in paths] + [
        (path, _copy_tree(path, plain)) for path in devices if path.exists()
    ]


def build_root(trees: Iterable[Tree], links: Mapping[Path, str], *, scratch: Path) -> Path:
    """A root that holds the trees, the symbolic links and an empty folder `scratch`; returns where it is mounted.

    Only real folders are walked through on the way to a tree's place (`VisiblePaths.plan` sees to it): an absolute
    link in the new root would lead to the old one.
    """
    root = next(place for place in (Path("/tmp"), Path("/mnt"), Path("/proc")) if place.is_dir())
    folders = {path: stat.S_ISDIR(os.fstat(tree).st_mode) for path, tree in trees}
    make(_mount_tmpfs_call(root, "size=1m,nr_inodes=2048"))
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
    """The process's root becomes `root` and the old one is gone from its namespace, with all that was mounted there."""
    os.chdir(root)
    here = b"."
    call("pivot_root", here, here)  # the old root now lies over the new one, at the same place
    call("umount2", here, _MNT_DETACH)
    os.chdir("/")


def mount_scratch_call(place: Path, size: int, entries: int) -> Ready:
    """A call that mounts an empty folder in memory: `size` bytes, at most `entries` files, nothing of it executable."""
    return _mount_tmpfs_call(place, f"size={size},nr_inodes={entries},mode=0755")


def _mount_tmpfs_call(place: Path, options: str) -> Ready:
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    return prepare_call("mount", b"tmpfs", os.fsencode(place), b"tmpfs", flags, options.encode())


def _copy_tree(path: Path, attributes: int) -> int:
    name, empty = os.fsencode(path), b""
    tree = call("open_tree", _AT_FDCWD, name, _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC)
    _set_attributes(tree, empty, _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def _set_attributes(descriptor: int, path: bytes, flags: int, attributes: int) -> None:
    change = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", descriptor, path, flags, change, len(change))
