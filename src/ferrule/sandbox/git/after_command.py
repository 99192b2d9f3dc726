"""Finds what a command left in git repositories that would run programs outside of the sandbox, and disarms it.

Existing repositories are read-only, or their settings and hooks are (`repositories.find_locked_parts`). Checked
here, when the command and all its processes have ended, is what a mount can't prevent: new repositories, changes of
bare ones, and in a writable `.git` new submodules and worktrees, links that lead out of it, and the next steps of a
rebase.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH113, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

from ferrule._util.terminal_text import escape_line
from ferrule.sandbox.file_versions import make_version
from ferrule.sandbox.git.control_files import MissingFile
from ferrule.sandbox.git.repositories import (
    REDIRECT,
    SETTINGS_FILES,
    find_common_folder,
    find_locked_parts,
    list_parts,
    list_submodules,
    resolve_repository,
)
from ferrule.sandbox.git.settings import Setting, is_harmless, read_settings
from ferrule.sandbox.open_beneath import PathMoved, open_folder_beneath
from ferrule.sandbox.paths import LinkFollower, is_within, is_within_any
from ferrule.sandbox.regular_files import open_regular_file

__all__ = ["RepositoryState", "check_repositories", "record_repositories", "show_path"]

_PARTS = ("HEAD", "hooks", REDIRECT, *SETTINGS_FILES)
_STEPS = "rebase-merge/git-rebase-todo"
_STEP = re.compile(rb"^[ \t]*(?:exec|x)[ \t]+(.+)$", re.MULTILINE)
_MAX_BYTES: Final = 1024 * 1024
_MAX_NAMED: Final = 5
_HOOK: Final = "is a hook"
_LEFT: Final = "what the command left there"
_TREE: Final = "what is there, since the command gave that bare repository a working tree"
_TRUE: Final = frozenset({None, "true", "yes", "on", "1"})


@dataclass(frozen=True, slots=True, order=True)
class _Danger:
    """A file or link by which a repository would run programs or take settings, and what it does."""

    path: str
    what: str
    content: str = ""
    """What tells it from another one that does the same."""


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The repositories of a workspace before a command."""

    known: frozenset[str]
    """`.git` files and folders, bare repositories and, in writable ones, submodules and worktrees."""
    granted: tuple[str, ...]
    """The `.git` folders that the command may write, existing or not."""
    with_tree: frozenset[str]
    """Those that aren't named `.git` and have a working tree."""
    unchanging: frozenset[str]
    """Those of them that the command can't change."""
    locked: tuple[str, ...]
    """Parts of writable ones that it can't change, so that any change of them is the user's."""
    dangers: frozenset[_Danger]
    """Those of the other repositories, with links and steps of writable ones."""
    missing: tuple[MissingFile, ...] = ()
    """What git would run or obey elsewhere in the roots."""


def record_repositories(
    repositories: Iterable[str], granted: Sequence[str], roots: Sequence[str], missing: Sequence[MissingFile] = ()
) -> RepositoryState:
    """Record what is there before a command; `repositories` are those that a scan of `roots` has found."""
    known, roots = frozenset(_list_existing(repositories, granted)), (*roots, *granted)
    unchanging = frozenset([path for path in known if _is_git(path) and _is_locked(path, granted)])
    unprotected = known - unchanging
    with_tree = frozenset(path for path in unprotected if _has_working_tree(path))
    dangers = {each for path in unprotected for each in (*_find_dangers(path, roots), *_find_new_steps(path, roots))}
    dangers.update(each for git in granted for each in (*_find_leading_links(git), *_find_steps(git)))
    locked = [part for git in granted for part in find_locked_parts(git)]
    return RepositoryState(
        known, tuple(granted), with_tree, unchanging, tuple(locked), frozenset(dangers), tuple(missing)
    )


