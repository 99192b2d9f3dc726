"""What a workbook or a database has beyond plain tables is read as it is meant, and said in the table's notes."""

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from openpyxl import Workbook

from ferrule.analysis.data import Table, describe_tables, make_sources, read_tables
from ferrule.analysis.data.child.ferrule_tables.binding import read_frame
from ferrule.errors import DataError

MB = 1 << 20
SAVE = "open the file in a spreadsheet program, save it, and read it again"


def read(folder: Path, *paths: Path) -> dict[str, Table]:
    tables = asyncio.run(read_tables(make_sources(paths), folder / "tables", memory=512 * MB))
    return {table.name: table for table in tables}


def frame(table: Table) -> pd.DataFrame:
    return pd.read_parquet(table.parquet)


def write_book(path: Path) -> None:
    book = Workbook()
    halves = book.active
    for row in (
        ["Sales by half-year"],
        ["made in May"],
        ["Region", 2023, None, 2024, None, "Total"],
        [None, "H1", "H2", "H1", "H2", None],
        ["North", 1, 2, 3, 4, "=SUM(B5:E5)"],
        ["North", 5, 6, 7, 8, "=SUM(B6:E6)"],
    ):
        halves.append(row)
    halves.title = "halves"
    for merged in ("A3:A4", "B3:C3", "D3:E3", "A5:A6"):
        halves.merge_cells(merged)
    halves.row_dimensions[6].hidden = True
    halves.column_dimensions["B"].hidden = True
    gaps = book.create_sheet("gaps")
    for row in (["City", 2023, None], [None, "H1", "H2"], ["Rome", 1, 2], ["Oslo", 3, 4]):
        gaps.append(row)
    footed = book.create_sheet("footed")
    for row in (["City", "n"], ["Rome", 1], ["Total", 1], [], ["* preliminary"]):
        footed.append(row)
    mixed = book.create_sheet("mixed")
    for row in (["n", "m", "N"], [1, 2, "x"], ["oops", "n/a", "y"], [3, 4, "z"]):
        mixed.append(row)
    secret = book.create_sheet("secret")
    secret.append(["pay"])
    secret.append([1])
    secret.sheet_state = "hidden"
    book.create_sheet("empty")
    book.save(path)


def write_hours(path: Path) -> None:
    book = Workbook()
    for row in (
        ["hours", "below", "sum", "product"],
        [timedelta(hours=30), timedelta(hours=-1), "=1+1", "=2*2"],
        [None, timedelta(hours=2), "=1+2", "=2*3"],
    ):
        book.active.append(row)
    book.save(path)


