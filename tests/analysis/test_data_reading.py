"""Files of many shapes become tables, and what can't be read is refused with a reason."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ferrule.analysis.data import DataSource, Table, make_sources, parse_data_argument, read_tables
from ferrule.errors import DataError

MB = 1 << 20
CSV = "region,amount,day\nNorth,1.5,2024-01-02\nSouth,,2024-01-03\nNorth,4,2024-02-01\n"


def read(folder: Path, *paths: Path | str) -> dict[str, Table]:
    tables = asyncio.run(read_tables(make_sources(paths), folder / "tables", memory=512 * MB))
    return {table.name: table for table in tables}


def frame(table: Table) -> pd.DataFrame:
    return pd.read_parquet(table.parquet)


def write_shapes(folder: Path) -> list[Path]:
    """The same three rows in every format, encoding and separator."""
    data = pd.DataFrame({"region": ["North", "South", "North"], "amount": [1.5, None, 4.0]})
    data["day"] = pd.to_datetime(["2024-01-02", "2024-01-03", "2024-02-01"])
    (folder / "plain.csv").write_text(CSV)
    (folder / "bom.csv").write_text(CSV, encoding="utf-8-sig")
    (folder / "wide.csv").write_text(CSV, encoding="utf-16")
    (folder / "tabs.tsv").write_text(CSV.replace(",", "\t"))
    (folder / "german.csv").write_text(CSV.replace(",", ";").replace("1.5", "1,5"))
    (folder / "bars.txt").write_text(CSV.replace(",", "|"))
    data.to_csv(folder / "packed.csv.gz", index=False)
    data.to_parquet(folder / "columns.parquet")
    data.to_excel(folder / "book.xlsx", index=False)
    records = json.loads(data.assign(day=data.day.dt.strftime("%Y-%m-%d")).to_json(orient="records"))
    (folder / "list.json").write_text(json.dumps(records))
    (folder / "lines.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    with sqlite3.connect(folder / "base.sqlite") as base:
        data.assign(day=data.day.dt.strftime("%Y-%m-%d")).to_sql("sales", base, index=False)
    base.close()
    return sorted(path for path in folder.iterdir() if path.is_file())


UNUSUAL: dict[str, tuple[bytes, list[str], list[str]]] = {
    "ragged.csv": (b"a,b,c\n1,2,3\n4,5\n6,7,8,9\n10,11,12\n", ["a", "b", "c", "column3"], ["integer"] * 4),
    "twice.csv": (b"a,a,A,\n1,2,3,4\n", ["a", "a_1", "A_2", "column3"], ["integer"] * 4),
    "quoted.csv": (b'id,note\n1,"two\nlines, ""quoted"""\n2,x\n', ["id", "note"], ["integer", "text"]),
    "header.csv": (b"a,b\n", ["a", "b"], ["text", "text"]),
    "bare.csv": (b"1,2.5,x\n2,3.5,y\n", ["column0", "column1", "column2"], ["integer", "number", "text"]),
    "comment.csv": (b"# made by me\na,b\n1,2\n", ["a", "b"], ["integer", "integer"]),
    "russian.csv": (
        "имя;город\nИван;Москва\nАнна;Казань\nПётр;Тверь\n".encode("cp1251"),
        ["имя", "город"],
        ["text", "text"],
    ),
    "zones.csv": (b"t,x\n2024-01-01T10:00:00Z,1\n2024-01-01T11:00:00+02:00,2\n", ["t", "x"], ["timestamp", "integer"]),
    "infinite.csv": (b"x\n1.5\ninf\nnan\n", ["x"], ["number"]),
    "answer.json": (b'{"data": [{"a": 1, "b": "x"}, {"a": 2, "b": null}]}', ["a", "b"], ["integer", "text"]),
    "columns.json": (b'{"a": [1, 2], "b": [3.5, 4]}', ["a", "b"], ["integer", "number"]),
}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same three rows in every format, encoding and separator."""
    return write_shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(scope="module")
def tables(shapes: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """All files that can be read, read at once."""
    folder = tmp_path_factory.mktemp("readable")
    for name, (content, _, _) in UNUSUAL.items():
        (folder / name).write_bytes(content)
    (folder / "mixed.csv").write_bytes("name,n\nMüller,1\n".encode() + "Müller,2\n".encode("cp1252"))
    (folder / "late.csv").write_text("n\n" + "1\n" * 30_000 + "n/a\n" + "twelve\n")
    (folder / "fraction.csv").write_text("n,t\n" + "1,x\n" * 30_000 + "2.5,y\n")
    (folder / "fractions.jsonl").write_text('{"n": 1}\n' * 30_000 + '{"n": 2.5}\n')
    write_workbook(folder / "plan 2024.xlsx")
    write_database(folder / "shop.db")
    named = {"columns.json": "lists", "shop.db": "s"}
    paths = [f"{named[path.name]}={path}" if path.name in named else path for path in sorted(folder.iterdir())]
    return read(folder, *shapes, *paths)


def write_workbook(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="Q1", index=False)
        pd.DataFrame({"b": ["x"]}).to_excel(book, sheet_name="Q 2", index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)


def write_database(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE orders (id INTEGER, made DATETIME, what)")
        base.execute("INSERT INTO orders VALUES (1, '2024-01-02 10:00:00', 'a'), (2, NULL, 5)")
        base.execute("CREATE TABLE people (id INTEGER)")
        base.execute("INSERT INTO people VALUES (1)")
        base.execute("CREATE VIEW made_orders AS SELECT id, made FROM orders WHERE made IS NOT NULL")
        base.execute("CREATE VIEW broken AS SELECT id FROM removed")
    base.close()


def test_every_shape_gives_the_same_table(tables: dict[str, Table], shapes: list[Path]) -> None:
    read_from = {table.path: table for table in tables.values()}
    assert len(shapes) == 12
    for path in shapes:
        table = read_from[path]
        region, amount, day = table.columns
        assert table.rows == 3
        assert [region.name, amount.name, day.name] == ["region", "amount", "day"], table.name
        assert (region.type, region.distinct, region.lengths) == ("text", 2, (5, 5)), table.name
        assert (amount.type, amount.missing, amount.minimum, amount.maximum) == ("number", 1, 1.5, 4.0), table.name
        assert amount.mean == 2.75
        assert day.type in {"date", "timestamp"}, table.name
        assert str(day.minimum).startswith("2024-01-02")
        assert frame(table)["region"].tolist() == ["North", "South", "North"]
        assert table.parquet.name == f"{table.digest}.parquet"


def test_lines_of_two_encodings_are_read_as_each_is(tables: dict[str, Table]) -> None:
    table = tables["mixed"]
    assert frame(table)["name"].tolist() == ["Müller", "Müller"]
    assert table.notes[0] == "lines of two encodings: 1 as UTF-8 and 1 as cp1252"


def test_each_sheet_and_database_table_is_a_table(tables: dict[str, Table]) -> None:
    names = [name for name, table in tables.items() if table.path.name in {"plan 2024.xlsx", "shop.db"}]
    assert sorted(names) == ["plan_2024_Q1", "plan_2024_Q_2", "s_made_orders", "s_orders", "s_people"]
    assert [column.type for column in tables["s_orders"].columns] == ["integer", "timestamp", "text"]
    view = tables["s_made_orders"]
    assert (view.rows, [column.type for column in view.columns]) == (1, ["integer", "timestamp"])


def test_a_type_that_changes_late_in_the_file_is_found(tables: dict[str, Table]) -> None:
    [column] = tables["late"].columns
    assert (column.type, column.missing, column.distinct) == ("text", 1, 2)


@pytest.mark.parametrize("name", ["fraction", "fractions"])
def test_a_fraction_late_in_the_file_is_not_rounded(tables: dict[str, Table], name: str) -> None:
    column = tables[name].columns[0]
    assert (column.type, column.maximum) == ("number", 2.5)


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_files_are_read_as_they_are_meant(tables: dict[str, Table], name: str) -> None:
    table = tables["lists" if name == "columns.json" else name.partition(".")[0]]
    _, names, types = UNUSUAL[name]
    assert [column.name for column in table.columns] == names
    assert [column.type for column in table.columns] == types


@pytest.mark.slow
def test_the_same_file_has_the_same_digest_and_profile(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("n,t\n" + "".join(f"{n % 977},x{n}\n" for n in range(150_000)))
    first, second = read(tmp_path, path)["many"], read(tmp_path, path)["many"]
    assert first == second
    assert first.columns[0].quantiles[2] == pytest.approx(488, rel=0.02)


@pytest.mark.slow
def test_a_gigabyte_of_csv_is_read_in_256_megabytes(tmp_path: Path) -> None:
    """Rows of the types that files have; 100,000 of them are written again and again, since that takes a second."""
    path, rows = tmp_path / "large.csv", 100_000
    block = pd.DataFrame({"id": range(rows), "customer": [f"c{n * 7919 % 100_003:06}" for n in range(rows)]})
    block["time"] = pd.date_range("2020-01-01", periods=rows, freq="min").strftime("%Y-%m-%d %H:%M:%S")
    block["amount"] = [n % 9973 / 100 for n in range(rows)]
    block["note"] = ["late, but paid", "", "returned", 'said "no"'] * (rows // 4)
    text = block.to_csv(index=False, header=False).encode()
    times = 1 + 1_000_000_000 // len(text)
    with path.open("wb") as file:
        file.write(",".join(block.columns).encode() + b"\n")
        for _ in range(times):
            file.write(text)
    assert path.stat().st_size > 1_000_000_000
    [table] = asyncio.run(read_tables([DataSource(path)], tmp_path, memory=256 * MB))
    path.unlink()  # pytest keeps the folders of three runs
    identifier, customer, time, amount, note = table.columns
    assert table.rows == rows * times
    assert (identifier.type, identifier.minimum, identifier.maximum) == ("integer", 0, rows - 1)
    assert customer.distinct == pytest.approx(rows, rel=0.05)
    assert (time.type, str(time.minimum)[:19]) == ("timestamp", "2020-01-01 00:00:00")
    assert (amount.type, amount.minimum, amount.maximum) == ("number", 0, 99.72)
    assert (note.missing, note.distinct) == (rows // 4 * times, 3)
    assert table.memory > 256 * MB


@pytest.mark.slow
def test_a_file_that_is_not_plain_may_be_larger_than_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    line = ",".join("0123456789" * 8 for _ in range(4)) + "\n"
    with path.open("w") as file:
        file.write("a,b,c,d\n")
        for _ in range(150):
            file.write(line * 8000)
    assert path.stat().st_size > 256 * MB
    [table] = asyncio.run(read_tables([DataSource(path)], tmp_path, memory=256 * MB))
    path.unlink()  # pytest keeps the folders of three runs
    assert table.rows == 1_200_000
    assert table.memory > 256 * MB


BAD: dict[str, tuple[str, Callable[[Path], object]]] = {
    "blank.csv": ("nothing but white space", lambda path: path.write_text("\n \n")),
    "lying.csv": ("named as CSV, but contains Parquet", lambda path: pd.DataFrame({"a": [1]}).to_parquet(path)),
    "lying.xlsx": ("named as an Excel workbook, but contains CSV", lambda path: path.write_text(CSV)),
    "lying.json": ("doesn't begin as JSON does", lambda path: path.write_text(CSV)),
    "page.csv": ("is an HTML page", lambda path: path.write_text("<!DOCTYPE html><html>sign in</html>")),
    "old.xls": ("save it as .xlsx", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)),
    "torn.xlsx": ("damaged zip archive or workbook", lambda path: path.write_bytes(b"PK\x03\x04" + b"x" * 90)),
    "torn.parquet": ("can't be read", lambda path: path.write_bytes(b"PAR1" + b"x" * 90)),
    "torn.csv.gz": ("unpacking it with gzip fails", lambda path: path.write_bytes(b"\x1f\x8b\x08" + b"x" * 90)),
    "nul.csv": ("NUL byte at 4", lambda path: path.write_bytes(b"a,b\n\x001,2\n" * 3)),
    "torn.json": ("isn't valid JSON in line 1, character 18", lambda path: path.write_text('[{"a": 1}, {"a": ')),
    "broken.jsonl": (
        "isn't valid JSON in line 2, character 7: expecting value",
        lambda path: path.write_text('{"a": 1}\n{"a": oops}\n'),
    ),
    "torn.db": ("damaged SQLite database", lambda path: path.write_bytes(b"SQLite format 3\0" + b"x" * 900)),
    "paper.pdf": ("is a PDF document", lambda path: path.write_bytes(b"%PDF-1.7 ...")),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sentence about each bad file of the one error of reading all of them."""
    folder = tmp_path_factory.mktemp("bad")
    for name, (_, write) in BAD.items():
        write(folder / name)
    sources = [DataSource(folder / name, f"table{number}") for number, name in enumerate(BAD)]
    with pytest.raises(DataError) as caught:
        asyncio.run(read_tables(sources, folder / "tables", memory=512 * MB))
    message = str(caught.value)
    assert message.startswith(f"{len(BAD)} files can't be read: ")
    assert "\n" not in message
    assert "COPY" not in message
    return {name: message.partition(f"{folder / name} ")[2].partition(f"; {folder}")[0] for name in BAD}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_with_a_reason(refusals: dict[str, str], name: str) -> None:
    assert BAD[name][0] in refusals[name]


