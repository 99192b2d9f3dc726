"""Paths in writable folders that a command may not change: protected paths, and ferrule's installation."""

# Paths are strings here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ferrule.errors import SandboxInputError, SandboxUnavailable, choose_advice
from ferrule.sandbox.file_versions import Inode
from ferrule.sandbox.git.control_files import ControlFiles, MissingFile
from ferrule.sandbox.git.repositories import find_enclosing_repository, find_locked_parts, find_writable_paths
from ferrule.sandbox.hidden_paths import PROTECTED, ProtectedNames
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.own_files import list_protected_files
from ferrule.sandbox.paths import LinkFollower, is_within, is_within_any, list_ancestors
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.workspace_scan import ScanResult

__all__ = ["FoundPaths", "ProtectedPaths", "limit_paths", "resolve_opened"]

_MAX_PATHS = 1000
_MAX_NAMED = 14
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


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """What may not change in a workspace, as resolved absolute paths."""

    protected: tuple[str, ...]
    """Existing or not."""
    absent: frozenset[str]
    """Those of them that don't exist, as far as a scan would have listed them."""
    existing: tuple[str, ...]
    """Those that a scan has listed, with placeholders."""
    control_files: tuple[MissingFile, ...]
    """What git would run or obey as soon as it exists."""
    others: tuple[str, ...]
    """Other missing paths that are protected, and that no empty folder can stand for."""
    targets: tuple[str, ...]
    """Paths that are protected since a link or a setting leads to them."""
    linked: frozenset[Inode]
    """Protected files that have other names too (hard links)."""


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
        self.names = ProtectedNames.of(each for each in self.protected if each in PROTECTED)
        """Names that are protected in any folder."""
        places = [os.path.normpath(os.path.join(workspace, name)) for name in self.protected if "*" not in name]
        self._places = tuple(path for path in places if self.names.include(path[len(workspace) :]))
        self._unlisted = tuple(path for path in places if path not in self._places)
        self.listed = frozenset(self._places)
        """The paths that a scan lists if they exist, unless a link is on the way."""
        self._steps = self.listed.union(each for path in self._places for each in list_ancestors(path))
        self._first: frozenset[str] | None = None
        """The protected paths that existed at first."""
        self._known: tuple[ScanResult | None, tuple[str, ...], tuple[Inode, ...]] = (None, (), ())
        """What `_choose_known` has returned last, with the scan that it was chosen from."""
        self.installation = tuple(path for path in installation.paths if not is_within_any(path, opened))
        self.opened = tuple(
            path for path in opened if is_within_any(path, installation.paths) or path in installation.interpreters
        )
        self._check_workspace(installation, opened)

    def _check_workspace(self, installation: Installation, opened: Sequence[str]) -> None:
        """Raise `SandboxUnavailable` if the workspace can't be writable without what ferrule runs from."""
        enclosing = next((path for path in self.installation if is_within(self.workspace, path)), None)
        if enclosing is not None and not is_within_any(self.workspace, self.opened):
            raise SandboxUnavailable(
                f"the workspace {self.workspace} is in {enclosing}, which ferrule itself runs from: what a command "
                f"writes there would be run uncontained. {_advise_other_workspace()}"
            )
        interpreter = next((path for path in installation.interpreters if is_within(path, self.workspace)), None)
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
                named = ", ".join(self.protected[:_MAX_NAMED])
                raise SandboxInputError(f"{name!r} isn't a protected path of the workspace, such as {named}")
            writable_paths += find_writable_paths(path) if os.path.basename(path) == ".git" else [path]
        return writable_paths

    def _is_protected(self, below: str) -> bool:
        is_named = ".." not in below.split("/") and self.names.cover(f"/{below}")
        return is_named or any(is_within(below, each) for each in self.protected)

    def find(
        self, scanned: ScanResult, follower: LinkFollower, granted: Sequence[str], roots: Sequence[str]
    ) -> FoundPaths:
        """The paths that may not change, except what is `granted`: each with the links on the way to it.

        `scanned` is what exists in the workspace; files that ferrule itself uses are added. Targets of links are
        protected in all `roots`. In a granted repository git's hooks and settings stay protected unless they are
        granted too.
        """
        protected, absent = self._find_places(scanned, follower, roots)
        protected += limit_paths(scanned.protected, self.workspace)
        links, linked = self._choose_known(scanned)
        targets, others = _find_targets(links, follower, roots)
        control = self._find_control_files(scanned, follower, roots)
        kept = [*protected, *targets, *control.repositories]
        if granted:
            kept = [path for path in kept if not is_within_any(path, granted)]
            locked = _find_locked_paths(granted, follower)
            kept += [path for path in (*control.protected, *locked) if path not in granted]
        else:
            kept += control.protected
        return FoundPaths(
            (*kept, *list_protected_files(), *self.installation),
            absent,
            scanned.protected,
            tuple(control.list_missing(kept) if control.missing else ()),
            (*control.missing_programs, *others),
            tuple(dict.fromkeys((*targets, *control.protected))),
            frozenset(control.linked.union(linked)),
        )

    def _find_places(
        self, scanned: ScanResult, follower: LinkFollower, roots: Sequence[str]
    ) -> tuple[list[str], frozenset[str]]:
        """The paths on the list, existing or not, with those that links there lead to; and which of them are absent."""
        links = [path for path in (*scanned.links, *scanned.linked_folders) if path in self._steps]
        plain = [path for path in self._places if not is_within_any(path, links)] if links else list(self._places)
        followed = [path for path in (*self._places, *self._unlisted) if path not in plain] if links else self._unlisted
        found = [each for path in followed for each in follower.follow(path) if _can_protect(each, roots)]
        absent = self.listed.intersection(plain) if links else self.listed
        return [*plain, *found], absent.difference(scanned.protected)

    def _choose_known(self, scanned: ScanResult) -> tuple[Sequence[str], Sequence[Inode]]:
        """The links, and the files with hard links, in protected places that were there at first.

        A command could make others to have any folder made read-only.
        """
        if self._first is None:
            self._first = frozenset(scanned.protected)
        if self._known[0] is not scanned:
            links = tuple(filter(self._was_protected, scanned.links))
            self._known = scanned, links, tuple(each for path, each in scanned.linked if self._was_protected(path))
        return self._known[1:]

    def _find_control_files(self, scanned: ScanResult, follower: LinkFollower, roots: Sequence[str]) -> ControlFiles:
        control = ControlFiles(roots, follower)
        if ".git" not in self.names:
            return control
        listed = (path for path in scanned.repositories if path.lower().endswith("/.git"))
        repositories = [path for path in listed if not placeholders.is_placeholder(path)]
        if f"{self.workspace}/.git" not in repositories and (enclosing := find_enclosing_repository(self.workspace)):
            repositories.append(enclosing)
        for git in limit_paths(repositories, self.workspace):
            if git.lower().endswith("/.git"):  # and isn't the folder of so many
                control.add_repository(git)
        for folder in scanned.repositories:
            if not folder.lower().endswith("/.git"):
                control.add_bare_repository(folder)
        return control

    def _was_protected(self, path: str) -> bool:
        """Whether a path was protected at first, or was in a folder that was."""
        first = self._first or frozenset()
        return path in first or any(each in first for each in list_ancestors(path))

    def make_hint(self, output: str, targets: Sequence[str] = ()) -> str:
        """An explanation if `output` shows a refused write to what is protected and doesn't look it; else empty.

        That is the installation, git's settings, and `targets`, which a link or a setting leads to.
        """
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
        for path in targets[:_MAX_PATHS]:
            below = os.path.relpath(path, self.workspace)
            if re.search(rf"(?<![\w.-]){re.escape(below)}(?![\w.-])", output):
                return (
                    f"{below} can't be changed by commands, since git or another program runs or obeys it: a link or a "
                    "setting leads there. Ask the user to make this change"
                )
        return ""


def _can_protect(path: str, roots: Sequence[str]) -> bool:
    """Whether a path is in one of the roots, and holds none."""
    return is_within_any(path, roots) and not any(is_within(root, path) for root in roots)


def _find_targets(links: Iterable[str], follower: LinkFollower, roots: Sequence[str]) -> tuple[list[str], list[str]]:
    """Where protected links lead: existing paths, with the links on the way, and missing ones."""
    found: list[str] = []
    for link in links:
        found += [each for each in follower.follow(link) if _can_protect(each, roots) and not is_within(link, each)]
    existing = [path for path in found if os.path.lexists(path)]
    limited = [each for root in roots for each in limit_paths([p for p in existing if is_within(p, root)], root)]
    return limited, [path for path in found if path not in existing]


def _find_locked_paths(granted: Iterable[str], follower: LinkFollower) -> Iterator[str]:
    """The parts of writable repositories that stay read-only, with what links among them lead to."""
    for git in granted:
        for part in find_locked_parts(git):
            *links, real = follower.follow(part)
            yield from links
            if not links or os.path.lexists(real):
                yield real


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
