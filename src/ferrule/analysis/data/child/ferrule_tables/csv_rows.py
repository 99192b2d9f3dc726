"""What all rows of a CSV file are asked about its columns, as SQL. Runs in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from .forms import Form
from .sql import list_texts, quote_name
from .wording import MISSING, PLACEHOLDERS

BLOCK = 100
"""Columns that a query is about."""
LONGEST_ABSENT = max(len(text.encode()) for text in (*MISSING, *PLACEHOLDERS))
# Without regular expressions: each takes time and memory to compile, for each of thousands of columns. And a comparison
# takes a twentieth of the time of `translate`, which is asked of few values: of those that aren't as usual.
_REST = "translate({0}, '0123456789', '')"
_ZEROS = (
    "CASE WHEN {0} < '0:' THEN "
    "{0} BETWEEN '00' AND '0:' OR {0} BETWEEN '-00' AND '-0:' OR {0} BETWEEN '+00' AND '+0:' ELSE false END"
)
_POINT = "replace({0}, ',', '.')"
ROUNDED = (
    f"CASE WHEN strlen({{0}}) < 16 THEN false WHEN {_REST} IN ('', '+', '-') THEN strlen({{0}}) > 38 OR "
    "TRY_CAST({0} AS HUGEINT) IS DISTINCT FROM TRY_CAST(TRY_CAST({0} AS DOUBLE) AS HUGEINT) "
    f"WHEN instr({_POINT}, '.') BETWEEN 11 AND 40 AND strlen({{0}}) - instr({_POINT}, '.') < 7 THEN "
    f"TRY_CAST({_POINT} AS DECIMAL(38, 6)) IS DISTINCT FROM "
    f"TRY_CAST(TRY_CAST(TRY_CAST({_POINT} AS DOUBLE) AS VARCHAR) AS DECIMAL(38, 6)) ELSE false END"
)
"""Whether a float would round a number that is written so."""
CODES = (
    (_ZEROS, "false", "with zeros in front, as codes have"),
    (
        f"CASE WHEN starts_with({{0}}, '+') THEN strlen({{0}}) > 10 AND {_REST} = '+' ELSE false END",
        "starts_with({0}, '-')",
        "of ten or more digits with a plus sign in front, as telephone numbers have",
    ),
)
ROUNDING = (ROUNDED, "false", "of more than 15 digits, which a number rounds")
CHANGING = {
    "BOOLEAN": (("lower({0}) NOT IN ('true', 'false')", "false", "may mean true or false, such as yes and no"),),
    "TIME": (("starts_with({0}, '24')", "false", 'written "24:00", which is no time of day'),),
    "BIGINT": CODES,
    "HUGEINT": (
        *CODES,
        (
            f"CASE WHEN strlen({{0}}) > 17 THEN {_REST} IN ('', '+', '-') END",
            "false",
            "of more than 17 digits, which a number rounds",
        ),
    ),
    "DOUBLE": (
        *CODES,
        ROUNDING,
        (
            f"CASE WHEN contains(lower({{0}}), 'e') THEN {_REST} IN ('e', 'E') ELSE false END",
            f"contains({_POINT}, '.')",
            "such as 1e5, which may be codes",
        ),
    ),
}
"""Of types: which values they would change or guess, if no value is of the other form; and how a note says so."""
_MAY_BE_CODES = f"({_ZEROS} OR starts_with({{0}}, '+'))"
_MAY_CHANGE = {
    "BOOLEAN": "true",
    "HUGEINT": "true",
    "TIME": "starts_with({0}, '24')",
    "BIGINT": _MAY_BE_CODES,
    "DOUBLE": f"{_MAY_BE_CODES} OR CASE WHEN contains({{0}}, '.') THEN strlen({{0}}) > 16 AND instr({{0}}, '.') > 10 "
    "ELSE strlen({0}) > 15 OR contains({0}, 'e') OR contains({0}, 'E') END",
}
"""Whether a value has to be looked at: a quick look at all rows, which mostly says that none has to."""


class Question:
    """What is asked about a column: aggregates of `{0}`, a value, of `{1}`, the number of it, and of `{2}`, its text.

    The text is that of the file without spaces around it. `value` is SQL of `{0}`, the text, and `number` of `{0}`, the
    value.
    """

    def __init__(
        self, aggregates: Mapping[str, str], absent: Sequence[str] = MISSING, number: str | None = None
    ) -> None:
        """`absent`: what stands for a missing value, which is NULL."""
        self.aggregates = aggregates
        # Few values are compared with the list.
        is_present = f"strlen({{0}}) > {LONGEST_ABSENT} OR {{0}} BETWEEN '0' AND '9~' THEN {{0}}"
        missing = f"CASE WHEN {is_present} WHEN {{0}} NOT IN ({list_texts(absent)}) THEN {{0}} END"
        self.value = missing if absent else "{0}"
        self.number = number or "NULL"


class ColumnRows:
    """All rows of a file as text: `source` is SQL to select from."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: str) -> None:
        self._connection = connection
        self._source = source

    def take_first(self, names: Sequence[str], rows: int) -> dict[str, list[str]]:
        """Return the first values of columns, without those that are missing."""
        wanted = ", ".join(map(quote_name, names))
        found = self._connection.execute(f"SELECT {wanted} FROM {self._source} LIMIT {rows}").fetchall()
        values_of = zip(*found, strict=True) if found else iter([()] * len(names))
        return {
            name: [text for value in values if value is not None and (text := value.strip()) not in MISSING]
            for name, values in zip(names, values_of, strict=True)
        }

    def ask(self, questions: Mapping[str, Question]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each column with what its aggregates are over all rows."""
        for block in _make_blocks(questions):
            row = self._query(block, {name: list(questions[name].aggregates.values()) for name in block}, questions)
            values = iter(row)
            for name in block:
                yield name, {key: next(values) for key in questions[name].aggregates}

    def find_values(self, conditions: Mapping[str, str], most: int) -> dict[str, list[tuple[int, str]]]:
        """Return the first values of each column that meet its condition, each with the number of its row."""
        questions = {name: Question({}, (*MISSING, *PLACEHOLDERS)) for name in conditions}
        found: dict[str, list[tuple[int, str]]] = {}
        for block in _make_blocks(questions):
            first = f"min_by({{{{'row': number, 'value': {{2}}}}}}, number, {most})"
            wanted = {name: [f"{first} FILTER ({conditions[name]})"] for name in block}
            for name, values in zip(block, self._query(block, wanted, questions, is_numbered=True), strict=True):
                found[name] = [(value["row"], value["value"]) for value in values or ()]
        return found

    def _query(
        self,
        names: Sequence[str],
        wanted: Mapping[str, Sequence[str]],
        questions: Mapping[str, Question],
        *,
        is_numbered: bool = False,
    ) -> Sequence[Any]:
        """Return aggregates of columns. Each expression is a column of its own: duckdb would compute it at each use."""
        texts = ", ".join(f"trim({quote_name(name)}) AS t{place}" for place, name in enumerate(names))
        values = ", ".join(
            f"{questions[name].value.format(f't{place}')} AS v{place}" for place, name in enumerate(names)
        )
        numbers = ", ".join(
            f"{questions[name].number.format(f'v{place}')} AS n{place}" for place, name in enumerate(names)
        )
        parts = [
            part.format(f"v{place}", f"n{place}", f"t{place}")
            for place, name in enumerate(names)
            for part in wanted[name]
        ]
        row = ", row_number() OVER () AS number" if is_numbered else ""
        source = f"(SELECT *, {numbers} FROM (SELECT *, {values} FROM (SELECT {texts}{row} FROM {self._source})))"
        return self._connection.execute(f"SELECT {', '.join(parts)} FROM {source}").fetchone() or ()


def _make_blocks(wanted: Mapping[str, Any]) -> Iterator[list[str]]:
    names = list(wanted)
    return (names[start : start + BLOCK] for start in range(0, len(names), BLOCK))


def count_if(condition: str) -> str:
    """Write an aggregate that counts."""
    return f"count(CASE WHEN {condition} THEN 1 END)"


def ask_typed(kind: str, *, decimal_comma: bool) -> Question:
    """Ask whether all values fit a type, and whether it may change one."""
    number = _POINT if decimal_comma else "{0}"
    fits = f"TRY_CAST({number} AS {kind}) IS NOT NULL"
    if kind in {"BIGINT", "HUGEINT"}:
        # duckdb takes 1e5, 0x1F and 1_000, too.
        is_usual = f"CAST(TRY_CAST({{0}} AS {kind}) AS VARCHAR) = {{0}}"
        fits = f"CASE WHEN {is_usual} THEN true ELSE {fits} AND {_REST} IN ('', '+', '-') END"
    elif kind == "DOUBLE":
        fits += " AND NOT contains({0}, '_')" + (" AND NOT contains({0}, '.')" if decimal_comma else "")
    misfits = f"CASE WHEN {fits} THEN false ELSE {{0}} NOT IN ({list_texts(MISSING)}) END"
    changes = {"changes": count_if(_MAY_CHANGE[kind])} if kind in CHANGING else {}
    return Question({"misfits": count_if(misfits), **changes}, absent=())


def ask_changes(changing: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """Ask how many values a type would change, and how many show that it wouldn't."""
    asked = {f"changed{place}": count_if(changed) for place, (changed, _, _) in enumerate(changing)}
    return asked | {f"others{place}": count_if(others) for place, (_, others, _) in enumerate(changing)}


def ask_text(forms: Sequence[Form], *, is_code: bool, has_sample: bool) -> Question:
    """Ask whether a column of text has a form, and how many values are missing."""
    # What is written for a missing value is short: the list is compared with few texts.
    marks = list_texts(PLACEHOLDERS if forms else MISSING[1:])
    mark = f"CASE WHEN strlen({{2}}) <= {LONGEST_ABSENT} THEN CASE WHEN {{2}} IN ({marks}) THEN {{2}} END END"
    asked = {"marks": f"count({mark})", "marker": f"min({mark})"}
    if forms or not has_sample:
        asked["total"] = "count({0})"
    asked |= {f"form{place}": count_if(form.condition) for place, form in enumerate(forms)}
    if is_code:
        asked["uncoded"] = count_if("NOT regexp_full_match({0}, '[A-Z][A-Z]')")
        asked["codes"] = "count(DISTINCT {0})"
        asked["na"] = count_if("{2} = 'NA'")
    number = None
    if forms and forms[0].is_number:
        number = forms[0].value or "{0}"
        asked |= ask_changes(CODES)
        asked["rounded"] = count_if(ROUNDED.format("{1}"))
        is_large = "strlen({1}) > 18 OR contains({1}, '.') OR TRY_CAST({1} AS BIGINT) IS NULL"
        asked["large"] = count_if(f"CASE WHEN {{1}} IS NULL THEN false ELSE {is_large} END")
    if forms and forms[0].may_be_codes:
        asked |= {"shortest": "min(strlen({0}))", "longest": "max(strlen({0}))"}
    is_plain_text = not forms and has_sample
    return Question(asked, MISSING if is_plain_text else (*MISSING, *PLACEHOLDERS), number)
