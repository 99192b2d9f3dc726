"""`Checkpoints`: undo for the turns of one session, without blocking its event loop."""

# ruff: noqa: PTH118
from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from ferrule._util.background import run_synchronously
from ferrule.coding.checkpoints.diff import TurnChanges, find_turn_changes, write_diff
from ferrule.coding.checkpoints.report import Report, TurnSummary
from ferrule.coding.checkpoints.scan import ScanStopped
from ferrule.coding.checkpoints.store import StoreUnusable, find_store_folder
from ferrule.coding.checkpoints.turns import Turn
from ferrule.coding.checkpoints.undo import Limits, UndoHistory
from ferrule.coding.checkpoints.undo_news import FILE_NAME, UndoNews
from ferrule.errors import FerruleError
from ferrule.sandbox.file_access import AccessSnapshot, FileAccess
from ferrule.sandbox.git.objects import ObjectDamaged
from ferrule.sandbox.shell.access_plan import Access
from ferrule.sandbox.shell.placeholders import remove_abandoned
from ferrule.session.project import load_project

__all__ = ["Checkpoints", "diff_last_turn", "redo_last_turn", "undo_last_turn"]

Result = TypeVar("Result")
_UNDO_AGAIN = "Undo again to take back the turn before it."


class Checkpoints:
    """The checkpoints of one workspace, for one session.

    `begin_turn`, then `before_write` or `before_command` before each change, then `end_turn`. A turn's checkpoint is
    made before its first change; one that changes nothing leaves none.

    `find_conversation` says to which conversation a turn belongs; undo, redo and changes are then of its turns alone.

    A store that can't be used never stops the session: it goes on without undo, and `take_announcements` says so once.
    """

    def __init__(
        self,
        workspace: Path | str,
        store: Path | str | None = None,
        access: FileAccess | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - it doesn't change
    ) -> None:
        """`store` is by default in the user's data folder. What `access` hides is neither kept nor restored."""
        self.workspace = Path(os.path.realpath(workspace))
        self.store = Path(os.path.realpath(store or find_store_folder(self.workspace)))
        self._hidden = _HiddenFiles(access or FileAccess(self.workspace))
        self._limits = limits
        self.find_conversation: Callable[[], str | None] = _find_none
        self._history: UndoHistory | None = None
        self._turn: Turn | None = None
        self._ended: Turn | None = None
        """A turn that has ended and isn't recorded as such yet."""
        self._label = ""
        self._announcements: list[str] = []
        self._is_turn_lost = False
        self._missing = ""
        """Why the last turn has no checkpoint at all, if it hasn't."""
        self._is_prepared = self._is_closed = False
        self._lock = threading.Lock()
        self._scanning = threading.Lock()
        """Held while the workspace is scanned, which file tools don't wait for; taken before `_lock`."""

    def begin_turn(self, label: str = "") -> None:
        """Begin a turn, which ends the one before; `label` is its name in lists and reports, such as the question.

        The first one starts `prepare` in a thread.
        """
        self._label = " ".join(label.split())[:100]
        self._is_turn_lost = False
        self._ended, self._turn = self._turn or self._ended, None
        if not self._is_prepared:
            self._is_prepared = True
            # A daemon: nothing is lost if the program ends before it does.
            threading.Thread(target=self._prepare, args=[_ignore], name="ferrule-checkpoints", daemon=True).start()

    async def before_write(self, paths: Sequence[Path | str]) -> None:
        """Keep what is at these paths, which `access` allows to write, before a file tool changes them."""
        names = [self._name(path) for path in paths]

        def record(history: UndoHistory) -> None:
            history.record_files(self._open_turn(history), names)

        if not self._is_turn_lost:
            # Doesn't wait for a scan, unless the turn before may need one to be recorded.
            await self._call(record, self._give_up, scans=self._ended is not None)

    async def before_command(self) -> None:
        """Keep everything in the workspace that a command may change."""
        if not self._is_turn_lost:
            await self._call(lambda history: history.record_workspace(self._open_turn(history)), self._give_up)

    async def end_turn(self) -> None:
        """Record what the turn changed; does nothing if it changed nothing."""
        if self._turn is not None or self._ended is not None:
            await self._call(self._end_turn, self._give_up)

    async def prepare(self) -> None:
        """Scan the workspace, so that the session's first command doesn't wait for it, and remove old turns."""
        self._is_prepared = True
        await asyncio.to_thread(self._prepare, self._announcements.append)

    async def undo(self, *, force: bool = False, skips_git: bool = False) -> Report:
        """Take back the last turn that isn't undone, ending the current one first.

        What was changed after the turn is kept and named; `force` overwrites it, and redo brings it back. After an
        undo that kept something, `force` overwrites that. A turn of which everything is kept isn't undone, and the
        next undo goes on with the one before it. A last turn that changed only `.git` is said, and only the next undo
        takes back the one before it, unless `skips_git`.
        """
        return await self._undo(force, plans=False, skips_git=skips_git)

    async def plan_undo(self, *, force: bool = False) -> Report:
        """What `undo` would do; the current turn is ended."""
        return await self._undo(force, plans=True, skips_git=True)

    async def _undo(self, force: bool, plans: bool, skips_git: bool) -> Report:
        conversation = self.find_conversation()

        def end_and_undo(history: UndoHistory) -> Report:
            self._end_turn(history)
            missing, self._missing = self._missing, ""
            if missing:
                return Report("undo", problems=(f"the last turn has no checkpoint: {missing}", _UNDO_AGAIN))
            return history.undo(force=force, conversation=conversation, plans=plans, skips_git=skips_git)

        return await self._call(end_and_undo, self._refuse("undo"))

    async def redo(self, *, force: bool = False) -> Report:
        """Make again the turn that was undone last, exactly as it was; what was changed since is kept, as by `undo`."""
        conversation = self.find_conversation()
        return await self._call(
            lambda history: history.redo(force=force, conversation=conversation), self._refuse("redo")
        )

    async def diff(self, number: int | None = None) -> str:
        """What a turn changed, by default the last one that isn't undone, as a unified diff; empty without one."""
        return await self._call(lambda history: write_diff(history, number), str)

    async def find_changes(self, number: int | None = None) -> TurnChanges | str:
        """What a turn changed, by default the last one, undone or not; a text if that can't be said."""
        conversation = self.find_conversation()

        def find(history: UndoHistory) -> TurnChanges | str:
            return find_turn_changes(history, number, conversation)

        return await self._call(find, str)

    async def rename_conversation(self, known: str, name: str) -> None:
        """Let the turns of a conversation belong to it by another id, too: it was compacted, and saved anew."""
        await self._call(lambda history: history.rename_conversation(known, name), self._announcements.append)

    def take_undo_news(self) -> list[UndoNews]:
        """What was undone or redone and the model wasn't told yet. Reads files; called in a thread."""
        if not (self.store / FILE_NAME).exists():
            return []
        conversation = self.find_conversation()
        return self._run(lambda history: history.take_news(conversation), _find_no_news, scans=False)

    async def list_turns(self) -> list[TurnSummary]:
        """The turns that can be undone or redone, oldest first."""
        return await self._call(UndoHistory.list_turns, lambda _: [])

    async def aclose(self) -> None:
        """End the turn and the session. Can be called again."""
        await self.end_turn()
        await asyncio.to_thread(self._close)

    def take_announcements(self) -> list[str]:
        """What the user should know and wasn't told yet: why there is no undo."""
        found, self._announcements = self._announcements, []
        return found

    def _name(self, path: Path | str) -> str:
        """A path relative to the workspace, or absolute if it is outside."""
        full = os.path.normpath(os.path.join(self.workspace, path))
        inside = f"{self.workspace}/"
        return full.removeprefix(inside)

    def _refuse(self, action: str) -> Callable[[str], Report]:
        return lambda problem: Report("undo" if action == "undo" else "redo", problems=(problem,))

    def _give_up(self, problem: str) -> None:
        self._is_turn_lost = True
        self._announcements.append(f"{problem}. This turn can't be undone completely")
        if self._turn is not None:
            self._turn.problems.append(problem)
        else:
            self._missing = problem

    async def _call(
        self, work: Callable[[UndoHistory], Result], refuse: Callable[[str], Result], *, scans: bool = True
    ) -> Result:
        return await asyncio.to_thread(self._run, work, refuse, scans)

    def _run(self, work: Callable[[UndoHistory], Result], refuse: Callable[[str], Result], scans: bool) -> Result:
        with self._scanning if scans else nullcontext(), self._lock:
            try:
                history = self._open()
                self._hidden.forget()
                return work(history)
            except (OSError, ObjectDamaged, StoreUnusable, FerruleError, ScanStopped) as error:
                return refuse(self._explain(error))

    def _prepare(self, refuse: Callable[[str], None]) -> None:
        with self._scanning:
            try:
                with self._lock:
                    history = self._open()
                history.prepare()
                with self._lock:
                    history.prune()
            except ScanStopped:
                return
            except (OSError, ObjectDamaged, StoreUnusable, FerruleError) as error:
                refuse(self._explain(error))

    def _open(self) -> UndoHistory:
        if self._is_closed:
            raise StoreUnusable("the session has ended")
        if self._history is None:
            # Those of a session that was killed are none of its changes.
            remove_abandoned()
            self._history = UndoHistory(self.workspace, self.store, self._hidden, self._limits)
            self._history.not_included = self._hidden.describe_added()
        return self._history

    def _explain(self, error: Exception) -> str:
        if isinstance(error, OSError | ObjectDamaged):
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return f"undo isn't available: the checkpoints in {self.store} can't be used ({reason})"
        return f"undo isn't available: {error}"

    def _open_turn(self, history: UndoHistory) -> Turn:
        """The current turn, begun with its first change."""
        self._finish_ended(history)
        if self._turn is None:
            self._turn, self._missing = history.begin(self._label, self.find_conversation() or ""), ""
        return self._turn

    def _end_turn(self, history: UndoHistory) -> None:
        self._ended, self._turn = self._turn or self._ended, None
        self._finish_ended(history)

    def _finish_ended(self, history: UndoHistory) -> None:
        """Record what the turn changed that has ended."""
        turn, self._ended = self._ended, None
        if turn is not None:
            history.finish(turn)
            if turn.problems and not turn.changes:
                self._missing = turn.problems[0]

    def _close(self) -> None:
        self._is_closed = True
        if self._history is not None:
            self._history.stop()
        with self._scanning, self._lock:
            history, self._history = self._history, None
            if history is not None:
                with suppress(OSError, StoreUnusable):
                    history.close()


