"""What crosses between a run and the parent: round trips, what is cut, and hostile bytes."""

import datetime
import json
import math
from collections import Counter, OrderedDict, namedtuple
from contextlib import suppress
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox.python import DataTable, Opaque
from ferrule.sandbox.python.parent.answer import is_safe_name, parse_answer
from ferrule.sandbox.python.wire.encoding import MAX_DEPTH, MAX_PARTS, MAX_ROWS, ValueEncoder
from ferrule.sandbox.python.wire.frames import HEADER, WireError, pack_frame, parse_lengths
from tables import each_case

MOMENT, MIDNIGHT = (datetime.datetime.fromisoformat(when) for when in ("2020-01-02T03:04:05", "2020-01-02"))


def parts(tree: Any, blobs: list[bytes]) -> tuple[bytes, bytes]:
    data = pack_frame(tree, blobs)
    head, _ = parse_lengths(data[: HEADER.size])
    return data[HEADER.size : HEADER.size + head], data[HEADER.size + head :]


def there_and_back(value: Any) -> tuple[Any, list[str]]:
    encoder = ValueEncoder()
    tree = encoder.encode_named("value", value)
    answer = parse_answer(*parts({"value": tree, "omitted": encoder.omitted}, encoder.blobs))
    return answer.value, list(answer.omitted)


atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
)
keys = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner) | st.sets(keys) | st.frozensets(keys)
    ),
)


@given(values)
def test_what_has_an_encoding_comes_back_as_it_was(value: Any) -> None:
    back, omitted = there_and_back(value)
    assert back == value
    assert type(back) is type(value)
    assert omitted == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_json_lacks(value: float) -> None:
    assert repr(there_and_back(value)[0]) == repr(value)


def test_long_text_and_half_surrogates() -> None:
    value = ["x" * 100_000, "\ud800", "\udc80" * 1000, {"$": 1, "": "$"}]
    assert there_and_back(value) == (value, [])


