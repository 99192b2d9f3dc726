"""Collects what a run leaves, in the child: the files in its folder and the open figures."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, Final

from ferrule.sandbox.file_versions import Version, make_version
from ferrule.sandbox.python.wire import library_values
from ferrule.sandbox.python.wire.encoding import Tree, ValueEncoder

MAX_FILES: Final = 256
MAX_FIGURES: Final = 32
PRIVATE: Final = ".private"
"""The folder for libraries' own files (`HOME`, `TMPDIR`); it isn't returned."""

Marks = dict[str, Version]


def record_marks() -> Marks:
    """Record the state of the files before a run."""
    return {name: make_version(status) for name, status in _walk_files()}


def collect_files(encoder: ValueEncoder, before: Marks) -> list[Tree]:
    """Encode the files that are new or changed, up to the limits. Links and devices are omitted."""
    trees: list[Tree] = []
    for name, status in _walk_files():
        if before.get(name) == make_version(status):
            continue
        if len(trees) >= MAX_FILES:
            encoder.omitted.append(f"files: only the first {MAX_FILES} are here")
            break
        if not name.isprintable():
            encoder.omitted.append(f"files[{name!r}]: a name that can't be printed")
            continue
        tree = _read_file(encoder, name)
        if tree is not None:
            trees.append(tree)
    return trees


def _read_file(encoder: ValueEncoder, name: str) -> Tree | None:
    try:
        with open(name, "rb") as opened:  # noqa: PTH123 - strings, for speed: this is in every run
            data = opened.read()
    except (OSError, MemoryError) as error:
        encoder.omitted.append(f"files[{name!r}]: {type(error).__name__} while it was read")
        return None
    if len(data) > encoder.room:
        encoder.omitted.append(f"files[{name!r}]: its {len(data)} bytes are over the limit")
        return None
    return encoder.encode_bytes(data, "file", name=name)


def _walk_files(folder: str = "", depth: int = 0) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = f"{folder}/{entry.name}" if folder else entry.name
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            yield name, status
        elif stat.S_ISDIR(status.st_mode) and name != PRIVATE and depth < 16:
            yield from _walk_files(name, depth + 1)


def collect_figures(encoder: ValueEncoder) -> list[Tree]:
    """Encode the figures that matplotlib still has open, as PNG."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    trees = []
    for number in pyplot.get_fignums()[:MAX_FIGURES]:
        try:
            trees.append(encoder.encode_bytes(library_values.render_png(pyplot.figure(number).savefig), "image"))
        except Exception as error:  # noqa: BLE001 - drawing runs the user's own objects
            encoder.omitted.append(f"images[{number}]: {type(error).__name__} while it was drawn")
    return [tree for tree in trees if tree["$"] == "image"]
