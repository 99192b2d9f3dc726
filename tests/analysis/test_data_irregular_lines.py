"""No line and no cell of a CSV file is lost without a note, however long its lines are."""

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from csv_reading import read_here
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.analysis.data import Table, make_sources, read_tables

MB = 1 << 20
ROWS = "".join(f"R{number % 4},{number}\n" for number in range(300))
CASES: dict[str, tuple[str, int, list[str], list[str]]] = {
    "long_last.csv": (
        f"region,amount\n{ROWS}Source: ERP, exported, 2024\n",
        301,
        ["region", "amount", "column2"],
        [
            "1 line has more cells than the header, which has 2 (line 302): what is beyond is in column2",
            "'amount' is text: 1 of 301 values is not a number (line 302: \"exported\")",
        ],
    ),
    "growing.csv": (
        "day,sales\n" + "2024-01-01,5\n" * 5 + "2024-01-06,7,late\n" * 20,
        25,
        ["day", "sales", "column2"],
        ["20 lines have more cells than the header, which has 2 (the first is line 7): what is beyond is in column2"],
    ),
    "short_last.csv": (
        "region,amount,x\n" + ROWS.replace("\n", ",1\n") + "Total,45000\n",
        301,
        ["region", "amount", "x"],
        [
            "1 line has fewer cells than the header, which has 3 (line 302): what they lack is missing values",
            'the last row may be a total of the others (last line: "Total")',
        ],
    ),
    "semicolons.csv": (
        "a;b;c\n1;2;3\n4;5\n6;7;8\n",
        3,
        ["a", "b", "c"],
        [
            "separated by semicolons",
            "1 line has fewer cells than the header, which has 3 (line 3): what they lack is missing values",
        ],
    ),
    "late.csv": (
        "a,b\n" + "1,2\n" * 25_000 + "3,4,5,6\n",
        25_001,
        ["a", "b", "column2", "column3"],
        ["1 line has more cells than the header, which has 2 (line 25,002): what is beyond is in column2 to column3"],
    ),
    "comma_at_end.csv": ("a,b\n" + "1,2\n" * 50 + "3,4,\n", 51, ["a", "b"], []),
    "title.csv": (
        "Report of sales\nMade in May\n\nregion,amount\nNorth,1\nSouth,2\nWest,3\n",
        3,
        ["region", "amount"],
        ['2 lines above the header aren\'t part of the table: "Report of sales", "Made in May"'],
    ),
    "renamed.csv": (
        "DUP,dup,x\n1,2,3\n",
        1,
        ["DUP", "dup_1", "x"],
        ["columns with the same name have a number added: 'dup' is 'dup_1'"],
    ),
    "open_quote.csv": (
        'size,n\n"5 inch,1\n6 inch,2\n7 inch,3\n',
        3,
        ["size", "n"],
        ["quotation marks don't come in pairs: they are part of the cells"],
    ),
    "colons.txt": (
        "root:x:0:System, main:/root\nmail:x:8:Mail:/var\n",
        2,
        [f"column{place}" for place in range(5)],
        ["separated by colons", "it has no header: columns are named by their number"],
    ),
    "guesses.csv": (
        "day,code,big,ok,x,when\n01/02/24,1e5,123456789012345678901,yes,1e5,2024-01-02\n03/04/24,2E3,5,no,2.5,2024-01-03\n",
        2,
        ["day", "code", "big", "ok", "x", "when"],
        [
            "'day' is text: 2 values may be dates with years of two digits, in any order",
            "'code' is text: 2 values such as 1e5, which may be codes",
            "'big' is text: 1 value of more than 17 digits, which a number rounds",
            "'ok' is text: 2 values may mean true or false, such as yes and no",
        ],
    ),
    "long_cell.csv": ("a,b\n1," + "x" * 3_000_000 + "\n", 1, ["a", "b"], []),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    folder = tmp_path_factory.mktemp("irregular")
    for name, (text, *_) in CASES.items():
        (folder / name).write_text(text)
    sources = make_sources([folder / name for name in CASES])
    return {table.path.name: table for table in asyncio.run(read_tables(sources, folder, memory=512 * MB))}


@pytest.mark.parametrize("name", CASES)
def test_lines_of_other_lengths_are_kept_and_counted(tables: dict[str, Table], name: str) -> None:
    _, rows, names, notes = CASES[name]
    table = tables[name]
    assert (table.rows, [column.name for column in table.columns], list(table.notes)) == (rows, names, notes)


def test_values_that_a_type_would_change_stay_text(tables: dict[str, Table]) -> None:
    types = {column.name: column.type for column in tables["guesses.csv"].columns}
    assert types == {"day": "text", "code": "text", "big": "text", "ok": "text", "x": "number", "when": "date"}


cells = st.sampled_from(["", "word", "two words", 'a "quoted" word', "a, b", "line\nbreak", "x;y", "it's", "é", "#1"])
lines = st.lists(st.lists(cells, min_size=1, max_size=6), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(rows=lines)
def test_every_cell_of_random_lines_is_in_the_table_or_in_a_note(rows: list[list[str]]) -> None:
    numbered = [
        [f"{cell}{row}.{place}z" if cell else "" for place, cell in enumerate(line)] for row, line in enumerate(rows)
    ]
    text = "".join(",".join(write_cell(cell) for cell in line) + "\n" for line in numbered)
    if not text.strip(',\n" '):
        return
    with TemporaryDirectory() as folder:
        path = f"{folder}/t.csv"
        Path(path).write_text(text)
        table, notes = read_here(path)
        frame = table.to_pandas()
    kept = strip_marks(" ".join([*frame.columns, *map(str, frame.to_numpy().ravel()), *notes]).replace("\\n", ""))
    for cell in (cell for line in numbered for cell in line):
        assert strip_marks(cell) in kept, (cell, text, frame, notes)


def strip_marks(text: str) -> str:
    """Leave out what may separate cells, and quotation marks."""
    return re.sub(r"[\s;,|:\"'\\]+", "", text)


def write_cell(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(one in cell for one in ',"\n') else cell
