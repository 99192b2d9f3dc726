"""What differs between a recording and what would be asked, or was computed, now."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ferrule.analysis.data.task_value import VALUE_FILE
from ferrule.models.recording.differences import describe_differences
from ferrule.models.recording.request import Request
from ferrule.models.recording.rows import ValueRow

_TOLERANCE = 1e-9
"""Relative difference of two numbers that count as equal: another processor adds in another order."""
_MOST = 200
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ChangedRequest:
    """A request that isn't the recorded one: a model would be asked anew."""

    place: str
    details: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: {'; '.join(self.details)}"


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A value of a run that isn't the recorded one."""

    place: str
    """The task and the run, and where in the result the value stands."""
    recorded: str
    computed: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, now {self.computed}"


def describe_change(place: str, recorded: Request, now: Request) -> ChangedRequest:
    """What a request has that the recorded one hasn't."""
    return ChangedRequest(place, tuple(describe_differences(recorded, now)))


def compare_outcomes(row: ValueRow, recorded: ValueRow | None) -> list[RunDifference]:
    """The values that a run left and the recorded one didn't; numbers that differ only by rounding are equal."""
    place = row.stage
    if recorded is None:
        return [RunDifference(place, "no such run", "a run")]
    ends = [row.failure.message if row.failure else "", recorded.failure.message if recorded.failure else ""]
    if ends[0] != ends[1]:
        return [RunDifference(place, ends[1] or "a result", ends[0] or "a result")]
    found = []
    for path, old, new in _compare(recorded.value["outcome"], row.value["outcome"], ""):
        found.append(RunDifference(f"{place}{path}", _show(old), _show(new)))
        if len(found) == _MOST:
            break
    return found


def _compare(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        # The pickle for later tasks differs with versions and the order of sets; the value that is shown is compared.
        for name in (one for one in dict.fromkeys((*old, *new)) if one != VALUE_FILE):
            yield from _compare(old.get(name), new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, two) in enumerate(zip(old, new, strict=True)):
            yield from _compare(one, two, f"{path}[{at}]")
    elif not _are_equal(old, new):
        yield path, old, new


def _are_equal(old: Any, new: Any) -> bool:
    numbers = (int, float)
    if (
        isinstance(old, numbers)
        and isinstance(new, numbers)
        and not isinstance(old, bool)
        and not isinstance(new, bool)
    ):
        return math.isclose(old, new, rel_tol=_TOLERANCE, abs_tol=1e-12) or (math.isnan(old) and math.isnan(new))
    return bool(old == new)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
