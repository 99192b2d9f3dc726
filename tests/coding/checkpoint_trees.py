"""Shared by the tests of checkpoints: the whole state of a folder, and random changes to it."""

# ruff: noqa: PTH115, PTH118
import os
import random
import shutil
import stat
from pathlib import Path

NAMES = ["a", "b.txt", "new\nline", "bad\udcff", "-n", "ünï", ".dot", "x y"]


def read_tree(folder: Path, without: frozenset[str] = frozenset({".git"})) -> dict[str, tuple[int, bytes]]:
    """By path: the mode and content of everything in a folder, links by their targets; also the folders themselves."""
    found: dict[str, tuple[int, bytes]] = {}
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in without]
        for name in (*folders, *(name for name in files if name not in without)):
            path = os.path.join(top, name)
            mode = os.lstat(path).st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(mode):
                content = Path(path).read_bytes()
            found[os.path.relpath(path, folder)] = (mode, content)
    return found


def change_randomly(folder: Path, chance: random.Random) -> None:
    """One random change: create, write, delete, rename, change a mode or a kind."""
    paths = [folder / path for path in read_tree(folder)]
    folders = [folder, *(path for path in paths if path.is_dir() and not path.is_symlink())]
    target = chance.choice(folders) / chance.choice(NAMES)
    action = chance.choice(["write", "write", "folder", "link", "delete", "rename", "mode"])
    if action in ("write", "folder", "link") and os.path.lexists(target):
        remove(target)
    if action == "write":
        target.write_bytes(chance.choice([b"", b"one\r\ntwo\n", b"\0\xff", chance.randbytes(50), b"same"]))
        target.chmod(chance.choice([0o644, 0o600, 0o755, 0o444]))
    elif action == "folder":
        target.mkdir()
        target.chmod(chance.choice([0o755, 0o700, 0o775]))
    elif action == "link":
        target.symlink_to(chance.choice(["a", "../x", "/nonexistent", "."]))
    elif paths:
        chosen = chance.choice(paths)
        if action == "delete":
            remove(chosen)
        elif action == "rename" and not target.is_relative_to(chosen) and not chosen.is_relative_to(target):
            if os.path.lexists(target):
                remove(target)
            chosen.rename(target)
        elif action == "mode" and not chosen.is_symlink():
            chosen.chmod(chance.choice([0o700, 0o750] if chosen.is_dir() else [0o600, 0o777, 0o644]))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
