"""Columns of CSV have the type that their values agree on, and a note says what was decided or what is in the way."""

import asyncio
from pathlib import Path

import pandas as pd
import pytest

from ferrule.analysis.data import Table, describe_tables, make_sources, read_tables
from ferrule.analysis.data.child.ferrule_tables.binding import read_frame
from ferrule.errors import DataError

MB = 1 << 20
MANY = "".join(f"{number}.5,2024-01-{number % 28 + 1:02}\n" for number in range(21_000))
DATES = """iso,day,month,either,short,named,time,zone
2024-01-02,13/02/2024,02/13/2024,01/02/2024,01/02/24,13-Feb-2024,02/13/2024 1:30 PM,2024-01-02T10:00:00+02:00
2024-01-03,01/03/2024,03/01/2024,03/04/2024,03/04/24,01-Mar-2024,03/01/2024 9:05 AM,2024-01-03T10:00:00Z
"""
CODES = """country,plan,n,zip,exact
NA,None,1,01234,100000000000000000.01
DE,Pro,NA,12345,3.5
FR,,3,20000,4
US,Pro,4,30000,5
"""
CASES: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "amounts.csv": (
        'thousands,dollars,share,loss,spaces\n"1,234.50",$12,12 %,(5),1 200\n"2,000",-$3.50,7.5 %,7,15\n',
        {"thousands": "number", "dollars": "number", "share": "number", "loss": "integer", "spaces": "integer"},
        [
            "'thousands': numbers with commas between thousands",
            "'dollars': numbers in $",
            "'share': numbers in percent (12 % is 12)",
            "'loss': numbers in parentheses where they are negative",
            "'spaces': numbers with spaces between thousands",
        ],
    ),
    "german.csv": (
        "preis;menge;tag\n1,50;1.234;13.02.2024\n2.345,75;12;01.03.2024\n",
        {"preis": "number", "menge": "integer", "tag": "date"},
        [
            "separated by semicolons",
            "'preis': numbers with a decimal comma, with points between thousands",
            "'menge': numbers with a decimal comma, with points between thousands",
            "'tag': dates are read with the day first",
        ],
    ),
    "comma.csv": (
        "price;name\n1,500;x\n2,345;y\n",
        {"price": "text", "name": "text"},
        [
            "separated by semicolons",
            "'price' is text: 2 values may have a comma or a point before decimals or between thousands",
        ],
    ),
    "share.csv": (
        "share\n50%\n60 %\n7%\n8%\n9%\n12\n",
        {"share": "text"},
        ["'share' is text: 1 of 6 values is not a number with % (line 7: \"12\")"],
    ),
    "dates.csv": (
        DATES,
        {
            **dict.fromkeys(("iso", "day", "month", "named"), "date"),
            **dict.fromkeys(("either", "short"), "text"),
            **dict.fromkeys(("time", "zone"), "timestamp"),
        },
        [
            "'day': dates are read with the day first",
            "'month': dates are read with the month first",
            "'either' is text: its dates may have the day or the month first",
            "'short' is text: 2 values may be dates with years of two digits, in any order",
            "'time': dates are read with the month first",
            "'zone': times are in UTC; the file has them with offsets such as +02:00",
        ],
    ),
    "late.csv": (
        f"amount,day\n{MANY}oops,soon\n",
        {"amount": "text", "day": "text"},
        [
            "'amount' is text: 1 of 21,001 values is not a number (line 21,002: \"oops\")",
            "'day' is text: 1 of 21,001 values is not a date (line 21,002: \"soon\")",
        ],
    ),
    "titled.csv": (
        "Report\n\namount,day\n1,2024-01-01\n2,2024-01-02\n3,2024-01-03\n4,2024-01-04\noops\n",
        {"amount": "text", "day": "date"},
        [
            '1 line above the header isn\'t part of the table: "Report"',
            "1 line has fewer cells than the header, which has 2 (line 8): what they lack is missing values",
            "'amount' is text: 1 of 5 values is not a number (line 8: \"oops\")",
        ],
    ),
    "fraction.csv": ("n\n" + "1\n" * 21_000 + "1.5\n", {"n": "number"}, []),
    "codes.csv": (
        CODES,
        {"country": "text", "plan": "text", "n": "integer", "zip": "text", "exact": "text"},
        [
            "'country': NA is a value, in 1 row, since all others are codes of two letters",
            "'plan': 1 value written None is missing",
            "'zip' is text: 1 value with zeros in front, as codes have",
            "'exact' is text: 1 value of more than 15 digits, which a number rounds",
        ],
    ),
    "header.csv": (
        "a,b\n",
        {"a": "text", "b": "text"},
        ["it has no rows: its only line is taken as the names of columns"],
    ),
    "words.txt": (
        "some words\n",
        {"some words": "text"},
        ["it has no rows: its only line is taken as the name of a column"],
    ),
    "placeholders.csv": (
        "city,people\nRome,100\nOslo,-\nParis,300\nTotal,400\n",
        {"city": "text", "people": "integer"},
        ['the last row may be a total of the others (last line: "Total")', "'people': 1 value written - is missing"],
    ),
    "halves.csv": (
        "region,2023,,2024,\n,H1,H2,H1,H2\nN,1,2,3,4\nS,5,6,7,8\n",
        {"region": "text", **dict.fromkeys(("2023 H1", "2023 H2", "2024 H1", "2024 H2"), "integer")},
        ["the 2 lines of the header are joined, as in '2023 H1'"],
    ),
    "hours.csv": (
        "day,time\n1,24:00\n2,23:00\n",
        {"day": "integer", "time": "text"},
        ["'time' is text: 1 value written \"24:00\", which is no time of day"],
    ),
    "points.csv": (
        "time;amount\n1;1.500\n2;2.250\n",
        {"time": "integer", "amount": "text"},
        [
            "separated by semicolons",
            "'amount' is text: 2 values may have a comma or a point before decimals or between thousands",
        ],
    ),
    "decimals.csv": (
        "weight;length\n1.500;1.5\n2.250;2\n",
        {"weight": "number", "length": "number"},
        ["separated by semicolons"],
    ),
    "minus.csv": (
        "amount;balance\n1.234,50-;5-\n2.000,00;7\n",
        {"amount": "number", "balance": "integer"},
        [
            "separated by semicolons",
            (
                "'amount': numbers with a decimal comma, with points between thousands, "
                "with the minus sign last where they are negative"
            ),
            "'balance': numbers with a decimal comma, with the minus sign last where they are negative",
        ],
    ),
    "few.csv": (
        "age\n34\n29\nprefer not to say\n45\n",
        {"age": "text"},
        ["'age' is text: 1 of 4 values is not a number (line 4: \"prefer not to say\")"],
    ),
    "infinite.csv": ("x,y\n1,inf\n2,-inf\n3,4.5\n", {"x": "integer", "y": "number"}, []),
    "ends.jsonl": (
        '{"t": "24:00:00"}\n{"t": "10:00:00"}\n',
        {"t": "text"},
        ["'t' is text: it has \"24:00\", which is no time of day"],
    ),
    "flags.csv": (
        "ok,n\ntrue,1\nfalse,2\nmaybe,3\ntrue,4\ntrue,5\n",
        {"ok": "text", "n": "integer"},
        ["'ok' is text: 1 of 5 values is not true or false (line 4: \"maybe\")"],
    ),
    "excel.csv": (
        "sep=;\na;b\n1;2\n3;4\n",
        {"a": "integer", "b": "integer"},
        ["separated by semicolons", '1 line above the header isn\'t part of the table: "sep="'],
    ),
    "spaces.csv": (
        "price,fee\n1\u00a0234.5,USD 3\n12\u00a0345,USD 4.50\n",
        {"price": "number", "fee": "number"},
        ["'price': numbers with spaces between thousands", "'fee': numbers in USD"],
    ),
    "log.txt": (
        "10:00:00 started\n10:00:01 slow\n10:00:02 done\n",
        {"10:00:00 started": "text"},
        [],
    ),
    "fixed.txt": (
        "name   value\nann       1\nbob      22\n",
        {"name   value": "text"},
        ["it has one column: if these are several of fixed width, save them as CSV"],
    ),
    "mixed.jsonl": (
        '{"a": 1}\n{"a": "two"}\n',
        {"a": "text"},
        ["'a' is text: its values are of several types"],
    ),
    "case.jsonl": (
        '{"a": 1, "A": 2}\n',
        {"a": "integer", "A_1": "integer"},
        ["columns with the same name have a number added: 'A' is 'A_1'"],
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    folder = tmp_path_factory.mktemp("types")
    for name, (text, *_) in CASES.items():
        (folder / name).write_text(text)
    zoned = pd.to_datetime(["2024-01-01T12:00:00Z"]).tz_convert("Europe/Berlin")
    pd.DataFrame({"t": zoned, "T": [1]}).to_parquet(folder / "zoned.parquet")
    sources = make_sources(sorted(folder.iterdir()))
    return {table.path.name: table for table in asyncio.run(read_tables(sources, folder, memory=512 * MB))}


@pytest.mark.parametrize("name", CASES)
def test_values_decide_the_type_and_notes_say_how(tables: dict[str, Table], name: str) -> None:
    _, types, notes = CASES[name]
    table = tables[name]
    assert ({column.name: column.type for column in table.columns}, list(table.notes)) == (types, notes)


def frame(table: Table) -> pd.DataFrame:
    return pd.read_parquet(table.parquet)


def test_texts_that_write_numbers_have_their_value(tables: dict[str, Table]) -> None:
    amounts = frame(tables["amounts.csv"])
    assert amounts.to_numpy().tolist() == [[1234.5, 12, 12, -5, 1200], [2000, -3.5, 7.5, 7, 15]]
    assert frame(tables["german.csv"])[["preis", "menge"]].to_numpy().tolist() == [[1.5, 1234], [2345.75, 12]]
    assert frame(tables["minus.csv"]).to_numpy().tolist() == [[-1234.5, -5], [2000, 7]]
    codes = frame(tables["codes.csv"])
    assert codes["country"].tolist() == ["NA", "DE", "FR", "US"]
    assert codes["n"].isna().tolist() == [False, True, False, False]
    assert codes["plan"].isna().tolist() == [True, False, True, False]


def test_infinite_numbers_are_counted(tables: dict[str, Table]) -> None:
    number = tables["infinite.csv"].columns[1]
    assert (number.infinite, number.minimum, number.maximum, number.mean) == (2, 4.5, 4.5, 4.5)
    assert "4.5 to 4.5; 2 infinite, left out of" in describe_tables([tables["infinite.csv"]])


def test_whole_numbers_keep_their_digits_where_some_are_missing(tmp_path: Path) -> None:
    pd.DataFrame({"id": pd.array([2**53 + 1, None], "Int64"), "n": [1, None]}).to_parquet(tmp_path / "t.parquet")
    table = read_frame(str(tmp_path / "t.parquet"))
    assert (int(table["id"][0]), str(table["id"].dtype), str(table["n"].dtype)) == (2**53 + 1, "Int64", "float64")


def test_texts_that_write_dates_have_their_day(tables: dict[str, Table]) -> None:
    dates = frame(tables["dates.csv"])
    assert [str(value) for value in dates[["iso", "day", "month", "named"]].iloc[0]] == [
        "2024-01-02",
        *["2024-02-13"] * 3,
    ]
    assert [str(value) for value in dates["time"]] == ["2024-02-13 13:30:00", "2024-03-01 09:05:00"]
    assert str(dates["zone"].iloc[0]) == "2024-01-02 08:00:00+00:00"


def test_the_zone_of_times_in_parquet_is_in_a_note(tables: dict[str, Table]) -> None:
    renamed, zone = tables["zoned.parquet"].notes
    assert renamed == "columns with the same name have a number added: 'T' is 'T_1'"
    assert zone.startswith("'t': times of 'Europe/Berlin' are in UTC here; .dt.tz_convert('Europe/Berlin')")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1}\n\n{"a": oops}\n', r"isn't valid JSON in line 3, character 7: expecting value"),
        ('{"a": 1}\n{"a":\n', r"isn't valid JSON in line 2, character 6: expecting value"),
        ('{"a": 1}\n[1, 2]\n{"a": 2}\n', r"has a list in line 2 where an object is expected"),
    ],
)
def test_the_broken_line_of_json_lines_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(DataError, match=reason):
        asyncio.run(read_tables(make_sources([tmp_path / "bad.jsonl"]), tmp_path, memory=512 * MB))
