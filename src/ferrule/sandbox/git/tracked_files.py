"""Hidden files that git tracks: commands see them as git's index has them.

Any command can read that content by `git show :.env`, so it isn't a secret. Without it, git would take the file for
changed, and `git commit -a` would fail or commit an empty one. What the user has changed since stays hidden.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH113, PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ferrule.sandbox.file_versions import read_version
from ferrule.sandbox.git.program import Git, find_git, make_repository
from ferrule.sandbox.git.repositories import find_common_folder, resolve_repository

__all__ = ["TrackedFiles", "list_tracked_names"]

_MODES: Final = {b"100644": 0o444, b"100755": 0o555}
_CONVERTING: Final = ("filter", "ident", "working-tree-encoding")
_MAX_FILES: Final = 100
_MAX_BYTES: Final = 1024 * 1024
_SECONDS: Final = 10.0
_LISTING_SECONDS: Final = 5.0


@dataclass(slots=True)
class TrackedFiles:
    """Copies of tracked files in a folder of the sandbox; a repository is read again when its index has changed."""

    folder: str
    workspace: str
    _known: dict[str, tuple[tuple[object, ...], dict[str, str]]] = field(default_factory=dict)
    """By repository: the version of its index with the files asked for, and their copies."""
    _kept: dict[tuple[str, str, int], str | None] = field(default_factory=dict)
    """Copies by repository, object and mode, which most changes of an index leave as they are; None for a long one."""
    _names: Iterator[int] = field(default_factory=count)

    def find_copies(self, hidden: Iterable[str]) -> dict[str, str]:
        """The copies to show in place of those hidden files that are tracked, by path.

        Left out is what isn't known to be shown as git would write it: links, conflicts, files with a filter.
        """
        by_tree: dict[str, list[str]] = {}
        trees: dict[str, str | None] = {}
        for path in hidden:
            tree = _find_tree(os.path.dirname(path), trees)
            if tree is not None and len(by_tree.get(tree, ())) < _MAX_FILES and os.path.isfile(path):
                by_tree.setdefault(tree, []).append(path)
        found: dict[str, str] = {}
        for tree, paths in by_tree.items():
            repository = resolve_repository(os.path.join(tree, ".git"))
            index = os.path.join(repository, "index")
            if not os.path.isfile(index):
                continue
            version = (read_version(index), tuple(paths))
            known = self._known.get(tree)
            if known is None or known[0] != version or version[0] is None:
                known = self._known[tree] = (version, self._read(tree, repository, paths))
            found |= known[1]
        return found

    def _read(self, tree: str, repository: str, paths: Sequence[str]) -> dict[str, str]:
        program = find_git(self.workspace)
        if program is None:
            return {}
        common = find_common_folder(repository) or repository
        environment = {
            "GIT_WORK_TREE": tree,
            "GIT_INDEX_FILE": os.path.join(repository, "index"),
            "GIT_OBJECT_DIRECTORY": os.path.join(common, "objects"),
        }
        try:
            reader = _Reader(Git(program, self._make_repository()), tree, environment)
            copies = {path: self._copy(reader, blob, mode) for path, (mode, blob) in reader.list_files(paths).items()}
        except OSError:
            return {}
        return {path: copy for path, copy in copies.items() if copy is not None}

    def _make_repository(self) -> str:
        """An empty repository of our own, so that git reads none of the workspace's settings."""
        repository = os.path.join(self.folder, "repository")
        make_repository(repository)
        return repository

    def _copy(self, reader: _Reader, blob: str, mode: int) -> str | None:
        key = reader.tree, blob, mode
        if key not in self._kept:
            content = reader.read(blob)
            self._kept[key] = self._keep(content, mode) if len(content) <= _MAX_BYTES else None
        return self._kept[key]

    def _keep(self, content: bytes, mode: int) -> str:
        kept = Path(self.folder, f"{next(self._names)}.tracked")
        kept.write_bytes(content)
        kept.chmod(mode)
        return str(kept)


@dataclass(frozen=True, slots=True)
class _Reader:
    git: Git
    tree: str
    environment: Mapping[str, str]

    def list_files(self, paths: Sequence[str]) -> dict[str, tuple[int, str]]:
        """The mode and object of each file in the index. Raises `OSError` if git fails."""
        below = {os.fsencode(os.path.relpath(path, self.tree)): path for path in paths}
        entries = self._run("--literal-pathspecs", "ls-files", "-s", "-z", "--", *map(os.fsdecode, below))
        found: dict[bytes, tuple[int, str]] = {}
        for entry in filter(None, entries.split(b"\0")):
            about, _, name = entry.partition(b"\t")
            mode, blob, stage = about.split()
            if name in below and mode in _MODES and stage == b"0":
                found[name] = (_MODES[mode], blob.decode())
        converted = self._find_converted(found) if found else ()
        return {below[name]: entry for name, entry in found.items() if name not in converted}

    def read(self, blob: str) -> bytes:
        """The content of an object. Raises `OSError` if git fails."""
        return self._run("cat-file", "blob", blob)

    def _find_converted(self, names: Iterable[bytes]) -> set[bytes]:
        """The files of which git keeps another content than it writes to them, as of an encrypted one."""
        listed = self._run("check-attr", "--cached", "-z", *_CONVERTING, "--", *map(os.fsdecode, names)).split(b"\0")
        values = zip(listed[::3], listed[2::3], strict=False)
        return {name for name, value in values if value not in (b"unspecified", b"unset")}

    def _run(self, *arguments: str) -> bytes:
        return self.git.run(*arguments, folder=self.tree, environment=self.environment, seconds=_SECONDS)


def list_tracked_names(folder: str) -> str:
    """The names, separated by NUL, in the index of the repository that `folder` is in. Raises `OSError`."""
    tree = _find_tree(folder, {})
    if tree is None:
        raise OSError("it isn't in a repository")
    program, index = find_git(tree), os.path.join(resolve_repository(os.path.join(tree, ".git")), "index")
    if program is None or not os.path.isfile(index):
        raise OSError("there is no git, or no index")
    # In a repository of our own, git takes no settings from the workspace.
    with TemporaryDirectory(prefix="ferrule-") as repository:
        make_repository(repository)
        git, environment = Git(program, repository), {"GIT_WORK_TREE": tree, "GIT_INDEX_FILE": index}
        names = git.run("ls-files", "-z", folder=tree, environment=environment, seconds=_LISTING_SECONDS)
    return os.fsdecode(names).rstrip("\0")


def _find_tree(folder: str, known: dict[str, str | None]) -> str | None:
    """The working tree that a folder is in; `known` are those of folders asked for before."""
    passed = []
    while folder not in known:
        passed.append(folder)
        if os.path.lexists(os.path.join(folder, ".git")):
            known[folder] = folder
        elif folder == "/":
            known[folder] = None
        else:
            folder = os.path.dirname(folder)
    tree = known[folder]
    known.update(dict.fromkeys(passed, tree))
    return tree
