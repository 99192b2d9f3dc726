"""What a child writes is read at a bounded cost, whatever it is, and what was read can be shown."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile_answers import ANSWERS, MEGABYTE, MODULUS, Frame, chain, repeated

from ferrule.builtin_tools.python_results import render_result
from ferrule.builtin_tools.python_values import render_value, to_plain_json
from ferrule.sandbox.python import DataTable, Opaque, PythonResult, UnhashedDict, UnhashedSet
from ferrule.sandbox.python.parent.answer import parse_answer
from ferrule.sandbox.python.wire.encoding import (
    MAX_DECIMAL_CHARACTERS,
    MAX_FRACTION_BITS,
    MAX_INTEGER_BITS,
    MAX_PARTS,
    ValueEncoder,
)
from ferrule.sandbox.python.wire.frames import HEADER, WireError, pack_frame, parse_lengths, parse_tree
from ferrule.sandbox.python.wire.hash_cost import WORK, estimate_hash_work
from tables import each_case

TIMES = 20
"""How much longer than an honest megabyte the worst one may take: several times what it does."""


def seconds(read: Callable[[], Any]) -> float:
    begin = time.process_time()
    with suppress(WireError):
        read()
    return time.process_time() - begin


@pytest.fixture(scope="module")
def honest_seconds() -> float:
    """Of a megabyte that a run gives back: rows of text and numbers."""
    row = json.dumps({"city": "Paris", "people": 2.1, "since": [1, 2, 3], "note": "x" * 60})
    count = MEGABYTE // len(row)
    made = repeated(row)
    assert len(parse_answer(*made).value) > 0.9 * count
    return min(seconds(lambda: parse_answer(*made)) for _ in range(5))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_worst_megabyte_takes_few_times_an_honest_one(name: str, honest_seconds: float) -> None:
    made = ANSWERS[name]()
    allowed = TIMES * honest_seconds * max(len(made[0]) + len(made[1]), MEGABYTE) / MEGABYTE
    # A machine under load adds to one try; what is quadratic takes longer in all of them.
    assert any(seconds(lambda: parse_answer(*made)) < allowed for _ in range(3))


def there_and_back(value: Any) -> tuple[Any, tuple[str, ...]]:
    encoder = ValueEncoder()
    tree = encoder.encode_named("value", value)
    data = pack_frame({"value": tree, "omitted": encoder.omitted}, encoder.blobs)
    head, _ = parse_lengths(data[: HEADER.size])
    answer = parse_answer(data[HEADER.size : HEADER.size + head], data[HEADER.size + head :])
    return answer.value, answer.omitted


@pytest.mark.parametrize(
    "value",
    [
        {place * 7 % 9973: place for place in range(4_900)},
        {place: str(place) for place in range(30_000)},
        {f"k{place}": place for place in range(40_000)},
        {bytes([place // 256, place % 256]) for place in range(10_000)},
        {(place % 30, place // 30) for place in range(900)},
        {Fraction(1, 3), Fraction(2, 3), 5},
        {Decimal("1.5"): 1, Decimal(2): 2, 2.5: 3},
        {date(2020, 1, 1): 1, datetime(2020, 1, 1, tzinfo=UTC): 2, timedelta(1): 3},
        {frozenset({1, 2}), frozenset({2, 3}), frozenset()},
        {10**50: 1, -(10**50): 2},
        {1 + 2j, 3.5},
    ],
    ids=lambda value: f"{type(value).__name__} of {type(next(iter(value))).__name__}",
)
def test_tables_of_ordinary_keys_come_back_as_they_were(value: Any) -> None:
    assert there_and_back(value) == (value, ())


@pytest.mark.parametrize(
    "keys",
    [
        [place * MODULUS for place in range(1, 1300)],
        [(place, place) for place in range(3000)],
        chain(6000),
        [Fraction(place, 7) for place in range(1, 1000)],
        [Decimal(place) / 7 for place in range(1, 1000)],
        [10**2000],
        [((((((1,),),),),),)],
    ],
    ids=["one hash", "tuples", "chain", "fractions", "decimals", "a long integer", "a deep tuple"],
)
def test_keys_that_could_be_slow_to_hash_come_back_as_pairs(keys: list[Any]) -> None:
    back, omitted = there_and_back({key: place for place, key in enumerate(keys)})
    assert isinstance(back, UnhashedDict)
    assert back.items == tuple((key, place) for place, key in enumerate(keys))
    assert omitted == ()
    for kind in (set, frozenset):
        members, _ = there_and_back(kind(keys))
        assert isinstance(members, UnhashedSet)
        assert sorted(map(repr, members.items)) == sorted(map(repr, keys))


def test_the_work_of_all_tables_of_an_answer_is_counted() -> None:
    value = [{place * 3 for place in range(500)} for _ in range(120)]
    back, _ = there_and_back(value)
    hashed = [one for one in back if isinstance(one, set)]
    assert len(hashed) == WORK // 500**2
    assert all(isinstance(one, UnhashedSet) for one in back[len(hashed) :])


@pytest.mark.parametrize("key", [Decimal("sNaN"), Decimal(f"1E+{10**6}"), Decimal("7" * 60), Fraction(1, 2**70)])
def test_numbers_that_take_long_to_compare_are_never_hashed(key: Any) -> None:
    assert estimate_hash_work([1, key], WORK) > WORK


def test_what_is_over_a_limit_comes_back_as_text() -> None:
    for value, reason in (
        (1 << MAX_INTEGER_BITS, "bits"),
        (Fraction(1, 3**MAX_FRACTION_BITS), "bits"),
        (Decimal("7" * (MAX_DECIMAL_CHARACTERS + 1)), "characters"),
        (np.zeros((200_000, 0)), "repr"),
        (np.zeros((1,) * 33), "repr"),
    ):
        [back], omitted = there_and_back([value])
        assert isinstance(back, Opaque)
        assert reason in back.reason
        assert "raises" not in back.text
        assert len(omitted) == 1
    for value in (1 << MAX_INTEGER_BITS - 1, Fraction(1, 3**5000), Decimal("7" * MAX_DECIMAL_CHARACTERS)):
        assert there_and_back(value) == (value, ())


def test_an_honest_answer_is_within_the_limits_of_its_reader() -> None:
    values: list[Any] = [
        ["a, b: [c] {d}"] * MAX_PARTS,
        ["," * 200] * MAX_PARTS,
        [(1, 2)] * MAX_PARTS,
        [date(2020, 1, 1)] * MAX_PARTS,
        [{1: (2, {3})}] * MAX_PARTS,
        {place: timedelta(place) for place in range(MAX_PARTS)},
        [timedelta(5, 6, 7)] * MAX_PARTS,
        [complex(1, 2)] * MAX_PARTS,
        [int] * MAX_PARTS,
        ["\ud800" + "x" * 300] * MAX_PARTS,
        [Fraction(1, 3)] * MAX_PARTS,
        [np.zeros(1)] * MAX_PARTS,
        [pd.DataFrame({"a": [1]})] * 3000,
        [1e300] * MAX_PARTS,
    ]
    for value in values:
        back, omitted = there_and_back(value)
        assert len(back) > MAX_PARTS // 100
        assert omitted
        if isinstance(back, list):
            assert repr(back[-2]) == repr(back[0])


@pytest.mark.parametrize("columns", [5, 100, 500])
@pytest.mark.parametrize("cell", [1, date(2020, 1, 1), [1, 2, 3], "a,b,c"], ids=repr)
def test_tables_of_any_cells_have_even_columns(columns: int, cell: Any) -> None:
    value = pd.DataFrame({place: [cell] * 1500 for place in range(columns)})
    back, _ = there_and_back(value)
    assert isinstance(back, DataTable)
    assert (len(back.columns), back.total_rows) == (columns, 1500)
    assert len(back.rows) > 5
    assert back.rows == ((cell,) * columns,) * len(back.rows)


HOSTILE = {
    "text beyond Unicode": ({"$": "array", "dtype": "<U1", "shape": [1], "n": 4}, b"\xff\xff\xff\x7f"),
    "text beyond Unicode, big-endian": ({"$": "array", "dtype": ">U1", "shape": [1], "n": 4}, b"\x7f\xff\xff\xff"),
    "dates without a unit": ({"$": "array", "dtype": "<M8", "shape": [1], "n": 8}, b"\x05" + bytes(7)),
    "dates of an odd unit": ({"$": "array", "dtype": "<M8[x]", "shape": [1], "n": 8}, bytes(8)),
    "a shape that is text": ({"$": "array", "dtype": "<i1", "shape": "11", "n": 1}, b"1"),
    "many empty parts": ({"$": "array", "dtype": "<i1", "shape": [2**39, 0], "n": 0}, b""),
    "a fraction of text": ({"$": "fraction", "of": ["1", "2"]}, b""),
    "a fraction of one number": ({"$": "fraction", "of": [1]}, b""),
    "a span of text": ({"$": "timedelta", "of": ["1"]}, b""),
    "a complex text": ({"$": "complex", "of": ["1" * 9]}, b""),
    "a float of text": ({"$": "float", "is": "1e5"}, b""),
    "escaped number": ({"$": "escaped", "n": 2}, b"12"),
    "keys without values": ({"$": "dict", "keys": [1], "of": []}, b""),
    "a list in a key": ({"$": "dict", "keys": [{"$": "tuple", "of": [[]]}], "of": [1]}, b""),
    "bytes without a number": ({"$": "bytes"}, b""),
}


@each_case("name", HOSTILE)
def test_what_could_not_be_shown_or_kept_is_refused(name: str) -> None:
    tree, data = HOSTILE[name]
    with pytest.raises(WireError):
        parse_answer(json.dumps({"value": tree}).encode(), data)


def test_odd_truth_values_become_ordinary_ones() -> None:
    tree = {"$": "array", "dtype": "|b1", "shape": [3], "n": 3}
    assert parse_answer(json.dumps({"value": tree}).encode(), b"\x02\x00\xff").value.view("u1").tolist() == [1, 0, 1]


HUGE = 10**5000
SHOWN = {
    "long integers": [HUGE, -HUGE, 1 << MAX_INTEGER_BITS - 1],
    "a long integer": HUGE * HUGE * HUGE * HUGE * HUGE,
    "fractions": {Fraction(HUGE, 3): Fraction(1, HUGE)},
    "keys": {HUGE: 1, (HUGE,): 2, 1: 3},
    "sets": {HUGE, Fraction(1, HUGE), (HUGE, 1), frozenset({HUGE})},
    "pairs": UnhashedDict(((HUGE, Fraction(HUGE)), ([HUGE], (HUGE,)))),
    "members": UnhashedSet((HUGE, Fraction(HUGE, 7))),
    "decimals": [Decimal("sNaN"), Decimal("-Infinity"), Decimal("1E+999999999")],
    "floats": [math.nan, math.inf, {math.nan: 1, -math.inf: 2}],
    "dates": [np.array(["NaT", "2020"], dtype="M8[D]"), np.array([2**62, -(2**63)], dtype="m8[ns]")],
    "far dates": np.array([2**62, -(2**62)], dtype="M8[Y]"),
    "extended floats": np.array([1, np.nan], dtype=np.longdouble),
    "an extended float in no list": [np.array(1, dtype=np.longdouble), np.array(1, dtype=np.clongdouble)],
    "many dimensions": [np.zeros((3,) * 8, dtype="i1")],
    "an array of many dimensions": np.zeros((2,) * 20, dtype="i1"),
    "a large array": [np.zeros(10**6, dtype="i1")],
    "half pairs": ["\ud800", np.array(["\udc00"])],
    "a table": DataTable((HUGE, "x" * 10**6), ((Fraction(HUGE), HUGE), (math.nan, [HUGE])), ("i" * 10**6, HUGE), 2),
}


@each_case("name", SHOWN)
def test_showing_a_value_raises_nothing_and_is_short(name: str) -> None:
    run = PythonResult(value=SHOWN[name])
    assert len(repr(run)) < 300_000
    assert len(render_value(run.value)) < 2_000_000
    [text, *_] = render_result(run)
    assert text
    json.dumps(to_plain_json(run.value), allow_nan=False)


def test_integers_are_shown_in_decimal_while_that_is_cheap() -> None:
    assert render_value(HUGE) == "1" + "0" * 5000
    assert render_value(HUGE**5).startswith("0x")
    assert "bits" in render_value(HUGE**5)
    assert to_plain_json([7, HUGE]) == [7, {"int": hex(HUGE)}]
    assert render_value({"a": Fraction(1, 3)}) == '{"a": "1/3"}'
    assert render_value(UnhashedDict((((1, 2), "a"),))) == '[[[1, 2], "a"]]'
    assert render_value(UnhashedSet(((1, 2),))) == "[[1, 2]]"
    assert repr(PythonResult(value=3)).startswith("PythonResult(value=3, stdout=''")


LIFTED = """
import sys
from ferrule.sandbox.python.parent.answer import parse_answer
from ferrule.sandbox.python.wire.frames import WireError
sys.setrecursionlimit(10**7)
sys.set_int_max_str_digits(0)
for head in (b'{"value":' + b"[" * 5_000_000, b'{"value":' + b'{"":' * 1_000_000, b'{"value":' + b"7" * 100_000 + b"}"):
    try:
        parse_answer(head, b"")
    except WireError as error:
        print("refused")
deep = '"' + "[" * 5000 + '\\\\"{"'
print(parse_answer(('{"value":' + deep + "}").encode(), b"").value == "[" * 5000 + '"{')
"""


def test_a_program_that_lifted_its_own_limits_is_safe_too() -> None:
    done = subprocess.run([sys.executable, "-c", LIFTED], capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout.split(), done.returncode) == (["refused"] * 3 + ["True"], 0), done.stderr[-2000:]


def test_a_frame_of_many_parts_is_refused_before_it_is_read() -> None:
    with pytest.raises(WireError, match="too many parts"):
        parse_tree(b"[" * 201, 200)
    assert parse_tree(b"[1,2,3]", 200) == [1, 2, 3]
    made: Frame = (b'{"value":[' + b"[]," * 60_000 + b"0]}", b"")
    assert len(parse_answer(*made).value) == 60_001
