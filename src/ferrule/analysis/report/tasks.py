"""The plan as a graph, and each task: its method, code, output, values, figures, checks, and what was tried before.

A mapping of mappings is shown as a table, other named values as definitions.
"""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup
from pydantic import BaseModel

from ferrule._util.pluralize import pluralize
from ferrule.analysis.plan import Plan
from ferrule.analysis.python_executor.outcome import render_checks
from ferrule.analysis.result import AnalysisResult, Attempt, ResultCheck, TaskExecution
from ferrule.analysis.settings import PYTHON
from ferrule.pages.code import show_code, show_markdown, show_text
from ferrule.pages.elements import Child, element, fold, make_anchor, show_image, show_table
from ferrule.pages.graph import Node, draw_graph

_MOST_COLUMNS: Final = 12


def show_value(value: Any) -> Markup:
    """Structured data: named values as a list of definitions, anything else as JSON or text."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        pairs = [
            (element("dt", str(name).replace("_", " ")), element("dd", show_value(inner)))
            for name, inner in value.items()
            if inner not in (None, "", [], (), {})
        ]
        return element("dl", pairs)
    if isinstance(value, list | tuple):
        if all(isinstance(inner, str | int | float) for inner in value) and sum(map(len, map(str, value))) < 80:
            return element("span", ", ".join(map(str, value)))
        return element("ul", [element("li", show_value(inner)) for inner in value])
    if isinstance(value, str):
        return element("span", value)
    return element("code", json.dumps(value, ensure_ascii=False, default=str))


def show_result(text: str) -> list[Markup]:
    """The result of code as a model saw it; a JSON object at its beginning as a table, with all of its digits."""
    value, rest = _read_object(text)
    if value is None:
        return [show_text(text)]
    shown = [_show_object(value)]
    return [*shown, show_text(rest)] if rest else shown


def _read_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that a text begins with, if it has values to show, and the text after it."""
    if not text.startswith("{"):
        return None, text
    try:
        value, end = json.JSONDecoder(parse_float=_Digits, parse_int=_Digits).raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    rest = text[end:]
    is_whole = not rest or rest.startswith("\n")
    return (value, rest.strip("\n")) if value and is_whole and _is_shown(value) else (None, text)


class _Digits(str):
    """A number of JSON as it was written."""

    __slots__ = ()


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool)


def _is_shown(value: Mapping[str, Any]) -> bool:
    """Whether it is a mapping of scalars, or of mappings or short lists of them."""
    inner = [one for part in value.values() for one in _list_parts(part)]
    return all(map(_is_scalar, inner))


def _list_parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _show_object(value: Mapping[str, Any]) -> Markup:
    """A table of named values, one of all mappings that are alike, and one of each other mapping."""
    parts = {name: part for name, part in value.items() if isinstance(part, Mapping)}
    single = [(name, [part]) for name, part in value.items() if name not in parts]
    shown = [_show_rows([], single)] if single else []
    columns = list(dict.fromkeys(name for part in parts.values() for name in part))
    are_alike = len({tuple(part) for part in parts.values()}) == 1
    if len(parts) > 1 and (are_alike or not single) and len(columns) <= _MOST_COLUMNS and len(columns) <= len(parts):
        rows = [(name, [part.get(column, "") for column in columns]) for name, part in parts.items()]
        return element("div", shown, _show_rows(["", *columns], rows))
    if len(parts) > 1 and are_alike and len(parts) <= _MOST_COLUMNS:
        rows = [(column, [part[column] for part in parts.values()]) for column in columns]
        return element("div", shown, _show_rows(["", *parts], rows))
    each = [_show_rows([name, ""], [(key, [inner]) for key, inner in part.items()]) for name, part in parts.items()]
    return element("div", shown, each)


def _show_rows(header: list[str], rows: list[tuple[str, list[Any]]]) -> Markup:
    head = element("thead", element("tr", [element("th", name, scope="col") for name in header])) if header else None
    body = [element("tr", element("th", name, scope="row"), map(_show_cell, cells)) for name, cells in rows]
    return element("div", element("table", head, element("tbody", body), class_="values"), class_="scrolled")


