"""Checks that the second edition's lists of calculator requests, and of what must be declined, are well formed.

What the model makes of the requests is measured elsewhere; here only the lists themselves are read.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "ferrule" / "embedded" / "phrasings"
CALCULATOR_LISTS = {"open_calculator": "oc", "held_out_calculator": "hc"}
DECLINED_LISTS = {"open_declined": "od", "held_out_declined": "hd"}
TEXT_KINDS = {"reverse", "letter", "compare", "two"}
NUMBER_KINDS = {
    *("symbols", "words", "percent", "count", "length", "problem", "average", "sum", "power", "words_count", "time"),
}
CALCULATOR_KINDS = TEXT_KINDS | NUMBER_KINDS | {"error", "turns"}
PLAIN_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?")
Entry = dict[str, Any]


def read_list(name: str) -> list[Entry]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def list_prompts(entry: Entry) -> list[str]:
    return entry["prompts"] if "prompts" in entry else [entry["prompt"]]


@pytest.mark.parametrize(("name", "letters"), CALCULATOR_LISTS.items())
def test_calculator_requests_have_their_ids_fields_and_kinds(name: str, letters: str) -> None:
    entries = read_list(name)
    assert [entry["id"] for entry in entries] == [f"{letters}{number:03}" for number in range(1, 301)]
    assert {entry["kind"] for entry in entries} == CALCULATOR_KINDS
    for entry in entries:
        asked = "prompts" if entry["kind"] == "turns" else "prompt"
        assert set(entry) == {"id", "kind", asked, "answer"}, entry["id"]
        assert all(prompt.strip() for prompt in list_prompts(entry)), entry["id"]


@pytest.mark.parametrize("name", CALCULATOR_LISTS)
def test_answers_of_calculator_requests_have_the_form_of_their_kind(name: str) -> None:
    for entry in read_list(name):
        answer, kind = entry["answer"], entry["kind"]
        if kind == "error":
            assert answer is None, entry["id"]
        elif kind == "two":
            assert [bool(part) for part in answer] == [True, True], entry["id"]
        elif kind in NUMBER_KINDS:
            assert PLAIN_DECIMAL.fullmatch(answer), entry["id"]
            assert answer != "-0", entry["id"]
        elif kind == "reverse":
            assert answer[::-1] in entry["prompt"], entry["id"]
        else:
            assert answer, entry["id"]


@pytest.mark.parametrize(("name", "letters"), DECLINED_LISTS.items())
def test_declined_requests_have_their_ids_fields_and_kinds(name: str, letters: str) -> None:
    entries = read_list(name)
    assert [entry["id"] for entry in entries] == [f"{letters}{number:03}" for number in range(1, 151)]
    assert {entry["kind"] for entry in entries} == {"fact", "language", "inexact", "other", "tools"}
    assert all(set(entry) == {"id", "kind", "offered", "prompt"} and entry["prompt"].strip() for entry in entries)


@pytest.mark.parametrize("name", DECLINED_LISTS)
def test_tools_are_offered_exactly_with_the_kind_tools(name: str) -> None:
    described = json.loads((FOLDER / f"{name.removesuffix('_declined')}_tools.json").read_text(encoding="utf-8"))
    names = {tool["name"] for tool in described["tools"]} | {"calculator"}
    for entry in read_list(name):
        offered = entry["offered"]
        assert bool(offered) == (entry["kind"] == "tools"), entry["id"]
        assert names.issuperset(offered), entry["id"]
        assert len(set(offered)) == len(offered) <= 8, entry["id"]


def test_no_request_stands_twice_in_the_lists() -> None:
    asked = [
        "\n".join(" ".join(prompt.lower().split()) for prompt in list_prompts(json.loads(line)))
        for path in sorted(FOLDER.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(set(asked)) == len(asked)
