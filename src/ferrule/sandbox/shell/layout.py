"""What one command may see and change, as resolved absolute paths: decided here, enforced by a back end."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH112, PTH114, PTH118, PTH119, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.shell import placeholders
from ferrule.sandbox.shell.places import Places, is_within
from ferrule.sandbox.shell.repositories import given_for, locked_parts, protected_of
from ferrule.sandbox.shell.scan import WorkspaceScan

__all__ = ["REPLACED", "Access", "Layout", "Mode", "Surveyor", "ancestors"]

_MOST_REPOSITORIES = 500

REPLACED: tuple[str, ...] = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")
"""The host's folders that no command sees; a back end puts something of its own there where it can. `FULL` has the
host's temporary folders."""


class Mode(StrEnum):
    """`READ_ONLY`: all files are read-only. `WORKSPACE_WRITE`: the workspace can be written.

    `FULL`: every file can be written that the user can write. In each of them the temporary folder is writable, and
    hidden places, protected places and the network's rules hold.
    """

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    FULL = "full"


class Access(StrEnum):
    """What a command may do with a path and all below it."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Layout:
    """One command's files."""

    mode: Mode
    workspace: str
    folder: str
    """Where the command starts."""
    scratch: str
    """The folder that stands in for `/tmp`: the sandbox's own, kept from one command to the next."""
    rules: tuple[tuple[str, Access], ...]
    """Sorted by path, from `/` on: a rule holds for what lies below, up to the next deeper rule."""
    placeholders: tuple[str, ...]
    """Protected folders that don't exist: empty ones stand in for them, so that nothing is put there."""
    absent: tuple[str, ...]
    """Protected places that don't exist and have no such stand-in."""


