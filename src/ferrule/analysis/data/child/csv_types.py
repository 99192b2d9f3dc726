"""Decides the types of the columns of CSV, so that no value is changed or guessed without a note. Runs in the sandbox.

duckdb determines which columns are whole numbers, numbers, times or booleans. Here those of them stay text whose values
a type would change, and texts that all write a number or a date in one form become numbers or dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb

from ferrule.analysis.data.child.forms import (
    MOST,
    Form,
    find_date_forms,
    find_decimal,
    find_number_form,
)
from ferrule.analysis.data.child.sql import list_texts, quote_name, quote_text
from ferrule.analysis.data.child.wording import (
    MISSING,
    PLACEHOLDERS,
    describe_misfits,
    describe_missing,
    quote_column,
    write_count,
)

TYPES = ("BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE", "TIME", "VARCHAR")
"""That duckdb may determine. Not dates: it reads one form a file, and guesses the order of day and month."""
SAMPLE_ROWS = 1000
SAMPLE_CELLS = 200_000
BLOCK = 100
"""Columns that a query is about."""
POINT_ROWS = 20_000
ISO_FORMS = {"CAST({0} AS DATE)": "DATE", "CAST({0} AS TIMESTAMP)": "TIMESTAMP"}
"""The types of texts whose values need nothing but a cast."""
MOST_MISFITS = 20
"""Columns of which the place of the first misfit is looked up."""
# Without regular expressions: each takes time and memory to compile, for each of thousands of columns.
_REST = "translate({0}, '0123456789', '')"
_LONG = f"CASE WHEN strlen({{0}}) > 17 THEN {_REST} IN ('', '+', '-') END"
_ROUNDED = (
    "CASE WHEN strlen({0}) > 16 THEN CASE WHEN instr(replace({0}, ',', '.'), '.') BETWEEN 11 AND 40 "
    "AND strlen({0}) - instr(replace({0}, ',', '.'), '.') < 7 THEN "
    "TRY_CAST(replace({0}, ',', '.') AS DECIMAL(38, 6)) IS DISTINCT FROM "
    "TRY_CAST(TRY_CAST(TRY_CAST(replace({0}, ',', '.') AS DOUBLE) AS VARCHAR) AS DECIMAL(38, 6)) END END"
)
_EXPONENT = f"{_REST} IN ('e', 'E')"
_MAY_CHANGE = {
    "BOOLEAN": "true",
    "HUGEINT": "true",
    "TIME": "starts_with({0}, '24')",
    "DOUBLE": "CASE WHEN contains({0}, '.') THEN strlen({0}) > 16 AND instr({0}, '.') > 10 "
    "ELSE strlen({0}) > 16 OR contains({0}, 'e') OR contains({0}, 'E') END",
}
"""Whether a value has to be looked at: a quick look at all rows, which mostly says that none has to."""
CHANGING = {
    "BOOLEAN": (("lower({0}) NOT IN ('true', 'false')", "false", "may mean true or false, such as yes and no"),),
    "TIME": (("starts_with({0}, '24')", "false", 'written "24:00", which is no time of day'),),
    "HUGEINT": ((_LONG, "false", "of more than 17 digits, which a number rounds"),),
    "DOUBLE": (
        (_LONG, "false", "of more than 17 digits, which a number rounds"),
        (_ROUNDED, "false", "of more than 15 digits, which a number rounds"),
        (_EXPONENT, "contains({0}, '.')", "such as 1e5, which may be codes"),
    ),
}
"""Of types: which values they would change or guess, if no value is of the other form; and how a note says so."""
_IS_WHOLE = "TRY_CAST({0} AS {1}) IS NOT NULL AND NOT contains({0}, '.') AND NOT contains({0}, 'e')"
CODE = re.compile("[A-Z]{2}")


class TypePlan:
    """How the columns of a file are read."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        """Columns that are read as text, though duckdb would give them a type."""
        self.values: dict[str, str] = {}
        """SQL that makes the value of a column of its text."""
        self.keeps_na: list[str] = []
        """Columns in which NA is a value."""
        self.decimal_comma = False
        self.notes: list[str] = []


class TypeFinder:
    """Decides on the types of one file. `reader` gives the call of `read_csv` up to its last option."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        reader: Callable[[Sequence[str]], str],
        delimiter: str,
        locate: Callable[[int, int, str], str],
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._locate = locate
        self._delimiter = delimiter
        self._typed = f"{reader(MISSING)}, auto_type_candidates=[{list_texts(TYPES)}]"
        self._texts = reader(("",)) + ", all_varchar=true"
        self.plan = TypePlan()

    def find(self) -> tuple[str, list[str]]:
        """Return the query that reads the file, and notes."""
        plan = self.plan
        columns = self._list_columns()
        decimal = self._find_decimal(self._take_samples(columns), columns)
        if decimal == "," and self._delimiter != ",":
            plan.decimal_comma = True
            self._typed += ", decimal_separator=','"
            columns = self._list_columns()
            if "DOUBLE" in columns.values():
                plan.notes.append("numbers with a decimal comma")
        elif ambiguous := self._find_ambiguous(columns):
            columns |= dict.fromkeys(ambiguous, "VARCHAR")
            decimal = None
        left = columns
        while left:
            samples = self._take_samples(left)
            forms = {name: self._find_forms(values, decimal) for name, values in samples.items()}
            again = {}
            for name, counts in self._count(left, forms, samples):
                kind = columns[name]
                if kind == "VARCHAR":
                    self._decide(list(columns).index(name), name, forms[name], counts)
                elif counts[0]:
                    # The first rows, by which duckdb determined the type, are not like all.
                    again[name] = "DOUBLE" if kind in {"BIGINT", "HUGEINT"} else "VARCHAR"
                elif kind in CHANGING and counts[1]:
                    self._keep_text(name, kind)
            columns = columns | again
            left = again
        return self._write_query(columns), plan.notes

    def find_plain(self) -> dict[str, str] | None:
        """Return the types of the columns if the first rows, by which they are determined, have none of another form.

        `find` determines the same if all rows can be parsed as these types, and none has a value that `CHANGING` names.
        """
        columns = self._list_columns()
        samples = self._take_samples(columns)
        decimal = self._find_decimal(samples, columns)
        if (decimal == "," and self._delimiter != ",") or self._find_ambiguous(columns):
            return None
        for name, values in samples.items():
            if forms := self._find_forms(values, decimal):
                kind = ISO_FORMS.get(forms[0].value)
                if kind is None or len(forms) > 1:
                    return None
                columns[name] = kind
        return columns if self._have_points([name for name, kind in columns.items() if kind == "DOUBLE"]) else None

    def _find_ambiguous(self, columns: dict[str, str]) -> list[str]:
        """Return the columns with points that may be between thousands, as in 1.500, if no column has another point.

        Only of files with semicolons, which mostly come from where the comma is before decimals.
        """
        names = [name for name, kind in columns.items() if kind == "DOUBLE"]
        if self._delimiter != ";" or not names:
            return []
        values = [f"trim({quote_name(name)})" for name in names]
        of_three = [f"regexp_full_match({value}, '[-+]?[1-9][0-9]{{0,2}}[.][0-9]{{3}}')" for value in values]
        pairs = zip(values, of_three, strict=True)
        conditions = [f"bool_or(contains({value}, '.') AND NOT {three})" for value, three in pairs]
        conditions += [f"bool_or({three})" for three in of_three]
        found: Sequence[Any] = ()
        for limit in (f" LIMIT {POINT_ROWS}", ""):
            rows = f"(SELECT * FROM {self._texts}){limit})"
            found = self._connection.execute(f"SELECT {', '.join(conditions)} FROM {rows}").fetchone() or ()
            if any(found[: len(names)]):
                return []
        return [name for name, has_three in zip(names, found[len(names) :], strict=True) if has_three]

    def _have_points(self, names: Sequence[str]) -> bool:
        """Have all columns a value with a point among their first? Otherwise, one such as 1e5 may be a code."""
        conditions = [f"bool_or(contains({quote_name(name)}, '.'))" for name in names]
        rows = f"(SELECT * FROM {self._texts}) LIMIT {POINT_ROWS})"
        found = self._connection.execute(f"SELECT {', '.join(conditions)} FROM {rows}").fetchall() if names else [()]
        return all(found[0])

    def _list_columns(self) -> dict[str, str]:
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {self._typed})").fetchall()
        return {row[0]: row[1] for row in found}

    def _take_samples(self, columns: dict[str, str]) -> dict[str, list[str]]:
        """Return the first values of columns of text, without those that are missing."""
        names = [name for name, kind in columns.items() if kind == "VARCHAR"]
        if not names:
            return {}
        rows = max(50, min(SAMPLE_ROWS, SAMPLE_CELLS // len(names)))
        wanted = ", ".join(map(quote_name, names))
        found = self._connection.execute(f"SELECT {wanted} FROM {self._texts}) LIMIT {rows}").fetchall()
        values_of = zip(*found, strict=True) if found else iter([()] * len(names))
        return {
            name: [text for value in values if value is not None and (text := value.strip()) not in MISSING]
            for name, values in zip(names, values_of, strict=True)
        }

    def _find_decimal(self, samples: dict[str, list[str]], columns: dict[str, str]) -> str | None:
        """Return what stands before decimals, as far as numbers of the file show it."""
        found = {find_decimal(values) for values in samples.values() if find_number_form(values, ".")} - {None}
        if len(found) == 1:
            return found.pop()
        if found:
            return None
        return "." if self._delimiter == "," or "DOUBLE" in columns.values() else None

    @staticmethod
    def _find_forms(values: list[str], decimal: str | None) -> list[Form]:
        values = [value for value in values if value not in PLACEHOLDERS]
        if not values:
            return []
        if forms := find_date_forms(values):
            return forms
        if is_boolean(values):
            return [Form("true or false", "lower({0}) IN ('true', 'false')", "CAST({0} AS BOOLEAN)")]
        number = find_number_form(values, decimal)
        return [number] if number else []

    def _count(
        self, columns: dict[str, str], forms: dict[str, list[Form]], samples: dict[str, list[str]]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Count in all rows what decides the types; of each column the values of its conditions."""
        wanted = [
            (
                name,
                self._ask_text(name, forms[name], samples[name]) if kind == "VARCHAR" else self._ask_typed(name, kind),
            )
            for name, kind in columns.items()
        ]
        for start in range(0, len(wanted), BLOCK):
            block = wanted[start : start + BLOCK]
            parts = [condition for _, conditions in block for condition in conditions]
            row = self._connection.execute(f"SELECT {', '.join(parts)} FROM {self._texts})").fetchone()
            values = iter(row or ())
            for name, conditions in block:
                yield name, [next(values) for _ in conditions]

    def _ask_typed(self, name: str, kind: str) -> list[str]:
        """Return what decides whether all values fit a type, and which it would change."""
        value = f"trim({quote_name(name)})"
        number = f"replace({value}, ',', '.')" if self.plan.decimal_comma else value
        fits = (
            _IS_WHOLE.format(value, kind)
            if kind in {"BIGINT", "HUGEINT"}
            else f"TRY_CAST({number} AS {kind}) IS NOT NULL"
        )
        if kind == "DOUBLE" and self.plan.decimal_comma:
            fits += f" AND NOT contains({value}, '.')"
        conditions = [f"count(*) FILTER (CASE WHEN {fits} THEN false ELSE {value} NOT IN ({list_texts(MISSING)}) END)"]
        if kind in CHANGING:
            conditions.append(f"count(*) FILTER ({_MAY_CHANGE[kind].format(value)})")
        return conditions

    @staticmethod
    def _ask_text(name: str, forms: list[Form], sample: list[str]) -> list[str]:
        """Return what decides whether a column of text has a form, and how many values are missing."""
        raw = f"trim({quote_name(name)})"
        absent = (*MISSING, *PLACEHOLDERS) if forms else MISSING
        value = f"(CASE WHEN {raw} NOT IN ({list_texts(absent)}) THEN {raw} END)"
        # What is written for a missing value is short: the list is compared with few texts.
        within = f"CASE WHEN {raw} IN ({list_texts(PLACEHOLDERS if forms else MISSING[1:])}) THEN {raw} END"
        mark = f"(CASE WHEN strlen({quote_name(name)}) < 5 THEN {within} END)"
        conditions = [f"count({value})" if forms else "1", f"count({mark})", f"min({mark})"]
        conditions += [f"count(*) FILTER ({form.condition.format(value)})" for form in forms]
        if forms and forms[0].is_number:
            number = forms[0].value.format(value) or value
            conditions.append(
                f"count(*) FILTER (starts_with({value}, '0') AND strlen({value}) > 1 AND {_REST.format(value)} = '')"
            )
            conditions.append(f"count(*) FILTER (strlen({number}) > 18 OR {_REST.format(number)} NOT IN ('', '-'))")
        elif is_code(sample):
            conditions.append(f"count(*) FILTER (NOT regexp_full_match({value}, '[A-Z]{{2}}'))")
            conditions.append(f"count(*) FILTER ({raw} = 'NA')")
        return conditions

    def _keep_text(self, name: str, kind: str) -> None:
        """Keep a column as text if its type would change a value."""
        raw = f"trim({quote_name(name)})"
        value = f"(CASE WHEN {raw} NOT IN ({list_texts(MISSING)}) THEN {raw} END)"
        wanted = [f"count(*) FILTER ({one.format(value)})" for condition in CHANGING[kind] for one in condition[:2]]
        counts = self._connection.execute(f"SELECT {', '.join(wanted)} FROM {self._texts})").fetchone() or ()
        for number, others, (_, _, why) in zip(counts[::2], counts[1::2], CHANGING[kind], strict=True):
            if number and not others:
                self.plan.notes.append(f"{quote_column(name)} is text: {write_count(number, 'value')} {why}")
                if name not in self.plan.texts:
                    self.plan.texts.append(name)

    def _decide(self, place: int, name: str, forms: list[Form], counts: list[Any]) -> None:
        """Decide whether a column of text is one of numbers or dates, and which of its values are missing."""
        total, marks, marker, *found = counts
        matching = [form for form, number in zip(forms, found, strict=False) if total and number == total]
        column, notes = quote_column(name), self.plan.notes
        if len(matching) > 1:
            notes.append(f"{column} is text: its dates may have the day or the month first")
        elif matching and matching[0].value:
            is_whole = forms[0].is_number and found[-1] == 0
            cast = "CAST({} AS {})".format if forms[0].is_number else "{}".format
            value = cast(matching[0].value, "BIGINT" if is_whole else "DOUBLE")
            absent = f"{{0}} IN ({list_texts(PLACEHOLDERS)})"
            self.plan.values[name] = f"CASE WHEN {absent} THEN NULL ELSE {value} END" if marks else value
            if matching[0].note:
                notes.append(f"{column}: {matching[0].note}")
        elif matching:
            notes.append(f"{column} is text: {write_count(total, 'value')} {matching[0].note}")
        elif forms:
            self._describe_misfits(place, name, forms, total, found)
        elif len(found) == 2 and found[0] == 0 and found[1]:
            self.plan.keeps_na.append(name)
            rows = write_count(found[1], "row")
            notes.append(f"{column}: NA is a value, in {rows}, since all others are codes of two letters")
            marks, marker = marks - found[1], "in other ways"
        if marks and bool(forms) == (name in self.plan.values):
            notes.append(describe_missing(name, marks, marker))

    def _describe_misfits(self, place: int, name: str, forms: list[Form], total: int, found: list[int]) -> None:
        if forms[0].is_number and found[-2]:
            zeros = f"{write_count(found[-2], 'value')} with zeros in front, as codes have"
            self.plan.notes.append(f"{quote_column(name)} is text: {zeros}")
            return
        best = max(range(len(forms)), key=lambda one: found[one])
        misfits = total - found[best]
        if misfits > total / 2 or len(self.plan.notes) > MOST_MISFITS:
            return
        raw = quote_name(name)
        value = f"trim({raw})"
        condition = forms[best].condition.format(value)
        row = self._connection.execute(
            f"SELECT number, {value} FROM (SELECT row_number() OVER () AS number, {raw} FROM {self._texts})) "
            f"WHERE {value} NOT IN ({list_texts((*MISSING, *PLACEHOLDERS))}) AND ({condition}) IS NOT TRUE LIMIT 1"
        ).fetchone()
        if row:
            where = self._locate(row[0], place, row[1])
            self.plan.notes.append(describe_misfits(name, misfits, total, forms[best].what, row[1], where))

    def _write_query(self, columns: dict[str, str]) -> str:
        plan = self.plan
        kinds = {name: "VARCHAR" if name in plan.texts else kind for name, kind in columns.items()}
        values = dict(plan.values)
        if plan.keeps_na:
            self._keep_na(kinds, values)
        base = self._reader([text for text in MISSING if text != "NA" or not plan.keeps_na])
        base += ", decimal_separator=','" if plan.decimal_comma else ""
        types = ", ".join(f"{quote_text(name)}: {quote_text(kind)}" for name, kind in kinds.items())
        replaced = ", ".join(
            f"{value.format(f'trim({quote_name(name)})')} AS {quote_name(name)}" for name, value in values.items()
        )
        return f"SELECT *{f' REPLACE ({replaced})' if replaced else ''} FROM {base}, types={{{types}}})"

    def _keep_na(self, kinds: dict[str, str], values: dict[str, str]) -> None:
        """Make NA missing in all columns but those of codes."""
        typed = [name for name, kind in kinds.items() if kind != "VARCHAR"]
        wanted = ", ".join(f"count(*) FILTER (trim({quote_name(name)}) = 'NA')" for name in typed)
        found = self._connection.execute(f"SELECT {wanted} FROM {self._texts})").fetchone() if typed else ()
        for name, number in zip(typed, found or (), strict=True):
            if number:
                point = "replace({0}, ',', '.')" if self.plan.decimal_comma else "{0}"
                values[name] = f"CAST(nullif({point}, 'NA') AS {kinds[name]})"
                kinds[name] = "VARCHAR"
        for name, kind in list(kinds.items()):
            if kind == "VARCHAR" and name not in self.plan.keeps_na:
                raw = quote_name(name).replace("{", "{{").replace("}", "}}")
                missing = f"CASE WHEN {{0}} != 'NA' THEN {raw} END"
                values[name] = values[name].replace("{0}", "nullif({0}, 'NA')") if name in values else missing


def is_code(sample: Sequence[str]) -> bool:
    """Are the values of a column codes of two letters, such as those of countries?"""
    return len(set(sample)) >= 3 and all(CODE.fullmatch(value) for value in sample)


def is_boolean(sample: Sequence[str]) -> bool:
    """Are most of the values true or false?"""
    return sum(value.lower() in {"true", "false"} for value in sample) >= MOST * len(sample)
