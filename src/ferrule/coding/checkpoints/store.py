"""The private store of one workspace: a bare git repository, records of turns and an index of what was scanned.

It lies in the user's data folder, which no command sees, and never in the workspace or its `.git`:

    workspace       the workspace's path
    objects/        contents and trees, as git keeps them
    index           what the last scan found, so that unchanged files aren't read again
    turns/          a record for each turn
    sessions/       a lock for each session that runs
    undo_news.json  what was undone and the model wasn't told yet (`undo_news`)
    known_files/    what the model of each conversation knows of files, kept by the session (`coding.files.records`)
    lock            held while anything in the store is read or changed
"""

from __future__ import annotations

import fcntl
import hashlib
import marshal
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ferrule._util.user_folders import find_data_folder, name_after_folder
from ferrule.coding.checkpoints.entries import decode_tree, is_folder
from ferrule.coding.checkpoints.scan import TreeScan
from ferrule.coding.checkpoints.turns import TurnFiles, is_session_alive
from ferrule.sandbox.git.objects import ObjectDamaged, ObjectStore
from ferrule.sandbox.git.program import Git, find_git, make_repository

__all__ = ["CheckpointStore", "StoreUnusable", "find_store_folder"]

_SECONDS = 120.0
_MARK = b"ferrule index 1\n"
_DIGEST = 32
_CREATED = frozenset(
    {"objects", "refs", "info", "HEAD", "config", "ignore", "turns", "sessions", "lock", "known_files"}
)
"""What may be there before the workspace is named; a session may keep what its model knows without a checkpoint."""
_SETTINGS = "[extensions]\n\tobjectFormat = sha256\n"


class StoreUnusable(Exception):  # noqa: N818 - a state
    """The store can't be used now; the text says why and what to do."""


def find_store_folder(workspace: str | os.PathLike[str]) -> Path:
    """The folder of a workspace's store, in the user's data folder, existing or not."""
    return find_data_folder() / "checkpoints" / name_after_folder(workspace)


class CheckpointStore:
    """Opens a store, and makes it if there is none. Raises `StoreUnusable` and `OSError`."""

    def __init__(self, folder: Path, workspace: str) -> None:
        self.folder = folder
        self.workspace = workspace
        program = find_git(workspace)
        self.turns = TurnFiles(folder / "turns")
        self.sessions = folder / "sessions"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.lock():
            self._check()
            self._create()
        self.git = Git(program, str(folder)) if program else None
        self.ignore_git = Git(program, str(folder / "ignore")) if program else None
        self.objects = ObjectStore(str(folder), self.git)

    def _check(self) -> None:
        """Raise `StoreUnusable` if the folder is something else, or was made for another workspace."""
        named = self.folder / "workspace"
        found = os.fsdecode(named.read_bytes()).rstrip("\n") if named.exists() else None
        others = {path.name for path in self.folder.iterdir()} - _CREATED
        is_lost = found is None and not all(name.startswith("workspace.") for name in others)
        is_lost = is_lost or (found is not None and not (self.folder / "objects").is_dir())
        if is_lost or found not in (None, self.workspace):
            raise StoreUnusable(f"the checkpoints in {self.folder} are damaged; remove that folder to start anew")

    def _create(self) -> None:
        if (self.folder / "workspace").exists():
            return
        for folder in (self.folder / "turns", self.sessions):
            folder.mkdir(mode=0o700, exist_ok=True)
        make_repository(str(self.folder), _SETTINGS)
        make_repository(str(self.folder / "ignore"))
        part = self.folder / f"workspace.{os.getpid()}"
        part.write_bytes(os.fsencode(self.workspace) + b"\n")
        part.replace(self.folder / "workspace")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store's lock. Raises `StoreUnusable` if another process doesn't release it."""
        file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + _SECONDS
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > deadline:
                    raise StoreUnusable("another session holds the checkpoints of this workspace; end it first")
                time.sleep(0.02)
            yield
        finally:
            os.close(file)

    def load_index(self, scan: TreeScan) -> frozenset[str]:
        """Give a scan what the last one found, and return what that left out.

        An index that is damaged, or whose packs are gone, is ignored.
        """
        with suppress(OSError, ValueError, EOFError, TypeError):
            data = (self.folder / "index").read_bytes()
            content = data[len(_MARK) + _DIGEST :]
            if data[: len(_MARK)] != _MARK or hashlib.sha256(content).digest() != data[len(_MARK) :][:_DIGEST]:
                return frozenset()
            packs, records, left_out, too_large = marshal.loads(content)
            if set(packs) <= set(self.objects.list_packs()):
                scan.records, scan.too_large = records, too_large
                return frozenset(left_out)
        return frozenset()

    def save_index(self, scan: TreeScan) -> None:
        """Keep what a scan found. Raises `OSError`."""
        content = marshal.dumps((self.objects.list_packs(), scan.records, sorted(scan.left_out), scan.too_large))
        part = self.folder / f"index.{os.getpid()}-{threading.get_ident()}"
        part.write_bytes(_MARK + hashlib.sha256(content).digest() + content)
        part.replace(self.folder / "index")

    def has_other_sessions(self, own: str) -> bool:
        """Whether other sessions in this workspace are running."""
        names = [path.stem for path in self.sessions.glob("*.lock")]
        return any(is_session_alive(self.sessions, name) for name in names if name != own)

    def list_tree(self, tree: str) -> Iterator[str]:
        """The ids of a tree, of those in it and of their contents; those that are missing are left out."""
        waiting = [tree]
        while waiting:
            oid = waiting.pop()
            yield oid
            with suppress(ObjectDamaged, OSError):
                for _, entry in decode_tree(self.objects.read(oid)):
                    if len(entry.oid) == 64:
                        if is_folder(entry):
                            waiting.append(entry.oid)
                        else:
                            yield entry.oid

    def measure(self) -> int:
        """The bytes that the store takes."""
        sizes = 0
        for path in self.folder.rglob("*"):
            with suppress(OSError):
                sizes += path.lstat().st_size
        return sizes

    def count_loose(self) -> int:
        """About how many loose objects there are."""
        with suppress(OSError):
            return 256 * sum(1 for _ in (self.folder / "objects" / "17").iterdir())
        return 0


def remove_abandoned(folder: Path, seconds: float) -> None:
    """Remove the stores of workspaces that no longer exist and weren't used for a time."""
    with suppress(OSError):
        for store in folder.iterdir():
            with suppress(OSError):
                workspace = os.fsdecode((store / "workspace").read_bytes()).rstrip("\n")
                used = max(path.stat().st_mtime for path in (store / "turns", store / "workspace"))
                if not os.path.lexists(workspace) and time.time() - used > seconds:
                    shutil.rmtree(store)
