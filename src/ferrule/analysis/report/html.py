"""An analysis as one page: the answer on top, each of its numbers a link to the run that made it.

Everything that the page shows was written by models, programs and files: it goes through `ferrule.pages`, which
escapes it. The same result gives the same page. At its end are the tables, what is known of their columns, and what
models were shown of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from ferrule._util.output_files import open_output
from ferrule._util.pluralize import pluralize
from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.matching import NumberLink, SourceIndex
from ferrule.analysis.numbers.sources import collect_sources, describe_profiles
from ferrule.analysis.report.tasks import describe_seconds, draw_plan, show_plans, show_task, sort_tasks
from ferrule.analysis.result import AnalysisResult
from ferrule.pages.code import END, START, show_markdown, show_text
from ferrule.pages.elements import Child, element, fold, make_anchor, show_table
from ferrule.pages.page import render_page


def show_data(result: AnalysisResult) -> Iterator[Markup]:
    """The section about the data; nothing for a question without any."""
    if result.tables or result.shared:
        shared = [fold("What models were shown of the data", show_text(result.shared))] if result.shared else []
        yield element("section", element("h2", "Data"), map(_show_profile, result.tables), shared, id="data")


def _show_profile(table: Any) -> Markup:
    where = table.path.name + (f", {table.part}" if table.part else "")
    size = f"{pluralize(table.rows, 'row')}, {pluralize(len(table.columns), 'column')}"
    header = ("column", "type", "missing", "distinct", "minimum", "maximum", "mean")
    return element(
        "section",
        element("h3", table.name),
        element("p", f"{where} ({table.kind}): {size}. SHA-256 {table.digest[:16]}…", class_="quiet"),
        [element("p", note, class_="quiet") for note in table.notes],
        fold("Columns", show_table(header, map(_list_facts, table.columns)), is_open=len(table.columns) <= 20),
        id=make_anchor("table", table.name),
        class_="card",
    )


def _list_facts(column: Any) -> list[Child]:
    facts = (column.missing, column.distinct, column.minimum, column.maximum, column.mean)
    return [column.name, column.type, *map(_write_fact, facts)]


def _write_fact(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


_STYLE: Final = """
.focused { font-size: 1.6rem; font-weight: 600; margin: .5rem 0; }
a.number { text-decoration-thickness: 1px; text-underline-offset: 3px; }
.number:not(.long), .uncomputed:not(.long) { white-space: nowrap; }
li > p { margin: .25rem 0; }
table.values th { font-weight: 500; }
table.values td.digits { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
a.stated, .uncomputed { background: var(--mark); border-radius: 3px; padding: 0 .15em; }
.uncomputed { color: inherit; border-bottom: 2px dotted var(--bad); }
.notice { border-left: 4px solid var(--warn); padding: .25rem .75rem; background: var(--raised); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); } dd { margin: 0; min-width: 0; }
@media (max-width: 32rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
"""
_SHORT: Final = 24
_LEGEND: Final = {
    "computed": "A number that is a link leads to the run that computed it, or to the question or data that gave it.",
    "stated": "What a model reasoned or recalled is on a coloured ground.",
    "not computed": "What is dotted below was not computed: no output has it.",
}
_NOUNS: Final = ("year", "date", "time", "ordinal")
_TITLES: Final = {
    "computed": "computed by {}",
    "given": "given in {}",
    "stated": "stated by {}, where a model reasoned or recalled; no code computed it",
}


def write_report(result: AnalysisResult, path: Path | str) -> None:
    """Write the page to a file, which is replaced as a whole; `-` is standard output. Raises `OSError`."""
    with open_output(Path(path)) as file:
        file.write(render_report(result).encode("utf-8"))


def render_report(result: AnalysisResult) -> str:
    """The page of an analysis, complete or partial."""
    sources = SourceIndex(
        collect_sources(result.question, describe_profiles(result.tables), (*result.earlier, *result.tasks))
    )
    body = [
        element("header", element("h1", result.question, id="question"), _describe_usage(result)),
        *_show_notices(result),
        element(
            "main",
            _show_answer(result, sources),
            *_show_plan(result),
            *_show_tasks(result),
            *show_data(result),
        ),
        element("footer", element("p", _describe_versions(result), class_="quiet")),
    ]
    return render_page(f"{result.question[:80]} – analysis", body, style=_STYLE)


def _describe_versions(result: AnalysisResult) -> str:
    names = {"python": "Python"}
    ran = ", ".join(f"{names.get(name, name)} {number}" for name, number in result.versions.items())
    return f"Page by ferrule {version('ferrule')}." + (f" The analysis ran with {ran}." if ran else "")


def _describe_usage(result: AnalysisResult) -> Markup:
    used = result.usage
    cost = "cost unknown" if used.cost is None else f"${used.cost:.4f}"
    calls = pluralize(used.calls, "request")
    parts = [pluralize(len(result.tasks), "task"), f"{calls} to models", cost, describe_seconds(used.seconds)]
    return element("p", " · ".join(parts), class_="quiet")


def _show_notices(result: AnalysisResult) -> Iterator[Markup]:
    if result.stopped is not None:
        yield element("p", element("strong", "Partial result. "), result.stopped, class_="notice", id="stopped")
    for notice in result.notices:
        yield element("p", notice, class_="notice")


def _show_answer(result: AnalysisResult, sources: SourceIndex) -> Markup:
    in_answer = _match_answer(result, sources)
    links = list(in_answer)
    shown = [element("h2", "Answer")]
    if result.focused_answer is not None and result.focused_answer.formatted_answer:
        focused = result.focused_answer
        in_focused = list(focused.numbers) or sources.match(focused.formatted_answer)
        shown.append(element("div", _link_numbers(focused.formatted_answer, in_focused), class_="focused"))
        shown += [element("p", f"Not computed: {problem}.", class_="notice") for problem in focused.not_computed]
        links += in_focused
    shown.append(_link_numbers(result.answer or "There is no answer.", in_answer))
    if result.key_findings:
        found = [list(one) for one in result.finding_numbers] or [sources.match(one) for one in result.key_findings]
        findings = [_link_numbers(*pair) for pair in zip(result.key_findings, found, strict=True)]
        shown += [element("h3", "Key findings"), element("ul", [element("li", finding) for finding in findings])]
        links += chain.from_iterable(found)
    if links:
        kinds = {"computed" if link.kind == "given" else link.kind for link in links}
        legend = " ".join(sentence for kind, sentence in _LEGEND.items() if kind in kinds)
        shown += [element("p", legend, class_="quiet")] if legend else []
        shown.append(_list_numbers(links))
    return element("section", shown, id="answer")


def _match_answer(result: AnalysisResult, sources: SourceIndex) -> list[NumberLink]:
    """Where the numbers of the answer come from. An account of why there is none has numbers of limits and errors."""
    is_account = result.stopped is not None and all(entry.stage_type != "synthesis" for entry in result.output_entries)
    return [] if is_account else list(result.numbers) or sources.match(result.answer)


def _link_numbers(text: str, links: Sequence[NumberLink]) -> Markup:
    """A model's text, each number of it shown as what its link says."""
    text = text.replace(START, "\ufffd").replace(END, "\ufffd")
    marked, at = [], 0
    for index, link in enumerate(links):
        if link.kind not in {"year", "ordinal"}:
            marked += [text[at : link.start], START, str(index), END]
            at = link.end
    return show_markdown("".join([*marked, text[at:]]), lambda index: _show_link(links[int(index)]))


def _show_link(link: NumberLink) -> Markup:
    if link.source is None:
        title = "not computed: no output has this number"
        return element("span", link.text, class_=f"uncomputed{_find_size(link)}", title=title)
    place = link.source if link.kind != "given" else link.source.removesuffix(".profile")
    title = _TITLES.get(link.kind, "in {}").format(place)
    classes = f"number {link.kind}{_find_size(link)}"
    return element("a", link.text, href=_find_place(link.source), class_=classes, title=title)


def _find_size(link: NumberLink) -> str:
    """The class of a number that may be broken over two lines, since a phone's is too short for it."""
    return " long" if len(link.text) > _SHORT else ""


def _find_place(source: str) -> str:
    if source == "question":
        return "#question"
    if source.endswith(".profile"):
        return f"#{make_anchor('table', source.removesuffix('.profile'))}"
    return f"#{make_anchor('task', source)}"


def _list_numbers(links: Sequence[NumberLink]) -> Markup:
    kinds = Counter(map(_name_kind, links))
    counts = ", ".join(_count_kind(count, kind) for kind, count in kinds.items())
    rows = [
        (link.text, _name_kind(link), element("a", link.source, href=_find_place(link.source)) if link.source else "")
        for link in links
    ]
    summary = f"Numbers in the answer and its findings: {counts}"
    is_open = "not computed" in kinds
    return fold(summary, show_table(("number", "kind", "from"), rows), is_open=is_open)


def _name_kind(link: NumberLink) -> str:
    """The kind as people name it: a link of kind "year" may be a date or a time."""
    if link.kind != "year":
        return link.kind
    if patterns.DATE.fullmatch(link.text) is None:
        return "year"
    return "time" if re.fullmatch(r"[0-9]{1,2}(?::[0-9]{2})+", link.text) else "date"


def _count_kind(count: int, kind: str) -> str:
    """Such as "2 years"; other kinds than nouns have no plural."""
    return pluralize(count, kind) if kind in _NOUNS else f"{count} {kind}"


def _show_plan(result: AnalysisResult) -> Iterator[Markup]:
    if result.plan.tasks or result.tasks:
        yield element("section", element("h2", "Plan"), draw_plan(result), *show_plans(result), id="plan")


def _show_tasks(result: AnalysisResult) -> Iterator[Markup]:
    if result.tasks:
        yield element("section", element("h2", "Tasks"), map(show_task, sort_tasks(result)), id="tasks")
    if result.earlier:
        title = element("h2", "Tasks of the earlier analysis")
        yield element("section", title, map(show_task, result.earlier), id="earlier-tasks")