def check_repositories(before: RepositoryState, repositories: Iterable[str], roots: Sequence[str]) -> list[str]:
    """Disarm what has appeared since `before`; returns a sentence on each repository.

    A dangerous setting, hook or redirect of a new repository, and what a known one uses by a link, are moved to a name
    that git doesn't read; so are new settings, links and redirects of a known bare one, whose hooks are only named. A
    known bare one that now has a working tree counts as new. A link that leads out of `.git` is removed.
    """
    notes, roots = list[str](), (*roots, *before.granted)
    for path in sorted(_list_existing(repositories, before.granted) - before.unchanging):
        had_tree = path in before.with_tree
        has_tree = had_tree or _has_working_tree(path)
        has_become_one = path in before.known and has_tree and not had_tree
        is_known = path in before.known and not has_become_one
        dangers = [each for each in sorted(_find_dangers(path, roots)) if not is_known or each not in before.dangers]
        if not is_known or not _is_git(path):
            dangers += [each for each in _find_new_steps(path, roots) if each not in before.dangers]
        is_bare = not has_tree and not _is_git(path)
        if is_known and is_bare and (hooks := [each for each in dangers if each.what == _HOOK]):
            notes.append(_describe(path, hooks, roots, "look at it before you use git there"))
            dangers = [each for each in dangers if each.what != _HOOK]
        if dangers := [each for each in dangers if not is_within_any(each.path, _list_locked(before))]:
            kept = before.dangers if is_known else frozenset[_Danger]()
            moved = ", ".join(_disarm(each, roots, kept) for each in dict.fromkeys(each.path for each in dangers))
            cause = _TREE if has_become_one else _LEFT
            notes.append(_describe(path, dangers, roots, f"moved to {moved}, for the user to look at", cause))
    for git in before.granted:
        notes += [_remove_link(each, roots) for each in _find_leading_links(git) if each not in before.dangers]
        steps = [each for each in _find_steps(git) if each not in before.dangers]
        notes += [f"{show_path(each.path, roots)} {each.what}, outside of the sandbox" for each in steps]
    return [*notes, *_disarm_control_files(before.missing, roots)]


def _disarm_control_files(missing: Iterable[MissingFile], roots: Sequence[str]) -> Iterator[str]:
    """Disarm what a repository uses by a link or a setting and what has appeared; yields a sentence on each."""
    follower = LinkFollower()
    for name, known in {each.name: each.way[:-1] for each in missing}.items():
        way = follower.follow(name)
        made = [each for each in way if each not in known and is_within_any(each, roots)]
        if made and os.path.lexists(made[0]):
            shown, moved = show_path(made[0], roots), _disarm(made[0], roots)
            yield (
                f"git would run or obey {shown}, which the command left there, as {show_path(name, roots)}: moved to "
                f"{moved}, for the user to look at"
            )


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


def _has_working_tree(path: str) -> bool:
    """Whether a repository that isn't named `.git` may be used with a working tree, where git runs more of its hooks.

    Also one elsewhere, as `git worktree add`, a `.git` file and `git --work-tree` make it.
    """
    if _is_git(path):
        return False
    names = list_parts(path).names
    if "index" in names or REDIRECT in names or _list_entries(os.path.join(path, "worktrees")):
        return True
    settings = [each for name in SETTINGS_FILES for each in read_settings(os.path.join(path, name)) or ()]
    bare = {each.value and each.value.lower() for each in settings if each.name == "core.bare"}
    return not bare or not bare <= _TRUE or any(each.name in ("", "core.worktree") for each in settings)


def _list_locked(before: RepositoryState) -> list[str]:
    """What the command couldn't change."""
    return [*before.locked, *(each for path in before.unchanging for each in (path, *_list_folders(path)))]


def _list_folders(git: str) -> tuple[str, ...]:
    """The folders of a repository: for a worktree also that of the repository that it belongs to."""
    repository = resolve_repository(git)
    common = find_common_folder(repository) if REDIRECT in list_parts(repository).names else None
    return (repository,) if common is None else (repository, common)


def _is_locked(git: str, granted: Sequence[str]) -> bool:
    """Whether a command can't change a repository, as `control_files` protects it.

    Where a `.git` file or link leads to a folder that isn't a repository yet, the command may fill that folder.
    """
    names = list_parts(git).names
    if not granted and "HEAD" in names and REDIRECT not in names:
        return True
    folders = _list_folders(git)
    is_complete = all(each == git or "HEAD" in list_parts(each).names for each in folders)
    return is_complete and not any(is_within_any(each, granted) for each in (git, *folders))


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
        yield from _find_linked_parts(folder)


