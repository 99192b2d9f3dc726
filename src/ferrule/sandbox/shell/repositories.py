"""What belongs to a git repository, so that it can be protected, or given to one command."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH113, PTH118, PTH120, PTH123

from __future__ import annotations

import os
from pathlib import Path

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.places import is_within

__all__ = ["given_for", "locked_parts", "protected_of"]

_POINTER = "gitdir: "
_LONGEST_POINTER = 8192


def protected_of(git: str, workspace: str) -> list[str]:
    """What must be read-only for a `.git`, be it a folder or the file of a worktree or submodule."""
    pointed = _pointed_at(git)
    return [git, *(each for each in (pointed, _common(pointed)) if each and is_within(each, workspace))]


def given_for(git: str) -> list[str]:
    """What a command may write that was given `.git`: for a worktree also its repository, outside of the workspace.

    The file of a worktree is believed only where the repository names it in return, as git itself checks: a command
    could have written `gitdir: /anything`. Raises `SandboxUnavailable` otherwise.
    """
    pointed = _pointed_at(git)
    if pointed is None:
        return [git]
    try:
        named = Path(pointed, "gitdir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        named = ""
    common = _common(pointed)
    if (
        common is None
        or os.path.realpath(named) != os.path.realpath(git)
        or not is_within(pointed, f"{common}/worktrees")
    ):
        raise SandboxUnavailable(
            f"{git} points at {pointed}, which doesn't name it as its worktree: run the command in the repository "
            "itself, or repair the link with `git worktree repair`"
        )
    return [git, common]


def locked_parts(git: str) -> list[str]:
    """What stays read-only of a `.git` that was given: git runs what stands there, and a commit doesn't write it."""
    return [path for name in ("config", "hooks") if os.path.lexists(path := os.path.join(git, name))]


def _pointed_at(git: str) -> str | None:
    """The folder that a `.git` file names, resolved; None for a folder or a file that isn't one of git's."""
    if not os.path.isfile(git):
        return None
    try:
        with open(git, encoding="utf-8") as file:
            text = file.read(_LONGEST_POINTER)
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(_POINTER):
        return None
    return os.path.realpath(os.path.join(os.path.dirname(git), text.removeprefix(_POINTER).strip()))


def _common(folder: str | None) -> str | None:
    """The repository that a worktree's folder belongs to."""
    if folder is None:
        return None
    try:
        text = Path(folder, "commondir").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return os.path.realpath(os.path.join(folder, text.strip()))
