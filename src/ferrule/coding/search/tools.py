"""The tools `search`, which needs ripgrep, and `list_files`: contents and names of files.

Both read only what `FileAccess` allows: hidden files are excluded from the search, and again from what it found.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from ferrule._util.pluralize import pluralize
from ferrule.coding.files.editor_config import find_charset
from ferrule.coding.files.text_files import decode_file
from ferrule.coding.search.bounded_process import HelperEnd, run_helper
from ferrule.coding.search.globs import GlobInvalid, compile_glob
from ferrule.coding.search.listing import list_files_below, render_tree
from ferrule.coding.search.matches import FoundLine, MatchCollector, fingerprint_line, render_matches
from ferrule.coding.search.ripgrep import (
    NO_RIPGREP,
    SearchRequest,
    find_ripgrep,
    list_search_arguments,
    open_glob_file,
    run_without_unusable,
)
from ferrule.coding.workspace import Workspace
from ferrule.errors import FerruleError, FileAccessRefused, ToolFailed, ToolRetry
from ferrule.sandbox.file_access import AccessSnapshot
from ferrule.sandbox.open_beneath import describe_kind
from ferrule.sandbox.shell.access_plan import Access
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

__all__ = ["make_search_tools"]

SECONDS: Final = 20.0
"""The longest time of a search."""
MOST_RESULTS: Final = 20
LARGEST_RESULTS: Final = 500
_MOST_CONTEXT: Final = 20
_LONGEST_PATTERN: Final = 20_000
"""A program's argument may have 128 KB."""
_MOST_DECODED: Final = 1024 * 1024
"""The bytes of a file by which its encoding is found."""
_UNREADABLE: Final = re.compile(r"\(os error \d+\)$")
_READS: Final = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)

Where = Annotated[str, "The file or folder to search, relative to the workspace"]
Glob = Annotated[str | None, "Only files that match, such as *.py or src/**/*.{ts,tsx}"]


def make_search_tools(workspace: Workspace) -> list[Tool]:
    """Make `search` and `list_files` for one workspace and the folders added to it."""

    async def search(
        pattern: Annotated[str, "A regular expression, in ripgrep's syntax"],
        scope: CallScope,
        path: Where = ".",
        glob: Glob = None,
        literal: Annotated[bool, "Whether the pattern is plain text"] = False,
        ignore_case: Annotated[bool, "Whether upper and lower case are the same"] = False,
        context: Annotated[int, "Lines to show before and after each match, 0 to 20"] = 0,
        max_results: Annotated[int, "The most matching lines to show, 1 to 500"] = MOST_RESULTS,
    ) -> str:
        """Search the contents of files. Answers with lines `path:line: text`, and says how many are not shown.
        Files that .gitignore names, binary and hidden ones are left out.
        """
        if not pattern:
            raise ToolRetry("the pattern is empty: give the text to search for; list_files lists all files")
        if len(pattern) > _LONGEST_PATTERN:
            size = f"{len(pattern):,} characters; {_LONGEST_PATTERN:,} are allowed"
            raise ToolRetry(f"the pattern has {size}: search for a part of it")
        if "\n" in pattern or "\0" in pattern:
            raise ToolRetry("a pattern matches within one line, so it can't hold a line break or NUL")
        _check_range("context", context, 0, _MOST_CONTEXT)
        _check_range("max_results", max_results, 1, LARGEST_RESULTS)
        root, base, snapshot = await asyncio.to_thread(_resolve, workspace, path)
        request = SearchRequest(pattern, root, base, _check_glob(glob), literal, ignore_case, context)
        return await _Search(workspace, request, snapshot, max_results, _limit_seconds(scope)).run()

    async def list_files(
        scope: CallScope,
        path: Where = ".",
        depth: Annotated[int, "How many levels of folders to show, 1 to 20"] = 3,
        glob: Glob = None,
        max_entries: Annotated[int, "The most lines to show, 1 to 2000"] = 200,
    ) -> str:
        """List files and folders as a tree, with sizes; deeper or further ones are counted. Files that .gitignore
        names, links, empty folders and hidden files are left out.
        """
        _check_range("depth", depth, 1, 20)
        _check_range("max_entries", max_entries, 1, 2000)
        root, base, snapshot = await asyncio.to_thread(_resolve, workspace, path)
        _check_glob(glob)
        listing = await list_files_below(root, base, snapshot, glob=glob, seconds=_limit_seconds(scope))
        text = await asyncio.to_thread(render_tree, listing.paths, root, depth, max_entries)
        shown = f"{workspace.access.describe(root)}/" if Path(root).is_dir() else workspace.access.describe(root)
        matching = f" that match {glob}" if glob else ""
        return "\n".join([f"{shown}", text or f"[no files{matching}]", *(f"[{note}]" for note in listing.notes)])

    intent = _make_intent(workspace)
    return [tool(annotations=_READS, intent=intent)(each) for each in (search, list_files)]


