"""A root of one's own: an empty tmpfs, into which chosen paths of the host are bound, read-only.

The new mount calls (Linux 5.12, older than any Landlock) are used, since one `mount_setattr` makes a whole bound tree
read-only, with what is mounted below it, where a remount would leave the submounts writable.
"""

import os
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ferrule.sandbox.linux.syscalls import Ready, call, make, ready

__all__ = ["Tree", "build_root", "change_root", "make_private", "make_read_only", "mounting_scratch", "taken"]

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH, _AT_RECURSIVE, _OPEN_TREE_CLONE = 0x1000, 0x8000, 1
_MOVE_MOUNT_F_EMPTY_PATH: Final = 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")

Tree = tuple[Path, int]  # where it was, and a descriptor of a copy that is mounted nowhere yet


def make_private() -> None:
    """No mount made here reaches another namespace, and none from there appears here."""
    call("mount", b"none", b"/", b"", _MS_REC | _MS_PRIVATE, b"")


def make_read_only(place: str) -> None:
    """The mount at a place: nothing is written through it, it gives no privileges, devices on it don't work."""
    _set_attributes(_AT_FDCWD, os.fsencode(place), 0, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)


def taken(paths: Iterable[Path]) -> list[Tree]:
    """Copies of the paths' trees, read-only. They are taken first, by whoever may still reach the paths.

    Raises OSError where a path can't be opened.
    """
    devices = [Path("/dev", name) for name in _DEVICES]
    plain = _ATTR_RDONLY | _ATTR_NOSUID
    return [(path, _taken(path, plain | _ATTR_NODEV)) for path in paths] + [
        (path, _taken(path, plain)) for path in devices if path.exists()
    ]


def build_root(trees: Iterable[Tree], links: Mapping[Path, str], *, scratch: Path) -> Path:
    """A root that holds the trees, the symbolic links and an empty folder `scratch`; returns where it is mounted.

    Only real folders are walked through on the way to a tree's place (`View.plan` sees to it): an absolute link in
    the new root would lead to the old one.
    """
    root = next(place for place in (Path("/tmp"), Path("/mnt"), Path("/proc")) if place.is_dir())
    folders = {path: stat.S_ISDIR(os.fstat(tree).st_mode) for path, tree in trees}
    make(_mounting_tmpfs(root, "size=1m,nr_inodes=2048"))
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


def change_root(root: Path) -> None:
    """The process's root becomes `root` and the old one is gone from its namespace, with all that was mounted there."""
    os.chdir(root)
    here = b"."
    call("pivot_root", here, here)  # the old root now lies over the new one, at the same place
    call("umount2", here, _MNT_DETACH)
    os.chdir("/")


def mounting_scratch(place: Path, size: int, entries: int) -> Ready:
    """A call that mounts an empty folder in memory: `size` bytes, at most `entries` files, nothing of it executable."""
    return _mounting_tmpfs(place, f"size={size},nr_inodes={entries},mode=0755")


def _mounting_tmpfs(place: Path, options: str) -> Ready:
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    return ready("mount", b"tmpfs", os.fsencode(place), b"tmpfs", flags, options.encode())


def _taken(path: Path, attributes: int) -> int:
    name, empty = os.fsencode(path), b""
    tree = call("open_tree", _AT_FDCWD, name, _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC)
    _set_attributes(tree, empty, _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return tree


def _set_attributes(descriptor: int, path: bytes, flags: int, attributes: int) -> None:
    change = struct.pack("=QQQQ", attributes, 0, 0, 0)
    call("mount_setattr", descriptor, path, flags, change, len(change))
