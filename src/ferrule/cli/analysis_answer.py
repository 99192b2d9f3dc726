"""Shows the result of an analysis: the answer first, each number with the task that computed it; or all as JSON."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line, escape_text
from ferrule._util.word_folding import fold_words

if TYPE_CHECKING:
    from ferrule.analysis.numbers.matching import NumberLink
    from ferrule.analysis.recording import Recording
    from ferrule.analysis.result import AnalysisResult

_Difference = TypeVar("_Difference")
_WIDTH = 110
"""Columns of the answer where there is no terminal, and COLUMNS isn't set."""
_LEAST_WIDTH = 20
_MARK = re.compile(r" \[(?:t\d+(?:, stated)?|question|data|not computed)\]")
_NO_BREAK = "\ue000"
"""Stands for a space that a line isn't broken at, while it is folded; from the private use area."""
_MOST_PLACES = 3
"""How often a difference is listed that many values have, as of rows that were added."""
_INNER_FIELDS = ("kept",)
"""Fields of a task that hold what later tasks compute with, and no person reads."""


def print_answer(result: AnalysisResult) -> None:
    """Print the answer, the key findings and the focused answer on stdout, and what the marks mean."""
    marked = _Marker(result)
    has_account = all(entry.stage_type != "synthesis" for entry in result.output_entries)
    # An account quotes whole results: each number of it is that of the task that it stands under.
    lines = [*marked.mark(result.answer, () if has_account else result.numbers).splitlines()]
    if result.key_findings:
        links = result.finding_numbers or repeat(())
        findings = (marked.mark(*pair) for pair in zip(result.key_findings, links, strict=False))
        lines += ["", *(f"- {finding}" for finding in findings)]
    if result.focused_answer is not None and result.focused_answer.answer_type != "none":
        focused = result.focused_answer
        lines += ["", f"Answer: {marked.mark(focused.formatted_answer, focused.numbers)}"]
        lines += [f"not computed: {escape_line(problem)}" for problem in focused.not_computed]
    for more in (list(_describe_failures(result, has_account=has_account)), list(marked.list_tasks())):
        lines += ["", *more] if more else []
    if result.stopped is not None and result.answer != f"There is no answer: {result.stopped}.":
        lines += ["", f"partial: {escape_line(result.stopped)}"]
    if sys.stdout.isatty():
        _print_styled(lines)
    else:
        width = max(_LEAST_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
        print("\n".join(piece.rstrip() for line in lines for piece in _fold(line, width)))


def _describe_failures(result: AnalysisResult, *, has_account: bool) -> Iterator[str]:
    """A line for each task without a result, unless the account lists them, and for each check that is false."""
    for task in result.tasks:
        if task.status != "done" and not has_account:
            reason = " ".join((task.error or task.status).split())
            yield f"Without a result: {escape_line(task.id)}: {escape_line(reason)}"
        for check in task.checks:
            if check.passed is False:
                detail = f" ({escape_line(check.detail)})" if check.detail else ""
                yield f"A check of {escape_line(task.id)} failed: {escape_line(check.description)}{detail}"


def _fold(line: str, width: int) -> list[str]:
    """Fold a line between words, never inside a mark or before one."""
    kept = _MARK.sub(lambda found: found[0].replace(" ", _NO_BREAK), line)
    return [piece.replace(_NO_BREAK, " ") for piece in fold_words(kept, width)]


class _Marker:
    """Puts the source of each number after it, and counts which tasks were named."""

    def __init__(self, result: AnalysisResult) -> None:
        self._result = result
        self._named: set[str] = set()

    def mark(self, text: str, links: Iterable[NumberLink]) -> str:
        """A text with marks; a mark that follows the same one at once is left out."""
        pieces, at = [], 0
        for link in sorted(links, key=lambda one: one.start):
            mark = self._make_mark(link)
            if mark:
                pieces += [escape_text(text[at : link.end]), f" [{mark}]"]
                at = link.end
        return "".join([*pieces, escape_text(text[at:])])

    def _make_mark(self, link: NumberLink) -> str:
        if link.kind == "not computed":
            return "not computed"
        if link.source is None or link.kind not in ("computed", "given", "stated"):
            return ""
        source = "data" if link.source.endswith(".profile") else link.source
        if link.kind == "given":
            return source
        self._named.add(source)
        return source if link.kind == "computed" else f"{source}, stated"

    def list_tasks(self) -> Iterator[str]:
        """A line for each task that was named."""
        for task in (*self._result.earlier, *self._result.tasks):
            if task.id in self._named:
                query = escape_line(" ".join(task.task_query.split()))
                yield f"[{escape_line(task.id)}] {escape_line(task.tool)}: {query}"


def _print_styled(lines: Iterable[str]) -> None:
    """Print lines on a terminal, with the marks in colour and broken between words."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for piece in (piece for line in lines for piece in _fold(line, console.width)):
        text = Text(piece.rstrip())
        text.highlight_regex(r"\[(?:t\d+|question|data)\]", "green")
        text.highlight_regex(r"\[t\d+, stated\]", "yellow")
        text.highlight_regex(r"\[not computed\]|^(?:partial|not computed|Without a result):", "red")
        text.highlight_regex(r"^A check of t\d+ failed:", "red")
        text.highlight_regex(r"^Answer: .*", "bold")
        console.print(text)


def describe_comparison(recording: Recording) -> Iterator[str]:
    """What differs from the recording that an analysis began with, line by line."""
    if recording.changes:
        yield f"{pluralize(len(recording.changes), 'request')} not as recorded; a model would be asked anew:"
        yield from _group_alike(recording.changes, lambda one: one.details)
    if recording.differences:
        yield f"{pluralize(len(recording.differences), 'value')} not as recorded:"
        yield from _group_alike(recording.differences, lambda one: (one.recorded, one.computed))
    elif recording.compared:
        yield f"{pluralize(recording.compared, 'run')} computed again: every value is as recorded"


def _group_alike(ones: Iterable[_Difference], find_content: Callable[[_Difference], object]) -> Iterator[str]:
    """The differences, first those that few places have; the same one of many places is one line."""
    groups: dict[object, list[_Difference]] = {}
    for one in ones:
        groups.setdefault(find_content(one), []).append(one)
    for group in sorted(groups.values(), key=lambda group: len(group) > _MOST_PLACES):
        if len(group) > _MOST_PLACES:
            yield f"  {group[0]} (and the same of {len(group) - 1} more)"
        else:
            yield from (f"  {one}" for one in group)


def describe_result(result: AnalysisResult, recording: Recording) -> dict[str, Any]:
    """All of a result as JSON data; figures by their hashes, which the recording keeps them by."""
    found: dict[str, Any] = _describe(result)
    found["tasks"] = _describe(result.tasks)
    found["recording"] = str(recording.path) if recording.path is not None else None
    found["changed_requests"] = [str(change) for change in recording.changes]
    found["differences"] = _describe(recording.differences)
    return found


def _describe(value: Any) -> Any:
    from pydantic import BaseModel

    from ferrule.conversation import Image

    if isinstance(value, Image):
        return {"image": value.hash, "media_type": value.media_type}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (one.name for one in dataclasses.fields(value) if one.name not in _INNER_FIELDS)
        return {name: _describe(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _describe(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_describe(inner) for inner in value]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value if isinstance(value, str | int | float | bool | None) else str(value)
