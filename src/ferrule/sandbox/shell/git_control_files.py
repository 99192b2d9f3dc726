"""Finds what git runs or obeys in the workspace, by every name that leads to it.

Hooks, settings and attributes are in `.git`, which is protected. A link, a pointer, a setting or a hard link makes git
use a file elsewhere: protected are that file and each link on the way to it. What doesn't exist yet is listed, so that
whatever a command creates there can be disarmed (`git_changes`).
"""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH111, PTH113, PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ferrule.sandbox.file_versions import Inode, cache_by_version
from ferrule.sandbox.paths import LinkFollower, is_within, is_within_any, list_ancestors
from ferrule.sandbox.shell.git_repositories import (
    LOCKED,
    REDIRECT,
    SETTINGS_FILES,
    list_parts,
    read_pointer_name,
    read_redirect,
)
from ferrule.sandbox.shell.git_settings import NamedPaths, find_named_paths, read_settings

__all__ = ["ControlFiles", "MissingFile", "find_enclosing_repository", "list_user_settings_files"]

_HOOKS: Final = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit"),
    *("p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge"),
    *("post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit"),
    *("pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout"),
    *("reference-transaction", "sendemail-validate", "update"),
)
"""The hooks of git 2.54 (githooks(5))."""


_NO_HOOKS: Final[tuple[tuple[str, ...], tuple[Inode, ...]]] = (), ()


@dataclass(frozen=True, slots=True)
class MissingFile:
    """What git would run or obey as soon as it exists."""

    name: str
    """The path by which git uses it."""
    way: tuple[str, ...]
    """The links on the way, then the real path."""
    may_be_reserved: bool
    """Whether an empty folder may stand for it: git takes one for a hook that it can't run, or for broken settings."""