class _Search:
    """One search, by ripgrep."""

    def __init__(
        self, workspace: Workspace, request: SearchRequest, snapshot: AccessSnapshot, most: int, seconds: float
    ) -> None:
        self._access, self._request, self._snapshot = workspace.access, request, snapshot
        self._most, self._seconds = most, seconds
        self._notes: list[str] = []

    async def run(self) -> str:
        program = find_ripgrep()
        if program is None:
            raise ToolFailed(_describe_missing(NO_RIPGREP))
        try:
            collector, end = await self._search_with(program)
        except OSError as error:
            find_ripgrep.cache_clear()  # it may have been removed, or replaced by another one
            problem = NO_RIPGREP if find_ripgrep() is None else f"ripgrep can't be run: {error.strerror}"
            raise ToolFailed(_describe_missing(problem)) from error
        text = await asyncio.to_thread(
            render_matches, collector, self._most, self._access.describe, self._find_encoding, self._is_there
        )
        if end.is_out_of_time:
            found = (
                f"{pluralize(collector.count, 'match', 'matches')} in {pluralize(len(collector.files), 'file')} so far"
            )
            hint = "narrow the path or the pattern"
            self._notes.append(f"not complete: stopped after {self._seconds:g} seconds, {found}; {hint}")
        elif end.status is not None and end.status > 1:
            self._note_errors(end, has_matches=bool(text))
        if not text and self._notes and self._notes[-1].startswith("not complete"):
            *others, last = self._notes
            raise ToolFailed("\n".join([f"no match was found, but the search was {last}", *others]))
        return "\n".join([text or self._describe_none(), *(f"[{note}]" for note in self._notes)])

    async def _search_with(self, program: str) -> tuple[MatchCollector, HelperEnd]:
        """Search with ripgrep: once in no order, and if that isn't complete again in order, for the same answer."""
        with open_glob_file(self._request.glob) as globs:
            for is_sorted in (False, True):
                collector, end = await self._search_once(program, globs, is_sorted=is_sorted)
                if not collector.is_full:
                    break
        return collector, end

    async def _search_once(
        self, program: str, globs: Path | None, *, is_sorted: bool
    ) -> tuple[MatchCollector, HelperEnd]:
        request, hidden = self._request, self._snapshot.list_hidden()
        collector = MatchCollector(self._is_allowed)

        async def start(further: Sequence[str], seconds: float) -> HelperEnd:
            nonlocal collector
            collector = MatchCollector(self._is_allowed)
            arguments = list_search_arguments(program, request, hidden, globs, is_sorted=is_sorted, further=further)
            return await run_helper(arguments, request.base, collector.take, seconds=seconds)

        end, self._notes = await run_without_unusable(request.root, request.base, self._seconds, start)
        return collector, end

    def _find_encoding(self, path: str) -> str:
        """The encoding of a file, as `read_file` finds it."""
        try:
            with open(self._access.open_file(path, snapshot=self._snapshot), "rb") as file:  # noqa: PTH123
                text = decode_file(file.read(_MOST_DECODED), find_charset(self._access, path, self._snapshot))
        except (OSError, FileAccessRefused):
            text = None
        return "utf-8" if text is None else text.encoding

    def _is_allowed(self, path: str) -> bool:
        """Whether matches in a file may be shown: it isn't hidden or reached by a link, and the glob matches."""
        glob = self._request.glob
        if (
            glob is not None
            and path != self._request.root
            and not compile_glob(glob)(path[len(self._request.base) + 1 :])
        ):
            return False
        real = os.path.realpath(path)
        return real == path and self._snapshot.decide(real) in (Access.READ, Access.WRITE)

    def _is_there(self, path: str, lines: Sequence[FoundLine]) -> bool:
        """Whether a file has these lines, read as file tools read: no link is followed that has taken its place.

        What searched has opened files by their names, and so may have been led to another one.
        """
        wanted = {line.number: line.fingerprint for line in lines if line.number}
        try:
            with open(self._access.open_file(path, snapshot=self._snapshot), "rb") as file:  # noqa: PTH123 - a descriptor
                for number, text in enumerate(_decode_lines(file), 1):
                    if wanted and wanted.pop(number, None) not in (None, fingerprint_line(text)):
                        return False
                    if not wanted:
                        break
        except (OSError, FileAccessRefused):
            return False
        return not wanted

    def _note_errors(self, end: HelperEnd, *, has_matches: bool) -> None:
        """Note files that couldn't be read. Raises unless that is all that went wrong."""
        lines = [line.removeprefix("rg: ") for line in end.errors.splitlines()]
        unreadable = [line for line in lines if _UNREADABLE.search(line)]
        if len(unreadable) < len(lines) or not lines:
            reason = "; ".join(line.strip() for line in lines if line.strip(" ^")) or f"exit status {end.status}"
            hint = "" if self._request.is_literal else "; with literal=true it is searched as plain text"
            raise ToolRetry(f"the pattern can't be searched: {reason}{hint}")
        number = pluralize(len(unreadable), "file or folder", "files or folders")
        note = f"{number} couldn't be read, such as {unreadable[0]}"
        if not has_matches:
            raise ToolFailed(f"no match was found in what could be read, but {note}")
        self._notes.append(note)

    def _describe_none(self) -> str:
        request = self._request
        where = self._access.describe(request.root)
        files = f" in files that match {request.glob}" if request.glob else ""
        kind = "text" if request.is_literal else "pattern"
        found = f"No matches found for {kind} {request.pattern!r} in {where}{files}"
        if request.pattern.isascii():
            return found
        return f"{found}\n[in files that are neither UTF-8 nor UTF-16 only ASCII text is found]"