def _show_cell(value: Any) -> Markup:
    if isinstance(value, list):
        return element("td", ", ".join(map(_write, value)))
    return element("td", _write(value), class_="digits" if isinstance(value, _Digits) else None)


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_BOX_LINE: Final = 25
"""Characters of a line in a box of the graph."""
_CLASSES: Final = {"done": "good", "failed": "bad", "skipped": "warn", "cancelled": "warn"}


def describe_seconds(seconds: float) -> str:
    """A duration for people: 0.4 s, 12 s, 3 min 20 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def sort_tasks(result: AnalysisResult) -> list[TaskExecution]:
    """The tasks as they began; those of a result are in the order in which they ended."""
    return sorted(result.tasks, key=lambda task: (task.round, task.started, task.id))


def draw_plan(result: AnalysisResult) -> Markup:
    """The tasks of all rounds as a graph, those that never ran too."""
    ran = {task.id: task for task in result.tasks}
    planned = {task.id: (task.tool, task.query, task.needs) for task in result.plan.tasks}
    planned |= {task.id: (task.tool, task.task_query, task.needs) for task in ran.values()}
    nodes = [_make_node(name, *what, ran.get(name)) for name, what in planned.items()]
    return draw_graph(nodes, f"The plan: {pluralize(len(nodes), 'task')}")


def _make_node(name: str, tool: str, query: str, needs: tuple[str, ...], task: TaskExecution | None) -> Node:
    what = _wrap_query(query)
    if task is None:
        return Node(name, f"{name}  {tool}", (*what, "not started"), "warn", needs=needs)
    retries = f", {pluralize(_count_retries(task), 'retry', 'retries')}" if _count_retries(task) else ""
    facts = f"{task.status}, {describe_seconds(task.ended - task.started)}{retries}"
    return Node(
        name, f"{name}  {tool}", (*what, facts), _CLASSES[task.status], f"#{make_anchor('task', name)}", tuple(needs)
    )


def _wrap_query(query: str) -> list[str]:
    """The beginning of a query, in at most two lines."""
    return textwrap.wrap(query, _BOX_LINE, max_lines=2, placeholder="…")


def _count_retries(task: TaskExecution) -> int:
    return max(0, len(task.attempts) - 1)


def show_plans(result: AnalysisResult) -> Iterator[Markup]:
    """How the plan came about: its approach, why it was chosen, the others, and the decisions after each round."""
    for record in result.rounds:
        title = f"Round {record.round + 1}: " if len(result.rounds) > 1 else ""
        yield element("p", element("strong", title), record.plan.approach or "No approach was given.")
        others = [plan for plan in record.candidates if plan != record.plan]
        details: list[Child] = [element("p", record.reason)] if record.reason else []
        details += [element("h3", "Another plan") + _list_plan(plan) for plan in others]
        details += [element("p", problem, class_="warn") for problem in record.problems]
        if details:
            yield fold("How this plan was chosen", details)
    for entry in result.output_entries:
        if entry.stage_type in {"complexity", "iteration"}:
            yield fold(f"The model's decision: {entry.stage_type}", show_value(entry.data))


def _list_plan(plan: Plan) -> Markup:
    rows = [(task.id, task.tool, task.query, ", ".join(task.needs)) for task in plan.tasks]
    return element("p", plan.approach) + show_table(("task", "tool", "query", "needs"), rows)


def show_task(task: TaskExecution) -> Markup:
    """The section of a task."""
    status = element("span", task.status, class_=_CLASSES[task.status])
    facts: list[Child] = [
        status,
        f" · {describe_seconds(task.ended - task.started)}, from {describe_seconds(task.started)}",
        f" · {pluralize(task.calls, 'request')}",
    ]
    if task.cost:
        facts.append(f" · ${task.cost:.4f}")
    if task.needs:
        links = [element("a", need, href=f"#{make_anchor('task', need)}") for need in task.needs]
        facts += [" · needs ", *(piece for link in links for piece in (link, " "))]
    return element(
        "section",
        element("h3", f"{task.id} · {task.tool}"),
        element("p", task.task_query),
        element("p", facts, class_="quiet"),
        _show_outcome(task),
        [show_image(image, f"Figure {number} of {task.id}") for number, image in enumerate(task.figures, 1)],
        *_show_parts(task),
        id=make_anchor("task", task.id),
        class_="card",
    )


def _show_outcome(task: TaskExecution) -> list[Markup]:
    shown = [element("p", task.error, class_="bad")] if task.error else []
    if task.tool != PYTHON and task.result and task.result != task.error:
        # A tool ends its list by a line that Markdown would take for more of the last item.
        text = re.sub(r"(?m)^((?:[0-9]+[.)]|[-*]) .*)\n(?=[^\s0-9*-])", r"\1\n\n", task.result)
        shown.append(show_markdown(text, keeps_lines=True))
    elif task.result != task.error and (text := _cut_notes(task)):
        shown += show_result(text)
    return shown + [element("p", note, class_="warn") for note in task.notes]


def _cut_notes(task: TaskExecution) -> str:
    """The result of code without its checks, notes and number of figures, which the page shows by themselves."""
    text = task.result
    if task.checks:
        text = text.replace(render_checks(task.checks), "")
    for note in task.notes:
        text = text.replace(f"Note: {note}", "")
    if task.figures:
        text = re.sub(rf"(?:\n\n|\A){pluralize(len(task.figures), 'figure')}\s*\Z", "", text)
    # The first line of a table begins with spaces, under which its columns stand.
    return re.sub(r"\A(?:[ \t]*\n)+", "", text.rstrip())


def _show_parts(task: TaskExecution) -> Iterator[Markup]:
    if task.checks:
        failed = sum(check.passed is False for check in task.checks)
        passed = sum(check.passed is True for check in task.checks)
        counts = {"passed": passed, "failed": failed, "could not run": len(task.checks) - passed - failed}
        summary = f"Checks of the result: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}"
        yield fold(summary, element("ul", [_show_check(check) for check in task.checks]), is_open=True)
    if task.code:
        yield fold("Code", show_code(task.code), is_open=True)
    if task.output.strip():
        yield fold("Output", show_text(task.output), is_open=task.output.strip() not in task.result)
    if task.methodology_data is not None:
        yield fold("Method", show_value(task.methodology_data))
    if task.extracted_data is not None:
        yield fold("Extracted data", show_value(task.extracted_data))
    if task.functions:
        rows = [(element("code", f"{one.path}{one.signature}"), one.purpose) for one in task.functions]
        yield fold("Functions looked up", show_table(("function", "purpose"), rows))
    if task.value is not None and task.tool != PYTHON:
        yield fold("Structured result", show_value(task.value))
    if len(task.attempts) > 1:
        yield fold(
            f"Attempts: {len(task.attempts)}",
            [_show_attempt(number, attempt) for number, attempt in enumerate(task.attempts, 1)],
        )


def _show_check(check: ResultCheck) -> Markup:
    name, color = {True: ("passed", "good"), False: ("failed", "bad"), None: ("could not run", "warn")}[check.passed]
    verdict = element("span", name, class_=color)
    return element("li", verdict, f": {check.description}", f" ({check.detail})" if check.detail else "")


def _show_attempt(number: int, attempt: Attempt) -> Markup:
    facts = [f"{attempt.failure} failure" if attempt.failure else "succeeded"]
    facts += [f"temperature {attempt.temperature:g}"] if attempt.temperature is not None else []
    facts += [f"timeout {attempt.timeout:g} s"] if attempt.timeout is not None else []
    facts += [f"restart {attempt.restart}"] if attempt.restart else []
    shown: list[Child] = [element("h3", f"Attempt {number}"), element("p", ", ".join(facts), class_="quiet")]
    shown.append(element("p", attempt.message, class_="bad") if attempt.message else None)
    if attempt.failure and attempt.code:
        shown.append(fold("Its code", show_code(attempt.code)))
    if attempt.error_context is not None:
        shown.append(fold("What the next attempt was told", show_value(attempt.error_context)))
    return element("div", shown)
