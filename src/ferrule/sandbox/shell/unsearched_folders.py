"""Folders that can't be searched after a command for what it left there: their modes prevent it, or they hold too many.

A program that starts in such a folder, such as git, needs no permission to list it.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH101, PTH116

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from ferrule.sandbox.git.after_command import show_path
from ferrule.sandbox.open_beneath import PathMoved, open_folder_beneath
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.shell.workspace_scan import can_search

__all__ = ["describe_unfinished", "is_shut", "reopen_folder"]

_ADVICE: Final = "look at it before you use git there"


def is_shut(path: str) -> bool:
    """Whether the mode of a folder prevents searching it."""
    try:
        return not can_search(path, os.stat(path))
    except OSError:
        return False


def describe_unfinished(path: str, roots: Sequence[str]) -> str:
    """A sentence on a folder whose search was abandoned."""
    return f"{show_path(path, roots)} holds too many folders to be searched for what the command left there: {_ADVICE}"


def reopen_folder(path: str, roots: Sequence[str]) -> str:
    """Give the owner access to a folder that a command has shut; returns a sentence on it."""
    shown = f"{show_path(path, roots)} couldn't be listed after the command"
    root = next(each for each in roots if is_within(path, each))
    try:
        if path == root:
            _allow_owner(path, None)
        else:
            with open_folder_beneath(root, path) as opened:
                _allow_owner(opened.name, opened.descriptor)
    except (OSError, PathMoved) as error:
        return f"{shown}, nor can its mode be changed ({error}): {_ADVICE}"
    return f"{shown}: its owner was given access again, to search it for what git would run"


def _allow_owner(name: str, folder: int | None) -> None:
    """Follows no link: another command may be running, and put one there."""
    if os.chmod in os.supports_follow_symlinks:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        os.chmod(name, stat.S_IMODE(status.st_mode) | stat.S_IRWXU, dir_fd=folder, follow_symlinks=False)
        return
    # Linux changes no mode of what may be a link; a descriptor leads to what was opened.
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(os.fstat(descriptor).st_mode) | stat.S_IRWXU)
    finally:
        os.close(descriptor)
