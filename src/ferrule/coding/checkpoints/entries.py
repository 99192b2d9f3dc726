"""What lies at a path: its kind, its exact mode and its content's id; and folders of those as git trees."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["UNREADABLE", "Entry", "decode_tree", "encode_tree", "is_folder", "is_unchanged"]

_ID_BYTES: Final = 32
_NO_OBJECT: Final = "0" * (2 * _ID_BYTES)
UNREADABLE: Final = "unreadable"
"""Stands for the id of what couldn't be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, link, folder or special file."""

    mode: int
    """As in `stat`: the kind with all permission bits."""
    oid: str = ""
    """The id of a file's content or of a link's target; in a tree also that of a folder. Empty for special files."""

    @property
    def kind(self) -> str:
        """`file`, `link`, `folder` or `special` (a pipe, a socket, a device)."""
        names = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}
        return names.get(stat.S_IFMT(self.mode), "special")

    @property
    def permissions(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.mode)


def is_folder(entry: Entry | None) -> bool:
    """Whether there is a folder."""
    return entry is not None and stat.S_ISDIR(entry.mode)


def is_unchanged(one: Entry | None, other: Entry | None) -> bool:
    """Whether two states of a path are the same; of a folder, its mode only."""
    if one is None or other is None:
        return one is other
    return one.mode == other.mode and (one.oid == other.oid or stat.S_ISDIR(one.mode))


def encode_tree(entries: Mapping[str, Entry]) -> bytes:
    """A folder's entries as the content of a git tree.

    Modes are written with all their bits, which git reads as the nearest one of its own: `100600` as `100644`.
    """
    found = [
        (name.encode("utf-8", "surrogateescape"), entry.mode, entry.oid if len(entry.oid) == 64 else _NO_OBJECT)
        for name, entry in entries.items()
    ]
    # Git sorts folders as if their names ended with a slash.
    found.sort(key=lambda each: each[0] + b"/" if stat.S_ISDIR(each[1]) else each[0])
    return b"".join(b"%o %b\0" % (mode, name) + bytes.fromhex(oid) for name, mode, oid in found)


def decode_tree(content: bytes) -> Iterator[tuple[str, Entry]]:
    """The names and entries that `encode_tree` wrote."""
    start = 0
    while start < len(content):
        space, end = content.index(b" ", start), content.index(b"\0", start)
        mode = int(content[start:space], 8)
        oid = content[end + 1 : end + 1 + _ID_BYTES].hex()
        if oid == _NO_OBJECT:
            oid = UNREADABLE if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else ""
        yield content[space + 1 : end].decode("utf-8", "surrogateescape"), Entry(mode, oid)
        start = end + 1 + _ID_BYTES
