"""The files that this process works with itself, which no tool may read or change, wherever they lie.

Whoever opens one says so here: the journal, the store of conversations and recordings are hidden, since what is in
them is evidence of what the model did; policies and settings are protected, since they say what it may do.
"""

# Paths are strings here, like those that they are compared with.
# ruff: noqa: PTH100, PTH118

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

__all__ = ["describe_own_file", "hide_own_file", "list_hidden_files", "list_protected_files", "protect_own_file"]

_lock = threading.Lock()
_hidden: dict[str, list[str]] = {}
_protected: dict[str, list[str]] = {}
"""What each file is, by its real path, once for each that uses it."""


def hide_own_file(path: str | os.PathLike[str], what: str, *endings: str) -> Callable[[], None]:
    """Hide a file, existing or not, from tools and commands, until the function that is returned is called.

    `what` is said to whoever asks for it, such as "the journal". Files with one of these `endings` added to the name
    are hidden too; a link that leads to the file can't be changed.
    """
    given, real = _resolve(path)
    releases = [_register(_hidden, real + ending, what) for ending in ("", *endings)]
    releases += [_register(_protected, given, what)] if given != real else []

    def release() -> None:
        for each in releases:
            each()

    return release


def protect_own_file(path: str | os.PathLike[str], what: str) -> None:
    """Keep tools and commands of this process from changing a file, and a link that leads to it."""
    for each in dict.fromkeys(_resolve(path)):
        if each not in _protected:
            _register(_protected, each, what)


def list_hidden_files() -> Iterator[str]:
    """The real paths of the files that are hidden now, existing or not."""
    with _lock:
        return iter(tuple(_hidden))


def list_protected_files() -> Iterator[str]:
    """The paths of the files and links that are protected now, in real folders."""
    with _lock:
        return iter(tuple(_protected))


def describe_own_file(real: str) -> str:
    """What a file is that is hidden or protected here, such as "the journal"; empty for any other."""
    with _lock:
        return next(iter(_hidden.get(real) or _protected.get(real) or ()), "")


def _resolve(path: str | os.PathLike[str]) -> tuple[str, str]:
    """A path in its real folder, the last part of which may be a link, and the real path."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name), os.path.realpath(path)


def _register(files: dict[str, list[str]], path: str, what: str) -> Callable[[], None]:
    with _lock:
        files.setdefault(path, []).append(what)
    done: list[bool] = []

    def release() -> None:
        with _lock:
            if not done:
                done.append(True)
                files[path].remove(what)
                if not files[path]:
                    del files[path]

    return release
