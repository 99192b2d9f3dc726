"""Whether a repository's `.git`, which no checkpoint includes, is as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ferrule.sandbox.file_versions import make_version
from ferrule.sandbox.git.repositories import find_common_folder, resolve_repository

__all__ = ["is_committed_since", "read_git_state"]

_OWN = ("HEAD", "index", "logs/HEAD")
_SHARED = ("config", "packed-refs", "refs/stash")
"""What a linked working tree has in the folder of the repository that it belongs to."""


def read_git_state(workspace: str) -> str:
    """Describe the state of `.git`, so that two texts differ after a commit, a checkout, staging, a new branch or tag.

    Empty where the folder is no repository of its own.
    """
    repository = resolve_repository(os.path.join(workspace, ".git"))  # noqa: PTH118 - a text there
    common = find_common_folder(repository) or repository
    found = []
    for folder, places in ((repository, _OWN), (common, _SHARED)):
        for place in places:
            with suppress(OSError):
                found.append(_describe(place, Path(folder, place).stat()))
    return "\n".join([*found, *_describe_folders(common)])


def _describe_folders(repository: str) -> Iterator[str]:
    """Each folder of branches and tags: git replaces a file in it when it changes one."""
    for top in ("refs/heads", "refs/tags"):
        for folder, _, _ in os.walk(Path(repository, top)):
            with suppress(OSError):
                yield _describe(os.path.relpath(folder, repository), Path(folder).stat())


def _describe(name: str, status: os.stat_result) -> str:
    return f"{name} {' '.join(map(str, make_version(status)))}"


def is_committed_since(workspace: str, state: str) -> bool:
    """Whether there is a commit, a checkout or a new reference since a state was read, by whomever.

    Not of the index: `git status` writes it, too.
    """
    now = read_git_state(workspace)
    first, second = ([line for line in text.splitlines() if not line.startswith("index ")] for text in (state, now))
    return first != second
