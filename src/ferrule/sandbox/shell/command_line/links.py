"""Finds the links that a pattern matches, or that are below a folder, and that lead out of the workspace.

It also tells whether all names below a folder are plain ones. What is there may be changed afterwards; what a link then
gives access to is up to the sandbox.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH114, PTH118

from __future__ import annotations

import os
import re
from fnmatch import translate

from ferrule.sandbox.paths import is_within_any

__all__ = ["LinkSearch", "are_plain_names", "begin_plainly"]

_MAX_ENTRIES = 50_000
_MAX_FOUND = 16
_GLOB = re.compile(r"[*?\[\\]")


_SPECIAL_NAME = re.compile(r"[\s\x01-\x1f\x7f'\"\\*?\[\ud800-\udfff]|(?:\A|[\0/])-")
"""What a shell, `xargs` or a program takes for more than a part of a name; names are separated by NUL."""
_SPECIAL_FIRST = re.compile(r"(?:\A|\0)[-+@]")


def are_plain_names(names: str) -> bool:
    """Whether names or paths, separated by NUL, are taken for nothing but names where they are separated by blanks."""
    return not _SPECIAL_NAME.search(names)


def begin_plainly(names: str) -> bool:
    """Whether none of these names, separated by NUL, is taken for an option, or for what `+10` and `@file` mean."""
    return not _SPECIAL_FIRST.search(names)


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
        self._walked: dict[str, list[str] | None] = {}
        self._has_plain_names = True
        self._with_plain_names: set[str] = set()

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
        if root not in self._walked:
            self._found, self._seen, self._roots = {}, set(), (self._workspace, root)
            self._has_plain_names = True
            try:
                self._walk(root)
            except _TooManyError:
                self._walked[root] = None
            else:
                self._walked[root] = list(self._found)
                if self._has_plain_names:
                    self._with_plain_names.add(root)
        return self._walked[root]

    def has_plain_names(self, path: str) -> bool:
        """Whether all names below `path` are plain; False if there are too many files to tell."""
        self.walk(path)
        return os.path.realpath(path) in self._with_plain_names

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
            if self._has_plain_names and not are_plain_names(entry.name):
                self._has_plain_names = False
            if entry.is_symlink():
                if self._stays_inside(entry.path, True):
                    self._walk(os.path.realpath(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                self._walk(entry.path)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        found = list[os.DirEntry[str]]()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._count()
                    found.append(entry)
        except OSError:
            self._has_plain_names = False  # what it has isn't known
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
