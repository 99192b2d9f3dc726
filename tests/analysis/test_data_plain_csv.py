"""Plain CSV is read in one pass, with the same types, values and notes as by duckdb."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.analysis.data.child.ferrule_tables.conversion import PieceStream, connect, copy_relation
from ferrule.analysis.data.child.ferrule_tables.csv_lines import IrregularLines, make_csv_query
from ferrule.analysis.data.child.ferrule_tables.plain_csv import PARSED, CheckedFile, NotPlain, stream_plain_csv
from ferrule.analysis.data.child.ferrule_tables.profiling import SAMPLED_ROWS, Sampler, profile_table

MB = 1 << 20
MANY = "1,x\n" * 30_000
PLAIN = {
    "types": "i,f,t,d,m,b\n1,2.5,x,2024-01-02,2024-01-02 10:00,true\n-7,3,,2024-02-29,2024-01-02T10:00:01.5,FALSE\n",
    "missing": "n,x,t\n1,NA,a\n,1.5,\nnull,,b\n",
    "quoted": 'n,t\n1,"a, b"\n2,"two\nlines, ""quoted"""\n"3",""\n',
    "windows": "a,b\r\n1,x\r\n2,y\r\n",
    "blank_lines": "a,b\n1,x\n\n2,y\n\n",
    "spaces": "a,b\n 1 , x\n2,y \n",
    "infinite": "x,t\n1.5,a\ninf,b\nnan,c\n-inf,d\n",
    "bare": "1,2.5,x\n2,3.5,y\n",
    "tabs": "a\tb\n1\tx\n2\ty\n",
    "accents": "name,n\nÉlodie,1\nŁukasz,2\n東京,3\n",
    "no_end": "a,b\n1,x\n2,y",
    "renamed": "a,A,\n1,2,x\n",
    "exponent": "x,t\n1.5,a\n1e5,b\n",
    "codes": "c,n\nDE,1\nFR,2\nIT,3\n",
    "several_blocks": "a,b\n" + "".join(f'{n},"a longer text, {n}"\n' for n in range(PARSED // 12)),
    "no_rows": "a,b\n",
    "zeros_in_text": "n,t\n" + '1,007 Bond\n2,"0x, 08"\n' * 3000,
    "zeros_of_fractions": "n,x\n0,0.5\n-0,-0.25\n10,0\n",
    "late_words": "n,t\n" + "1,\n" * 3000 + "2,word\n",
    "years": "country,2019,2020\nFrance,1,2\nItaly,4,3\n",
}
"""Files that are read in one pass."""
OTHERS = {
    "one_column": ("a\n1\n2\n", NotPlain),
    "late_fraction": (f"a,b\n{MANY}1.5,x\n", NotPlain),
    "late_text": (f"a,b\n{MANY}twelve,x\n", NotPlain),
    "late_mark": (f"a,b\n{MANY}1,NA\n", NotPlain),
    "late_spaced_mark": (f"a,b\n{MANY}1, n/a\n", NotPlain),
    "late_short": (f"a,b\n{MANY}1\n", IrregularLines),
    "late_long": (f"a,b\n{MANY}1,x,2\n", IrregularLines),
    "late_quote": (f'a,b\n{MANY}1,5" pipe\n', NotPlain),
    "late_text_after_quote": (f'a,b\n{MANY}1,"x"y\n', NotPlain),
    "late_open_quote": (f'a,b\n{MANY}1,"x\n', NotPlain),
    "late_return": (f"a,b\n{MANY}1,x\r2,y\n", NotPlain),
    "late_rounded": (f"a,b\n1.5,x\n{MANY}12345678901.123456,x\n", NotPlain),
    "codes_of_floats": ("a,b\n1e5,x\n2E3,y\n", NotPlain),
    "german": ("a;b\n1,5;x\n2,5;y\n", NotPlain),
    "day_first": ("d,x\n31.12.2024,1\n30.11.2024,2\n", NotPlain),
    "zone": ("t,x\n2024-01-01T10:00:00Z,1\n", NotPlain),
    "yes": ("ok,x\nyes,1\nno,2\n", NotPlain),
    "thousands": ('n,x\n"1,234",1\n"5,678",2\n', NotPlain),
    "header_of_two_lines": ('"a\nb",c\n1,2\n', NotPlain),
    "zeros": ("c,n\n007,1\n012,2\n", NotPlain),
    "late_zeros": (f"a,b\n{MANY}007,x\n", NotPlain),
    "late_quoted_zeros": (f'a,b\n{MANY}"007",x\n', NotPlain),
    "late_zeros_after_a_sign": (f"a,b\n{MANY}-007,x\n", NotPlain),
    "late_zeros_after_a_space": (f"a,b\n{MANY} 007,x\n", NotPlain),
    "late_zeros_of_a_fraction": (f"b,a\nx,0.5\n{MANY.replace('1,x', 'x,0.5')}x,00.5\n", NotPlain),
    "late_zeros_after_a_line_break": (f'b,a\n{MANY.replace("1,x", "x,1")}"a\nb, c",01\n', NotPlain),
    "late_hexadecimal": (f"a,b\n{MANY}0x1F,x\n", NotPlain),
    "late_numbers": ("a,b\n" + ",x\n" * 30_000 + "1,x\n", NotPlain),
    "late_dates": ("a,b\n" + ",x\n" * 3000 + "31.12.2024,x\n", NotPlain),
    "late_placeholder": ("a,b\n" + ",x\n" * 3000 + "-,x\n", NotPlain),
    "only_placeholders": ("a,b\n" + "-,x\n" * 3000 + "1,x\n", NotPlain),
}
"""Files that aren't, and why."""


def take(stream: PieceStream) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The frame that a stream carries, and its result."""
    data = b""
    while "piece" in (taken := stream.take()):
        data += taken["piece"]
    if stream.error is not None:
        raise stream.error
    return pd.read_parquet(io.BytesIO(data)), taken["result"]


def read_plain(path: Path) -> tuple[pd.DataFrame, list[str], dict[str, Any]]:
    stream, notes = stream_plain_csv(str(path), 512 * MB, 1)
    frame, result = take(stream)
    return frame, notes, result["profile"]


def read_by_duckdb(path: Path) -> tuple[pd.DataFrame, list[str]]:
    query, notes = make_csv_query(connect(512 * MB), str(path))
    return take(copy_relation(512 * MB, query))[0], notes


@pytest.mark.parametrize("name", PLAIN)
def test_plain_files_are_read_as_by_duckdb(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN[name].encode())
    frame, notes, profile = read_plain(path)
    expected, expected_notes = read_by_duckdb(path)
    pd.testing.assert_frame_equal(frame, expected)
    assert notes == expected_notes
    frame.to_parquet(tmp_path / "t.parquet")
    if frame.notna().all(axis=None):  # pandas would write whole numbers with a missing one as floats
        columns = profile_table(str(tmp_path / "t.parquet"), 512 * MB, 1)["columns"]
        assert profile["columns"] == columns
    assert profile["rows"] == len(frame)
    assert [one["missing"] for one in profile["columns"]] == [int(frame[name].isna().sum()) for name in frame]


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_left_to_duckdb(tmp_path: Path, name: str) -> None:
    text, reason = OTHERS[name]
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    with pytest.raises(reason):
        read_plain(path)


CELLS = ["", "1", "-2", "3.5", "1e3", "word", "two words", 'a "quoted" word', "x, y", "line\nbreak", "NA", " 7", "0012"]
CELLS += [
    "2024-01-02",
    "2024-01-02 10:30:00",
    "true",
    "True",
    "nan",
    "12345678901234567890",
    "é",
    "DE",
    "1,234",
    "0x1F",
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_random_files_are_read_as_by_duckdb_or_not_at_all(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("random") / "t.csv"
    kinds = [data.draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3)) for _ in range(3)]
    rows = data.draw(st.lists(st.tuples(*map(st.sampled_from, kinds)), min_size=1, max_size=8))
    path.write_text("a,b,c\n" + "".join(",".join(map(write_cell, row)) + "\n" for row in rows), newline="")
    try:
        frame, notes, _ = read_plain(path)
    except (NotPlain, IrregularLines):
        return
    expected, expected_notes = read_by_duckdb(path)
    pd.testing.assert_frame_equal(frame, expected)
    assert notes == expected_notes


def write_cell(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(one in cell for one in ',"\n') else cell


QUOTED = ['a,"b"\n', 'a,"b""c",""\n"d\n"', '"a"\r\n"b"', '""""\n']
MISQUOTED = ['a,5" x\n', '"a"b\n', '"a\n', 'a "b"\n', "a\rb\n", "a\r", '"a" ,b\n']


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_quotation_marks_are_checked_across_pieces(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t.csv"
    for text in QUOTED + MISQUOTED:
        path.write_bytes(text.encode())
        if text in QUOTED:
            assert read_in_pieces(path, size) == text.encode()
        else:
            with pytest.raises(NotPlain):
                read_in_pieces(path, size)


def read_in_pieces(path: Path, size: int, numbers: tuple[int, ...] = ()) -> bytes:
    file, data = CheckedFile(str(path), ",", '"', numbers), b""
    try:
        while piece := file.read(size):
            data += piece
    finally:
        file.close()
    return data


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_zeros_in_front_are_found_across_pieces_in_columns_of_numbers(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t.csv"
    zeros = ["007", '"007"', "-01", " 01", "0x1F", "+00"]
    for text in [f"a,{zero}\n" for zero in zeros] + [f'"a, b\n",{zero}' for zero in zeros]:
        path.write_text(text)
        assert read_in_pieces(path, size, (0, 2)) == text.encode()
        with pytest.raises(NotPlain):
            read_in_pieces(path, size, (1,))
    for text in ("a,0\nb,0.5\n", "a,-0\n00 b,10\n", "a,100\n", '"a,007",1\n', "a-007,1\n"):
        path.write_text(text)
        assert read_in_pieces(path, size, (1,)) == text.encode()


def test_a_sample_has_the_same_rows_each_time_and_is_given_up_where_the_estimate_was_wrong() -> None:
    rows = 3 * SAMPLED_ROWS
    values = np.arange(rows)
    batches = pa.table({"n": values}).to_batches(max_chunksize=30_000)
    first, second, too_few = sample(batches, 10), sample(batches, 10), sample(batches, 40)
    assert first is not None
    assert first.equals(second)
    assert first.num_rows == SAMPLED_ROWS
    assert first.column("c0").equals(first.column("number"))
    assert np.median(first.column("c0").to_numpy()) == pytest.approx(rows / 2, rel=0.02)
    assert too_few is None
    assert sample(batches, 10, limit=1000) is None


def sample(batches: list[pa.RecordBatch], parts: int, limit: int = 64 * MB) -> pa.Table | None:
    sampler = Sampler(batches[0].schema, 7, limit, parts)
    for batch in batches:
        sampler.add(batch)
    return sampler.finish()


def test_a_file_of_many_random_rows_is_profiled_in_the_pass(tmp_path: Path) -> None:
    path, generator = tmp_path / "t.csv", random.Random(3)
    numbers = [generator.randrange(1000) for _ in range(150_000)]
    path.write_text("n,x,t\n" + "".join(f"{n},{n / 8},t{n % 50}\n" for n in numbers))
    frame, _, profile = read_plain(path)
    whole, fraction, text = profile["columns"]
    assert (whole["minimum"], whole["maximum"], fraction["maximum"]) == (0, 999, 124.875)
    assert whole["mean"] == pytest.approx(sum(numbers) / len(numbers))
    assert whole["quantiles"] == pytest.approx(frame.n.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).tolist(), abs=8)
    assert text["distinct"] == pytest.approx(50, abs=3)
    assert sum(count for _, count in text["common"]) <= SAMPLED_ROWS
