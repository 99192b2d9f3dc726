"""Plans what a patch does to files: each section starts from what the ones before it made of its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ferrule.coding.files.change_plans import ChangePlan, plan_change, plan_new, refuse_if_changed
from ferrule.coding.files.changes import FileChange
from ferrule.coding.files.editor_config import find_charset
from ferrule.coding.files.patch_notation import FilePatch
from ferrule.coding.files.patches import patch_text
from ferrule.coding.files.reading import LoadedFile, explain_errors
from ferrule.coding.files.text_files import TextFile, make_empty
from ferrule.coding.workspace import Workspace
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.sandbox.shell.access_plan import Access

__all__ = ["plan_patch"]

_Load: TypeAlias = Callable[[str, Access], LoadedFile]


@dataclass(slots=True)
class _Draft:
    """A file, as the sections so far leave it."""

    real: str
    shown: str
    file: LoadedFile | None
    """What is there now; None if nothing is."""
    content: TextFile | bytes | None
    """What will be there; None if nothing will be."""
    is_known: bool = True
    """Whether the model knows all of it."""
    notes: list[str] = field(default_factory=list)
    sections: int = 0
    """How many sections change its text."""
    source: _Draft | None = None
    """The file that is moved here."""
    is_moved: bool = False
    """Whether it is moved elsewhere."""


def plan_patch(workspace: Workspace, load: _Load, patches: Sequence[FilePatch]) -> list[ChangePlan]:
    """Plan the changes of all sections of a patch. `load` loads a file that may be used in that way.

    Raises `ToolRetry`, `ToolFailed` and what `load` raises.
    """
    planner = _Planner(workspace, load)
    for patch in patches:
        with explain_errors("patching", patch.path):
            planner.apply(patch)
    plans = [plan for draft in planner.drafts for plan in _plan_draft(draft)]
    if not plans:
        raise ToolRetry("the patch changes nothing: it deletes again what it adds")
    with explain_errors("patching", patches[0].path):
        workspace.access.check_together([each.change.real for each in plans if each.change.after is not None])
    return plans


class _Planner:
    """Applies the sections of a patch to drafts of their files."""

    def __init__(self, workspace: Workspace, load: _Load) -> None:
        self.drafts: list[_Draft] = []
        self._access = workspace.access
        self._load = load

    def apply(self, patch: FilePatch) -> None:
        """Apply one section."""
        if patch.kind == "add":
            draft = self._begin(patch.path, f": change it by `*** Update File: {patch.path}`")
            known = draft.file.text if draft.file is not None else None
            text = known or make_empty(patch.content, find_charset(self._access, draft.real))
            draft.content, draft.is_known = text.rewrite(patch.content), True
        else:
            draft = self._find(patch.path)
            if patch.kind == "delete":
                draft.content = None
            else:
                self._update(draft, patch)
        draft.notes += patch.notes

    def _begin(self, path: str, advice: str) -> _Draft:
        """The draft of a file that doesn't exist yet, or that an earlier section deletes."""
        real = self._access.check(path, Access.WRITE)
        draft = next((each for each in self.drafts if each.real == real), None)
        if draft.content is not None if draft is not None else os.path.lexists(real):
            raise ToolRetry(f"{self._access.describe(real)} exists already{advice}")
        if draft is None:
            draft = _Draft(real, self._access.describe(real), None, None)
            self.drafts.append(draft)
        return draft

    def _find(self, path: str) -> _Draft:
        """The draft of a file that exists."""
        real = self._access.check(path, Access.WRITE)
        draft = next((each for each in self.drafts if each.real == real), None)
        if draft is None:
            file = self._load(path, Access.WRITE)
            refuse_if_changed(file)
            content = file.data if file.text is None else file.text
            draft = _Draft(file.real, file.path, file, content, file.record is not None)
            self.drafts.append(draft)
        if draft.content is None:
            raise ToolRetry(f"{draft.shown} is gone: an earlier section of the patch deletes or moves it")
        return draft

    def _update(self, draft: _Draft, patch: FilePatch) -> None:
        if isinstance(draft.content, TextFile):
            try:
                patched = patch_text(draft.content, patch.hunks)
            except ToolFailed as error:
                raise ToolRetry(f"nothing was changed. {draft.shown}: {error.reason}") from error
            draft.content = patched.file
            draft.sections += bool(patch.hunks)
            section = f"section {draft.sections}, " if draft.sections > 1 else ""
            draft.notes += [f"{section}{note}" for note in patched.notes]
        elif patch.hunks or patch.move_to is None:
            kind = "binary" if draft.file is None else draft.file.kind
            raise ToolFailed(f"{draft.shown} is not text but {kind}, which can't be changed by a patch")
        if patch.move_to is not None:
            self._move(draft, patch.move_to)

    def _move(self, draft: _Draft, path: str) -> None:
        target = self._begin(path, ", so nothing can be moved there")
        target.content, target.is_known, target.sections = draft.content, draft.is_known, draft.sections
        target.source = draft.source or (draft if draft.file is not None else None)
        target.notes += draft.notes
        draft.content, draft.notes, draft.is_moved = None, [], True
        # Shown in the place of the file that it was.
        self.drafts.remove(target)
        self.drafts.insert(self.drafts.index(draft), target)


def _plan_draft(draft: _Draft) -> Iterator[ChangePlan]:
    """The change to one file, if there is one."""
    notes = draft.notes
    if draft.sections > 1:
        notes = [f"{draft.sections} sections of the patch change it, each after the one before", *notes]
    file, source, content = draft.file, draft.source, draft.content
    if content is None:
        if file is not None:
            text = file.text.content if file.text is not None and not draft.is_moved else ""
            gone = FileChange(draft.shown, draft.real, file.digest, None, file.settled)
            yield ChangePlan(gone, text, "", file.origin, notes=tuple(notes), is_shown=not draft.is_moved)
    elif source is not None and source.file is not None:
        old, replaced = source.file, None if file is None else file.digest
        before, after = (each.content if isinstance(each, TextFile) else "" for each in (old.text, content))
        data = content.encode() if isinstance(content, TextFile) else content
        made = FileChange(draft.shown, draft.real, replaced, data, mode_from=old.real)
        yield ChangePlan(made, before, after, old.origin, draft.is_known, source.shown, tuple(notes))
    elif file is not None and isinstance(content, TextFile):
        yield plan_change(file, file.text or TextFile(""), content, is_known=draft.is_known, notes=notes)
    elif isinstance(content, TextFile):
        yield plan_new(draft.shown, draft.real, content, notes)
