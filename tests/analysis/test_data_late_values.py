"""What a column is depends on all of its values, and not on those that come first."""

import sqlite3
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from csv_reading import read_here, take_table

from ferrule.analysis.data.child.ferrule_tables.json_query import make_json_query
from ferrule.analysis.data.child.ferrule_tables.profiling import SAMPLED_ROWS, profile_table
from ferrule.analysis.data.child.ferrule_tables.records import read_database_table
from ferrule.analysis.data.child.ferrule_tables.workbooks import make_column

MB = 1 << 20
MANY = 20_600
"""More rows than those by which duckdb determines a type, which are 20,480."""
CASES: dict[str, tuple[str, list[str], str, str]] = {
    "zip code": ("12345", ["01067"], "text", "1 value with zeros in front, as codes have"),
    "zeros after a minus": ("5", ["-007"], "text", "1 value with zeros in front, as codes have"),
    "zeros among decimals": ("1.5", ["007"], "text", "1 value with zeros in front, as codes have"),
    "zeros before decimals": ("1.5", ["01.5"], "text", "1 value with zeros in front, as codes have"),
    "nothing but zeros": ("5", ["00"], "text", "1 value with zeros in front, as codes have"),
    "zeros of an amount": ("$5", ["$007"], "text", ""),
    "telephone": ("4917654321000", ["+4917654321"], "text", "1 value of ten or more digits with a plus sign in front"),
    "change": ("-5", ["+4917654321"], "integer", ""),
    "hexadecimal": ("1", ["0x1F"], "text", ""),
    "underscores": ("1", ["1_000"], "text", ""),
    "exponent": ("1", ["1e5"], "text", "1 value such as 1e5, which may be codes"),
    "large exponent": ("1", ["1E5"], "text", "1 value such as 1e5, which may be codes"),
    "exponent of a number": ("1.5", ["1e5"], "number", ""),
    "fraction": ("1", ["1.5"], "number", ""),
    "id and fraction": ("9007199254740993", ["1.5"], "text", "of more than 15 digits, which a number rounds"),
    "id of many digits": ("5", ["123456789012345678901"], "text", "digits, which a number rounds"),
    "amount of many digits": (
        "$5.50",
        ["$12345678901234567"],
        "text",
        "1 value of more than 15 digits, which a number",
    ),
    "word": ("5", ["five"], "text", "is not a number"),
    "infinite": ("1", ["inf"], "number", ""),
    "thousands": ("999", ["1,234"], "integer", "numbers with commas between thousands"),
    "parentheses": ("999", ["(5)"], "integer", "in parentheses where they are negative"),
    "several forms": ("999", ["1,234", "(5)", "1,234.50"], "number", "commas between thousands, in parentheses"),
    "spaces": ("12 345", ["1 234"], "integer", "numbers with spaces between thousands"),
    "codes with a space": ("123 45", ["543 21"], "text", ""),
    "either mark, then a point": ("1,500", ["2.75"], "number", "numbers with commas between thousands"),
    "day or month": ("01/02/2024", ["13/02/2024"], "date", "dates are read with the day first"),
    "month or day": ("01/02/2024", ["02/13/2024"], "date", "dates are read with the month first"),
    "dates of two orders": ("01/02/2024", ["13/02/2024", "02/13/2024"], "text", "is not a date"),
    "date and time": ("2024-01-02", ["2024-01-03 10:00"], "timestamp", ""),
    "nanoseconds": ("2024-01-02 10:00:00", ["2024-01-02 10:00:00.123456789"], "timestamp", ""),
    "nanoseconds and zones": ("2024-01-02T10:00Z", ["2024-01-02T10:00:00.123456789Z"], "text", "is not a time"),
    "dates of two forms": ("31.12.2024", ["2024-12-31"], "text", "is not a date"),
    "end of a day": ("10:00", ["24:00"], "text", 'written "24:00", which is no time of day'),
    "yes": ("true", ["yes"], "text", "1 value"),
    "placeholder": ("5", ["-"], "integer", "1 value written - is missing"),
    "what Eurostat writes for a missing value": ("5", [":"], "integer", "1 value written : is missing"),
    "Namibia": ("DE", ["FR", "IT", "NA"], "text", "NA is a value, in 1 row"),
    "missing, then whole": ("", ["5"], "integer", ""),
    "missing, then decimal": ("", ["1.5"], "number", ""),
    "missing, then date": ("", ["31.12.2024"], "date", "dates are read with the day first"),
    "missing, then ISO date": ("", ["2024-12-31"], "date", ""),
    "missing, then time": ("", ["10:00"], "time", ""),
    "missing, then boolean": ("", ["true"], "boolean", ""),
    "missing, then thousands": ("", ["1,234"], "integer", "numbers with commas between thousands"),
    "missing, then zeros": ("", ["007"], "text", "1 value with zeros in front, as codes have"),
    "missing, then text": ("", ["word"], "text", ""),
    "placeholder, then whole": ("-", ["5"], "integer", "written - "),
}
"""Of columns: the value of most rows, those of others, the type, and what a note says."""
DECIMAL_COMMAS: dict[str, tuple[str, list[str], str, str]] = {
    "comma": ("12", ["12,50"], "number", "numbers with a decimal comma"),
    "either mark": ("1,500", ["2,75"], "number", "numbers with a decimal comma"),
    "points": ("999", ["1.234"], "integer", "with points between thousands"),
}
TYPES = {"int64": "integer", "double": "number", "bool": "boolean", "string": "text", "date32[day]": "date"}
TYPES |= {"time64[us]": "time", "timestamp[us]": "timestamp", "timestamp[ns]": "timestamp"}
WIDTH = 3


