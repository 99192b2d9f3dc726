"""What a working tree's repository is at, read without running git: its branch, and whether its `.git` has changed."""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ferrule.sandbox.file_versions import make_version
from ferrule.sandbox.git.repositories import find_common_folder, resolve_repository
from ferrule.sandbox.regular_files import open_regular_file

__all__ = ["find_repository", "is_committed_since", "read_branch", "read_git_state"]

_OWN = ("HEAD", "index", "logs/HEAD")
_SHARED = ("config", "packed-refs", "refs/stash")
"""What a linked working tree has in the folder of the repository that it belongs to."""
_LONGEST_HEAD = 4096
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def find_repository(folder: Path) -> Path | None:
    """Find the root of the git repository that a folder belongs to; None if there is none."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def read_branch(folder: Path) -> str | None:
    """Read the current branch of the folder's repository without running git; None if there is none."""
    repository = find_repository(folder)
    if repository is None:
        return None
    try:
        with open_regular_file(str(Path(resolve_repository(str(repository / ".git")), "HEAD"))) as file:
            head = "" if file is None else os.read(file, _LONGEST_HEAD).decode().strip()
    except (OSError, UnicodeDecodeError):
        return None
    if head.startswith("ref:"):
        return head.removeprefix("ref: refs/heads/")
    # A link may lead anywhere: what isn't a commit's name may be a secret.
    return f"detached at {head[:12]}" if _COMMIT.fullmatch(head) else None


def read_git_state(workspace: str) -> str:
    """Describe the state of `.git`, so that two texts differ after a commit, a checkout, staging, a new branch or tag.

    Empty where the folder is no repository of its own.
    """
    repository = resolve_repository(os.path.join(workspace, ".git"))
    common = find_common_folder(repository) or repository
    found = []
    for folder, places in ((repository, _OWN), (common, _SHARED)):
        for place in places:
            with suppress(OSError):
                found.append(_describe(place, os.stat(os.path.join(folder, place))))
    return "\n".join([*found, *_describe_folders(common)])


def _describe_folders(repository: str) -> Iterator[str]:
    """Each folder of branches and tags: git replaces a file in it when it changes one."""
    for top in ("refs/heads", "refs/tags"):
        for folder, _, _ in os.walk(os.path.join(repository, top)):
            with suppress(OSError):
                yield _describe(os.path.relpath(folder, repository), os.stat(folder))


def _describe(name: str, status: os.stat_result) -> str:
    return f"{name} {' '.join(map(str, make_version(status)))}"


def is_committed_since(workspace: str, state: str) -> bool:
    """Whether there is a commit, a checkout or a new reference since a state was read, by whomever.

    Not of the index: `git status` writes it, too.
    """
    now = read_git_state(workspace)
    first, second = ([line for line in text.splitlines() if not line.startswith("index ")] for text in (state, now))
    return first != second
