"""Changes to files that are worked out but not made: what a person sees of them, and what the model reads after.

A plan is kept from its intent to its run, so that a large file is loaded and compared only once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ferrule._util.line_diff import diff_texts
from ferrule._util.spliced_bytes import EncodedText, SplicedBytes
from ferrule.coding.files.changes import FileChange, has_same_content
from ferrule.coding.files.reading import LoadedFile
from ferrule.coding.files.records import FileRecord, hash_content
from ferrule.coding.files.text_files import TextFile, show_bad_bytes
from ferrule.coding.workspace import Workspace
from ferrule.errors import ToolRetry
from ferrule.tools.intent import Diff, Effect, Intent, Preview

__all__ = [
    "Call",
    "ChangePlan",
    "PlanCache",
    "describe_plan",
    "make_intent",
    "plan_change",
    "plan_new",
    "refuse_if_changed",
]

_MOST_DIFF_LINES: Final = 150
_LONGEST_DIFF_LINE: Final = 300


@dataclass(frozen=True)
class ChangePlan:
    """A change to one file."""

    change: FileChange
    before: EncodedText
    """The text before, or its bytes if it is in ASCII; empty for a new file."""
    after: EncodedText
    """The text after; empty for a deleted one."""
    origin: str = ""
    """The hash of what the model's own changes to this file started from; empty for a new file."""
    is_known: bool = True
    """Whether the model knows the whole content afterwards."""
    moved_from: str = ""
    """The path, as it is shown, that a moved file had."""
    notes: tuple[str, ...] = ()
    is_shown: bool = True
    """Whether it is worth mentioning; not for the old place of a moved file."""

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether there is nothing to write."""
        change = self.change
        if change.after is None or not _may_be_same(self.before, self.after):
            return False
        return change.before == hash_content(change.after)

    @cached_property
    def diff_lines(self) -> list[str]:
        """The change as a unified diff without headers."""
        return diff_texts(self.before, self.after)


def _may_be_same(before: EncodedText, after: EncodedText) -> bool:
    if isinstance(after, SplicedBytes) and after.base is before:
        return after.new == after.base[after.start : after.end]
    return type(before) is not type(after) or before == after


def plan_change(
    file: LoadedFile, text: TextFile, new: TextFile, *, is_known: bool = True, notes: Sequence[str] = ()
) -> ChangePlan:
    """The plan that gives an existing file a new text."""
    data = new.content if isinstance(new.content, SplicedBytes) and not new.bom else new.encode()
    change = FileChange(file.path, file.real, file.digest, data, file.settled)
    extra = [text.description] if text.description else []
    return ChangePlan(change, text.content, new.content, file.origin, is_known, notes=(*notes, *extra))


def plan_new(shown: str, real: str, text: TextFile, notes: Sequence[str] = ()) -> ChangePlan:
    """The plan that creates a file."""
    extra = [text.description] if text.encoding != "utf-8" or text.bom else []
    return ChangePlan(FileChange(shown, real, None, text.encode()), "", text.content, notes=(*notes, *extra))


def refuse_if_changed(file: LoadedFile) -> None:
    """Raise `ToolRetry` if a file that the model read isn't the same any more."""
    if file.record is not None and not file.is_as_known:
        raise ToolRetry(f"{file.path} has changed since you read it: read it again, then decide what to write")


def make_intent(plans: Sequence[ChangePlan]) -> Intent:
    """What the plans would do. The precondition is one for the same lines of the same content.

    It stands for the content that somebody else wrote last, and the lines that change: so that several changes of one
    turn to the same file can be approved together, and none once somebody else has changed the file.
    """
    effects = tuple(Effect("write", plan.change.real) for plan in plans)
    state = [
        [
            plan.change.real,
            plan.origin,
            plan.change.after is None,
            [line for line in plan.diff_lines if line[0] in "+-"],
        ]
        for plan in plans
    ]
    return Intent(effects, _make_preview(plans), hash_content(json.dumps(state).encode()))


def _make_preview(plans: Sequence[ChangePlan]) -> Preview:
    diffs = [Diff(plan.change.path, _show(plan.before), _show(plan.after)) for plan in plans]
    if len(plans) == 1 and plans[0].change.after is not None:
        return diffs[0]
    return "\n".join(f"{_summarize(plan)}\n{diff}" for plan, diff in zip(plans, diffs, strict=True))


