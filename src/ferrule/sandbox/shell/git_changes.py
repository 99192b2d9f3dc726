"""Finds what a command left in git repositories that would run programs outside of the sandbox, and disarms it.

Existing repositories are read-only, or their settings and hooks are (`git_repositories.find_locked_parts`). Checked
here, when the command and all its processes have ended, is what a mount can't prevent: new repositories, and in a
writable `.git` new submodules and worktrees, links that lead out of it, and the next steps of a rebase.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH113, PTH114, PTH115, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

from ferrule._util.terminal_text import escape_line
from ferrule.sandbox.open_beneath import PathMoved, open_folder_beneath
from ferrule.sandbox.regular_files import open_regular_file
from ferrule.sandbox.shell.git_repositories import (
    REDIRECT,
    SETTINGS_FILES,
    find_common_folder,
    list_submodules,
    resolve_repository,
)
from ferrule.sandbox.shell.git_settings import Setting, is_harmless, read_settings
from ferrule.sandbox.visible_paths import is_within, is_within_any

__all__ = ["RepositoryState", "check_repositories", "record_repositories"]

_PARTS = ("HEAD", "hooks", REDIRECT, *SETTINGS_FILES)
_STEPS = "rebase-merge/git-rebase-todo"
_STEP = re.compile(rb"^[ \t]*(?:exec|x)[ \t]+(.+)$", re.MULTILINE)
_MAX_BYTES: Final = 1024 * 1024
_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True, order=True)
class _Danger:
    """A file or link by which a repository would run programs or take settings, and what it does."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The repositories of a workspace before a command."""

    known: frozenset[str]
    """`.git` files and folders, bare repositories and, in writable ones, submodules and worktrees."""
    granted: tuple[str, ...]
    """The `.git` folders that the command may write, existing or not."""
    dangers: frozenset[_Danger]
    """Those of bare repositories, which commands may write, with links and steps of writable ones."""


def record_repositories(repositories: Iterable[str], granted: Sequence[str], roots: Sequence[str]) -> RepositoryState:
    """Record what is there before a command; `repositories` are those that a scan of `roots` has found."""
    known, roots = _list_existing(repositories, granted), (*roots, *granted)
    dangers = {each for path in known if not _is_git(path) for each in _find_dangers(path, roots)}
    dangers.update(each for git in granted for each in (*_find_leading_links(git), *_find_steps(git)))
    return RepositoryState(frozenset(known), tuple(granted), frozenset(dangers))


def check_repositories(before: RepositoryState, repositories: Iterable[str], roots: Sequence[str]) -> list[str]:
    """Disarm what has appeared since `before`; returns a sentence on each repository.

    A dangerous setting, hook or redirect of a new repository is moved to a name that git doesn't read, and a link that
    leads out of `.git` is removed.
    """
    notes, roots = list[str](), (*roots, *before.granted)
    for path in sorted(_list_existing(repositories, before.granted)):
        dangers = [] if path in before.known and _is_git(path) else sorted(_find_dangers(path, roots))
        if path in before.known:
            changed = [each for each in dangers if each not in before.dangers]
            notes += [_describe(path, changed, roots, "look at it before you use git there")] * bool(changed)
        elif dangers := [each for each in dangers if not is_within_any(each.path, _list_locked(before))]:
            moved = ", ".join(dict.fromkeys(_disarm(each, roots) for each in dangers))
            notes.append(_describe(path, dangers, roots, f"moved to {moved}, for the user to look at"))
    for git in before.granted:
        notes += [_remove_link(each, roots) for each in _find_leading_links(git) if each not in before.dangers]
        steps = [each for each in _find_steps(git) if each not in before.dangers]
        notes += [f"{_show(each.path, roots)} {each.what}, outside of the sandbox" for each in steps]
    return notes


def _list_existing(repositories: Iterable[str], granted: Iterable[str]) -> set[str]:
    inner = [
        each for git in granted for each in (*list_submodules(git), *_list_entries(os.path.join(git, "worktrees")))
    ]
    there = (each for each in (*repositories, *granted, *inner))
    return {
        path
        for path in there
        if os.path.islink(path)
        or os.path.isfile(path)
        or any(os.path.lexists(os.path.join(path, name)) for name in _PARTS)
    }


def _is_git(path: str) -> bool:
    """Whether it is protected by its name, or part of such a repository."""
    return ".git" in path.lower().split("/")


def _list_locked(before: RepositoryState) -> list[str]:
    """Settings and hooks that the command couldn't change, so that any change of them is the user's."""
    return [os.path.join(each, name) for each in before.known if _is_git(each) for name in _PARTS]


def _find_dangers(git: str, roots: Sequence[str]) -> Iterator[_Danger]:
    """What makes git run programs or take settings if it is used in a repository."""
    repository = resolve_repository(git)
    if not is_within_any(repository, roots):
        yield _Danger(git, f"leads to {repository}, outside of the workspace")
        return
    common = find_common_folder(repository)
    if common is not None and not (is_within(repository, f"{common}/worktrees") and is_within_any(common, roots)):
        yield _Danger(os.path.join(repository, REDIRECT), f"leads to {common}")
        common = None
    for folder in (repository, *([common] if common is not None and common != repository else [])):
        root = next(each for each in roots if is_within(folder, each))
        yield from _find_dangerous_settings(folder, root)
        yield from _find_hooks(os.path.join(folder, "hooks"))


