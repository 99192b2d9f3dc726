"""Undo and redo: the turns of one workspace are recorded before their first change, taken back and made again.

Everything here blocks; `Checkpoints` calls it in threads.
"""

# ruff: noqa: PTH118, PTH120
from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from ferrule.coding.checkpoints.beneath import find_stat, open_folder, read_entry, split_path
from ferrule.coding.checkpoints.entries import UNREADABLE, Entry, decode_tree, is_folder, is_unchanged
from ferrule.coding.checkpoints.report import NEVER_RESTORED, Report, TurnSummary
from ferrule.coding.checkpoints.restore import (
    Restoration,
    Restored,
    find_shut_folders,
    name_action,
    remove_temporary_files,
    shut_folders,
)
from ferrule.coding.checkpoints.scan import TreeScan
from ferrule.coding.checkpoints.selection import (
    Action,
    belongs_to,
    describe_missing,
    describe_next,
    describe_skipped,
    find_incomplete,
    release_paths,
    reopen,
)
from ferrule.coding.checkpoints.store import CheckpointStore, remove_abandoned
from ferrule.coding.checkpoints.turns import Change, SessionLock, Turn, is_session_alive
from ferrule.coding.checkpoints.undo_news import FILE_NAME, NewsFile, UndoNews, describe_for_model
from ferrule.sandbox.git.ignored_files import IgnoredFiles
from ferrule.sandbox.git.objects import ObjectStore
from ferrule.sandbox.git.state import is_committed_since, read_git_state

__all__ = ["Limits", "UndoHistory"]

