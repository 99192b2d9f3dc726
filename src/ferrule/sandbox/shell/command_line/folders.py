"""The folders that a command line may be in at some point, after `cd`."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from ferrule.sandbox.paths import is_within

__all__ = ["Folders"]

_MAX_FOLDERS = 8


@dataclass(frozen=True, slots=True)
class Folders:
    """The absolute paths of the folders that the shell may be in; None if that isn't known.

    `cd` may fail, so after `cd sub; …` it is one of two.
    """

    paths: tuple[str, ...] | None

    def move(self, target: str | None) -> Folders:
        """The folders after a successful `cd target`; None is a target that isn't known."""
        if not target or target.startswith("-"):
            return Folders(None)
        if target.startswith("/"):
            return Folders((target,)) if ".." not in target.split("/") else Folders(None)
        if self.paths is None:
            return self
        parts = [part for part in target.split("/") if part not in ("", ".")]
        ups = 0
        while ups < len(parts) and parts[ups] == "..":
            ups += 1
        # After a link, `..` is another folder for `cd` than for the system.
        if ".." in parts[ups:] or (ups and len(self.paths) > 1):
            return Folders(None)
        found = []
        for path in self.paths:
            above = path.split("/")[: -ups or None]
            found.append(posixpath.join("/".join(above) or "/", *parts[ups:]))
        return Folders(tuple(found))

    def join(self, other: Folders) -> Folders:
        """The folders of both."""
        if self.paths is None or other.paths is None:
            return Folders(None)
        paths = tuple(dict.fromkeys((*self.paths, *other.paths)))
        return Folders(paths) if len(paths) <= _MAX_FOLDERS else Folders(None)

    def locate(self, path: str) -> tuple[str, ...]:
        """The absolute paths that `path` may stand for; the root if that isn't known."""
        if path.startswith("/"):
            return (path,)
        if self.paths is None:
            return ("/",)
        return tuple(folder if path in ("", ".") else posixpath.join(folder, path) for folder in self.paths)

    def are_within(self, workspace: str) -> bool:
        """Whether all are the workspace or below it, by their names."""
        return self.paths is not None and all(is_within(path, workspace) for path in self.paths)
