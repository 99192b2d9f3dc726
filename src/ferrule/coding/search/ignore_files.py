"""Finds the files such as .gitignore that a search can't rely on, and runs ripgrep without them.

ripgrep and git read whatever has such a name: a pipe keeps them waiting, a device or a huge file fills the memory.
Those of the folders on the way to a search are looked at before it starts, all others only if it isn't done soon:
looking for them in every folder takes longer than most searches.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from ferrule._util.file_size import describe_size
from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.coding.search.bounded_process import HelperEnd
from ferrule.sandbox.open_beneath import describe_kind

__all__ = ["UnusableIgnoreFiles", "describe_unusable", "find_unusable", "run_without_unusable"]

IGNORE_FILES: Final = (".gitignore", ".ignore", ".rgignore")
MOST_BYTES: Final = 4 * 1024 * 1024
"""The longest of such files that is read."""
_PATIENCE: Final = 1.0
"""Seconds after which all folders are looked at."""
_LONGEST_SCAN: Final = 5.0
_MOST_NAMED: Final = 3

UnusableIgnoreFiles = dict[str, str]
"""Paths of files that can't be relied on, each with what it is."""


def find_unusable_above(root: str, base: str) -> UnusableIgnoreFiles:
    """Those in the folders from the path `root` up to the allowed folder `base`."""
    folder, paths = root, [f"{base}/.git/info/exclude"]
    while True:
        paths += [f"{folder}/{name}" for name in IGNORE_FILES]
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
                if entry.name in IGNORE_FILES:
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
    return f"{describe_size(status.st_size)} long" if status.st_size > MOST_BYTES else ""


def list_arguments(unusable: UnusableIgnoreFiles, base: str) -> list[str]:
    """The options that keep ripgrep from reading them, and nearly all others of their kind.

    It has no option for a single one; those of the allowed folder itself are given to it by name.
    """
    names = {os.path.basename(path) for path in unusable}  # noqa: PTH119
    arguments = ["--no-ignore-dot"] if names & {".ignore", ".rgignore"} else []
    arguments += ["--no-ignore-vcs"] if names & {".gitignore", "exclude"} else []
    hidden = ([".ignore", ".rgignore"] if "--no-ignore-dot" in arguments else []) + (
        [".gitignore"] if "--no-ignore-vcs" in arguments else []
    )
    kept = [f"{base}/{name}" for name in hidden if f"{base}/{name}" not in unusable]
    return [*arguments, *(f"--ignore-file={path}" for path in kept if os.path.isfile(path))]  # noqa: PTH113


def describe_unusable(unusable: UnusableIgnoreFiles, base: str) -> list[str]:
    """What a reader of the result should know; nothing if there are none."""
    if not unusable:
        return []
    named = [f"{escape_line(path[len(base) + 1 :])} ({what})" for path, what in sorted(unusable.items())[:_MOST_NAMED]]
    more = f" and {len(unusable) - _MOST_NAMED:,} more" if len(unusable) > _MOST_NAMED else ""
    count = pluralize(len(unusable), "file that says what to ignore isn't", "files that say what to ignore aren't")
    return [f"{count} read, so ignored files may be listed: {', '.join(named)}{more}"]


async def run_without_unusable(
    root: str, base: str, seconds: float, start: Callable[[Sequence[str], float], Awaitable[HelperEnd]]
) -> tuple[HelperEnd, list[str]]:
    """Run ripgrep by `start`, which takes further arguments and seconds, and begins its results anew each time.

    Returns how it ended, and what a reader of the results should know. Raises what `start` raises.
    """
    ends = time.monotonic() + seconds
    unusable = await asyncio.to_thread(find_unusable_above, root, base)
    running = asyncio.ensure_future(start(list_arguments(unusable, base), seconds))
    try:
        await asyncio.wait({running}, timeout=_PATIENCE)
        if not running.done() or _is_killed(running.result()):
            more = await asyncio.to_thread(find_unusable, root, base)
            if more.keys() - unusable.keys():
                unusable |= more
                await _stop(running)
                left = max(0.1, ends - time.monotonic())
                running = asyncio.ensure_future(start(list_arguments(unusable, base), left))
        end = await running
    finally:
        await _stop(running)
    notes = describe_unusable(unusable, base)
    return end, [*notes, "not complete: ripgrep was stopped, for want of memory"] if _is_killed(end) else notes


def _is_killed(end: HelperEnd) -> bool:
    return end.status is not None and end.status < 0


async def _stop(running: asyncio.Future[HelperEnd]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError, OSError):
        await running