def test_empty_and_hidden_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.csv is empty: it has no data to analyse"):
        read(tmp_path, tmp_path / "empty.csv")
    (tmp_path / ".env").write_text(CSV)
    with pytest.raises(DataError, match=r"\.env is hidden from model-written code"):
        read(tmp_path, tmp_path / ".env")


def test_missing_folders_and_clashing_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for path in (tmp_path / "sales.csv", tmp_path / "old" / "Sales.csv"):
        path.write_text(CSV)
    with pytest.raises(DataError, match=r"would both be tables\['Sales'\]: give one another name"):
        read(tmp_path, tmp_path / "sales.csv", tmp_path / "old" / "Sales.csv")
    with pytest.raises(DataError, match="is a folder: name each file in it"):
        read(tmp_path, tmp_path / "old")
    with pytest.raises(DataError, match="doesn't exist: check the path"):
        read(tmp_path, tmp_path / "none.csv")


def test_the_argument_may_name_the_table(tmp_path: Path) -> None:
    assert parse_data_argument("q3=sales.csv") == ("q3", Path("sales.csv"))
    assert parse_data_argument("sales.csv") == (None, Path("sales.csv"))
    assert parse_data_argument("data/a=b.csv") == (None, Path("data/a=b.csv"))
    with pytest.raises(DataError, match="'2024' can't be the name of a table"):
        parse_data_argument("2024=sales.csv")
    with pytest.raises(DataError, match="names no file"):
        parse_data_argument("q3=")