def _find_dangerous_settings(repository: str, root: str) -> Iterator[_Danger]:
    for name in SETTINGS_FILES:
        path = os.path.join(repository, name)
        for setting in read_settings(path) or ():
            if not is_harmless(setting, repository, root):
                yield _make_danger(path, setting)


def _make_danger(path: str, setting: Setting) -> _Danger:
    """What a setting does; in a file that isn't understood wholly, any change of the file makes it another danger."""
    if setting.name:
        return _Danger(path, f"sets {setting.name}".replace("..", ".*."), f"{setting.subsection}\n{setting.line}")
    what = f"is a link to {os.readlink(path)}" if os.path.islink(path) else f"sets {setting.line[:60]!r}"
    return _Danger(path, what, _identify(path))


def _find_linked_parts(repository: str) -> Iterator[_Danger]:
    names = ["remotes", "branches", REDIRECT, "info"]
    if not os.path.islink(os.path.join(repository, "info")):
        names.append("info/attributes")
    for path in (os.path.join(repository, name) for name in names):
        if os.path.islink(path):
            yield _Danger(path, f"is a link to {os.readlink(path)}")


def _find_hooks(folder: str) -> Iterator[_Danger]:
    if os.path.islink(folder):
        yield _Danger(folder, f"is a link to {os.readlink(folder)}")
        return
    for path in _list_entries(folder):
        if "." not in os.path.basename(path):
            yield _Danger(path, _HOOK, _identify(path))


def _identify(path: str) -> str:
    try:
        return str(make_version(os.stat(path)))
    except OSError:
        return ""


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


def _find_new_steps(git: str, roots: Sequence[str]) -> Iterator[_Danger]:
    """The same for a repository that has appeared, or that nothing protects."""
    repository = resolve_repository(git)
    if is_within_any(repository, roots):
        yield from _find_steps(repository)


def _list_entries(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder)]
    except OSError:
        return []


def _disarm(path: str, roots: Sequence[str], kept: Container[_Danger] = ()) -> str:
    """Move a file to a name that git doesn't read; returns where it is now.

    The harmless part of a settings file stays, as do the settings in `kept`.
    """
    if not os.path.lexists(path):  # moved already, with the folder that it is in
        return f"{show_path(path, roots)}.refused"
    root = next(each for each in roots if is_within(path, each))
    folder, name = os.path.split(path)
    settings = read_settings(path) if name in SETTINGS_FILES else None
    readable = [each for each in settings or () if each.name]
    staying = [each for each in readable if is_harmless(each, folder, root) or _make_danger(path, each) in kept]
    try:
        with open_folder_beneath(root, path) as opened:
            refused = next(each for each in _list_free_names(name) if not _exists(each, opened.descriptor))
            os.rename(name, refused, src_dir_fd=opened.descriptor, dst_dir_fd=opened.descriptor)
            if settings is not None:
                mode = os.stat(refused, dir_fd=opened.descriptor, follow_symlinks=False).st_mode & 0o666 | 0o600
                _write(name, opened.descriptor, mode, "".join(map(_render, staying)))
    except (OSError, PathMoved) as error:
        return f"nowhere ({error}), so remove {show_path(path, roots)} before using git there"
    return show_path(os.path.join(folder, refused), roots)


def _remove_link(danger: _Danger, roots: Sequence[str]) -> str:
    shown = f"{show_path(danger.path, roots)} {danger.what}, through which git would write outside of the repository"
    root = next((each for each in roots if is_within(danger.path, each)), os.path.dirname(danger.path))
    try:
        with open_folder_beneath(root, danger.path) as opened:
            os.unlink(opened.name, dir_fd=opened.descriptor)
    except (OSError, PathMoved) as error:
        return f"{shown}; it couldn't be removed: {error}"
    return f"{shown}: removed"


def _describe(repository: str, dangers: Sequence[_Danger], roots: Sequence[str], done: str, cause: str = _LEFT) -> str:
    named = [f"{os.path.basename(each.path)} {each.what}" for each in dangers]
    more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    shown = escape_line(", ".join(named[:_MAX_NAMED]) + more)
    return f"git in {show_path(repository, roots)} would run or obey {cause} ({shown}): {done}"


def show_path(path: str, roots: Sequence[str]) -> str:
    """Show a path on one line: within the first of the roots from there."""
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


def _write(name: str, folder: int, mode: int, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, mode, dir_fd=folder), "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
