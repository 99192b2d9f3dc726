"""Decides which ignored files a checkpoint leaves out: the largest, once all have more than the limit."""

# ruff: noqa: PTH112, PTH113, PTH114, PTH118
from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ferrule.coding.search.ignore_files import find_unusable
from ferrule.sandbox.git.program import Git
from ferrule.sandbox.git.repositories import resolve_repository

__all__ = ["GENERATED", "IgnoredFiles", "make_repository"]

_MAX_FILES = 20_000
_SECONDS = 30.0
_PATIENCE = 3.0
"""Seconds after which what git may be waiting for is looked for."""
GENERATED = frozenset(("node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"))
"""Folders that count as ignored also where nothing says so: they are made by programs, and large."""


def make_repository(folder: str, settings: str = "") -> None:
    """Make an empty repository: what git needs to see, and nothing that it would run. Raises `OSError`."""
    for name in ("objects/pack", "objects/info", "refs/heads", "info"):
        Path(folder, name).mkdir(mode=0o700, parents=True, exist_ok=True)
    Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
    version = 1 if settings else 0
    Path(folder, "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{settings}")


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