def write_database(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE sales (id INTEGER, amount, rate)")
        base.execute("INSERT INTO sales VALUES (1, 2.5, 1), (2, 'oops', 'NA'), (3, 4, NULL)")
        base.execute("CREATE TABLE days (day, moment)")
        base.executemany(
            "INSERT INTO days VALUES (?, ?)",
            [("2024-01-01", "2024-01-01T10:00:00"), ("2024-02-30", "2024-01-02 10:00:00"), ("2024-03-01", None)],
        )
        base.execute("CREATE TABLE unused (id INTEGER)")
        base.execute("CREATE VIEW broken AS SELECT id FROM removed")
    base.close()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    folder = tmp_path_factory.mktemp("records")
    write_book(folder / "book.xlsx")
    write_database(folder / "base.sqlite")
    write_hours(folder / "hours.xlsx")
    return read(folder, folder / "book.xlsx", folder / "base.sqlite", folder / "hours.xlsx")


def test_rows_of_a_header_with_merged_cells_are_joined(tables: dict[str, Table]) -> None:
    table = tables["book_halves"]
    names = ["Region", "2023 H1", "2023 H2", "2024 H1", "2024 H2", "Total"]
    assert [column.name for column in table.columns] == names
    assert [column.type for column in table.columns] == ["text", *["integer"] * 4, "text"]
    assert frame(table)["Region"].tolist() == ["North", "North"]
    assert frame(table)["2024 H2"].tolist() == [4, 8]
    assert list(table.notes) == [
        "the sheet 'empty' is empty, and left out",
        '2 rows above the header aren\'t part of the table: "Sales by half-year", "made in May"',
        "the 2 rows of the header are joined, as in '2023 H1'",
        "1 cell merged with the one above has its value",
        "1 hidden row is read like the others",
        "1 hidden column is read like the others",
        f"2 formulas have no saved values and are missing values, in 'Total': {SAVE}",
    ]
    assert "Sales by half-year" in describe_tables([table], "samples")
    assert "Sales by half-year" not in describe_tables([table], "profile")


def test_a_first_row_with_gaps_above_names_is_part_of_the_header(tables: dict[str, Table]) -> None:
    table = tables["book_gaps"]
    assert [(column.name, column.type) for column in table.columns] == [
        ("City", "text"),
        ("2023 H1", "integer"),
        ("2023 H2", "integer"),
    ]
    assert table.notes == ("the 2 rows of the header are joined, as in '2023 H1'",)


def test_a_column_of_a_sheet_that_is_text_says_why(tables: dict[str, Table]) -> None:
    table = tables["book_mixed"]
    assert [(column.name, column.type) for column in table.columns] == [
        ("n", "text"),
        ("m", "integer"),
        ("N_1", "text"),
    ]
    assert table.notes == (
        "'n' is text: 1 of 3 values is not a number (row 3: \"oops\")",
        "'m': 1 value written n/a is missing",
        "columns with the same name have a number added: 'N' is 'N_1'",
    )


def test_durations_reach_code_and_every_unsaved_formula_counts(tables: dict[str, Table]) -> None:
    table = tables["hours"]
    assert [column.type for column in table.columns] == ["duration", "text", "text", "text"]
    assert read_frame(str(table.parquet))["hours"].tolist() == [pd.Timedelta(hours=30), pd.NaT]
    assert table.notes == (
        "'hours': durations; .dt.total_seconds() / 3600 of it has hours",
        "'below' is text: some durations are below zero",
        f"4 formulas have no saved values and are missing values, in 'sum', 'product': {SAVE}",
    )


def test_a_total_above_a_remark_is_noted(tables: dict[str, Table]) -> None:
    assert tables["book_footed"].notes == (
        'the last row but 1 may be a total of the others, where the row below it is a remark (row 3: "Total")',
    )


def test_a_hidden_sheet_is_read_and_says_so(tables: dict[str, Table]) -> None:
    assert tables["book_secret"].notes == ("the sheet is hidden in the workbook",)


def test_a_cell_in_a_note_is_shown_with_samples_only(tables: dict[str, Table]) -> None:
    table = tables["book_mixed"]
    assert 'a number (row 3: "oops")' in describe_tables([table], "samples")
    assert 'a number (row 3: "…")' in describe_tables([table], "profile")


def test_tables_and_views_of_a_database_that_are_left_out_are_named(tables: dict[str, Table]) -> None:
    days = tables["base_days"]
    assert [column.type for column in days.columns] == ["text", "timestamp"]
    assert days.notes[-1] == "'day' is text: 1 of 3 values is not a date (such as \"2024-02-30\")"
    table = tables["base_sales"]
    assert [column.type for column in table.columns] == ["integer", "text", "integer"]
    assert days.notes[:-1] == (
        "the view 'broken' can't be read, and is left out (no such table: main.removed)",
        "the table 'unused' has no rows, and is left out",
    )
    assert table.notes == (
        "'amount' is text: 1 of 3 values is not a number (such as \"oops\")",
        "'rate': 1 value written NA is missing",
    )


def test_a_workbook_without_a_saved_value_says_what_to_do(tmp_path: Path) -> None:
    book = Workbook()
    book.active["A1"] = "=1+1"
    book.save(tmp_path / "formulas.xlsx")
    reason = f"has no sheet with data: the sheet 'Sheet' is left out: its 1 formula has no saved value; {SAVE}"
    with pytest.raises(DataError, match=reason):
        read(tmp_path, tmp_path / "formulas.xlsx")
