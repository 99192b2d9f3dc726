"""The tool files of a project: every `*_tool.py` below `.ferrule/tools`, loaded only as they were trusted.

Loading a file runs its code in this process, so a person must have trusted it: all files of the folder by their
content, since any of them may be imported by the others. What they import from elsewhere is not covered.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferrule.errors import RegistryError, SettingsError
from ferrule.tools.discovery import is_tool_file
from ferrule.tools.registry import ToolRegistry

FOLDER = Path(".ferrule", "tools")
MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of the files together: all are read each time."""


@dataclass(frozen=True, slots=True)
class ToolFiles:
    """The files below a project's `.ferrule/tools`, as they were when they were found."""

    folder: Path
    names: tuple[str, ...]
    """The `*_tool.py` files, relative to `folder`."""
    digest: str
    """SHA-256 of the names and contents of all files of the folder, in hexadecimal."""

    def load(self) -> ToolRegistry:
        """Load their tools, with the origin `project`; what can't be used is among the `problems` of the registry.

        Raises `RegistryError` if they have changed since they were found.
        """
        if find_tool_files(self.folder.parents[1]) != self:
            raise RegistryError(f"{self.folder} has changed since it was trusted; look at it again")
        with _without_bytecode():
            return ToolRegistry.discover(self.folder)


def find_tool_files(workspace: Path) -> ToolFiles | None:
    """Find the tool files of a project, without running any; None if there are none.

    Raises `SettingsError` for what can't be trusted by its content: a link, a device, more than `MOST_BYTES`.
    """
    folder = workspace.resolve() / FOLDER
    for part in (folder.parent, folder):
        if part.is_symlink():
            raise SettingsError(f"{part} is a link; tools are loaded only from a folder of the project itself")
    if not folder.is_dir():
        return None
    paths = sorted(_list_files(folder))
    names = tuple(str(path.relative_to(folder)) for path in paths if is_tool_file(path.name))
    return ToolFiles(folder, names, _hash_files(folder, paths)) if names else None


def _list_files(folder: Path) -> Iterator[Path]:
    """List all files, with those of hidden and `__pycache__` folders, which Python may read too."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            mode = Path(parent, name).lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "not a regular file"
                raise SettingsError(f"{Path(parent, name)} is {kind}, so its content can't be trusted; use a file")
        yield from (Path(parent, name) for name in files)


def _hash_files(folder: Path, paths: list[Path]) -> str:
    whole, size = hashlib.sha256(), 0
    for path in paths:
        size += path.stat().st_size
        if size > MOST_BYTES:
            raise SettingsError(f"{folder} has more than {MOST_BYTES >> 20} MB of files; keep data elsewhere")
        content = hashlib.sha256(path.read_bytes()).digest()
        name = os.fsencode(path.relative_to(folder))
        whole.update(len(name).to_bytes(4, "big") + name + content)
    return whole.hexdigest()


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Keep Python from writing `__pycache__` into the folder, which would change what was trusted."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