class Surveyor:
    """Draws up the layout of each command of one sandbox, from what is there at that moment."""

    def __init__(
        self,
        mode: Mode,
        workspace: str,
        hidden: Sequence[str],
        protected: Sequence[str],
        readable: Sequence[str],
        *,
        can_cover: bool,
    ) -> None:
        """`workspace` and `readable` are resolved paths; `hidden` and `protected` are lists as in `places`.

        `can_cover`: the back end can protect a place within a folder that is writable as a whole, and so one that
        isn't there yet.
        """
        self._can_cover = can_cover
        for name in protected:
            if not is_within(os.path.normpath(os.path.join(workspace, name)), workspace) or name.strip("./") == "":
                raise SandboxInputError(f"{name!r} can't be protected: it should be a path within the workspace")
        self.mode, self.workspace, self.readable = mode, workspace, readable
        self.protected = tuple(name.rstrip("/") for name in protected)
        self._places = Places.of(hidden, workspace)
        self._first_hidden: frozenset[str] | None = None

    def scan(self, limit: int) -> WorkspaceScan:
        """A scan of the workspace for what the lists name."""
        return WorkspaceScan(self.workspace, self._places.names, limit)

    def survey(self, scan: WorkspaceScan, state: str, folder: str | None, writable: Sequence[str]) -> Layout:
        """The layout of a command that starts in `folder` and asked for the protected places `writable`.

        `state` is the sandbox's own folder, hidden but for its `tmp`. Raises `SandboxInputError` for what can't be
        asked for, `SandboxUnavailable` where a place can't be guarded.
        """
        found = scan.walk()
        hidden = [path for path in (*found.hidden, *self._places.existing(), state) if path != "/"]
        if self._first_hidden is None:
            self._first_hidden = frozenset(hidden)
        # A command may have deleted a link that told of a secret, and not the secret.
        hidden += filter(os.path.lexists, self._first_hidden.difference(hidden))
        if self.workspace in hidden:
            raise SandboxInputError(f"the workspace {self.workspace} is on the list of what is hidden: choose another")
        given = self._given(writable)
        guarded = self._guarded(found.repositories, given) if self.mode is not Mode.READ_ONLY else []
        absent = [path for path in guarded if placeholders.stands(path) or not os.path.lexists(path)]
        folders = [path for path in absent if self._can_cover and _can_stand_in(path)]
        rules = list(self._rules(hidden, [each for each in guarded if each not in absent] + folders, given))
        return Layout(
            mode=self.mode,
            workspace=self.workspace,
            folder=self._start(folder),
            scratch=os.path.join(state, "tmp"),
            rules=tuple(_held(rules) if self._can_cover else rules),
            placeholders=tuple(folders),
            absent=tuple(path for path in absent if path not in folders),
        )

    def _rules(
        self, hidden: Iterable[str], guarded: Sequence[str], given: Sequence[str]
    ) -> Iterator[tuple[str, Access]]:
        """One rule a path; those left out that change nothing, or would open what lies in a hidden folder."""
        is_full = self.mode is Mode.FULL
        wanted = dict.fromkeys(given, Access.WRITE) | dict.fromkeys(self.readable, Access.READ)
        wanted |= dict.fromkeys(guarded, Access.READ) | dict.fromkeys(hidden, Access.HIDDEN)
        wanted |= {each: Access.HIDDEN for each in REPLACED if not (is_full and each.endswith("tmp"))}
        wanted |= {"/": Access.WRITE if is_full else Access.READ}
        wanted |= {self.workspace: Access.READ if self.mode is Mode.READ_ONLY else Access.WRITE}
        named = {self.workspace, *given, *self.readable}
        only_shown = set(self.readable).difference(guarded)
        kept: dict[str, Access] = {}
        for path, access in sorted(wanted.items()):
            around = next((kept[each] for each in ancestors(path) if each in kept), None)
            if path in only_shown and access is Access.READ and around is Access.WRITE:
                continue  # to be shown takes nothing away
            if access is not around and (around is not Access.HIDDEN or path in named):
                kept[path] = access
                yield path, access

    def _start(self, folder: str | None) -> str:
        if folder is not None and (not isinstance(folder, str) or "\0" in folder):
            raise SandboxInputError(f"{folder!r} isn't the name of a folder")
        start = os.path.realpath(os.path.join(self.workspace, folder or "."))
        if self.mode is not Mode.FULL and not is_within(start, self.workspace):
            raise SandboxInputError(f"the folder {folder!r} is outside of the workspace {self.workspace}")
        if not os.path.isdir(start):
            raise SandboxInputError(f"the folder {folder!r} isn't there, or isn't a folder")
        return start

    def _given(self, writable: Sequence[str]) -> list[str]:
        """The paths of protected places that a command was given, and with `.git` of a worktree its repository."""
        if writable and self.mode is Mode.READ_ONLY:
            raise SandboxInputError("nothing can be made writable in read-only mode")
        given: list[str] = []
        for name in writable:
            if not isinstance(name, str) or "\0" in name:
                raise SandboxInputError(f"{name!r} isn't a path")
            path = os.path.normpath(os.path.join(self.workspace, name))
            below = os.path.relpath(path, self.workspace)
            is_git = ".git" in self.protected and ".git" in below.split("/")
            if not (is_git or any(is_within(below, each) for each in self.protected)) or os.path.realpath(path) != path:
                raise SandboxInputError(
                    f"{name!r} isn't a protected place of the workspace; these are: {', '.join(self.protected)}"
                )
            given += given_for(path) if os.path.basename(path) == ".git" else [path]
        return given

    def _guarded(self, repositories: Sequence[str], given: Sequence[str]) -> list[str]:
        """What to protect, there or not, without what was given; git's hooks and settings stay unless they were named.

        A symbolic link can be replaced, whatever is done to what it leads to, so it is refused.
        """
        guarded = [os.path.join(self.workspace, name) for name in self.protected]
        if ".git" in self.protected:
            guarded += repositories
        if len(guarded) > _MOST_REPOSITORIES:
            raise SandboxUnavailable(
                f"the workspace {self.workspace} holds more than {_MOST_REPOSITORIES} git repositories, too many to "
                "protect each: choose a smaller workspace, or leave .git out of `protected`"
            )
        link = next((path for path in guarded if os.path.islink(path)), None)
        if link is not None:
            raise SandboxUnavailable(
                f"{link} is a symbolic link, which can't be protected in a writable workspace: put in its place what "
                "it leads to (for .git a file that says `gitdir: PATH`), or leave it out of `protected`"
            )
        guarded += [part for git in repositories for part in protected_of(git, self.workspace)[1:]]
        kept = [path for path in guarded if not any(is_within(path, each) for each in given)]
        kept += [part for each in given for part in locked_parts(each) if part not in given]
        return list(dict.fromkeys(kept))


def _held(rules: Sequence[tuple[str, Access]]) -> list[tuple[str, Access]]:
    """The rules, and one for each writable folder on the way to what is hidden or protected, though it gives nothing.

    With a mount of its own a folder can't be renamed. Else a command could move it to where the next one isn't searched
    for secrets, such as into `node_modules`.
    """
    found = dict(rules)
    for path, access in rules:
        way: list[str] = []
        for folder in ancestors(path):
            if folder in found:
                if access is not Access.WRITE and found[folder] is Access.WRITE:
                    found |= dict.fromkeys(way, Access.WRITE)
                break
            way.append(folder)
    return sorted(found.items())


def _can_stand_in(path: str) -> bool:
    """Whether an empty folder can be made there: a name without a dot in it (but at its start) is a folder's."""
    folder, name = os.path.split(path)
    return "." not in name.lstrip(".") and os.path.isdir(folder) and os.access(folder, os.W_OK)


def ancestors(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path
