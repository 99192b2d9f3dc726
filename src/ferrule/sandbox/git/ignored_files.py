"""What git ignores: the files that say so, which of those can be relied on, and the ignored files of a workspace.

ripgrep and git read whatever is called `.gitignore`: a pipe keeps them waiting, a device or a huge file fills the
memory. `IgnoredFiles` lists what is ignored, and decides which of it a checkpoint leaves out: the largest, once all
have more than the limit.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH112, PTH113, PTH114, PTH118
from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.sandbox.git.program import Git
from ferrule.sandbox.git.repositories import resolve_repository
from ferrule.sandbox.open_beneath import describe_kind

__all__ = [
    "GENERATED",
    "IgnoredFiles",
    "UnusableIgnoreFiles",
    "describe_unusable",
    "find_unusable",
    "find_unusable_above",
    "make_listing_command",
]

_MAX_FILES = 20_000
_SECONDS = 30.0
_PATIENCE = 3.0
"""Seconds after which what git may be waiting for is looked for."""
GENERATED = frozenset(("node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"))
"""Folders that count as ignored also where nothing says so: they are made by programs, and large."""
_IGNORE_FILES: Final = (".gitignore", ".ignore", ".rgignore")
_MOST_BYTES: Final = 4 * 1024 * 1024
"""The longest of such files that is read."""
_LONGEST_SCAN: Final = 5.0
_MOST_NAMED: Final = 3

UnusableIgnoreFiles = dict[str, str]
"""Paths of files that can't be relied on, each with what it is."""


def find_unusable_above(root: str, base: str) -> UnusableIgnoreFiles:
    """Those in the folders from the path `root` up to the allowed folder `base`."""
    folder, paths = root, [f"{base}/.git/info/exclude"]
    while True:
        paths += [f"{folder}/{name}" for name in _IGNORE_FILES]
        if folder in (base, "/"):
            break
        folder = os.path.dirname(folder)  # noqa: PTH120 - strings, for each folder
    return _check(paths, base)


def find_unusable(root: str, base: str) -> UnusableIgnoreFiles:
    """Those in all folders below `root`, as far as they are found within five seconds."""
    ends, waiting, found = time.monotonic() + _LONGEST_SCAN, [root], UnusableIgnoreFiles()
    while waiting and time.monotonic() < ends:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name in _IGNORE_FILES:
                    found |= _check([entry.path], base)
                elif entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return found


def _check(paths: Iterable[str], base: str) -> UnusableIgnoreFiles:
    return {path: problem for path in paths if (problem := _describe_problem(path, base))}


