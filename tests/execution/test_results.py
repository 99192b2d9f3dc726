"""What tools give back, as parts, and what is cut out of them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from running_tools import answer, answers, call

from ferrule.blobs import BlobStore
from ferrule.conversation import Image, Text, ToolCall, ToolOutput, ToolResult
from ferrule.errors import ToolFailed
from ferrule.execution import ApprovalRequest, Decision, Policy, read_result_tool
from ferrule.execution.results import ResultLimits, cut_text, make_data, make_parts
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Intent
from tables import each_case

PIXEL = Image(b"\x89PNG", "image/png")


class Colour(enum.StrEnum):
    RED = "red"


class Point(BaseModel):
    x: int
    label: str | None = None


@dataclasses.dataclass
class Pair:
    left: int
    right: list[Point]


@each_case(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (Colour.RED, "red"),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (None, "null"),
        ({"a": [1, None], "ä": "ö"}, '{"a":[1,null],"ä":"ö"}'),
        ([1, "two"], '[1,"two"]'),
        ((), "[]"),
        ({"z", "a", "m"}, '["a","m","z"]'),
        ({"in": {3, 1, 2}}, '{"in":[1,2,3]}'),
        (Point(x=1), '{"x":1,"label":null}'),
        (Pair(1, [Point(x=2, label="b")]), '{"left":1,"right":[{"x":2,"label":"b"}]}'),
        (datetime.date(2024, 1, 31), '"2024-01-31"'),
        (decimal.Decimal("1.50"), '"1.50"'),
        (Path("a/b"), '"a/b"'),
        (float("nan"), '"NaN"'),
        (10**30, "1" + "0" * 30),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("\ud83d\ude00", "😀"),
        (Text("a part"), "a part"),
    ],
)
def test_values_become_text(value, text):
    assert make_parts(value) == (Text(text),)


def test_images_and_texts_mix():
    assert make_parts(PIXEL) == (PIXEL,)
    assert make_parts(["a", 7, PIXEL, "b"]) == (Text("a\n7"), PIXEL, Text("b"))


async def coroutine():
    """Never awaited by a tool that forgot to."""


def cyclic():
    value: list[object] = []
    value.append(value)
    return value


@each_case(
    "value", [b"bytes", bytearray(b"x"), object(), print, coroutine(), (n for n in range(3)), cyclic(), {"k": object()}]
)
def test_what_is_no_result_is_refused_with_the_cure(value):
    with pytest.raises(ToolFailed) as caught:
        make_parts(value)
    assert "0x" not in caught.value.reason
    assert "it must return" in caught.value.reason


class Unwritable:
    """Has no form in JSON."""


@pytest.mark.parametrize(("value", "name"), [(Unwritable(), "Unwritable"), ({"deep": [Unwritable()]}, "dict")])
def test_a_value_that_is_no_json_is_named_by_its_class_alone(value, name):
    with pytest.raises(ToolFailed) as caught:
        make_parts(value)
    assert caught.value.reason == (
        f"the tool returned a value of type {name} that can't be written as JSON (Unwritable isn't a JSON value); "
        "it must return text, JSON values, a dataclass or an image"
    )


def test_a_tool_whose_result_cannot_be_shown_says_that_it_ran():
    @tool
    def raw() -> bytes:
        """Give bytes."""
        return b"\x00"

    assert answer(raw, call("raw")).text == (
        "error: the call was run, but the tool returned bytes, which can't be shown; "
        "it must return text, JSON values or an image"
    )


NOTICE = re.compile(r'\n\[… ([\d,]+) characters left out; the whole is kept as (\w{16}); read_result\("\2", (\d+)\) ')


@given(st.text(max_size=300), st.integers(0, 120))
@settings(deadline=None)
def test_a_cut_keeps_both_ends_and_the_whole(text, limit):
    blobs = BlobStore()
    shown = cut_text(text, limit, blobs)
    if len(text) <= limit:
        assert shown == text
        return
    notice = NOTICE.search(shown)
    assert notice is not None
    left_out, name, offset = int(notice[1].replace(",", "")), notice[2], int(notice[3])
    assert left_out == len(text) - limit
    assert shown.startswith(text[:offset])
    assert shown.endswith(text[offset + left_out :])
    assert blobs.get(name).decode() == text


def test_the_limit_is_shared_by_the_texts_of_a_result():
    parts = ResultLimits(BlobStore(), 100).cut((Text("a" * 500), PIXEL, Text("b" * 500)))
    assert parts[1] == PIXEL
    assert [part.text.count(letter) for part, letter in ((parts[0], "a"), (parts[2], "b"))] >= [50, 50]
    assert sum(len(part.text) for part in parts if isinstance(part, Text)) < 500


def test_what_was_cut_is_read_page_by_page():
    text = "".join(f"line {number}\n" for number in range(2_000))

    @tool
    def long() -> str:
        """Say a lot."""
        return text

    tools = [long, read_result_tool(page=4_000)]
    blobs = BlobStore()
    shown = answers(tools, [call("long")], limit=1_000, blobs=blobs)[0].text
    notice = NOTICE.search(shown)
    gathered, offset = "", 0
    while offset < len(text):
        page = answers(tools, [call("read_result", name=notice[2], offset=offset)], blobs=blobs)[0].text
        piece, _, _ = page.partition("\n[… ")
        gathered, offset = gathered + piece, offset + len(piece)
    assert gathered == text


def test_without_the_tool_a_notice_does_not_name_it():
    @tool
    def long() -> str:
        """Say a lot."""
        return "x" * 50_000

    shown = answer(long, call("long")).text
    assert "20,000 characters left out; the whole is kept as " in shown
    assert "read_result" not in shown
    assert shown == answer(long, call("long")).text


def test_read_result_says_what_is_wrong():
    blobs = BlobStore()
    name, raw = blobs.put(b"hello"), blobs.put(b"\xff\xfe")

    def read(**arguments):
        return answer(read_result_tool(), ToolCall("c", "read_result", json.dumps(arguments)), blobs=blobs).text

    assert read(name=name, offset=1) == "ello"
    assert read(name=name, offset=5) == "error: offset must be from 0 to 4"
    assert read(name="0" * 16).startswith("error: no result is kept as")
    assert read(name=raw).endswith("is not text")


def picture(number, size=100):
    return Image(number.to_bytes(2, "big") + bytes(size - 2), "image/png")


def test_images_over_the_count_are_left_out_by_name():
    blobs = BlobStore()
    parts = ResultLimits(blobs, images=2).cut((picture(1), Text("between"), picture(2), picture(3), picture(4)))
    assert parts[:3] == (picture(1), Text("between"), picture(2))
    names = [picture(number).hash for number in (3, 4)]
    assert parts[3].text == "\n".join(
        f"[an image left out, image/png, 100 bytes, kept as {name}: "
        "a result holds at most 2 images and 20,971,520 bytes of them]"
        for name in names
    )
    assert [blobs.get(name) for name in names] == [picture(3).data, picture(4).data]


def test_images_over_the_bytes_are_left_out_and_smaller_ones_behind_them_stay():
    parts = ResultLimits(BlobStore(), image_bytes=250).cut((picture(1), picture(2), picture(3), picture(4, 50)))
    assert [type(part) for part in parts] == [Image, Image, Text, Image]
    assert "100 bytes, kept as" in parts[2].text


def test_the_notes_of_many_images_are_cut_like_any_text():
    parts = ResultLimits(BlobStore(), 1_000, images=0).cut(tuple(picture(number) for number in range(500)))
    assert len(parts) == 1
    assert len(parts[0].text) < 1_200


def test_images_within_the_limits_are_the_same_parts():
    parts = (picture(1), Text("a"), picture(2))
    assert ResultLimits(BlobStore()).cut(parts) is parts


def test_what_is_no_text_is_data_too():
    @tool
    def find(what: str) -> object:
        """Return one of several things."""
        return {
            "object": {"rows": (1, 2), "day": datetime.date(2026, 1, 2)},
            "text": "plain",
            "number": 3,
            "image": Image(b"x", "image/png"),
            "both": ToolOutput("2 rows", {"rows": [1, 2]}),
            "short": ToolOutput("it is red", "red"),
            "wrong": ToolOutput("2 rows", object()),
        }[what]

    def run(what):
        result = answer(find, call("find", what=what), limit=5)
        return result.data

    assert run("object") == {"rows": [1, 2], "day": "2026-01-02"}
    assert [run("text"), run("number"), run("image")] == [None, 3, None]
    both, wrong = answer(find, call("find", what="both")), answer(find, call("find", what="wrong"))
    assert (both.text, both.data) == ("2 rows", {"rows": [1, 2]})
    assert run("short") == "red"
    assert wrong.text.startswith(
        "error: the call was run, but the tool returned a value of type object that can't be written as JSON"
    )
    assert both == ToolResult(both.call_id, "find", both.content)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numpy.int64(3), "3"),
        (numpy.float32(0.5), "0.5"),
        (numpy.bool_(True), "true"),
        (numpy.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        ({"mean": numpy.float64(1.5), "values": numpy.arange(3)}, '{"mean":1.5,"values":[0,1,2]}'),
        (numpy.datetime64("2026-01-31"), '"2026-01-31"'),
    ],
)
def test_numbers_and_arrays_of_numpy_are_json(value: Any, text: str) -> None:
    parts = make_parts(value)
    assert parts == (Text(text),)
    assert make_data(value, parts) == json.loads(text)


def test_tables_of_pandas_are_shown_as_text_and_kept_as_rows() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"city": ["Paris", "Oslo"], "rain": [0.5, float("nan")]})
    parts = make_parts(table)
    assert parts[0].text.splitlines() == [
        "    city  rain",
        "0  Paris   0.5",
        "1   Oslo   NaN",
        "",
        "[2 rows x 2 columns]",
    ]
    assert make_data(table, parts) == [{"city": "Paris", "rain": 0.5}, {"city": "Oslo", "rain": None}]
    times = pandas.DataFrame({"at": pandas.to_datetime(["2026-01-31", None])})
    assert make_data(times, make_parts(times)) == [{"at": "2026-01-31T00:00:00.000"}, {"at": None}]
    assert make_data({"table": table}, make_parts({"table": table}))["table"][0] == {"city": "Paris", "rain": 0.5}
    same = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert make_data(same, make_parts(same)) is None
    parts = make_parts(table["city"])
    assert parts[0].text.startswith("0    Paris\n1     Oslo")
    assert make_data(table["city"], parts) == ["Paris", "Oslo"]
    long = make_parts(pandas.DataFrame({"a": range(5000)}))[0].text
    assert long.endswith("[5000 rows x 1 columns]")
    assert long.count("\n") < 1010


LONG = "x" * 3_000_000


class Refusing:
    async def decide(self, _: ApprovalRequest) -> Decision:
        return Decision.deny(LONG)


def test_what_is_answered_without_being_run_is_cut_too() -> None:
    def fail(_: object) -> Intent:
        raise ToolFailed(LONG)

    @tool(intent=fail)
    def unclear(text: str) -> str:
        """Never run."""
        return text

    calls = [
        ToolCall("call_1", LONG, "{}"),
        ToolCall("call_2", "unclear", json.dumps({LONG: 1})),
        ToolCall("call_3", "unclear", '{"text": "a"}'),
    ]
    found = answers([unclear], calls)
    found += answers([unclear], calls[:1])
    assert [one.status for one in found] == ["unknown_tool", "invalid", "error", "unknown_tool"]

    @tool
    def plain() -> str:
        """Never run."""
        return ""

    found += answers([plain], [ToolCall("call_4", "plain", "{}")], policy=Policy(profile="ask"), approver=Refusing())
    for one in found:
        assert len(one.text) < 31_000, one.status
        assert "characters left out" in one.text
