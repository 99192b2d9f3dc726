"""Finds the links that a pattern matches, or that are below a folder, and that lead out of the workspace.

A link may be changed afterwards; what it then gives access to is up to the sandbox.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH114, PTH118

from __future__ import annotations

import os
import re
from contextlib import suppress
from fnmatch import translate

from ferrule.sandbox.visible_paths import is_within_any

__all__ = ["LinkSearch"]

_MAX_ENTRIES = 10_000
_MAX_FOUND = 16
_GLOB = re.compile(r"[*?\[\\]")


class _TooManyError(Exception):
    pass


class LinkSearch:
    """Searches for links that lead out of `workspace`; all searches together see a limited number of files."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._left = _MAX_ENTRIES
        self._found: dict[str, None] = {}
        self._seen: set[str] = set()
        self._roots: tuple[str, ...] = (workspace,)

    def match(self, folder: str, pattern: str) -> list[str] | None:
        """The real paths outside that a pattern in `folder` leads to; None if there are too many files to tell."""
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        self._found, self._roots = {}, (self._workspace,)
        try:
            self._match("/" if pattern.startswith("/") else folder, parts)
        except _TooManyError:
            return None
        return list(self._found)

    def walk(self, path: str) -> list[str] | None:
        """The real paths that links below `path` lead to, out of it; None if there are too many files to tell."""
        root = os.path.realpath(path)
        if root == "/":
            return []
        self._found, self._seen, self._roots = {}, set(), (self._workspace, root)
        try:
            self._walk(root)
        except _TooManyError:
            return None
        return list(self._found)

    def _match(self, folder: str, parts: list[str]) -> None:
        """Collect where the matches in `folder` lead; `parts` are those of the pattern that are left."""
        if not parts:
            return
        part, rest = parts[0], parts[1:]
        if not _GLOB.search(part):
            path = os.path.join(folder, part)
            self._count()
            if self._stays_inside(path, os.path.islink(path)):
                self._match(path, rest)
            return
        # A shell's classes of characters differ from Python's: such a pattern counts as one that matches everything.
        matches = re.compile(".*" if "[" in part or "\\" in part else translate(part), re.DOTALL).match
        for entry in self._list(folder):
            if not matches(entry.name):
                continue
            is_link = entry.is_symlink()
            if self._stays_inside(entry.path, is_link) and rest and (is_link or entry.is_dir()):
                self._match(entry.path, rest)

    def _walk(self, folder: str) -> None:
        if folder in self._seen:
            return
        self._seen.add(folder)
        for entry in self._list(folder):
            if entry.is_symlink():
                if self._stays_inside(entry.path, True):
                    self._walk(os.path.realpath(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                self._walk(entry.path)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        found = list[os.DirEntry[str]]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                self._count()
                found.append(entry)
        return found

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooManyError

    def _stays_inside(self, path: str, is_link: bool) -> bool:
        """Whether a path is inside of the workspace; where a link leads out, it is collected."""
        if not is_link:
            return True
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            real = "/"
        if is_within_any(real, self._roots):
            return True
        self._found[real] = None
        if len(self._found) > _MAX_FOUND:
            raise _TooManyError
        return False
