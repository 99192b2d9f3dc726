"""Finds what git runs or obeys in the workspace, by every name that leads to it.

Hooks, settings and attributes are in `.git`, which is protected. A link, a pointer, a setting or a hard link makes git
use a file elsewhere: protected are that file and each link on the way to it. What doesn't exist yet is listed, so that
whatever a command creates there can be disarmed (`after_command`).
"""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH110, PTH111, PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ferrule.sandbox.file_versions import Inode, cache_by_version
from ferrule.sandbox.git.repositories import (
    LOCKED,
    REDIRECT,
    SETTINGS_FILES,
    list_parts,
    list_user_settings_files,
    read_pointer_name,
    read_redirect,
)
from ferrule.sandbox.git.settings import read_settings
from ferrule.sandbox.paths import LinkFollower, is_within, is_within_any, list_ancestors

__all__ = ["ControlFiles", "MissingFile", "NamedPaths", "find_named_paths"]

_HOOKS: Final = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit"),
    *("p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge"),
    *("post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit"),
    *("pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout"),
    *("reference-transaction", "sendemail-validate", "update"),
)
"""The hooks of git 2.54 (githooks(5))."""
_MAX_INCLUDED: Final = 100
_LONGEST_LINE: Final = 10_000
# Settings whose value is a command line, of which each word that is a file of the workspace is run or read as code.
_COMMANDS: Final = re.compile(
    r"core\.(fsmonitor|sshcommand|gitproxy|editor|pager|askpass|alternaterefscommand)|sequence\.editor|credential\..*"
    r"|gpg\..*(program|command)|(filter|diff|merge)\.\..*|(diff|interactive|pager|sendemail|instaweb|lfs)\..*"
    r"|(difftool|mergetool|guitool|browser|man|trailer|tar|hook)\.\..*|remote\.\.(uploadpack|receivepack)"
    r"|uploadpack\.packobjectshook|imap\.tunnel|submodule\.\.update"
)
_WORDS: Final = re.compile(r"[\w./@+-]+")
_INTERPRETERS: Final = frozenset({"sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"})


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
        """Add what the settings of a repository name that isn't called `.git`; `after_command` checks what is in it."""
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


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """What a file of settings names, as git would open it: links aren't resolved, and most words aren't files."""

    settings: tuple[str, ...] = ()
    """Files of further settings, and of attributes."""
    hooks: tuple[str, ...] = ()
    """Folders of hooks."""
    words: tuple[str, ...] = ()
    """The words of command lines as paths."""
    programs: tuple[str, ...] = ()
    """Those of them that a command line would run as a program or script of the working tree."""
    linked: tuple[Inode, ...] = ()
    """The file itself, if it has other names too (hard links)."""


_NOTHING: tuple[NamedPaths, tuple[str, ...]] = NamedPaths(), ()


def find_named_paths(file: str, tree: str) -> list[NamedPaths]:
    """What a file of settings, and each that it includes, names; `tree` is the working tree."""
    found: dict[str, NamedPaths] = {}
    waiting = [file]
    while waiting and len(found) < _MAX_INCLUDED:
        path = waiting.pop()
        if path not in found:
            named, included = _find_named_paths(path, tree)
            found[path] = named
            waiting += included
    return list(found.values())


@cache_by_version(_NOTHING)
def _find_named_paths(file: str, tree: str) -> tuple[NamedPaths, tuple[str, ...]]:
    """What one file names, and the files that it includes, whatever the condition."""
    settings, hooks, words, programs, included = (list[str]() for _ in range(5))
    for setting in read_settings(file, or_link=True) or ():
        value = os.path.expanduser(setting.value or "")
        if setting.name in ("include.path", "includeif..path") and value:
            included.append(os.path.join(os.path.dirname(file), value))
        elif setting.name == "core.attributesfile" and value:
            settings.append(os.path.join(tree, value))
        elif setting.name == "core.hookspath" and value:
            hooks.append(os.path.join(tree, value))
        elif setting.name == "init.templatedir" and value:
            hooks.append(os.path.join(tree, value, "hooks"))
            settings.append(os.path.join(tree, value, "config"))
        elif _COMMANDS.fullmatch(setting.name) or (setting.name.startswith("alias.") and value.startswith("!")):
            found = _split_words(value)
            words += [os.path.join(tree, word) for word in _list_words(value, found)]
            programs += [os.path.join(tree, word) for word in _find_program(found)]
    named = NamedPaths((*settings, *included), tuple(hooks), tuple(words), tuple(programs), _find_linked(file))
    return named, tuple(included)


def _find_linked(file: str) -> tuple[Inode, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return ((status.st_dev, status.st_ino),) if status.st_nlink > 1 else ()


def _find_program(words: list[str]) -> list[str]:
    """The word of a command line that names a file to run, at its beginning or after an interpreter."""
    if words[:1] and "/" in words[0]:
        return words[:1]
    is_script = len(words) > 1 and words[0] in _INTERPRETERS and not words[1].startswith("-")
    return words[1:2] if is_script else []


def _list_words(value: str, words: list[str]) -> dict[str, None]:
    """The words of a command line, and what looks like a path in a script in it: `sh -c '. "$top"/tools/x.sh'`."""
    parts = [part for each in _WORDS.findall(value) if "/" in (part := each.rstrip("./"))]
    return dict.fromkeys((*words, *parts, *(part.lstrip("/") for part in parts if part.strip("/"))))


def _split_words(value: str) -> list[str]:
    # `shlex` takes quadratic time for a long word.
    if len(value) > _LONGEST_LINE:
        return [word.strip("'\"") for word in value.lstrip("!").split()]
    try:
        return shlex.split(value.lstrip("!"))
    except ValueError:
        return value.split()