def _find_none() -> None:
    """All turns are those of one program."""


def _find_no_news(_: str) -> list[UndoNews]:
    """What a store that can't be used has."""
    return []


def _ignore(_: str) -> None:
    """A problem that the first checkpoint will say."""


class _HiddenFiles:
    """Whether paths are hidden; what the access decides on once is used for one operation."""

    def __init__(self, access: FileAccess) -> None:
        self._access = access
        self._snapshot: AccessSnapshot | None = None

    def __call__(self, path: str) -> bool:
        # Read once: another thread may forget it.
        snapshot = self._snapshot
        if snapshot is None:
            snapshot = self._snapshot = self._access.take_snapshot()
        return snapshot.decide(path) is Access.HIDDEN

    def forget(self) -> None:
        self._snapshot = None

    def describe_added(self) -> tuple[str, ...]:
        """The added folders, in which only the changes of file tools are known."""
        return tuple(f"what commands changed in {folder}" for folder in self._access.folders[1:])


def undo_last_turn(workspace: Path | str, *, force: bool = False) -> Report:
    """Take back the last turn in a workspace, for programs without an event loop: see `Checkpoints.undo`."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.undo(force=force, skips_git=True))


def plan_last_undo(workspace: Path | str, *, force: bool = False) -> Report:
    """What `undo_last_turn` would do."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.plan_undo(force=force))


def redo_last_turn(workspace: Path | str, *, force: bool = False) -> Report:
    """Make again the turn that was undone last: see `Checkpoints.redo`."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.redo(force=force))


def diff_last_turn(workspace: Path | str, number: int | None = None) -> str:
    """What the last turn, or the one of that number, changed: see `Checkpoints.diff`."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.diff(number))


def find_last_changes(workspace: Path | str) -> TurnChanges | str:
    """What the last turn changed, undone or not; a text if that can't be said. See `Checkpoints.find_changes`."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.find_changes())


def list_last_turns(workspace: Path | str) -> list[TurnSummary]:
    """The turns that can be undone or redone, oldest first."""
    return _run_alone(workspace, lambda checkpoints: checkpoints.list_turns())


def _run_alone(workspace: Path | str, work: Callable[[Checkpoints], Coroutine[Any, Any, Result]]) -> Result:
    async def run() -> Result:
        shown = load_project(Path(workspace)).visible
        checkpoints = Checkpoints(workspace, access=FileAccess(workspace, visible=shown))
        try:
            return await work(checkpoints)
        finally:
            await checkpoints.aclose()

    return run_synchronously(run())