def _find_dangerous_settings(repository: str, root: str) -> Iterator[_Danger]:
    for name in SETTINGS_FILES:
        path = os.path.join(repository, name)
        for setting in read_settings(path) or ():
            if not is_harmless(setting, repository, root):
                yield _Danger(path, f"sets {setting.name or repr(setting.line[:60])}".replace("..", ".*."))


def _find_hooks(folder: str) -> Iterator[_Danger]:
    if os.path.islink(folder):
        yield _Danger(folder, f"is a link to {os.readlink(folder)}")
        return
    for path in _list_entries(folder):
        if "." not in os.path.basename(path):
            yield _Danger(path, "is a hook")


def _find_leading_links(git: str) -> Iterator[_Danger]:
    """Links in a repository through which git would write elsewhere, as it does when it appends to a reflog."""
    for folder, folders, names in os.walk(git):
        below = os.path.relpath(folder, git)
        if below.startswith("objects/") or below == "hooks":
            folders[:] = []
            continue
        for path in (os.path.join(folder, name) for name in (*names, *folders)):
            if os.path.islink(path) and not is_within(os.path.realpath(path), os.path.realpath(git)):
                yield _Danger(path, f"is a link to {os.readlink(path)}")


def _find_steps(git: str) -> Iterator[_Danger]:
    """The commands that a rebase which was left unfinished will run."""
    for folder in (git, *_list_entries(os.path.join(git, "worktrees"))):
        path = os.path.join(folder, _STEPS)
        with suppress(OSError), open_regular_file(path) as file:
            steps = _STEP.findall(os.read(file, _MAX_BYTES)) if file is not None else []
            for each in dict.fromkeys(steps):
                yield _Danger(path, f"makes `git rebase --continue` run {each.decode(errors='replace')!r}")


def _list_entries(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder)]
    except OSError:
        return []


def _disarm(danger: _Danger, roots: Sequence[str]) -> str:
    """Move a file to a name that git doesn't read, keeping a settings file's harmless part; returns where it is now."""
    if not os.path.lexists(danger.path):  # moved already, for another setting in it
        return f"{_show(danger.path, roots)}.refused"
    root = next(each for each in roots if is_within(danger.path, each))
    name = os.path.basename(danger.path)
    settings = read_settings(danger.path) if name in SETTINGS_FILES else None
    try:
        with open_folder_beneath(root, danger.path) as opened:
            refused = next(each for each in _list_free_names(name) if not _exists(each, opened.descriptor))
            os.rename(name, refused, src_dir_fd=opened.descriptor, dst_dir_fd=opened.descriptor)
            if settings is not None:
                kept = [each for each in settings if is_harmless(each, os.path.dirname(danger.path), root)]
                _write(name, opened.descriptor, "".join(map(_render, kept)))
    except (OSError, PathMoved) as error:
        return f"nowhere ({error}), so remove {_show(danger.path, roots)} before using git there"
    return _show(os.path.join(os.path.dirname(danger.path), refused), roots)


def _remove_link(danger: _Danger, roots: Sequence[str]) -> str:
    shown = f"{_show(danger.path, roots)} {danger.what}, through which git would write outside of the repository"
    root = next((each for each in roots if is_within(danger.path, each)), os.path.dirname(danger.path))
    try:
        with open_folder_beneath(root, danger.path) as opened:
            os.unlink(opened.name, dir_fd=opened.descriptor)
    except (OSError, PathMoved) as error:
        return f"{shown}; it couldn't be removed: {error}"
    return f"{shown}: removed"


def _describe(repository: str, dangers: Sequence[_Danger], roots: Sequence[str], done: str) -> str:
    named = [f"{os.path.basename(each.path)} {each.what}" for each in dangers]
    more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    shown = escape_line(", ".join(named[:_MAX_NAMED]) + more)
    return f"git in {_show(repository, roots)} would run or obey what the command left there ({shown}): {done}"


def _show(path: str, roots: Sequence[str]) -> str:
    root = roots[0]
    return escape_line(os.path.relpath(path, root) if is_within(path, root) else path)


def _render(setting: Setting) -> str:
    section, _, key = setting.name.rpartition(".")
    named = f' "{setting.subsection}"' if setting.subsection else ""
    header = f"[{section.rstrip('.')}{named}]"
    if setting.value is None:
        return f"{header}\n\t{key}\n"
    escaped = setting.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{header}\n\t{key} = "{escaped}"\n'


def _list_free_names(name: str) -> Iterator[str]:
    yield f"{name}.refused"
    yield from (f"{name}.{number}.refused" for number in count(2))


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write(name: str, folder: int, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o644, dir_fd=folder), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