def _describe_missing(problem: str) -> str:
    return f"{problem}, and search needs it; list_files and read_file work without it"


def _decode_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file as ripgrep reports them: those of UTF-16, by its byte order mark, in UTF-8."""
    is_wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    file.seek(0)
    if not is_wide:
        yield from file
        return
    for line in io.TextIOWrapper(file, "utf-16", "replace", newline="\n"):
        yield line.encode("utf-8", "replace")


def _resolve(workspace: Workspace, path: str) -> tuple[str, str, AccessSnapshot]:
    """The real path to search, the allowed folder that it is in, and the decisions on all paths."""
    try:
        snapshot = workspace.access.take_snapshot()
        root = workspace.access.check(path, Access.READ, snapshot)
    except FerruleError as error:
        raise ToolFailed(str(error)) from error
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116
    except OSError:
        raise ToolRetry(
            f"there is no file or folder {workspace.access.describe(root)}; list_files lists what is there"
        ) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ToolRetry(f"{workspace.access.describe(root)} is {describe_kind(mode)}, not a file or folder")
    base = workspace.access.find_folder(root)
    assert base is not None
    return root, str(base), snapshot


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ToolRetry(f"{name} must be a number from {least} to {most}, not {value}")


def _check_glob(glob: str | None) -> str | None:
    try:
        if glob is not None:
            compile_glob(glob)
    except GlobInvalid as error:
        raise ToolRetry(f"the glob {glob!r} can't be used: {error}") from error
    return glob


def _limit_seconds(scope: CallScope) -> float:
    left = scope.seconds_left
    return SECONDS if left is None else max(0.1, min(SECONDS, left - 1.0))


def _make_intent(workspace: Workspace) -> Callable[[Mapping[str, Any]], Intent]:
    def intent(arguments: Mapping[str, Any]) -> Intent:
        try:
            target = workspace.access.resolve(str(arguments.get("path") or "."))
        except FileAccessRefused as error:
            raise ToolFailed(str(error)) from error
        return Intent((Effect("read", target, is_recursive=True),))

    return intent