def write_csv(path: Path, cases: dict[str, tuple[str, list[str], str, str]], separator: str, *, early: bool) -> None:
    columns = {}
    for name, (usual, others, _, _) in cases.items():
        rest = [*others, *[usual] * (WIDTH - len(others))]
        columns[name] = [*rest, *[usual] * 10] if early else [*[usual] * MANY, *rest]
    pd.DataFrame(columns).to_csv(path, index=False, sep=separator)


@pytest.mark.parametrize(("cases", "separator"), [(CASES, ","), (DECIMAL_COMMAS, ";")], ids=["points", "commas"])
@pytest.mark.parametrize("early", [True, False], ids=["first", "last"])
def test_a_column_is_the_same_wherever_its_unusual_values_stand(
    tmp_path: Path, cases: dict[str, tuple[str, list[str], str, str]], separator: str, early: bool
) -> None:
    write_csv(tmp_path / "t.csv", cases, separator, early=early)
    table, notes = read_here(str(tmp_path / "t.csv"))
    types = {field.name: TYPES[str(field.type)] for field in table.schema}
    assert types == {name: kind for name, (_, _, kind, _) in cases.items()}
    own = {name: [note for note in notes if note.startswith(f"{name!r}") or note[0] != "'"] for name in cases}
    unsaid = {name: (said, own[name]) for name, (*_, said) in cases.items() if said and said not in "".join(own[name])}
    assert not unsaid
    for name, (usual, others, kind, _) in cases.items():
        if kind == "text":
            values = table.column(name).to_pylist()
            assert set(values) == {value or None for value in (usual, *others)}, name


def test_values_of_a_form_that_comes_late_are_read(tmp_path: Path) -> None:
    names = ("several forms", "missing, then thousands", "date and time", "nanoseconds")
    write_csv(tmp_path / "t.csv", {name: CASES[name] for name in names}, ",", early=False)
    table, _ = read_here(str(tmp_path / "t.csv"))
    assert table.column("several forms").to_pylist()[-4:] == [999, 1234, -5, 1234.5]
    assert str(table.column("nanoseconds")[-3]) == "2024-01-02 10:00:00.123456789"
    assert table.column("missing, then thousands").to_pylist()[-4:] == [None, 1234, None, None]
    assert [str(value) for value in table.column("date and time").to_pylist()[-3:]] == [
        "2024-01-03 10:00:00",
        "2024-01-02 00:00:00",
        "2024-01-02 00:00:00",
    ]


def test_many_columns_that_are_text_for_a_few_values_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",".join(f"x{n}" for n in range(30)) + "\n" + (",".join(["5"] * 30) + "\n") * 9)
    with (tmp_path / "t.csv").open("a") as file:
        file.write(",".join(["oops"] * 30) + "\n")
    _, notes = read_here(str(tmp_path / "t.csv"))
    assert len(notes) == 21
    assert notes[0] == "'x0' is text: 1 of 10 values is not a number (line 11: \"oops\")"
    assert notes[-1] == "10 more columns are text: some values are not like the others"


