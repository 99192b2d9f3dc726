"""Finds the paths of a git repository, to protect them or make them writable for one command."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH111, PTH118, PTH120, PTH208

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.file_versions import cache_by_version
from ferrule.sandbox.paths import is_within, list_ancestors
from ferrule.sandbox.regular_files import open_regular_file

__all__ = [
    "LOCKED",
    "PLACEHOLDER_FILES",
    "REDIRECT",
    "SETTINGS_FILES",
    "Parts",
    "find_common_folder",
    "find_enclosing_repository",
    "find_locked_parts",
    "find_writable_paths",
    "find_written_repository",
    "is_repository",
    "list_parts",
    "list_settings_files",
    "list_submodules",
    "list_user_settings_files",
    "looks_like_repository",
    "read_pointer",
    "read_pointer_name",
    "read_redirect",
    "resolve_repository",
]

_POINTER = "gitdir: "
_MAX_POINTER_BYTES = 8192
REDIRECT = "commondir"
"""The name of a file that makes git read settings and hooks from another repository."""
SETTINGS_FILES = ("config", "config.worktree")
"""The files of a repository that git reads settings from."""
PLACEHOLDER_FILES = {REDIRECT: b".\n", **dict.fromkeys(SETTINGS_FILES, b""), "attributes": b""}
"""Files of a repository that no command may create, with contents that change nothing for git."""
LOCKED = (*SETTINGS_FILES, REDIRECT, "hooks", "info/attributes", "remotes", "branches")
"""What makes git run programs or take settings, which no commit writes; the first `_RUN` can name programs."""
_RUN = 4
_MAX_MODULES = 1000
_CHECKED = ("HEAD", "objects", "refs", REDIRECT)
_OWN_NAMES = frozenset({"head", "objects", "refs", REDIRECT, "gitdir", *SETTINGS_FILES, "hooks", "info"})
_OWN_NAMES |= {"modules", "worktrees", "remotes", "branches", "index", "packed-refs", "shallow", "logs", "reftable"}
_OWN_NAMES |= {"rebase-merge", "rebase-apply", "sequencer"}
"""What git keeps directly in the folder of a repository, in lower case."""


def is_repository(names: Collection[str]) -> bool:
    """Whether git takes a folder with these names for a repository, whatever it is called.

    A worktree's folder has a file that names another folder for the objects.
    """
    return "HEAD" in names and (REDIRECT in names or ("objects" in names and "refs" in names))


def looks_like_repository(folder: str) -> bool:
    """Whether git takes a folder for a repository by what is in it."""
    return is_repository(_find_checked(folder))


def _find_checked(folder: str) -> set[str]:
    return {name for name in _CHECKED if os.path.lexists(os.path.join(folder, name))}


def find_written_repository(path: str, root: str, alongside: Collection[str] = ()) -> str | None:
    """The folder below `root` or `root` itself of which a write to `path` would change or complete the repository.

    `alongside` are the paths written by the same call. Of an existing repository only git's own files count; names are
    compared without regard to case.
    """
    folder, names = root, path[len(root.rstrip("/")) + 1 :].split("/")
    for name in names:
        if name.casefold() in _OWN_NAMES and _will_be_repository(folder, (path, *alongside)):
            return folder
        folder = os.path.join(folder, name)
    return None


def _will_be_repository(folder: str, written: Collection[str]) -> bool:
    below = [path[len(folder) + 1 :].partition("/")[0].casefold() for path in written if is_within(path, folder)]
    return is_repository(_find_checked(folder) | {name for name in _CHECKED if name.casefold() in below})


def list_settings_files(git: str) -> list[str]:
    """The files, existing or not, of the repository's settings: for a worktree also of the one that it belongs to."""
    repository = resolve_repository(git)
    folders = dict.fromkeys((repository, find_common_folder(repository) or repository))
    return [os.path.join(folder, name) for folder in folders for name in SETTINGS_FILES]


def resolve_repository(git: str) -> str:
    """The folder of the repository that `.git` is, or that a `.git` link or file leads to."""
    return read_pointer(git) or git


def find_writable_paths(git: str) -> list[str]:
    """What a command may write if `.git` is writable: for a worktree or submodule its external repository.

    Their `.git` file is trusted only if the repository points back to it, as git itself checks: a command could have
    written `gitdir: /anything`. Raises `SandboxUnavailable` otherwise.
    """
    pointed = read_pointer(git)
    if pointed is None:
        return [git]
    if _is_submodule(pointed, git):
        return [pointed]
    named = (_read_text(os.path.join(pointed, "gitdir")) or "").strip()
    common = find_common_folder(pointed)
    if (
        common is None
        or os.path.realpath(named) != os.path.realpath(git)
        or not is_within(pointed, f"{common}/worktrees")
    ):
        raise SandboxUnavailable(
            f"{git} points at {pointed}, which doesn't name it as its worktree: run the command in the repository "
            "itself, or repair the link with `git worktree repair`"
        )
    return [common]


