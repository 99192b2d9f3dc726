"""The file tools of the coding agent: `read_file`, `write_file`, `edit_file` and `apply_patch`.

What a call would write is worked out as its intent, before anybody is asked, and again when it runs if anything has
changed since. In between, the intent's precondition makes sure that it is the same change to the same file.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from ferrule.coding.files.change_plans import (
    Call,
    ChangePlan,
    PlanCache,
    describe_plan,
    make_intent,
    plan_change,
    plan_new,
    refuse_if_changed,
)
from ferrule.coding.files.changes import apply_changes
from ferrule.coding.files.editor_config import find_charset
from ferrule.coding.files.edits import Edit, apply_edits
from ferrule.coding.files.patch_notation import FilePatch, list_patched, parse_patch
from ferrule.coding.files.patch_plans import plan_patch
from ferrule.coding.files.reading import LoadedFile, explain_errors, load_file, render_file, suggest_names
from ferrule.coding.files.records import hash_content
from ferrule.coding.files.text_files import TextFile, make_empty
from ferrule.coding.workspace import Workspace
from ferrule.conversation import Image, Text
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.sandbox.file_access import describe_path
from ferrule.sandbox.shell.access_plan import Access
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent, is_judged_again
from ferrule.tools.toolset import Toolset
from ferrule.toolspec import Annotations

__all__ = ["FileTools", "make_file_tools"]

_Path = Annotated[str, "The file, relative to the workspace or absolute"]
_READS: Final = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
# `destructive` is left open, as for commands: they can destroy only the workspace.
_WRITES: Final = Annotations(read_only=False, open_world=False)


def make_file_tools(workspace: Workspace) -> list[Tool]:
    """Make the file tools of a workspace."""
    return list(FileTools(workspace).tools)


class FileTools(Toolset):
    """Reads and writes the files of one workspace. Calls that write wait for each other."""

    name = "files"
    description = "Reads and writes files of the workspace"

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._changing = threading.Lock()
        self._plans = PlanCache(workspace)
        self._failures: dict[tuple[str, str], int] = {}
        self._last_changes: dict[str, str] = {}
        """By real path, the hash of the call that changed it last, unless the file was read since."""

    def _intend_reading(self, arguments: Mapping[str, Any]) -> Intent:
        path = str(arguments["path"])
        with explain_errors("reading", path):
            return Intent((Effect("read", self._workspace.access.check(path, Access.READ)),))

    @tool(annotations=_READS, intent=_intend_reading)
    def read_file(
        self,
        path: _Path,
        offset: Annotated[int, Field(ge=1, description="The line to start at, counted from 1")] = 1,
        limit: Annotated[int | None, Field(ge=1, description="How many lines at most; all by default")] = None,
    ) -> str | list[Text | Image]:
        """Read a file: numbered lines (number, tab, line), or an image. Read a file before you change it, and read
        what you rely on instead of guessing it. Of a long file you get the beginning, and the offset to go on with.
        """
        with explain_errors("reading", path):
            file = self._load(path)
            answer = render_file(file, offset, limit)
            self._workspace.files.remember(file.real, file.digest, file.settled)
            self._last_changes.pop(file.real, None)
        return answer

    def _load(self, path: str, access: Access = Access.READ) -> LoadedFile:
        """Load a file that may be used in that way. Raises `ToolRetry` if it is a folder, or missing."""
        snapshot = self._workspace.access.take_snapshot()
        if os.path.isdir(self._workspace.access.check(path, access, snapshot)):  # noqa: PTH112
            raise ToolRetry(f"{describe_path(path)} is a folder: see what is in it with list_files")
        try:
            return load_file(self._workspace, path, snapshot)
        except (FileNotFoundError, NotADirectoryError) as error:
            shown = self._workspace.access.describe(self._workspace.access.resolve(path))
            hint = suggest_names(self._workspace, path) or " See list_files for what there is."
            raise ToolRetry(f"Error reading {shown}: there is no such file.{hint}") from error

    def _intend_writing(self, arguments: Mapping[str, Any]) -> Intent:
        return self._intend(self._prepare_writing(str(arguments["path"]), str(arguments["content"])))

    @tool(annotations=_WRITES, intent=_intend_writing)
    async def write_file(self, path: _Path, content: Annotated[str, "The complete new content"]) -> str:
        """Write a whole file: create one, with the folders that it needs, or replace all of its content. Show the user
        what you plan to write before. To replace a file, read it first; to change a part of one, use edit_file.
        """
        return await self._carry_out(self._prepare_writing(path, content))

    def _prepare_writing(self, path: str, content: str) -> Call:
        return Call(("write_file", [path, content]), [path], lambda: [self._plan_writing(path, content)])

    def _plan_writing(self, path: str, content: str) -> ChangePlan:
        with explain_errors("writing", path):
            snapshot = self._workspace.access.take_snapshot()
            real = self._workspace.access.check(path, Access.WRITE, snapshot)
            if not os.path.lexists(real):
                return self._plan_creating(real, content)
            file = load_file(self._workspace, path, snapshot)
            if file.record is None:
                raise ToolRetry(
                    f"{file.path} exists and you haven't read it since this session began or was resumed: "
                    "read it first, so that nothing is lost"
                )
            refuse_if_changed(file)
            text = file.text or TextFile("")
            return plan_change(file, text, text.rewrite(content))

    def _plan_creating(self, real: str, content: str) -> ChangePlan:
        text = make_empty(content, find_charset(self._workspace.access, real)).rewrite(content)
        return plan_new(self._workspace.access.describe(real), real, text)

    def _intend_editing(self, arguments: Mapping[str, Any]) -> Intent:
        return self._intend(self._prepare_editing(str(arguments["path"]), arguments["edits"]))

    @tool(annotations=_WRITES, intent=_intend_editing)
    async def edit_file(
        self,
        path: _Path,
        edits: Annotated[list[Edit], Field(min_length=1, description="Replacements, made in this order; all or none")],
    ) -> str:
        """Change parts of a file by replacing text. Read the file first, and quote `old` exactly as it is there,
        without the line numbers and with enough lines to occur only once. Show the user what you plan to change before.
        """
        return await self._carry_out(self._prepare_editing(path, edits))

    def _prepare_editing(self, path: str, edits: list[Edit]) -> Call:
        key = ("edit_file", [path, edits])
        return Call(key, [path], lambda: [self._plan_editing(path, edits, _hash_call(key))])

    def _plan_editing(self, path: str, edits: list[Edit], key: str) -> ChangePlan:
        with explain_errors("editing", path):
            file = self._load(path, Access.WRITE)
            if file.text is None:
                raise ToolFailed(f"{file.path} is not text but {file.kind}, which can't be edited by quoting text")
            refuse_if_changed(file)
            self._refuse_repeated(key, [(file.path, file.real)])
            try:
                edited = apply_edits(file.text, edits, exact_only=file.record is None)
            except ToolFailed as error:
                raise ToolRetry(f"{file.path}: {self._explain_failure(file, edits, error.reason)}") from error
            return plan_change(file, file.text, edited.file, is_known=file.record is not None, notes=edited.notes)

    def _refuse_repeated(self, key: str, files: Sequence[tuple[str, str]]) -> None:
        """Raise `ToolRetry` for a call that made the last change of all these files: models write one call twice."""
        if files and all(self._last_changes.get(real) == key for _, real in files):
            named = ", ".join(shown for shown, _ in files)
            raise ToolRetry(
                f"{named}: your call before made this very change, so this one did nothing. To make it once more, read "
                "the file first"
            )

    def _explain_failure(self, file: LoadedFile, edits: list[Edit], reason: str) -> str:
        """The reason why an edit failed; if the same one failed before, with what is there instead."""
        key = (file.real, hash_content(json.dumps([file.digest, *edits], sort_keys=True).encode()))
        again = 0 if is_judged_again.get() else 1
        count = self._failures[key] = max(1, self._failures.pop(key, 0) + again)
        while len(self._failures) > 1000:
            self._failures.pop(next(iter(self._failures)))
        if count == 1:
            return reason
        return (
            f"{reason}\nThis same edit failed {count} times now, and will again: the file isn't what you think. "
            "Read it again with read_file and copy `old` from there without the line numbers, quote fewer lines, or "
            "replace the whole file with write_file"
        )

    def _intend_patching(self, arguments: Mapping[str, Any]) -> Intent:
        return self._intend(self._prepare_patching(str(arguments["patch"])))

    @tool(annotations=_WRITES, intent=_intend_patching)
    async def apply_patch(self, patch: Annotated[str, "From `*** Begin Patch` to `*** End Patch`"]) -> str:
        """Create, change, move and delete files by a patch; all of it or none. Read the files first, and show the user
        what you plan to change. It is a text of `*** Begin Patch`, then for each file `*** Add File: PATH` (each line
        with +), `*** Delete File: PATH`, or `*** Update File: PATH` (perhaps `*** Move to: PATH`) and its changes:
        `@@` with a line that comes before, if needed to tell places apart; then lines with ` ` (three that stay before
        and after), `-` (removed) and `+` (added); and at the end `*** End Patch`.
        """
        return await self._carry_out(self._prepare_patching(patch))

    def _prepare_patching(self, patch: str) -> Call:
        parsed, key = parse_patch(patch), ("apply_patch", patch)
        return Call(key, list_patched(parsed), lambda: self._plan_patching(parsed, _hash_call(key)))

    def _plan_patching(self, parsed: Sequence[FilePatch], key: str) -> list[ChangePlan]:
        plans = plan_patch(self._workspace, self._load, parsed)
        self._refuse_repeated(key, [(plan.change.path, plan.change.real) for plan in plans])
        return plans

    def _intend(self, call: Call) -> Intent:
        return make_intent(self._plans.make(call))

    async def _carry_out(self, call: Call) -> str:
        """Make the planned changes; returns what the model reads of them."""
        if self._workspace.checkpoints is not None:
            await self._workspace.before_write(await asyncio.to_thread(self._check_paths, call.paths))
        return await asyncio.to_thread(self._write_planned, call)

    def _check_paths(self, paths: Sequence[str]) -> list[Path]:
        reals = []
        for path in paths:
            with explain_errors("writing", path):
                reals.append(Path(self._workspace.access.check(path, Access.WRITE)))
        return reals

    def _write_planned(self, call: Call) -> str:
        with self._changing:
            plans = self._plans.take(call) or call.plan()
            changed = [each for each in plans if not each.is_unchanged]
            with explain_errors("writing", plans[0].change.path):
                apply_changes(self._workspace.access, [each.change for each in changed])
            for each in changed:
                self._remember(each)
                self._last_changes[each.change.real] = _hash_call(call.key)
        return "\n\n".join(describe_plan(each) for each in plans if each.is_shown)

    def _remember(self, plan: ChangePlan) -> None:
        change = plan.change
        if change.after is None:
            self._workspace.files.forget(change.real)
        elif plan.is_known:
            self._workspace.files.remember_written(change.real, change.after)


def _hash_call(key: tuple[str, Any]) -> str:
    return hash_content(json.dumps(key, sort_keys=True).encode())
