"""Paths in writable folders that a command may not change: protected paths, and ferrule's installation."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH114, PTH118, PTH119

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from ferrule.errors import SandboxInputError, SandboxUnavailable, choose_advice
from ferrule.sandbox.hidden_paths import PROTECTED, ProtectedNames
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.own_files import list_protected_files
from ferrule.sandbox.shell.git_repositories import (
    find_locked_parts,
    find_missing_programs,
    find_named_places,
    find_protected_repository,
    find_writable_paths,
)
from ferrule.sandbox.visible_paths import is_within, is_within_any

__all__ = ["ProtectedPaths", "limit_paths", "resolve_opened"]

_MAX_PATHS = 1000
_SETTINGS = re.compile(r"(?:^|/)(?:config|hooks)\b")
_REFUSALS = (
    "Device or resource busy",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "not writeable",
)


def _advise_opening() -> str:
    setting = "ShellSandbox(open_installation=…) is the setting that allows it"
    return choose_advice(setting, "a program can allow it, by ShellSandbox's open_installation")


def _advise_other_workspace() -> str:
    other = choose_advice("Choose another workspace, or mode='read-only'", "Change to another folder")
    return f"{other}; {_advise_opening()}"


class ProtectedPaths:
    """The protected paths of one sandbox."""

    def __init__(
        self, workspace: str, protected: Sequence[str], installation: Installation, opened: Sequence[str]
    ) -> None:
        """`protected` are relative to the workspace; `opened` are absolute, writable paths of the installation.

        Raises `SandboxInputError` for a path outside the workspace, `SandboxUnavailable` if the workspace can't be
        writable without the installation.
        """
        for name in protected:
            if not is_within(os.path.normpath(os.path.join(workspace, name)), workspace) or name.strip("./") == "":
                raise SandboxInputError(f"{name!r} can't be protected: it should be a path within the workspace")
        self.workspace = workspace
        self.protected = tuple(name.rstrip("/") for name in protected)
        self._places = tuple(
            os.path.split(os.path.normpath(os.path.join(workspace, name)))
            for name in self.protected
            if not name.startswith("*.")
        )
        self.names = ProtectedNames.of(each for each in self.protected if each in PROTECTED)
        """Names that are protected in any folder."""
        self.installation = tuple(path for path in installation.paths if not is_within_any(path, opened))
        self.opened = tuple(
            path for path in opened if is_within_any(path, installation.paths) or path in installation.interpreters
        )
        enclosing = next((path for path in self.installation if is_within(workspace, path)), None)
        if enclosing is not None and not is_within_any(workspace, self.opened):
            raise SandboxUnavailable(
                f"the workspace {workspace} is in {enclosing}, which ferrule itself runs from: what a command writes "
                f"there would be run uncontained. {_advise_other_workspace()}"
            )
        interpreter = next((path for path in installation.interpreters if is_within(path, workspace)), None)
        if interpreter is not None and not is_within_any(interpreter, opened):
            raise SandboxUnavailable(
                f"{interpreter}, the interpreter of ferrule, is in the workspace, where a pyvenv.cfg next to it would "
                f"decide what it runs: start ferrule from an environment of its own; {_advise_opening()}"
            )

    def resolve_writable(self, writable: Sequence[str]) -> list[str]:
        """Resolve the protected paths that a command may write; a worktree's `.git` adds its repository.

        Raises `SandboxInputError` for any other.
        """
        writable_paths: list[str] = []
        for name in writable:
            if not isinstance(name, str) or "\0" in name:
                raise SandboxInputError(f"{name!r} isn't a path")
            path = os.path.normpath(os.path.join(self.workspace, name))
            if is_within_any(path, self.installation):
                raise SandboxInputError(
                    f"{name!r} is part of what ferrule itself runs from, which no command may write; "
                    + _advise_opening()
                )
            if not self._is_protected(os.path.relpath(path, self.workspace)) or os.path.realpath(path) != path:
                raise SandboxInputError(
                    f"{name!r} isn't a protected path of the workspace; those are: {', '.join(self.protected)}"
                )
            writable_paths += find_writable_paths(path) if os.path.basename(path) == ".git" else [path]
        return writable_paths

    def _is_protected(self, below: str) -> bool:
        parts = below.split("/")
        is_named = ".." not in parts and any(part in self.names for part in parts)
        return is_named or any(is_within(below, each) for each in self.protected)

    def list_protected_paths(self, found: Sequence[str], writable_paths: Sequence[str]) -> list[str]:
        """The paths that may not change, existing or not, except `writable_paths`; links along with their targets.

        `found` are the existing paths with a protected name; files that ferrule itself uses are added. In a writable
        repository git's hooks and settings stay protected unless they are writable too.
        """
        protected = [self._resolve_place(*place) for place in self._places]
        protected += [target for path in protected if (target := self._resolve_target(path))]
        found = limit_paths(found, self.workspace)
        protected += found
        repositories = [path for path in found if path.endswith("/.git")]
        protected += [part for git in repositories for part in find_protected_repository(git, self.workspace)]
        kept = [path for path in protected if not is_within_any(path, writable_paths)]
        named = [path for git in repositories for path in find_named_places(git, self.workspace)]
        kept += [path for path in named if path not in writable_paths]
        kept += [part for each in writable_paths for part in find_locked_parts(each) if part not in writable_paths]
        return list(dict.fromkeys([*kept, *list_protected_files(), *self.installation]))

    def list_missing_programs(self, found: Sequence[str]) -> list[str]:
        """The missing programs that the settings of the repositories among `found` name.

        They aren't among the protected paths, since an empty folder in a script's place would be seen.
        """
        repositories = [path for path in found if path.endswith("/.git")]
        return [path for git in repositories for path in find_missing_programs(git, self.workspace)]

    def make_hint(self, output: str) -> str:
        """An explanation if `output` shows a refused write to the installation or to git's settings; else empty."""
        if not any(refusal in output for refusal in _REFUSALS):
            return ""
        # By words, so that the time is linear in the output.
        below_git = (word.partition(".git/")[2] for word in output.split() if ".git/" in word)
        if any(map(_SETTINGS.search, below_git)):
            return (
                "git's settings and hooks in .git can't be changed by commands, since git runs programs that they "
                "name: ask the user to make this change"
            )
        for path in self.installation:
            below = os.path.relpath(path, self.workspace)
            if path in output or (
                is_within(path, self.workspace) and re.search(rf"(?<![\w/]){re.escape(below)}\b", output)
            ):
                return (
                    f"{path} can't be changed by commands, since ferrule itself runs from there. To install "
                    "packages, create a separate environment (python -m venv NAME) and use that"
                )
        return ""

    def _resolve_place(self, folder: str, name: str) -> str:
        """The path of a name in a folder of the workspace, of which only the last part may be a link."""
        return os.path.join(folder if folder == self.workspace else os.path.realpath(folder), name)

    def _resolve_target(self, path: str) -> str | None:
        """A link's target, if it is in the workspace."""
        target = os.path.realpath(path) if os.path.islink(path) else self.workspace
        return target if is_within(target, self.workspace) and target != self.workspace else None


def resolve_opened(named: Iterable[str | os.PathLike[str]], workspace: str, installation: Installation) -> list[str]:
    """Resolve the paths in `open_installation`. Raises `SandboxInputError` for one not in the installation."""
    opened = [os.path.realpath(os.path.join(workspace, name)) for name in named]
    paths = (*installation.paths, *installation.interpreters)
    for path in opened:
        if not any(is_within(path, each) or is_within(each, path) for each in paths):
            raise SandboxInputError(
                f"{path} can't be in open_installation, since ferrule doesn't run from there; it runs from: "
                + ", ".join(paths)
            )
    return opened


def limit_paths(paths: Sequence[str], workspace: str) -> list[str]:
    """Return the paths; if there are too many, most are replaced by the top-level folders that hold them."""
    if len(paths) <= _MAX_PATHS:
        return list(paths)
    branches: dict[str, list[str]] = {}
    for path in paths:
        name = path[len(workspace) + 1 :].partition("/")[0]
        branches.setdefault(f"{workspace}/{name}", []).append(path)
    left, kept = len(paths), []
    for top, within in sorted(branches.items(), key=lambda each: len(each[1]), reverse=True):
        kept += [top] if left > _MAX_PATHS else within
        left -= len(within) - 1
    return kept
