"""Finds ripgrep, and writes its arguments: those of a search, and those that list files."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["SearchRequest", "find_ripgrep", "list_file_arguments", "list_search_arguments", "open_glob_file"]

_MOST_EXCLUDED: Final = 1000
"""Hidden paths that ripgrep is told not to open; matches in any more are dropped after the search."""
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