MB = 1024 * 1024
_MAX_LOOSE = 6000
_MAX_PACKS = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What checkpoints include, and how long they are kept."""

    ignored_bytes: int = 50 * MB
    """Of the ignored files, the smallest are included up to this."""
    file_bytes: int = 1024 * MB
    """Larger files are named, not kept."""
    new_bytes: int = 4096 * MB
    """Of new files in one checkpoint, the smallest are kept up to this, and to half of what is free on the disk."""
    days: float = 14.0
    turns: int = 200
    store_bytes: int = 2048 * MB
    """The oldest turns are removed until the store takes less."""


class UndoHistory:
    """The turns of one workspace, for one session. Raises `StoreUnusable` and `OSError`, also from its methods."""

    def __init__(
        self,
        workspace: Path | str,
        folder: Path,
        is_hidden: Callable[[str], bool],
        limits: Limits = Limits(),
    ) -> None:
        self.workspace = os.path.realpath(workspace)
        self.limits = limits
        self.store = CheckpointStore(folder, self.workspace)
        self.objects = self.store.objects
        self._news = NewsFile(folder / FILE_NAME)
        own = os.path.realpath(folder)
        self._scan = TreeScan(
            self.workspace,
            self.objects,
            lambda path: path == own or is_hidden(path),
            limits.file_bytes,
            limits.new_bytes,
        )
        self._ignored = IgnoredFiles(self.workspace, self.store.ignore_git, limits.ignored_bytes)
        # Under the lock, as others look for the locks of sessions: they must not find one that isn't held yet.
        with self.store.lock():
            self._session = SessionLock(self.store.sessions)
        self._is_index_loaded = False
        self.not_included: tuple[str, ...] = ()
        """What else commands may change that no checkpoint includes."""

    def close(self) -> None:
        """End the session."""
        self.objects.close()
        self._session.release()

    def prepare(self) -> None:
        """Scan the workspace, so that the first checkpoint of the session is quick.

        Without the lock: nobody removes contents while this session runs. `record_files` may run at the same time.
        """
        self._take_snapshot()
        self._save_index()

    def stop(self) -> None:
        """End a scan that runs in another thread, with `ScanStopped`."""
        self._scan.is_stopped = True

    def prune(self) -> None:
        """Remove old turns, and contents that no turn needs; not while other sessions run."""
        with self.store.lock():
            self._prune()

    def begin(self, label: str, conversation: str = "") -> Turn:
        """Begin a turn of a conversation, just before its first change, which has to be recorded next.

        What was undone can't be redone from now on. What undo has kept of a turn can still be undone, after this one.
        """
        with self.store.lock():
            turns, _ = self.store.turns.list()
            for turn in turns:
                if turn.status == "open" and not self._is_alive(turn):
                    self._finish(turn, interrupted=True)
                elif reopen(turn):
                    (self.store.turns.save if turn.changes else self.store.turns.remove)(turn)
        return Turn(0, label, time.time(), self._session.name, [conversation] if conversation else [])

    def record_files(self, turn: Turn, paths: Iterable[str]) -> None:
        """Keep what is at the paths now, and which of their folders don't exist."""
        with self.store.lock():
            found: dict[str, Entry | None] = {}
            for path in paths:
                for each in (*_list_missing_parents(self.workspace, path), path):
                    is_known = each in turn.before or each in found
                    if not is_known and not (turn.snapshot and self._scan.covers(each)):
                        found[each] = self._keep_entry(each)
            if found:
                turn.before.update(found)
                self.store.turns.save(turn)

    def record_workspace(self, turn: Turn) -> None:
        """Keep everything in the workspace before the turn's first command."""
        turn.ran_command = True
        if turn.snapshot:
            return
        with self.store.lock():
            turn.git_before = read_git_state(self.workspace)
            turn.snapshot = self._take_snapshot()
            turn.left_out = self._describe_left_out()
            self.store.turns.save(turn)

    def finish(self, turn: Turn) -> None:
        """Record what a turn changed."""
        with self.store.lock():
            self._finish(turn)

    def undo(
        self, *, force: bool = False, conversation: str | None = None, plans: bool = False, skips_git: bool = False
    ) -> Report:
        """Take back the last turn, of a conversation or of all, which must have ended if it is this session's.

        `force` overwrites what was changed since; if the last undo kept files for that, it does so for them. A turn of
        which all files are kept isn't undone, and the next undo tries the one before. With `plans` nothing is done. A
        turn that changed only `.git` is said, and the next undo takes back the one before; with `skips_git` this one
        does, and its report names what it skipped.
        """
        with self.store.lock():
            kept = find_incomplete(self.store.turns.list()[0], "undo", conversation) if force else None
            turns, problem = ([kept], "") if kept else self._list_done(conversation)
            turns = self._skip_blocked(turns, plans)
            skipped = list(takewhile(lambda turn: not turn.changes, turns))
            turn = next(iter(turns[len(skipped) :]), None)
            if skipped and not (skips_git and turn is not None):
                if not plans:
                    for each in skipped:
                        self.store.turns.remove(each)
                return Report("undo", problems=(describe_skipped(skipped, turn),))
            if turn is None:
                return Report("undo", problems=(problem,))
            report = self._take_back(turn, "undo", force, plans)
        notes = [f"{TurnSummary.of(each).describe()}, after it, changed only .git" for each in skipped]
        return replace(report, notes=(*report.notes, *notes, *describe_next("undo", turn, turns)))

    def redo(self, *, force: bool = False, conversation: str | None = None) -> Report:
        """Make again what the last undo took back, of a conversation or of all. `force` is that of `undo`."""
        with self.store.lock():
            turns, _ = self.store.turns.list()
            kept = find_incomplete(turns, "redo", conversation) if force else None
            undone = [turn for turn in turns if turn.status == "undone" and belongs_to(turn, conversation)]
            turns = self._skip_blocked([kept] if kept else undone)
            if not turns:
                return Report("redo", problems=("there is nothing to redo: no turn was undone since the last change",))
            report = self._take_back(turns[0], "redo", force)
        return replace(report, notes=(*report.notes, *describe_next("redo", turns[0], turns)))

    def list_turns(self) -> list[TurnSummary]:
        """The turns, oldest first."""
        return [TurnSummary.of(turn) for turn in self.store.turns.list()[0]]

    def find_changes(
        self, number: int | None, conversation: str | None = None, *, skips_undone: bool = False
    ) -> tuple[Turn | None, list[Change]]:
        """A turn's changes, by default the last one's, of a conversation or of all; of an open one, those so far."""
        with self.store.lock():
            turns = self.store.turns.list()[0]
            turns = [turn for turn in turns if turn.changes or turn.status == "open"]
            if number is not None:
                turns = [turn for turn in turns if turn.number == number]
            else:
                turns = [turn for turn in turns if belongs_to(turn, conversation)]
                turns = [turn for turn in turns if not (skips_undone and turn.status == "undone")]
            if not turns:
                return None, []
            turn = turns[-1]
            return turn, self._compare(turn) if turn.status == "open" else turn.changes

    def rename_conversation(self, known: str, name: str) -> None:
        """Let the turns of a conversation belong to it by another id, too."""
        with self.store.lock():
            self._news.rename_conversation(known, name)
            for turn in self.store.turns.list()[0]:
                if known in turn.conversations and name not in turn.conversations:
                    turn.conversations.append(name)
                    self.store.turns.save(turn)

    def select_ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths that git ignores."""
        return self._ignored.select(list(paths))

    def take_news(self, conversation: str | None) -> list[UndoNews]:
        """What was undone or redone and the model of a conversation, or of all, wasn't told yet; each once."""
        with self.store.lock():
            return self._news.take(conversation)

    def _list_done(self, conversation: str | None) -> tuple[list[Turn], str]:
        """The turns that can be undone, the last one first, and why there is no other."""
        turns, damaged = self.store.turns.list()
        found: list[Turn] = []
        for turn in reversed(turns):
            if damaged and damaged[-1].stem > f"{turn.number:08}":
                break
            if turn.status == "open" and self._is_alive(turn):
                return found, "another session is in the middle of a turn in this workspace: stop it first"
            if turn.status == "open":
                self._finish(turn, interrupted=True)
            if turn.status == "done" and (turn.changes or turn.changed_git) and belongs_to(turn, conversation):
                found.append(turn)
        if damaged:
            return found, f"the record of a turn, {damaged[-1]}, is damaged: remove it to undo the turns before it"
        return found, describe_missing(turns, conversation)

    def _skip_blocked(self, turns: list[Turn], plans: bool = False) -> list[Turn]:
        """The turns that aren't blocked; if all are, all of them, to be tried again."""
        others = [turn for turn in turns if not turn.is_blocked]
        if others or plans:
            return others or turns
        for turn in turns:
            turn.is_blocked = False
            self.store.turns.save(turn)
        return turns

    def _take_back(self, turn: Turn, action: Action, force: bool, plans: bool = False) -> Report:
        self._remove_temporary_files(change.path for change in turn.changes)
        shut_folders(self.workspace, turn.opened)
        restoration = Restoration(self.workspace, self.objects, turn.unfinished)
        is_rest = turn.status == ("undone" if action == "undo" else "done")
        changes = [change for change in turn.changes if (change.path in turn.kept) == is_rest]
        if action == "redo":
            changes = [Change(change.path, change.after, change.before) for change in changes]
        chosen = restoration.choose(changes, force)
        if plans:
            planned = [Restored(change.path, name_action(change)) for change in chosen]
            return self._report(action, turn, (*planned, *restoration.results), force, is_planned=True)
        if force:
            self._keep_overwritten(turn, [each for each in chosen if each.path not in restoration.halfway], action)
        turn.unfinished = sorted({*turn.unfinished, *(change.path for change in chosen)})
        turn.opened = find_shut_folders(self.workspace, chosen)
        with suppress(OSError):  # on a full disk, undo may be what makes room
            self.store.turns.save(turn)
        restoration.apply(chosen)
        results = tuple(restoration.results)
        self._record(turn, action, results, {change.path for change in chosen}, force)
        done = [each for each in results if each.is_done]
        if done:
            text = describe_for_model(action, turn.label, done)
            self._news.add(UndoNews(text, tuple(each.path for each in done), tuple(turn.conversations)))
        return self._report(action, turn, results, force)

    def _record(
        self, turn: Turn, action: Action, results: Sequence[Restored], chosen: Collection[str], force: bool
    ) -> None:
        """Record what undo or redo did with a turn."""
        turn.unfinished, turn.opened = [], {}
        if chosen and results and all(each.action == "failed" for each in results):
            self.store.turns.save(turn)
            return  # as in a read-only workspace: nothing has happened
        turn.is_blocked = bool(results) and not force and not any(each.is_done for each in results)
        if not turn.is_blocked:
            turn.status = "undone" if action == "undo" else "done"
            # What force keeps, such as a folder with other files in it, it would keep again.
            turn.kept = [each.path for each in results if each.action == "kept" and not force]
            turn.kept += [each.path for each in results if each.action == "failed" and each.path in chosen]
        self.store.turns.save(turn)
        if force and action == "undo":
            for other in release_paths(self.store.turns.list()[0], turn, chosen):
                (self.store.turns.save if other.changes else self.store.turns.remove)(other)

    def _report(
        self, action: Action, turn: Turn, results: tuple[Restored, ...], force: bool, *, is_planned: bool = False
    ) -> Report:
        not_restored = (*NEVER_RESTORED, *self.not_included, *turn.left_out) if turn.ran_command else ()
        if not turn.ran_command and is_committed_since(self.workspace, turn.git_after):
            not_restored = NEVER_RESTORED[:1]  # such as a commit since
        notes, problems = tuple(_make_notes(turn)), tuple(turn.problems)
        ignored = self.select_ignored(each.path for each in results)
        summary = TurnSummary.of(turn)
        return Report(action, summary, results, not_restored, notes, problems, ignored, is_planned, force)

    def _keep_overwritten(self, turn: Turn, chosen: Sequence[Change], action: str) -> None:
        """Keep what somebody else has written and is about to be overwritten, so that redo, or undo, brings it back."""
        current = {change.path: self._keep_entry(change.path) for change in chosen}
        turn.changes = [
            _replace_side(change, action, current[change.path]) if change.path in current else change
            for change in turn.changes
        ]
        self.store.turns.save(turn)

    def _is_alive(self, turn: Turn) -> bool:
        """Whether another session may be in the middle of a turn; this session's own have ended."""
        return turn.session != self._session.name and is_session_alive(self.store.sessions, turn.session)

    def _take_snapshot(self) -> str:
        if not self._is_index_loaded:
            self._ignored.left_out = self.store.load_index(self._scan)
            self._is_index_loaded = True
        # Git lists what is ignored at the same time; that seldom differs from the last time.
        expected = self._ignored.left_out
        self._ignored.start()
        try:
            visits = self._scan.visit_all(expected) if self._scan.records else None
        finally:
            left_out = self._ignored.finish()
        if visits is None or left_out != expected:
            visits = self._scan.visit_all(left_out)
        return self._scan.keep(visits)

    def _finish(self, turn: Turn, *, interrupted: bool = False) -> None:
        """Record what an open turn changed; remove the record of one that changed nothing."""
        if interrupted:
            self._remove_temporary_files(turn.before)
        turn.changes = self._compare(turn)
        turn.status, turn.ended, turn.is_interrupted = "done", time.time(), interrupted
        turn.was_shared = turn.ran_command and self.store.has_other_sessions(self._session.name)
        turn.git_after = read_git_state(self.workspace)
        turn.changed_git = turn.ran_command and turn.git_before != turn.git_after
        if turn.snapshot:
            self._save_index()
        turn.before, turn.snapshot = {}, ""
        if turn.changes or turn.changed_git:
            self.store.turns.save(turn)
        else:
            self.store.turns.remove(turn)

    def _compare(self, turn: Turn) -> list[Change]:
        """What differs now from before the turn, sorted by path; contents are kept."""
        found: dict[str, Change] = {}
        if turn.snapshot:
            tree = self._take_snapshot()
            found = {change.path: change for change in diff_trees(self.objects, turn.snapshot, tree)}
            turn.left_out = sorted({*turn.left_out, *self._describe_left_out()})
        for path, before in turn.before.items():
            found[path] = Change(path, before, self._keep_entry(path))
        changes = [change for change in found.values() if not is_unchanged(change.before, change.after)]
        return sorted(changes, key=lambda change: change.path)

    def _remove_temporary_files(self, paths: Iterable[str]) -> None:
        # Those of another session may be in use.
        if not self.store.has_other_sessions(self._session.name):
            remove_temporary_files(self.workspace, paths)

    def _keep_entry(self, path: str) -> Entry | None:
        """What is at a path, with its content kept. Raises `OSError` if the store can't be written."""
        root, folder, name = split_path(self.workspace, path)
        try:
            with open_folder(root, folder) as parent:
                status = find_stat(parent, name)
                if status is not None and stat.S_ISREG(status.st_mode) and status.st_size > self.limits.file_bytes:
                    return Entry(status.st_mode, UNREADABLE)
                return None if status is None else read_entry(parent, name, status, self.objects)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _describe_left_out(self) -> list[str]:
        limit, largest = self.limits.ignored_bytes // MB, self.limits.file_bytes // MB
        ignored = [f"{path} (ignored; over {limit:,} MB in all)" for path in self._scan.left_out]
        large = [
            f"{path} ({f'over {largest:,} MB' if size > self.limits.file_bytes else 'no room for it'})"
            for path, size in self._scan.too_large.items()
        ]
        return sorted([*ignored, *large, *(f"{path} (unreadable)" for path in self._scan.unreadable)])

    def _save_index(self) -> None:
        if self._is_index_loaded:
            self.store.save_index(self._scan)

    def _prune(self) -> None:
        remove_abandoned(self.store.folder.parent, self.limits.days * 86400)
        if self.store.has_other_sessions(self._session.name):
            return
        turns, _ = self.store.turns.list()
        oldest = time.time() - self.limits.days * 86400
        old = [turn for turn in turns if turn.started < oldest] or turns[: -self.limits.turns]
        for turn in old:
            self.store.turns.remove(turn)
        if old or self.store.count_loose() > _MAX_LOOSE or len(self.objects.list_packs()) > _MAX_PACKS:
            self._repack()
        turns, _ = self.store.turns.list()
        while turns and self.store.measure() > self.limits.store_bytes:
            removed, turns = turns[: (len(turns) + 1) // 2], turns[(len(turns) + 1) // 2 :]
            for turn in removed:
                self.store.turns.remove(turn)
            self._repack()

    def _repack(self) -> None:
        if not self.objects.can_import:
            return
        kept: set[str] = set()
        for turn in self.store.turns.list()[0]:
            kept.update(turn.list_objects())
            kept.update(self.store.list_tree(turn.snapshot) if turn.snapshot else ())
        for _, tree, files, _ in self._scan.records.values():
            kept.update(oid for oid in (tree, *(each[2] for each in files.values())) if len(oid) == 64)
        self.objects.repack(kept)
        self._save_index()


def diff_trees(objects: ObjectStore, one: str, other: str, folder: str = "") -> Iterator[Change]:
    """What differs between two trees, which may be empty texts for nothing. What neither includes is skipped."""
    if one == other:
        return
    before = dict(decode_tree(objects.read(one))) if one else {}
    after = dict(decode_tree(objects.read(other))) if other else {}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        path = folder + name
        if not is_unchanged(old, new):
            yield Change(path, _strip(old), _strip(new))
        inner = [each.oid if each is not None and is_folder(each) else "" for each in (old, new)]
        # A folder that one of the two doesn't include counts as unchanged.
        if UNREADABLE not in inner:
            yield from diff_trees(objects, inner[0], inner[1], f"{path}/")


def _replace_side(change: Change, action: str, entry: Entry | None) -> Change:
    return replace(change, after=entry) if action == "undo" else replace(change, before=entry)


def _strip(entry: Entry | None) -> Entry | None:
    """An entry without the tree of a folder."""
    return Entry(entry.mode) if is_folder(entry) and entry and entry.oid != UNREADABLE else entry


def _list_missing_parents(workspace: str, path: str) -> list[str]:
    """The folders of a path that don't exist, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while folder not in ("", "/") and not os.path.lexists(os.path.join(workspace, folder)):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def _make_notes(turn: Turn) -> Iterator[str]:
    if turn.is_interrupted:
        yield "The end of this turn wasn't recorded: what was changed in its files since then counts as the turn's."
    if turn.was_shared:
        yield "Another session was open in this workspace: what it changed meanwhile counts as the turn's."
