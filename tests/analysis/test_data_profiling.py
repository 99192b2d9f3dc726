"""Profiles are computed under names that no column of a file can clash with, and in blocks of columns."""

from pathlib import Path

import pandas as pd
import pytest

from ferrule.analysis.data.child.ferrule_tables.profiling import COLUMNS_AT_ONCE, profile_table

MB = 1 << 20


@pytest.mark.parametrize("name", ["v", "n", "c0", "c1", "number", "file_row_number", "sample", 'a"b', "count(*)"])
def test_no_name_of_a_column_clashes_with_a_query(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], name: [3, 4, 5], "code": ["x", "y", "y"]}).to_parquet(path)
    found = profile_table(str(path), 512 * MB, 1)
    assert [column["name"] for column in found["columns"]] == ["city", name, "code"]
    assert found["columns"][0]["common"] == [["Rome", 2]]
    assert found["columns"][1]["maximum"] == 5
    assert found["samples"] == [["Rome", "3", "x"], ["Oslo", "4", "y"], ["Rome", "5", "y"]]


def test_a_wide_table_is_profiled_in_blocks_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    width = 2 * COLUMNS_AT_ONCE + 7
    pd.DataFrame({f"x{place}": [place, place + 1] for place in range(width)}).to_parquet(path)
    found = profile_table(str(path), 512 * MB, 1)
    assert [column["minimum"] for column in found["columns"]] == list(range(width))
    assert sorted(found["samples"]) == [[str(place + row) for place in range(width)] for row in range(2)]


def test_common_texts_are_those_of_each_column(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = 3000
    texts = {f"x{place}": [f"{place}-{row % (place + 2)}" for row in range(rows)] for place in range(60)}
    pd.DataFrame(texts).to_parquet(path)
    for number, column in enumerate(profile_table(str(path), 512 * MB, 1)["columns"]):
        counts = pd.Series(texts[f"x{number}"]).value_counts()
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
        assert column["common"] == [[value, count] for value, count in ordered]


def test_times_with_a_zone_are_profiled(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    times = pd.to_datetime(["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]).tz_convert("Europe/Berlin")
    pd.DataFrame({"t": times}).to_parquet(path)
    [column] = profile_table(str(path), 512 * MB, 1)["columns"]
    assert (column["type"], column["minimum"]) == ("timestamp", "2024-01-01 00:00:00+00")
