"""Keeps what a call would write from its intent to its run, so that a large file is loaded and compared only once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ferrule.coding.files.change_plans import ChangePlan
from ferrule.coding.files.changes import has_same_content
from ferrule.coding.files.records import FileRecord
from ferrule.coding.workspace import Workspace

__all__ = ["Call", "PlanCache"]

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