class ControlFiles:
    """Collects what git runs or obeys in `roots`, except in the `.git` folders themselves."""

    def __init__(self, roots: Sequence[str], follower: LinkFollower) -> None:
        self.protected: list[str] = []
        """Existing files and folders, and links that lead to some."""
        self.missing: list[MissingFile] = []
        self.missing_programs: list[str] = []
        """Programs and scripts that settings name."""
        self.repositories: list[str] = []
        """Folders of repositories that a pointer or a link leads to, with the links on the way."""
        self.linked: set[Inode] = set()
        """Files that have other names too (hard links)."""
        self._roots, self._follower = roots, follower
        self._user_files = [path for path in list_user_settings_files() if os.path.exists(path)]
        for path in self._user_files:
            self._add(path)

    def add_repository(self, git: str) -> None:
        """Add what the repository uses that a file, folder or link named `.git` leads to."""
        if os.path.isfile(git):
            self._add(git)  # which may be a link to the file that names the repository
        name = read_pointer_name(git)
        folder = git if name is None else self._add_pointed_repository(name)
        common = folder
        if REDIRECT in list_parts(folder).names and (redirect := read_redirect(folder)) is not None:
            common = self._add_pointed_repository(redirect)
        files = list(self._user_files)
        for each in dict.fromkeys((folder, common)):
            self.add_parts(each)
            files += _list_settings_files(each)
        self._add_named_by(files, os.path.dirname(git))

    def add_bare_repository(self, folder: str) -> None:
        """Add what the settings of a repository name that isn't called `.git`; `git_changes` checks what is in it."""
        files = _list_settings_files(folder)
        settings = (setting for file in files for setting in read_settings(file) or ())
        trees = (setting.value for setting in settings if setting.name == "core.worktree" and setting.value)
        for tree in {folder, *(os.path.realpath(os.path.join(folder, each)) for each in trees)}:
            self._add_named_by(files, tree)

    def add_parts(self, folder: str) -> None:
        """Add what a repository's own hooks, settings and attributes lead to."""
        links = list_parts(folder).links
        for part in LOCKED:
            first, _, rest = part.partition("/")
            if first in links or (rest and rest in list_parts(os.path.join(folder, first)).links):
                self._add(os.path.join(folder, part))
        self._add_hooks(os.path.join(folder, "hooks"))

    def _add_pointed_repository(self, name: str) -> str:
        """Add a repository that a `.git` link or file, or a worktree's folder, leads to; returns its real folder.

        Protected is only a real one: otherwise a command could make any folder read-only by pointing to it.
        """
        *links, folder = self._follower.follow(name)
        self.repositories += [link for link in links if is_within_any(link, self._roots)]
        if self._can_protect(folder):
            if "HEAD" in list_parts(folder).names:
                self.repositories.append(folder)
            else:
                for part in LOCKED:
                    self._add(os.path.join(folder, part), only_missing=True)
        return folder

    def _add_named_by(self, files: Iterable[str], tree: str) -> None:
        for file in files:
            for named in find_named_paths(file, tree):
                self._add_named(named)

    def _add_named(self, named: NamedPaths) -> None:
        self.linked.update(named.linked)
        for path in named.settings:
            self._add(path)
        for path in named.hooks:
            self._add(path, may_be_reserved=True)
            self._add_hooks(path)
        for path in filter(os.path.isfile, named.words):
            self._add(path)
        missing = (self._follower.follow(path)[-1] for path in named.programs if not os.path.lexists(path))
        self.missing_programs += [path for path in missing if is_within_any(path, self._roots)]

    def _add_hooks(self, folder: str) -> None:
        """Add the hooks in a folder that lead elsewhere; all, if it holds so much else that it can't be protected."""
        real = self._follower.follow(folder)[-1]
        if any(is_within(root, real) for root in self._roots):
            for name in _HOOKS:
                self._add(os.path.join(real, name))
            return
        links, linked = _list_linked_hooks(real)
        self.linked.update(linked)
        for name in links:
            self._add(os.path.join(real, name))

    def list_missing(self, protected: Iterable[str]) -> list[MissingFile]:
        """What is missing, but not in a protected folder."""
        folders = frozenset(protected)
        return [each for each in self.missing if folders.isdisjoint(list_ancestors(each.way[-1]))]

    def _add(self, name: str, *, may_be_reserved: bool = False, only_missing: bool = False) -> None:
        way = self._follower.follow(name)
        if not only_missing:
            self.protected += [link for link in way[:-1] if is_within_any(link, self._roots)]
        if not self._can_protect(way[-1]):
            return
        if not os.path.lexists(way[-1]):
            self.missing.append(MissingFile(name, way, may_be_reserved))
        elif not only_missing:
            self.protected.append(way[-1])

    def _can_protect(self, path: str) -> bool:
        """Whether a path is in a root, and doesn't hold one."""
        return is_within_any(path, self._roots) and not any(is_within(root, path) for root in self._roots)


def _list_settings_files(folder: str) -> list[str]:
    names = list_parts(folder).names
    return [os.path.join(folder, name) for name in SETTINGS_FILES if name in names]


@cache_by_version(_NO_HOOKS)
def _list_linked_hooks(folder: str) -> tuple[tuple[str, ...], tuple[Inode, ...]]:
    """The hooks in a folder that are links, and those that have other names too."""
    links, linked = list[str](), list[Inode]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if "." in entry.name:
                continue  # no hook: an example
            if entry.is_symlink():
                links.append(entry.name)
            elif entry.is_file() and (status := entry.stat()).st_nlink > 1:
                linked.append((status.st_dev, status.st_ino))
    return tuple(links), tuple(linked)


def find_enclosing_repository(workspace: str) -> str | None:
    """The `.git` of the repository that a workspace without one of its own is in."""
    for folder in list_ancestors(workspace):
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
    return None


def list_user_settings_files() -> Iterable[str]:
    """The files, existing or not, of settings that the user's git reads in each repository."""
    environment = os.environ
    if "GIT_CONFIG_NOSYSTEM" not in environment:
        yield environment.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    if "GIT_CONFIG_GLOBAL" in environment:
        yield environment["GIT_CONFIG_GLOBAL"]
        return
    home = os.path.expanduser("~")
    yield os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    yield os.path.join(home, ".gitconfig")
