"""Whether a repository's `.git`, which no checkpoint includes, is as it was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["is_committed_since", "read_git_state"]

_PLACES = ("HEAD", "index", "config", "packed-refs", "logs/HEAD", "refs/heads", "refs/tags", "refs/stash")


def read_git_state(workspace: str) -> str:
    """Describe the state of `.git`, so that two texts differ after a commit, a checkout, staging, a new branch or tag.

    Empty where the folder is no repository of its own.
    """
    git = Path(workspace, ".git")
    if git.is_file():  # of a linked working tree
        with suppress(OSError, UnicodeDecodeError):
            git = Path(workspace, git.read_text(encoding="utf-8").partition("gitdir:")[2].strip())
    found = []
    for place in _PLACES:
        with suppress(OSError):
            status = (git / place).stat()
            found.append(f"{place} {status.st_ino} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(found)


def is_committed_since(workspace: str, state: str) -> bool:
    """Whether there is a commit, a checkout or a new reference since a state was read, by whomever.

    Not of the index: `git status` writes it, too.
    """
    now = read_git_state(workspace)
    first, second = ([line for line in text.splitlines() if not line.startswith("index ")] for text in (state, now))
    return first != second