@each_case(
    ("value", "plain"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("Point", "x y")(1, 2), (1, 2)),
        (IntEnum("Colour", "RED")(1), 1),
        (np.float64(1.5), 1.5),
        (np.int32(7), 7),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2020-01-02T03:04:05"), MOMENT),
        (np.datetime64("NaT"), None),
        (np.complex64(1 + 2j), 1 + 2j),
        (pd.Timestamp("2020-01-02"), MIDNIGHT),
        (pd.Timedelta("1 day"), datetime.timedelta(days=1)),
        (pd.NaT, None),
        (pd.NA, None),
        (pd.Index([1, 2]), [1, 2]),
        (bytearray(b"ab"), b"ab"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_relatives_of_plain_values_come_back_plain(value: Any, plain: Any) -> None:
    back, omitted = there_and_back(value)
    assert back == plain
    assert type(back) is type(plain)
    assert omitted == []


@each_case(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([[1.5, math.nan]], dtype="<f4"),
        np.array(["a", "bcd"]),
        np.array([b"a"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros((0, 3)),
        np.array(5),
        np.arange(4, dtype=">i2"),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_come_back_with_type_and_shape(array: np.ndarray) -> None:
    back, omitted = there_and_back(array)
    assert (back.dtype, back.shape, omitted) == (array.dtype, array.shape, [])
    assert np.array_equal(back, array, equal_nan=array.dtype.kind == "f")


def test_tables_are_cut_and_say_so() -> None:
    back, omitted = there_and_back({"t": pd.DataFrame({"n": range(5000), "s": "x"}, index=range(10, 5010))})
    table = back["t"]
    assert isinstance(table, DataTable)
    assert (table.columns, table.rows[0], table.index[0], table.total_rows) == (("n", "s"), (0, "x"), 10, 5000)
    assert (len(table.rows), table.is_cut) == (MAX_ROWS, True)
    assert omitted == ["value['t']: a table of 5000 x 2 (rows x columns), of which 1000 x 2 are here"]


def test_odd_tables() -> None:
    wide, omitted = there_and_back(pd.DataFrame(np.zeros((200, 2000))))
    assert (len(wide.columns), wide.total_rows) == (500, 200)
    assert "200 x 2000" in omitted[0]
    assert there_and_back(pd.DataFrame())[0] == DataTable((), (), (), 0)
    assert there_and_back(pd.DataFrame(index=[1, 2]))[0] == DataTable((), ((), ()), (1, 2), 2)
    levels = pd.DataFrame({("a", 1): [1]}, index=pd.MultiIndex.from_tuples([("x", "y")]))
    assert there_and_back(levels)[0] == DataTable((("a", 1),), ((1,),), (("x", "y"),), 1)
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert there_and_back(twice)[0] == DataTable(("a", "a"), ((1, 2),), (0,), 1)
    assert there_and_back(pd.Series([1, 2], name="n"))[0] == DataTable(("n",), ((1,), (2,)), (0, 1), 2)


def test_what_has_no_encoding_is_named_and_the_rest_comes_back() -> None:
    back, omitted = there_and_back({"a": [1, 2, 3, object()], "b": 5})
    assert back["b"] == 5
    assert back["a"][:3] == [1, 2, 3]
    assert isinstance(back["a"][3], Opaque)
    assert back["a"][3].type == "object"
    assert omitted == ["value['a'][3]: object as its repr"]


def test_values_that_misbehave() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise ValueError("no")

    class Liar(list):
        def __iter__(self) -> Any:
            raise RuntimeError("no")

    cycle: list[Any] = [1]
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(MAX_DEPTH * 2):
        deep = [deep]
    back, omitted = there_and_back([Bad(), Liar([1]), cycle, deep])
    assert "whose repr raises ValueError" in back[0].text
    assert back[1].reason == "RuntimeError while it was encoded"
    assert back[2][1].reason == "it contains itself"
    assert any(f"deeper than {MAX_DEPTH} levels" in line for line in omitted)


def test_a_value_of_too_many_parts_is_cut_and_says_so() -> None:
    back, omitted = there_and_back({"big": list(range(3 * MAX_PARTS)), "z": 1})
    assert back["big"] == list(range(len(back["big"])))
    assert MAX_PARTS - 10 < len(back["big"]) < MAX_PARTS
    assert "value['big']: only the first" in omitted[0]


def test_bytes_over_the_limit_are_left_out() -> None:
    back, omitted = there_and_back([b"x" * (30 << 20), b"y" * (10 << 20), b"z"])
    assert (len(back[0]), back[2]) == (30 << 20, b"z")
    assert "over what is left of the limit" in omitted[0]


HOSTILE = {
    "no JSON": (b"{", b""),
    "not UTF-8": (b'{"value": "\xff"}', b""),
    "no object": (b"[]", b""),
    "no answer": (b'{"confined": true}', b""),
    "deep": (b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b""),
    "fairly deep": (b'{"value": ' + b"[" * 500 + b"]" * 500 + b"}", b""),
    "many parts": (b'{"value": [' + b"[]," * 1_000_000 + b"0]}", b""),
    "a long number": (b'{"value": ' + b"9" * 100_000 + b"}", b""),
    "unknown tag": (b'{"value": {"$": "object"}}', b""),
    "odd tag": (b'{"value": {"$": ["x"]}}', b""),
    "builtin tag": (b'{"value": {"$": "__class__"}}', b""),
    "bytes without end": (b'{"value": {"$": "bytes", "n": 10}}', b"123"),
    "negative bytes": (b'{"value": {"$": "bytes", "n": -1}}', b"123"),
    "bytes twice": (b'{"value": [{"$": "bytes", "n": 3}, {"$": "bytes", "n": 3}]}', b"123"),
    "true bytes": (b'{"value": {"$": "bytes", "n": true}}', b"123"),
    "array of objects": (b'{"value": {"$": "array", "dtype": "|O8", "shape": [1], "n": 8}}', b"12345678"),
    "array of records": (b'{"value": {"$": "array", "dtype": "i4,O", "shape": [1], "n": 8}}', b"12345678"),
    "wide array": (b'{"value": {"$": "array", "dtype": "<f8", "shape": [1099511627775], "n": 0}}', b""),
    "empty items": (b'{"value": {"$": "array", "dtype": "<U0", "shape": [1099511627775], "n": 0}}', b""),
    "array of many sides": (
        b'{"value": {"$": "array", "dtype": "<f8", "shape": [' + b"1," * 99 + b'1], "n": 8}}',
        b"8" * 8,
    ),
    "list as key": (b'{"value": {"$": "dict", "of": [[[], 1]]}}', b""),
    "set of lists": (b'{"value": {"$": "set", "of": [[]]}}', b""),
    "half a fraction": (b'{"value": {"$": "fraction", "of": [1, 0]}}', b""),
    "no date": (b'{"value": {"$": "date", "is": "yesterday"}}', b""),
    "uneven table": (b'{"value": {"$": "table", "names": ["a"], "of": [[1]], "index": [], "total": 1}}', b""),
    "no image": (b'{"value": {"$": "image", "n": 5}}', b"hello"),
    "upward file": (b'{"value": 1, "files": [{"$": "file", "name": "../a", "n": 0}]}', b""),
    "absolute file": (b'{"value": 1, "files": [{"$": "file", "name": "/etc/passwd", "n": 0}]}', b""),
    "nameless file": (b'{"value": 1, "files": [{"$": "file", "n": 0}]}', b""),
    "files by name": (b'{"value": 1, "files": {"a": 1}}', b""),
    "many files": (b'{"value": 1, "files": [' + b"0," * 1000 + b"0]}", b""),
    "parent's error": (b'{"error": {"kind": "timeout", "message": "x", "traceback": "", "line": 1}}', b""),
    "error of lists": (b'{"error": {"kind": "exception", "message": [], "traceback": "", "line": 1}}', b""),
    "omitted of lists": (b'{"value": 1, "omitted": [[]]}', b""),
}


@each_case("name", HOSTILE)
def test_hostile_bytes_are_an_error_of_one_kind(name: str) -> None:
    with pytest.raises(WireError):
        parse_answer(*HOSTILE[name])


@given(st.binary(), st.binary())
def test_no_bytes_raise_anything_else(head: bytes, data: bytes) -> None:
    with pytest.raises(WireError):
        parse_answer(head, data)


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$", "of", "n", "is", "names", "index", "total", "dtype", "shape"]), inner)
        | st.builds(
            lambda tag, rest: {**rest, "$": tag},
            st.sampled_from(
                ["int", "float", "text", "bytes", "set", "dict", "date", "array", "table", "opaque", "image"]
            ),
            st.dictionaries(
                st.sampled_from(["of", "n", "is", "names", "index", "total", "dtype", "shape", "hex"]), inner
            ),
        )
    ),
)


@given(junk, junk, st.binary(max_size=20))
def test_trees_of_the_right_tags_with_wrong_fields(value: Any, error: Any, data: bytes) -> None:
    with suppress(WireError):
        parse_answer(json.dumps({"value": value, "error": error}).encode(), data)


def test_a_frame_that_is_too_long_is_refused_by_its_header() -> None:
    with pytest.raises(WireError):
        parse_lengths(HEADER.pack(2**31, 0))
    with pytest.raises(WireError):
        parse_lengths(HEADER.pack(0, 2**32 - 1))


@pytest.mark.parametrize("name", ["a", "a/b.csv", "ü", "a b", ".hidden", "..."])
def test_names_that_a_file_may_have(name: str) -> None:
    assert is_safe_name(name)


@each_case(
    "name", ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a\0b", "a\nb", "a\\b", "x" * 2000, "./a", "a" * 300]
)
def test_names_that_no_file_may_have(name: str) -> None:
    assert not is_safe_name(name)


def test_decimals_and_fractions_of_any_size() -> None:
    value = [Decimal("1E+999999"), Fraction(10**50, 3), -(10**5000)]
    assert there_and_back(value) == (value, [])
    assert there_and_back(Decimal("NaN"))[0].is_nan()