WIDE = 2**53 + 1
IDS = ["1.5", str(WIDE), "3"]
JSON = {
    "whole numbers of both signs": ('{"a": -1}\n{"a": 9007199254740993}\n', "integer", [-1, WIDE]),
    "an id among fractions": ('{"a": 1.5}\n{"a": 9007199254740993}\n', "text", ["1.5", str(WIDE)]),
    "an id of many digits": ('{"a": 1}\n{"a": 12345678901234567890123}\n', "text", ["1", "12345678901234567890123"]),
    "no digits lost": ('{"a": 1.5}\n{"a": 18014398509481984}\n', "number", [1.5, 2.0**54]),
    "beyond both ends": ('{"a": -1}\n{"a": 18446744073709551615}\n', "text", ["-1", "18446744073709551615"]),
    "ids of letters and digits": (
        '{"a": "D4F6E1C2-1111-2222-3333-444455556666"}\n',
        "text",
        ["d4f6e1c2-1111-2222-3333-444455556666"],
    ),
}
LISTS = {
    "lists": '{"a": [1.5, 9007199254740993], "b": [1, 2]}',
    "objects": '{"data": [{"a": 1.5, "b": 1}, {"a": 9007199254740993, "b": 2}]}',
}


@pytest.mark.parametrize("name", JSON)
def test_numbers_of_json_keep_their_digits(tmp_path: Path, name: str) -> None:
    text, kind, values = JSON[name]
    (tmp_path / "t.jsonl").write_text(text)
    query, notes = make_json_query(str(tmp_path / "t.jsonl"), "jsonl", 512 * MB)
    table = take_table(query)
    assert (TYPES[str(table.schema.field("a").type)], table.column("a").to_pylist()) == (kind, values)
    assert bool(notes) == (kind == "text" and "letters" not in name)


@pytest.mark.parametrize("name", LISTS)
def test_numbers_in_lists_of_json_keep_their_digits(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.json").write_text(LISTS[name])
    query, notes = make_json_query(str(tmp_path / "t.json"), "json", 512 * MB)
    assert take_table(query).to_pydict() == {"a": ["1.5", str(WIDE)], "b": [1, 2]}
    assert notes == ["'a' is text: 1 value of more than 15 digits, which a number rounds"]


def test_a_key_that_differs_in_case_is_read_beside_a_rounded_number(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1.5, "A": 1}\n{"a": 9007199254740993, "A": 2}\n')
    query, notes = make_json_query(str(tmp_path / "t.jsonl"), "jsonl", 512 * MB)
    assert take_table(query).column("A_1").to_pylist() == [1, 2]
    assert "'a': whole numbers of more than 15 digits are rounded" in notes


def test_whole_numbers_of_workbooks_and_databases_keep_their_digits(tmp_path: Path) -> None:
    array, more = make_column("id", [1.5, WIDE, 3], [2, 3, 4])
    assert (array.to_pylist(), make_column("n", [1, WIDE, 3], [2, 3, 4])[0].to_pylist()) == (IDS, [1, WIDE, 3])
    with sqlite3.connect(tmp_path / "t.db") as base:
        base.execute("CREATE TABLE t (id, n)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(1.5, 1), (WIDE, WIDE), (3, 3)])
    base.close()
    reader, notes = read_database_table(str(tmp_path / "t.db"), "t")
    assert reader.read_all().to_pydict() == {"id": IDS, "n": [1, WIDE, 3]}
    assert notes == more == ["'id' is text: 1 value of more than 15 digits, which a number rounds"]


@pytest.mark.parametrize("rows", [SAMPLED_ROWS, SAMPLED_ROWS + 1, SAMPLED_ROWS + 1897, SAMPLED_ROWS + 1898])
def test_a_table_of_about_as_many_rows_as_a_sample_is_profiled(tmp_path: Path, rows: int) -> None:
    pq.write_table(pa.table({"n": pa.array(range(rows))}), tmp_path / "t.parquet")
    profile = profile_table(str(tmp_path / "t.parquet"), 512 * MB, 1)
    assert profile["rows"] == rows
    assert profile["columns"][0]["quantiles"] == pytest.approx(
        [(rows - 1) * share for share in (0.05, 0.25, 0.5, 0.75, 0.95)], abs=rows / 50
    )
