"""Finds ripgrep, writes its arguments, and runs it without files such as .gitignore that can't be relied on.

Those of the folders on the way to a search are looked at before it starts, all others only if it isn't done soon:
looking for them in every folder takes longer than most searches.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ferrule.coding.search.bounded_process import HelperEnd
from ferrule.sandbox.git.ignored_files import UnusableIgnoreFiles, describe_unusable, find_unusable, find_unusable_above

__all__ = [
    "NO_RIPGREP",
    "SearchRequest",
    "find_ripgrep",
    "list_file_arguments",
    "list_search_arguments",
    "open_glob_file",
    "run_without_unusable",
]

NO_RIPGREP: Final = 'ripgrep isn\'t installed (pip install "ferrule[coding]")'
_MOST_EXCLUDED: Final = 1000
"""Hidden paths that ripgrep is told not to open; matches in any more are dropped after the search."""
_PATIENCE: Final = 1.0
"""Seconds of a search after which all folders are looked at for unusable ignore files."""
_SPECIAL: Final = re.compile(r"([\\*?\[\]{}!# ])")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search of the text `pattern` in the file or folder `root`, an absolute real path in the folder `base`."""

    pattern: str
    root: str
    base: str
    glob: str | None = None
    is_literal: bool = False
    ignores_case: bool = False
    context: int = 0


@cache
def find_ripgrep() -> str | None:
    """The ripgrep of this environment, else the system's; None if there is neither."""
    own = Path(sys.executable).with_name("rg")
    return str(own) if own.is_file() else shutil.which("rg")


def list_search_arguments(
    program: str,
    request: SearchRequest,
    hidden: Sequence[str],
    globs: Path | None,
    *,
    is_sorted: bool,
    further: Sequence[str] = (),
) -> list[str]:
    """The command line of a search that reports as JSON lines."""
    arguments = [program, "--json", *further, *_list_file_choice(request.root, request.base, hidden, globs)]
    arguments += ["--fixed-strings"] if request.is_literal else []
    arguments += ["--ignore-case"] if request.ignores_case else []
    arguments += [f"--context={request.context}"] if request.context else []
    arguments += ["--sort=path"] if is_sorted else []
    return [*arguments, "-e", request.pattern, "--", request.root]


def list_file_arguments(
    program: str, root: str, base: str, hidden: Sequence[str], further: Sequence[str] = ()
) -> list[str]:
    """The command line that lists files, separated by NUL."""
    return [program, "--files", "--null", *further, *_list_file_choice(root, base, hidden, None), "--", root]


def _list_file_choice(root: str, base: str, hidden: Sequence[str], globs: Path | None) -> list[str]:
    """The options that choose files: neither ignored nor hidden ones, those whose names start with a dot included.

    Patterns are relative to the folder in which ripgrep is run.
    """
    # What it says of a faulty line in an ignore file would quote a file that a link leads to.
    chosen = ["--no-config", "--no-require-git", "--no-ignore-messages", "--hidden"]
    chosen += [] if "/.git/" in f"{root}/" else ["--glob=!.git"]
    below = [path[len(base) + 1 :] for path in hidden[:_MOST_EXCLUDED] if path.startswith(f"{base}/")]
    chosen += ["--glob=!/" + _SPECIAL.sub(r"\\\1", path) for path in below]
    return [*chosen, *([f"--ignore-file={globs}"] if globs is not None else [])]


@contextmanager
def open_glob_file(glob: str | None) -> Iterator[Path | None]:
    """Write a file that makes ripgrep ignore what `glob` doesn't match; None without one.

    As ripgrep's own `--glob` it would bring back what .gitignore ignores.
    """
    if glob is None:
        yield None
        return
    text = glob.strip().removeprefix("./").rstrip("/")
    below = text if "/" in text else f"**/{text}"
    with tempfile.NamedTemporaryFile("w", suffix=".ignore", encoding="utf-8") as file:
        file.write(f"*\n!*/\n!{text}\n!{below}/**\n")
        file.flush()
        yield Path(file.name)


async def run_without_unusable(
    root: str, base: str, seconds: float, start: Callable[[Sequence[str], float], Awaitable[HelperEnd]]
) -> tuple[HelperEnd, list[str]]:
    """Run ripgrep by `start`, which takes further arguments and seconds, and begins its results anew each time.

    Returns how it ended, and what a reader of the results should know. Raises what `start` raises.
    """
    ends = time.monotonic() + seconds
    unusable = await asyncio.to_thread(find_unusable_above, root, base)
    running = asyncio.ensure_future(start(_list_ignore_options(unusable, base), seconds))
    try:
        await asyncio.wait({running}, timeout=_PATIENCE)
        if not running.done() or _is_killed(running.result()):
            more = await asyncio.to_thread(find_unusable, root, base)
            if more.keys() - unusable.keys():
                unusable |= more
                await _stop(running)
                left = max(0.1, ends - time.monotonic())
                running = asyncio.ensure_future(start(_list_ignore_options(unusable, base), left))
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


def _list_ignore_options(unusable: UnusableIgnoreFiles, base: str) -> list[str]:
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