def _show(text: EncodedText) -> EncodedText:
    """A text without bad bytes, which one in ASCII has none of."""
    return show_bad_bytes(text) if isinstance(text, str) else text


def describe_plan(plan: ChangePlan) -> str:
    """What was done, for the model: created or updated, bytes, notes, and the diff of an update, bounded."""
    if plan.is_unchanged:
        return f"File unchanged: {plan.change.path} has this content already"
    notes = "".join(f"\n[{note}]" for note in plan.notes)
    diff = plan.diff_lines if plan.change.after is not None and plan.before else []
    if not diff:
        return f"{_summarize(plan)}{notes}"
    return f"{_summarize(plan)}{notes}\n\nDiff:\n{_cut_diff(diff)}"


def _summarize(plan: ChangePlan) -> str:
    change = plan.change
    if change.after is None:
        return f"File deleted: {change.path}"
    size = f"({len(change.after):,} bytes)" if len(change.after) != 1 else "(1 byte)"
    if plan.moved_from:
        return f"File moved: {plan.moved_from} to {change.path} {size}"
    return f"File {'created' if change.before is None else 'updated'}: {change.path} {size}"


def _cut_diff(lines: list[str]) -> str:
    shown = [_cut_line(show_bad_bytes(line.replace("\r", "\\r"))) for line in lines]
    if len(shown) > _MOST_DIFF_LINES:
        half = _MOST_DIFF_LINES // 2
        shown = [*shown[:half], f"[{len(shown) - 2 * half:,} more lines of the diff]", *shown[-half:]]
    return "\n".join(shown)


def _cut_line(line: str) -> str:
    if len(line) <= _LONGEST_DIFF_LINE:
        return line
    return f"{line[:_LONGEST_DIFF_LINE]}… [{len(line) - _LONGEST_DIFF_LINE:,} more characters]"


_MOST_PLANS: Final = 8
_MOST_CHARACTERS: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A call that changes files."""

    key: tuple[str, Any]
    """The tool's name and the arguments."""
    paths: Sequence[str]
    """As they were given."""
    plan: Callable[[], list[ChangePlan]]
    """Plans the changes anew."""


@dataclass(frozen=True, slots=True)
class _Kept:
    call: Call
    reals: tuple[str, ...]
    plans: list[ChangePlan]
    records: tuple[FileRecord | None, ...]

    @property
    def size(self) -> int:
        return sum(len(plan.before) + len(plan.after) for plan in self.plans)


class PlanCache:
    """The plans of calls that haven't run. Can be used from any thread.

    A plan is used again only while its files have the status, the paths lead where, and the model knows of the files
    what they did when it was made. Whoever writes compares the content all the same.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._kept: list[_Kept] = []
        self._lock = threading.Lock()

    def make(self, call: Call) -> list[ChangePlan]:
        """The plans of a call, made now or before. Raises what `call.plan` raises."""
        plans = self.take(call) or call.plan()
        reals = tuple(map(self._workspace.access.resolve, call.paths))
        records = tuple(self._workspace.files.get(plan.change.real) for plan in plans)
        with self._lock:
            self._kept.append(_Kept(call, reals, plans, records))
            while len(self._kept) > _MOST_PLANS or sum(each.size for each in self._kept) > _MOST_CHARACTERS:
                del self._kept[0]
        return plans

    def take(self, call: Call) -> list[ChangePlan] | None:
        """Remove and return the plans of a call; None if there are none, or something has changed since."""
        with self._lock:
            found = next((each for each in self._kept if each.call.key == call.key), None)
            if found is None:
                return None
            self._kept.remove(found)
        return found.plans if self._is_current(found) else None

    def _is_current(self, kept: _Kept) -> bool:
        access, files = self._workspace.access, self._workspace.files
        if tuple(map(access.resolve, kept.call.paths)) != kept.reals:
            return False
        return all(
            _is_as_planned(plan) and files.get(plan.change.real) == record
            for plan, record in zip(kept.plans, kept.records, strict=True)
        )


def _is_as_planned(plan: ChangePlan) -> bool:
    try:
        status = os.lstat(plan.change.real)
    except FileNotFoundError:
        return plan.change.before is None
    except OSError:
        return False
    return plan.change.before is not None and has_same_content(plan.change.status, status)
