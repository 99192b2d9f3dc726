"""Lists the files of a folder that .gitignore doesn't exclude, by ripgrep, else by git, else all; and writes the tree.

The tree is bounded in depth and lines, with counts of what is left out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.coding.search.bounded_process import HelperEnd, run_helper
from ferrule.coding.search.globs import compile_glob
from ferrule.coding.search.ripgrep import NO_RIPGREP, find_ripgrep, list_file_arguments, run_without_unusable
from ferrule.sandbox.file_access import AccessSnapshot
from ferrule.sandbox.git.ignored_files import describe_unusable, find_unusable, make_listing_command
from ferrule.sandbox.git.program import find_git
from ferrule.sandbox.shell.access_plan import Access

__all__ = ["FileListing", "list_files_below", "render_tree"]

MOST_FILES: Final = 200_000
"""Files after which a listing ends."""


@dataclass(frozen=True, slots=True)
class FileListing:
    """Absolute paths in order, and what the reader should know of how they were found."""

    paths: tuple[str, ...]
    notes: tuple[str, ...] = ()


async def list_files_below(
    root: str, base: str, snapshot: AccessSnapshot, *, glob: str | None = None, seconds: float = 20.0
) -> FileListing:
    """List the files below the real path `root`, or the file itself, in the allowed folder `base`.

    Globs are relative to `base`. Left out are ignored and hidden files, links, and what is in `.git`. Raises
    `GlobInvalid`.
    """
    if Path(root).is_file():
        return FileListing((root,))
    matches = compile_glob(glob) if glob is not None else lambda _: True
    found: list[str] = []

    def take(line: bytes) -> bool:
        path = os.fsdecode(line)
        if matches(path[len(base) + 1 :]) and snapshot.decide(path) is not Access.HIDDEN:
            found.append(path)
        return len(found) < MOST_FILES

    notes = await _list_paths(root, base, snapshot, found, take, seconds)
    if len(found) >= MOST_FILES:
        notes = (*notes, f"more than {MOST_FILES:,} files, of which the first are listed")
    return FileListing(tuple(sorted(found)), notes)


async def _list_paths(
    root: str, base: str, snapshot: AccessSnapshot, found: list[str], take: Callable[[bytes], bool], seconds: float
) -> tuple[str, ...]:
    ripgrep = find_ripgrep()
    if ripgrep is not None:
        with suppress(OSError):  # it was removed, or can't be run
            return await _list_with(ripgrep, root, base, snapshot, found, take, seconds)
    unusable = await asyncio.to_thread(find_unusable, root, base)
    if unusable:
        return await _list_all(root, take, (NO_RIPGREP, *describe_unusable(unusable, base)))
    listed: list[bytes] = []
    end = await _list_with_git(root, base, listed, seconds)
    if end.status == 0 or end.is_out_of_time:
        _take_regular((b"%b/%b" % (os.fsencode(root), each) for each in listed), take)
        return (NO_RIPGREP, _describe_late(seconds, found)) if end.is_out_of_time else (NO_RIPGREP,)
    return await _list_all(root, take, (f"{NO_RIPGREP}, and this is no git repository, so .gitignore isn't respected",))


async def _list_with(
    ripgrep: str,
    root: str,
    base: str,
    snapshot: AccessSnapshot,
    found: list[str],
    take: Callable[[bytes], bool],
    seconds: float,
) -> tuple[str, ...]:
    """List files by ripgrep; what it couldn't read is counted."""

    async def start(further: Sequence[str], left: float) -> HelperEnd:
        found.clear()
        arguments = list_file_arguments(ripgrep, root, base, snapshot.list_hidden(), further)
        return await run_helper(arguments, base, take, seconds=left, separator=b"\0")

    end, notes = await run_without_unusable(root, base, seconds, start)
    if end.is_out_of_time:
        notes.append(_describe_late(seconds, found))
    elif end.status is not None and end.status > 1:
        unread = [line.removeprefix("rg: ") for line in end.errors.splitlines()]
        such = f", such as {unread[0]}" if unread else ""
        notes.append(f"{pluralize(len(unread), 'file or folder', 'files or folders')} couldn't be read{such}")
    return tuple(notes)