def _is_submodule(repository: str, git: str) -> bool:
    """Whether a repository is where git puts submodules', with `git`'s folder as its configured worktree."""
    settings = _read_text(os.path.join(repository, "config")) or ""
    named = re.findall(r"^[ \t]*worktree[ \t]*=[ \t]*(\S.*)$", settings, re.MULTILINE)
    folders = [os.path.realpath(os.path.join(repository, path.strip())) for path in named]
    return "/.git/modules/" in repository and folders == [os.path.realpath(os.path.dirname(git))]


def find_locked_parts(git: str) -> list[str]:
    """The parts of a writable `.git` that stay read-only, existing or not, since git runs programs they name.

    The same parts of each submodule's repository in it, and of its worktrees, are included. Empty for a `.git` that
    isn't a repository yet, so that a command can create one: what it creates is checked afterwards (`after_command`).
    """
    if not any(os.path.lexists(os.path.join(git, name)) for name in ("HEAD", "config", REDIRECT)):
        return []
    parts = [os.path.join(git, name) for name in LOCKED]
    parts += [os.path.join(each, name) for each in list_submodules(git) for name in LOCKED[:_RUN]]
    with suppress(OSError):
        trees = [os.path.join(git, "worktrees", name) for name in os.listdir(os.path.join(git, "worktrees"))]
        parts += [os.path.join(tree, name) for tree in trees for name in (REDIRECT, "config.worktree")]
    return parts


def list_submodules(git: str) -> Iterator[str]:
    """The repositories below `modules`, which may be nested."""
    waiting, found = [os.path.join(git, "modules")], 0
    while waiting and found < _MAX_MODULES:
        folder = waiting.pop()
        has_head = os.path.lexists(os.path.join(folder, "HEAD"))
        if has_head:
            found += 1
            yield folder
        inner = os.path.join(folder, "modules") if has_head else folder
        with suppress(OSError):
            waiting += [entry.path for entry in os.scandir(inner) if entry.is_dir(follow_symlinks=False)]


def read_pointer(git: str) -> str | None:
    """The resolved folder that a `.git` link or file leads to; None for a folder or any other file."""
    name = read_pointer_name(git)
    return None if name is None else os.path.realpath(name)


def read_pointer_name(git: str) -> str | None:
    """The same, as it is named: links on the way aren't resolved.

    Git takes what a file names as relative to the folder that the path is in, also where the path is a link.
    """
    try:
        mode = os.lstat(git).st_mode
    except OSError:
        return None
    text = None if stat.S_ISDIR(mode) else _read_text(git)
    if text is None or not text.startswith(_POINTER):
        return git if stat.S_ISLNK(mode) else None
    return os.path.join(os.path.dirname(git), text.removeprefix(_POINTER).strip())


def find_common_folder(folder: str | None) -> str | None:
    """The repository that a worktree's folder belongs to."""
    name = None if folder is None else read_redirect(folder)
    return None if name is None else os.path.realpath(name)


def read_redirect(folder: str) -> str | None:
    """The same, as the worktree's folder names it."""
    text = _read_text(os.path.join(folder, REDIRECT))
    return None if text is None else os.path.join(folder, text.strip())


@dataclass(frozen=True, slots=True)
class Parts:
    """What is directly in a folder."""

    names: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    """Those of the names that are links."""


@cache_by_version(Parts())
def list_parts(folder: str) -> Parts:
    """List a folder of a repository; nothing if there is none."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_symlink()) for entry in entries]
    except OSError:
        return Parts()
    return Parts(frozenset(name for name, _ in found), frozenset(name for name, is_link in found if is_link))


def _read_text(path: str) -> str | None:
    """The beginning of a text file that names a path; None if it isn't one."""
    try:
        with open_regular_file(path) as file:
            text = os.read(file, _MAX_POINTER_BYTES).decode() if file is not None else None
    except (OSError, UnicodeDecodeError):
        return None
    return text if text is not None and "\0" not in text else None


def find_enclosing_repository(workspace: str) -> str | None:
    """The `.git` of the repository that a workspace without one of its own is in."""
    for folder in list_ancestors(workspace):
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
    return None


def list_user_settings_files() -> Iterator[str]:
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
