"""Tells whether git, asked to read a repository, would run programs that its settings name."""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

from ferrule.sandbox.paths import is_within
from ferrule.sandbox.shell.git_repositories import (
    REDIRECT,
    SETTINGS_FILES,
    list_settings_files,
    looks_like_repository,
)
from ferrule.sandbox.shell.git_settings import Setting, is_harmless, read_settings

__all__ = ["may_become_repository", "may_run_settings"]

_NAMES = frozenset({".git", "HEAD", "objects", "refs", REDIRECT, *SETTINGS_FILES})
_RUN_BY_READING = re.compile(
    r"|core\.(?:fsmonitor|worktree)|diff\.(?:external|\.command|\.textconv)|filter\..*|include(?:if)?\..*|gpg\..*program"
)


def may_run_settings(folder: str, workspace: str) -> bool | None:
    """Whether the settings of the repository that `folder` is in may run a program; None for the workspace's own.

    The workspace's own settings, which no command can write, count only if they name what a reading command runs. In
    other repositories, all that isn't known to be harmless does.
    """
    found = _find_repository(os.path.realpath(folder), workspace)
    if found is None:
        return False
    is_own = found == os.path.join(workspace, ".git")
    for path in list_settings_files(found):
        try:
            status = os.lstat(path)
        except OSError:
            continue
        version = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if _has_danger(path, workspace, is_own, *version):
            return None if is_own else True
    return False


def may_become_repository(written: Iterable[str]) -> bool:
    """Whether writing these paths may make a repository, or change the settings of one."""
    return any(not _NAMES.isdisjoint(path.split("/")) for path in written)


def _find_repository(folder: str, workspace: str) -> str | None:
    """The `.git`, or the folder itself, that git takes for the repository which `folder`, in the workspace, is in."""
    while is_within(folder, workspace):
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
        if looks_like_repository(folder):
            return folder
        folder = os.path.dirname(folder)
    return None


@lru_cache(maxsize=256)
def _has_danger(path: str, workspace: str, is_own: bool, *_version: int) -> bool:
    settings = read_settings(path) or ()
    return any(
        not is_harmless(one, os.path.dirname(path), workspace)
        and not (is_own and (not _RUN_BY_READING.fullmatch(one.name) or _is_large_file_filter(one)))
        for one in settings
    )


def _is_large_file_filter(setting: Setting) -> bool:
    return setting.name.startswith("filter..") and re.match(r"git-lfs |true$|false$", setting.value or "") is not None