async def _list_with_git(root: str, base: str, listed: list[bytes], seconds: float) -> HelperEnd:
    git = find_git(base)
    if git is None:
        return HelperEnd(None, "")
    arguments, environment = make_listing_command(git)
    take = _keep_in(listed)
    try:
        return await run_helper(arguments, root, take, seconds=seconds, separator=b"\0", environment=environment)
    except OSError:  # it was removed, or can't be run
        return HelperEnd(None, "")


async def _list_all(root: str, take: Callable[[bytes], bool], notes: tuple[str, ...]) -> tuple[str, ...]:
    await asyncio.to_thread(_take_regular, _walk(os.fsencode(root)), take)
    return notes


def _describe_late(seconds: float, found: Sequence[str]) -> str:
    return f"not complete: stopped after {seconds:g} seconds, {pluralize(len(found), 'file')} so far"


def _keep_in(listed: list[bytes]) -> Callable[[bytes], bool]:
    def keep(line: bytes) -> bool:
        listed.append(line)
        return len(listed) < MOST_FILES

    return keep


def _take_regular(paths: Iterator[bytes], take: Callable[[bytes], bool]) -> None:
    for path in paths:
        if Path(os.fsdecode(path)).is_file() and not Path(os.fsdecode(path)).is_symlink() and not take(path):
            return


def _walk(root: bytes) -> Iterator[bytes]:
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each != b".git"]
        yield from (b"%b/%b" % (folder, each) for each in names)


@dataclass(slots=True)
class _Folder:
    """A folder: its folders and files by name, the number of files below it, and how many of its entries are shown."""

    depth: int = 0
    folders: dict[str, _Folder] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    count: int = 0
    shown: int = 0


def render_tree(paths: Sequence[str], root: str, depth: int, most: int) -> str:
    """Write the tree of absolute paths below `root`, at most `depth` levels and about `most` lines.

    The levels share the lines: a folder is shown before what is deeper elsewhere. Empty without paths.
    """
    if list(paths) == [root]:
        return _describe_file(root)
    top = _build(paths, root)
    _share_lines(top, depth, most)
    return "\n".join(_render(top, root, ""))


def _build(paths: Sequence[str], root: str) -> _Folder:
    top = _Folder()
    for path in paths:
        *names, last = path[len(root.rstrip("/")) + 1 :].split("/")
        folder = top
        folder.count += 1
        for name in names:
            folder = folder.folders.setdefault(name, _Folder(folder.depth + 1))
            folder.count += 1
        folder.files.append(last)
    return top


def _share_lines(top: _Folder, depth: int, most: int) -> None:
    """Decide how many entries of each folder are shown, level by level, evenly within a level."""
    level, left = [top], most
    while level and left > 0 and level[0].depth < depth:
        following: list[_Folder] = []
        for number, folder in enumerate(level):
            entries = len(folder.folders) + len(folder.files)
            folder.shown = min(entries, max(0, left // (len(level) - number)))
            left -= folder.shown
            following += [folder.folders[name] for name in sorted(folder.folders)[: folder.shown]]
        level = following


def _render(folder: _Folder, path: str, indent: str) -> Iterator[str]:
    shown = sorted(folder.folders)[: folder.shown]
    for name in shown:
        inner = folder.folders[name]
        yield f"{indent}{escape_line(name)}/" + ("" if inner.shown else f" ({pluralize(inner.count, 'file')})")
        yield from _render(inner, f"{path}/{name}", f"{indent}  ")
    files = folder.files[: folder.shown - len(shown)]
    for name in files:
        yield f"{indent}{escape_line(name)}  {_describe_file(f'{path}/{name}')}"
    left_out = folder.count - sum(folder.folders[name].count for name in shown) - len(files)
    if folder.shown and left_out:
        yield f"{indent}[{pluralize(left_out, 'more file')} here and below]"


def _describe_file(path: str) -> str:
    try:
        return describe_size(Path(path).lstat().st_size)
    except OSError:
        return "(gone)"
