"""Absolute paths as strings: which lies within which, and where links lead.

Links are followed one by one: whoever can replace one on the way to a file decides which file is used.
"""

# Part of programs that should start fast, so paths are strings.
# ruff: noqa: PTH115, PTH119, PTH120

import os
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["LinkFollower", "follow_links", "is_within", "is_within_any", "list_ancestors"]

_MAX_LINKS: Final = 40  # in one path, like the kernel


def is_within(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder or below it; compares strings, so both must be resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_within_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is in one of the folders, as in `is_within`."""
    return any(is_within(path, each) for each in folders)


def list_ancestors(path: str) -> Iterator[str]:
    """The folders above an absolute path, nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


class LinkFollower:
    """Follows many paths at one moment; a folder on the way is looked at only once."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[str, ...]] = {"/": ("/",), "//": ("/",)}

    def follow(self, path: str) -> tuple[str, ...]:
        """The links on the way to an absolute path, each in its real folder, then the real path, existing or not.

        Where links lead in a circle, the real path is one of them.
        """
        folder, name = os.path.split(path)
        left = []
        while (way := self._folders.get(folder)) is None:
            left.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(left):
            way = self._folders[folder] = (*way[:-1], *_follow(way[-1], (os.path.basename(folder),)))
        return (*way[:-1], *_follow(way[-1], (name,)))


def follow_links(path: str) -> tuple[str, ...]:
    """What `LinkFollower.follow` returns for a single path."""
    return _follow("/", path.split("/"))


def _follow(real: str, parts: Iterable[str]) -> tuple[str, ...]:
    links: list[str] = []
    left = list(parts)[::-1]
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = os.path.dirname(real)
            continue
        place = f"{real.rstrip('/')}/{part}"
        try:
            target = os.readlink(place)
        except OSError:
            real = place
            continue
        if len(links) == _MAX_LINKS:
            return (*links, place)
        links.append(place)
        real = "/" if target.startswith("/") else real
        left += target.split("/")[::-1]
    return (*links, real)