def _describe_problem(path: str, base: str) -> str:
    """Why a file can't be used; empty if it can, or isn't there."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ""
    real = os.path.realpath(path)
    if real != path and not real.startswith(f"{base}/"):
        return "a link to outside"
    if stat.S_ISDIR(status.st_mode):
        return ""
    if not stat.S_ISREG(status.st_mode):
        return describe_kind(status.st_mode)
    return f"{describe_size(status.st_size)} long" if status.st_size > _MOST_BYTES else ""


def describe_unusable(unusable: UnusableIgnoreFiles, base: str) -> list[str]:
    """What a reader of the result should know; nothing if there are none."""
    if not unusable:
        return []
    named = [f"{escape_line(path[len(base) + 1 :])} ({what})" for path, what in sorted(unusable.items())[:_MOST_NAMED]]
    more = f" and {len(unusable) - _MOST_NAMED:,} more" if len(unusable) > _MOST_NAMED else ""
    count = pluralize(len(unusable), "file that says what to ignore isn't", "files that say what to ignore aren't")
    return [f"{count} read, so ignored files may be listed: {', '.join(named)}{more}"]


def make_listing_command(program: str) -> tuple[list[str], dict[str, str]]:
    """The command that lists the files below a folder that git doesn't ignore, ended by NUL, and its environment.

    Git reads the repository's settings for it, of which `core.fsmonitor` and those for fetching a missing object name
    programs to run.
    """
    arguments = [program, "-c", "core.fsmonitor=false", "ls-files", "-coz", "--exclude-standard", "--", "."]
    return arguments, {"GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0"}


@dataclass(slots=True)
class IgnoredFiles:
    """The ignored files of one workspace, of which up to `limit` bytes are included in checkpoints."""

    workspace: str
    git: Git | None
    """For a repository of its own, without settings; None without git, when nothing counts as ignored."""
    limit: int
    left_out: frozenset[str] = frozenset()
    """What was left out the last time; it stays so until it is gone, so that its size is only taken once."""
    _listing: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to list what is ignored, in a process of its own; `finish` has to follow."""
        if self.git is not None:
            self._listing = self._start_listing(self.git, has_index=True)

    def finish(self) -> frozenset[str]:
        """The ignored files and folders to leave out: smaller ones are included first.

        Raises `OSError` if git can't list them.
        """
        listing, self._listing = self._listing, None
        if self.git is None or listing is None:
            return frozenset()
        listed = self._read(self.git, listing, has_index=True)
        if listed is None:
            listed = self._read(self.git, self._start_listing(self.git, has_index=False), has_index=False)
        if listed is None:
            raise OSError("git can't list the ignored files of the workspace")
        large = self.left_out.intersection(listed)
        sizes = {path: self._measure(path) for path in listed if path not in large}
        left, added = self.limit, set()
        for path, size in sorted(sizes.items(), key=lambda each: (each[1], each[0])):
            left -= size
            if left < 0:
                added.add(path)
        self.left_out = large | added
        return self.left_out

    def select(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths, relative to the workspace, that are ignored and not tracked: for lists that people read.

        They needn't exist. What only the repository's own `info/exclude` names isn't found.
        """
        generated = {path for path in paths if not GENERATED.isdisjoint(path.split("/"))}
        asked = [path for path in paths if path not in generated and path and not path.startswith("/")]
        if self.git is None or not asked:
            return frozenset(generated)
        repository = resolve_repository(os.path.join(self.workspace, ".git"))
        asking = self.git.start(
            *("-c", f"core.excludesFile={_find_user_excludes()}", "check-ignore", "-z", "--stdin"),
            folder=self.workspace,
            environment={"GIT_WORK_TREE": self.workspace, "GIT_INDEX_FILE": os.path.join(repository, "index")},
        )
        # With a slash, too: a pattern for folders doesn't match what is no longer there.
        given = b"".join(os.fsencode(f"{path}\0{path}/\0") for path in asked)
        listed = _stop_late(asking, _read_listing(asking, _PATIENCE, given))
        return frozenset(generated.union(listed or ()))

    def _read(self, git: Git, listing: subprocess.Popen[bytes], *, has_index: bool) -> list[str] | None:
        """What git lists, relative to the workspace; None if it fails or takes too long. Starts it anew if need be."""
        listed = _read_listing(listing, _PATIENCE)
        if listing.poll() is not None:
            return listed
        # It may be waiting for a pipe in place of a .gitignore: then only what is beside it counts.
        unusable = find_unusable(self.workspace, self.workspace)
        if not unusable:
            return _stop_late(listing, _read_listing(listing, _SECONDS))
        _stop_late(listing, None)
        listing = self._start_listing(git, has_index=has_index, unusable=unusable)
        return _stop_late(listing, _read_listing(listing, _SECONDS))

    def _start_listing(self, git: Git, *, has_index: bool, unusable: Collection[str] = ()) -> subprocess.Popen[bytes]:
        """Start git, to list what is ignored: a folder in place of all that is in it.

        From the user's index, which it doesn't write, it knows which ignored files are tracked nevertheless. If some of
        the files that say what is ignored are `unusable`, only the one of the workspace itself is read.
        """
        top = os.path.join(self.workspace, ".gitignore")
        standard = "--exclude-standard" if not unusable else f"--exclude-from={top}"
        repository = resolve_repository(os.path.join(self.workspace, ".git"))
        excludes = os.path.join(repository, "info", "exclude")
        return git.start(
            *("-c", f"core.excludesFile={_find_user_excludes()}", "ls-files", "-o", "-i", "-z", "--directory"),
            *((f"--exclude-from={excludes}",) if os.path.isfile(excludes) else ()),
            *((standard,) if not unusable or (top not in unusable and os.path.isfile(top)) else ()),
            *(f"--exclude={name}/" for name in sorted(GENERATED)),
            folder=self.workspace,
            environment={
                "GIT_WORK_TREE": self.workspace,
                "GIT_INDEX_FILE": os.path.join(repository if has_index else git.repository, "index"),
            },
        )

    def _measure(self, path: str) -> int:
        """The bytes in a file or folder; more than the limit if there are too many files to count."""
        top = os.path.join(self.workspace, path)
        try:
            size = os.lstat(top).st_size
        except OSError:
            return 0
        if not os.path.isdir(top) or os.path.islink(top):
            return size
        size, count, waiting = 0, 0, [top]
        while waiting and size <= self.limit and count <= _MAX_FILES:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                        count += 1
        return self.limit + 1 if waiting or count > _MAX_FILES else size


def _read_listing(listing: subprocess.Popen[bytes], seconds: float, given: bytes | None = None) -> list[str] | None:
    """The paths that git lists; None if it fails, or isn't done by then."""
    try:
        found, _ = listing.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return [os.fsdecode(path).rstrip("/") for path in found.split(b"\0") if path] if not listing.returncode else None


def _stop_late(listing: subprocess.Popen[bytes], listed: list[str] | None) -> list[str] | None:
    """Stop git if it isn't done yet."""
    if listing.poll() is None:
        listing.kill()
        listing.communicate()
    return listed


def _find_user_excludes() -> str:
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(Path.home(), ".config")
    return os.path.join(folder, "git", "ignore")
