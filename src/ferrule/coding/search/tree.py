"""Writes a list of paths as a tree that is bounded in depth and lines, with counts of what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line

__all__ = ["render_tree"]


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
