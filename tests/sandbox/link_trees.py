"""Shared by the tests of what may be reached: random trees with links that lead outside, and links that are swapped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

CANARY = b"the-canary-secret"
NAMES = ["a", "b", "c", "d"]
TARGETS = st.sampled_from([
    *NAMES, "a/b", "../c", "../../b", "..", ".", "a/../../d", "{out}", "{out}/a", "{out}/new", "{ws}/a", "{ws}/b/c",
    "../out/a", "/proc/self/cwd", "/proc/self/root{out}/a", "/etc/hostname",
])  # fmt: skip
PLACES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
TREES = st.lists(st.tuples(PLACES, st.one_of(st.just("file"), st.just("folder"), TARGETS)), max_size=12)


def make_tree(folder: Path, tree: list[tuple[str, str]]) -> tuple[Path, Path]:
    """A workspace with a tree of `TREES`, and a folder outside of it, by their real paths."""
    workspace, outside = folder.resolve() / "ws", folder.resolve() / "out"
    workspace.mkdir()
    outside.mkdir()
    (outside / "a").write_bytes(CANARY)
    for place, kind in tree:
        path = workspace / place
        try:
            if kind == "folder":
                path.mkdir(parents=True)
            elif kind == "file":
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.parent.resolve().is_relative_to(workspace) and not path.is_symlink():
                    path.write_bytes(b"inside")
            elif path.parent.resolve().is_relative_to(workspace):
                path.symlink_to(kind.format(out=outside, ws=workspace))
        except (OSError, RuntimeError):
            continue  # taken, below a file, or a loop of links
    return workspace, outside


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


SWAPPER = """
import ctypes, os, sys
workspace, outside, *exchanges = sys.argv[1:]
library = ctypes.CDLL(None)

def exchange(name, other):
    assert library.renameat2(-100, os.fsencode(name), -100, os.fsencode(other), 2) == 0, (name, other)

os.chdir(workspace)
print("swapping", flush=True)
os.symlink(outside, "folder-link")
os.symlink(outside + "/a", "file-link")
os.symlink("inner/a", "inside-link")
parent = os.getppid()
while os.getppid() == parent:
    for name in ("folder", "file", "link", "deep/er"):
        other = "folder-link" if name in ("folder", "deep/er") else "file-link"
        if exchanges:
            exchange(name, other)
            exchange(name, other)
        else:
            os.rename(name, "aside")
            os.rename(other, name)
            os.rename(name, other)
            os.rename("aside", name)
    os.replace("inside-link", "link"); os.symlink("inner/a", "inside-link")
"""


@contextmanager
def swapping(workspace: Path, outside: Path, *, exchanges: bool = False) -> Iterator[None]:
    """Swap files and folders for links that lead outside, and back, until the end.

    With `exchanges` each name is there at every moment, so that a tool that creates what is missing breaks nothing.
    """
    command = [sys.executable, "-c", SWAPPER, str(workspace), str(outside), *(["exchanges"] if exchanges else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
            assert process.poll() is None
        finally:
            process.kill()


def make_swapped_tree(folder: Path) -> tuple[Path, Path]:
    """A workspace and a folder outside of it, for `swapping`."""
    workspace, outside = folder / "ws", folder / "out"
    for each in (workspace / "folder", workspace / "inner", workspace / "deep/er", outside):
        each.mkdir(parents=True)
        (each / "a").write_bytes(CANARY if each == outside else b"inside")
    (workspace / "file").write_bytes(b"inside")
    (workspace / "link").symlink_to("inner/a")
    return workspace, outside
