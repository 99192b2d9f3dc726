"""Lists of paths for people: what is ignored, and what is too much, as one line a folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.sandbox.git.ignored_files import GENERATED

__all__ = ["PathNote", "find_parents", "list_paths"]


@dataclass(frozen=True, slots=True)
class PathNote:
    """A path, and what is said before and after it."""

    path: str
    before: str
    after: str = ""


def list_paths(notes: Sequence[PathNote], ignored: Collection[str], most: int) -> list[str]:
    """Write a line for each path, those of `ignored` last and one line a folder.

    Where more than `most` lines are left, paths that aren't ignored are listed by their folders, too.
    """
    parents = find_parents(note.path for note in notes)
    own = [note for note in notes if note.path not in ignored]
    lines = _group(own, parents, _itself)
    depth = max((note.path.count("/") for note in own), default=0)
    while len(lines) > most and depth > 0:
        lines, depth = _group(own, parents, _cut_at(depth)), depth - 1
    hidden = len(lines) - most
    if hidden > 0:
        lines = [*lines[:most], f"  and {hidden:,} more"]
    theirs = _group([note for note in notes if note.path in ignored], parents, find_ignored_folder, " (ignored)")
    hidden = len(theirs) - most
    return [*lines, *theirs[:most], *([f"  and {hidden:,} more that are ignored"] if hidden > 0 else [])]


def find_ignored_folder(path: str) -> str:
    """The folder by which an ignored path is listed: the generated one that it is in, or else the outermost."""
    names = path.split("/")
    for at, name in enumerate(names):
        if name in GENERATED:
            return "/".join(names[: at + 1])
    return names[0] or path


def _itself(path: str) -> str:
    return path


def _cut_at(depth: int) -> Callable[[str], str]:
    return lambda path: "/".join(path.split("/")[:depth])


def find_parents(paths: Iterable[str]) -> set[str]:
    """All folders above these paths."""
    parents: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in parents:
            parents.add(folder)
            folder = folder.rpartition("/")[0]
    return parents


def _group(
    notes: Sequence[PathNote], parents: Collection[str], find_folder: Callable[[str], str], mark: str = ""
) -> list[str]:
    """Write one line for all notes that say the same of paths in the same folder; folders themselves don't count."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for note in notes:
        groups.setdefault((note.before, find_folder(note.path), note.after), []).append(note.path)
    lines = []
    for (before, folder, after), paths in groups.items():
        files = [path for path in paths if path not in parents]
        shown = escape_line(paths[0]) if len(paths) == 1 else f"{escape_line(folder)}/ {pluralize(len(files), 'file')}"
        lines.append(f"{before}{shown}{mark}{after}")
    return lines
