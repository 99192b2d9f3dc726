"""Decides the types of the columns of CSV, so that no value is changed or guessed without a note. Runs in the sandbox.

duckdb determines which columns are whole numbers, numbers, times or booleans, by their first values. Here those of them
stay text whose values a type would change, and texts that all write a number or a date in one form become numbers or
dates. Each decision is one about all rows: where a later one doesn't fit, the column is decided anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import duckdb

from .csv_rows import (
    CHANGING,
    CODES,
    ROUNDING,
    ColumnRows,
    Question,
    ask_changes,
    ask_text,
    ask_typed,
    count_if,
)
from .forms import MOST, TIME, Form, find_date_forms, find_number_form
from .sql import list_texts, quote_name, quote_text
from .wording import (
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
POINT_ROWS = 20_000
ISO_FORMS = {"CAST({0} AS DATE)": "DATE", "CAST({0} AS TIMESTAMP)": "TIMESTAMP"}
"""The types of texts whose values need nothing but a cast."""
MOST_MISFITS = 20
"""Columns whose misfits are in a note."""
LOOKED_AT = 100
"""Values of a column that its first rows didn't show, by which its form is found anew."""
CODE = re.compile("[A-Z]{2}")


class Column:
    """What is known of a column, and decided."""

    def __init__(self, place: int, name: str, kind: str) -> None:
        self.place, self.name, self.kind = place, name, kind
        self.sample: list[str] | None = None
        """Of text: values by which its forms are found."""
        self.forms: list[Form] = []
        self.counts: dict[str, Any] = {}
        """What all rows say."""
        self.misfits: list[tuple[int, str]] = []
        """The first values that none of the forms fits, with the numbers of their rows."""
        self.value = ""
        """SQL that makes the value of its text, if it isn't read as its kind."""
        self.keeps_na = False
        """Whether NA is a value."""
        self.notes: list[str] = []

    @property
    def values(self) -> list[str]:
        """The sample without what stands for a missing value."""
        return [value for value in self.sample or () if value not in PLACEHOLDERS]

    @property
    def is_code(self) -> bool:
        """May the values be codes of two letters, such as those of countries?"""
        return bool(self.sample) and all(CODE.fullmatch(value) for value in self.sample or ())

    @property
    def matching(self) -> list[Form]:
        """The forms that all values have."""
        total = self.counts.get("total")
        return [form for place, form in enumerate(self.forms) if total and self.counts[f"form{place}"] == total]

    def find_best(self) -> int:
        """Return the place of the form that most values have."""
        return max(range(len(self.forms)), key=lambda place: self.counts[f"form{place}"])

    def count_fitting(self) -> int:
        """Count the values that have the form that most have."""
        return int(self.counts[f"form{self.find_best()}"])

    def state(self) -> tuple[Any, ...]:
        """What `restore` brings back."""
        return self.sample, self.forms, self.counts, self.misfits

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to a state."""
        self.sample, self.forms, self.counts, self.misfits = state


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
        self._texts = f"{reader(('',))}, all_varchar=true)"
        self._rows = ColumnRows(connection, self._texts)
        self._columns: dict[str, Column] = {}
        self._decimal_comma = False
        self._described = 0
        """Columns that are text since some of their values have another form."""

    def find(self) -> tuple[str, list[str]]:
        """Return the query that reads the file, and notes."""
        notes = []
        self._set_columns()
        decimal = self._find_decimal()
        if decimal == "," and self._delimiter != ",":
            self._decimal_comma = True
            self._typed += ", decimal_separator=','"
            self._set_columns()
            if self._list_floats():
                notes.append("numbers with a decimal comma")
        elif self._read_ambiguous_as_text():
            decimal = None
        floats = self._list_floats()
        self._settle(self._columns.values(), decimal)
        if self._list_floats() > floats and (texts := self._read_ambiguous_as_text()):
            self._settle(texts, decimal := None)
        if (shown := self._find_shown_decimal()) != decimal:
            self._settle(
                [one for one in self._columns.values() if any(form.needs_decimal for form in one.forms)], shown
            )
        for column in self._columns.values():
            self._decide(column)
            notes += column.notes
        if (more := self._described - MOST_MISFITS) > 0:
            are = "1 more column is" if more == 1 else f"{more:,} more columns are"
            notes.append(f"{are} text: some values are not like the others")
        return self._write_query(), notes

    def find_plain(self) -> dict[str, str] | None:
        """Return the types of the columns if the first rows, by which they are determined, have none of another form.

        `find` determines the same if all rows can be parsed as these types, none has a value that `CHANGING` names, and
        columns of text without a first value have later ones that `is_text` accepts.
        """
        self._set_columns()
        decimal = self._find_decimal()
        if (decimal == "," and self._delimiter != ",") or self._read_ambiguous_as_text():
            return None
        for column in self._columns.values():
            if forms := find_forms(column.values, decimal):
                kind = ISO_FORMS.get(forms[0].value)
                if kind is None or len(forms) > 1:
                    return None
                column.kind = kind
            elif column.sample and not column.values:
                return None
        kinds = {name: column.kind for name, column in self._columns.items()}
        return kinds if self._have_points(sorted(self._list_floats())) else None

    def list_late(self) -> list[str]:
        """Return the columns of text without a value in the first rows."""
        return [name for name, column in self._columns.items() if column.sample == []]

    def _set_columns(self) -> None:
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {self._typed})").fetchall()
        self._columns = {row[0]: Column(place, row[0], row[1]) for place, row in enumerate(found)}
        self._take_samples(self._columns.values())

    def _take_samples(self, columns: Iterable[Column]) -> None:
        texts = [column for column in columns if column.kind == "VARCHAR" and column.sample is None]
        if texts:
            rows = max(50, min(SAMPLE_ROWS, SAMPLE_CELLS // len(texts)))
            found = self._rows.take_first([column.name for column in texts], rows)
            for column in texts:
                column.sample = found[column.name]

    def _find_decimal(self) -> str | None:
        """Return what stands before decimals, as far as the first numbers of the file show it."""
        forms = (find_number_form(column.values, ".") for column in self._columns.values())
        found = {form.decimal for form in forms if form} - {None}
        if len(found) == 1:
            return found.pop()
        return "." if not found and (self._delimiter == "," or self._list_floats()) else None

    def _find_shown_decimal(self) -> str | None:
        """Return what stands before decimals, as all numbers of the file show it."""
        found = {form.decimal for column in self._columns.values() for form in column.forms} - {None}
        if self._list_floats():
            found.add("," if self._decimal_comma else ".")
        if not found:
            return "." if self._delimiter == "," else None
        return found.pop() if len(found) == 1 else None

    def _list_floats(self) -> set[str]:
        return {name for name, column in self._columns.items() if column.kind == "DOUBLE"}

    def _read_ambiguous_as_text(self) -> list[Column]:
        """Make text of columns with points that may be between thousands, as in 1.500, if no column has another point.

        Only in files with semicolons, which mostly come from where the comma is before decimals.
        """
        texts = [] if self._decimal_comma else [self._columns[name] for name in self._find_ambiguous()]
        for column in texts:
            column.kind = "VARCHAR"
        return texts

    def _find_ambiguous(self) -> list[str]:
        names = sorted(self._list_floats())
        if self._delimiter != ";" or not names:
            return []
        values = [f"trim({quote_name(name)})" for name in names]
        of_three = [f"regexp_full_match({value}, '[-+]?[1-9][0-9]{{0,2}}[.][0-9]{{3}}')" for value in values]
        pairs = zip(values, of_three, strict=True)
        conditions = [f"bool_or(contains({value}, '.') AND NOT {three})" for value, three in pairs]
        conditions += [f"bool_or({three})" for three in of_three]
        found: Sequence[Any] = ()
        for limit in (f" LIMIT {POINT_ROWS}", ""):
            rows = f"(SELECT * FROM {self._texts}{limit})"
            found = self._connection.execute(f"SELECT {', '.join(conditions)} FROM {rows}").fetchone() or ()
            if any(found[: len(names)]):
                return []
        return [name for name, has_three in zip(names, found[len(names) :], strict=True) if has_three]

    def _have_points(self, names: Sequence[str]) -> bool:
        """Have all columns a value with a point among their first? Otherwise, one such as 1e5 may be a code."""
        conditions = [f"bool_or(contains({quote_name(name)}, '.'))" for name in names]
        rows = f"(SELECT * FROM {self._texts} LIMIT {POINT_ROWS})"
        found = self._connection.execute(f"SELECT {', '.join(conditions)} FROM {rows}").fetchall() if names else [()]
        return all(found[0])

    def _settle(self, columns: Iterable[Column], decimal: str | None) -> None:
        """Find the kinds and forms that all rows have, by rows that the first ones aren't like."""
        left = {column.name: column for column in columns}
        states: dict[str, tuple[Any, ...]] = {}
        while left:
            self._take_samples(left.values())
            again, unlike = {}, {}
            for name, counts in self._rows.ask({name: self._make_question(one, decimal) for name, one in left.items()}):
                column = left[name]
                column.counts, column.misfits = counts, []
                if column.kind != "VARCHAR":
                    if counts["misfits"]:
                        column.kind = "DOUBLE" if column.kind in {"BIGINT", "HUGEINT"} else "VARCHAR"
                        again[name] = column
                elif counts.get("total") and not column.matching and not counts.get("changed0"):
                    unlike[name] = column
            left = again | self._look_again(unlike, decimal, states)

    def _make_question(self, column: Column, decimal: str | None) -> Question:
        if column.kind != "VARCHAR":
            return ask_typed(column.kind, decimal_comma=self._decimal_comma)
        column.forms = find_forms(column.values, decimal)
        return ask_text(column.forms, is_code=column.is_code, has_sample=bool(column.values))

    def _look_again(
        self, columns: Mapping[str, Column], decimal: str | None, states: dict[str, tuple[Any, ...]]
    ) -> dict[str, Column]:
        """Return the columns of text for whose later values another kind or form is found, to be counted again.

        `states`: what was found of each before; where a new form fits no more values, the one before is kept.
        """
        again = {}
        for column in [one for one in columns.values() if one.name in states]:
            new, fitting = column.state(), column.count_fitting()
            column.restore(states[column.name])
            if fitting > column.count_fitting():
                column.restore(new)
        wanted = {
            name: f"({column.forms[column.find_best()].condition}) IS NOT TRUE AND {{0}} IS NOT NULL"
            if column.forms
            else "{0} IS NOT NULL"
            for name, column in columns.items()
            if not column.misfits
        }
        for name, misfits in self._rows.find_values(wanted, LOOKED_AT).items():
            column = columns[name]
            values = [value for _, value in misfits]
            if not column.forms:
                column.sample, column.kind = [*(column.sample or ()), *values], find_late_kind(values)
                again[name] = column
                continue
            column.misfits = misfits
            states[name] = column.state()
            forms = find_forms([*column.values, *values], decimal)
            if forms and [form.condition for form in forms] != [form.condition for form in column.forms]:
                column.sample = [*(column.sample or ()), *values]
                again[name] = column
        return again

    def _decide(self, column: Column) -> None:
        """Decide how a column is read, and note what it isn't."""
        name, counts, forms = column.name, column.counts, column.forms
        if column.kind != "VARCHAR":
            if counts.get("changes"):
                [(_, found)] = self._rows.ask({name: Question(ask_changes(CHANGING[column.kind]))})
                self._keep_text(column, CHANGING[column.kind], found)
            return
        marks, matching = counts["marks"], column.matching
        marker = counts["marker"]
        if len(matching) > 1:
            column.notes.append(f"{quote_column(name)} is text: its dates may have the day or the month first")
        elif matching and not matching[0].value:
            values = write_count(counts["total"], "value")
            column.notes.append(f"{quote_column(name)} is text: {values} {matching[0].note}")
        elif matching:
            self._read_form(column, matching[0])
        elif forms:
            self._describe_misfits(column)
        elif counts.get("na") and not counts["uncoded"] and counts["codes"] > 2:
            column.keeps_na = True
            rows = write_count(counts["na"], "row")
            column.notes.append(
                f"{quote_column(name)}: NA is a value, in {rows}, since all others are codes of two letters"
            )
            marks, marker = marks - counts["na"], "in other ways"
        if marks and bool(forms) == bool(column.value):
            column.notes.append(describe_missing(name, marks, marker))

    def _keep_text(self, column: Column, changing: Sequence[tuple[str, str, str]], found: Mapping[str, int]) -> bool:
        """Keep a column as text if its type would change a value."""
        is_kept = False
        for place, (_, _, why) in enumerate(changing):
            number = found[f"changed{place}"]
            if number and not found[f"others{place}"]:
                column.notes.append(f"{quote_column(column.name)} is text: {write_count(number, 'value')} {why}")
                is_kept = True
        column.kind = "VARCHAR" if is_kept else column.kind
        return is_kept

    def _read_form(self, column: Column, form: Form) -> None:
        """Read the values of a form, unless that would change one."""
        counts, value = column.counts, form.value
        if form.is_number:
            if form.may_be_codes and counts["shortest"] == counts["longest"]:
                return
            is_whole = counts["large"] == 0
            found = counts | {"changed2": 0 if is_whole else counts["rounded"], "others2": 0}
            if self._keep_text(column, (*CODES, ROUNDING), found):
                return
            value = f"CAST({value} AS {'BIGINT' if is_whole else 'DOUBLE'})"
        absent = f"{{0}} IN ({list_texts(PLACEHOLDERS)})"
        column.value = f"CASE WHEN {absent} THEN NULL ELSE {value} END" if counts["marks"] else value
        if form.note:
            column.notes.append(f"{quote_column(column.name)}: {form.note}")

    def _describe_misfits(self, column: Column) -> None:
        form, total = column.forms[column.find_best()], column.counts["total"]
        if form.is_number and (zeros := column.counts["changed0"]):
            column.notes.append(f"{quote_column(column.name)} is text: {write_count(zeros, 'value')} {CODES[0][2]}")
            return
        misfits = total - column.count_fitting()
        if misfits > total / 2:
            return
        self._described += 1
        if self._described <= MOST_MISFITS:
            row, value = column.misfits[0]
            where = self._locate(row, column.place, value)
            column.notes.append(describe_misfits(column.name, misfits, total, form.what, value, where))

    def _write_query(self) -> str:
        columns = self._columns.values()
        keeps_na = any(column.keeps_na for column in columns)
        if keeps_na:
            self._keep_na()
        base = self._reader([text for text in MISSING if text != "NA" or not keeps_na])
        base += ", decimal_separator=','" if self._decimal_comma else ""
        types = ", ".join(f"{quote_text(column.name)}: {quote_text(column.kind)}" for column in columns)
        replaced = ", ".join(
            f"{column.value.format(f'trim({quote_name(column.name)})')} AS {quote_name(column.name)}"
            for column in columns
            if column.value
        )
        return f"SELECT *{f' REPLACE ({replaced})' if replaced else ''} FROM {base}, types={{{types}}})"

    def _keep_na(self) -> None:
        """Make NA missing in all columns but those of codes."""
        typed = [name for name, column in self._columns.items() if column.kind != "VARCHAR"]
        for name, found in self._rows.ask(dict.fromkeys(typed, Question({"na": count_if("{2} = 'NA'")}))):
            if found["na"]:
                column = self._columns[name]
                point = "replace({0}, ',', '.')" if self._decimal_comma else "{0}"
                column.value, column.kind = f"CAST(nullif({point}, 'NA') AS {column.kind})", "VARCHAR"
        for name, column in self._columns.items():
            if column.kind != "VARCHAR" or column.keeps_na:
                continue
            if not column.value:
                raw = quote_name(name).replace("{", "{{").replace("}", "}}")
                column.value = f"CASE WHEN {{0}} != 'NA' THEN {raw} END"
            elif "nullif" not in column.value:
                column.value = column.value.replace("{0}", "nullif({0}, 'NA')")


def find_forms(values: list[str], decimal: str | None) -> list[Form]:
    """Return the forms that the values of a column may have."""
    if not values:
        return []
    if forms := find_date_forms(values):
        return forms
    if is_boolean(values):
        return [Form("true or false", "lower({0}) IN ('true', 'false')", "CAST({0} AS BOOLEAN)")]
    number = find_number_form(values, decimal)
    return [number] if number else []


def find_late_kind(values: Sequence[str]) -> str:
    """Return the type of values as duckdb would determine it, had they been among the first."""
    if all(re.fullmatch(TIME, value) for value in values):
        return "TIME"
    with suppress(ValueError):
        return "BIGINT" if all(float(value).is_integer() for value in values) else "DOUBLE"
    return "VARCHAR"


def is_text(values: Sequence[str]) -> bool:
    """Are the later values of a column without first ones text, and nothing that `find` would read?"""
    return find_late_kind(values) == "VARCHAR" and not find_forms(list(values), None)


def is_boolean(sample: Sequence[str]) -> bool:
    """Are most of the values true or false?"""
    return sum(value.lower() in {"true", "false"} for value in sample) >= MOST * len(sample)
