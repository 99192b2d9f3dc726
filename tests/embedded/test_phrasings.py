"""Checks that the two hand-written lists of requests are well formed.

What an assistant makes of the requests is measured elsewhere; here only the
lists themselves are read.
"""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "ferrule" / "embedded" / "phrasings"
LISTS = {"steering": "s", "final": "f"}
KINDS = {"symbols", "words", "percent", "count", "length", "reverse", "problem", "error", "chat", "refusal"}
ANSWERLESS = {"error", "chat", "refusal"}
PLAIN_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?")


def read_list(name: str) -> list[dict[str, str | None]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def squeezed(prompt: str | None) -> str:
    return " ".join((prompt or "").lower().split())


@pytest.mark.parametrize(("name", "letter"), LISTS.items())
def test_list_has_its_ids_fields_and_kinds(name: str, letter: str) -> None:
    entries = read_list(name)
    assert len(entries) >= 300
    numbers = [int(str(entry["id"]).removeprefix(letter)) for entry in entries]
    assert numbers == sorted(set(numbers))
    assert all(set(entry) == {"id", "kind", "prompt", "answer"} for entry in entries)
    assert all(squeezed(entry["prompt"]) for entry in entries)
    assert {entry["kind"] for entry in entries} == KINDS


def test_ids_and_prompts_are_unique_across_both_lists() -> None:
    entries = [entry for name in LISTS for entry in read_list(name)]
    assert len({entry["id"] for entry in entries}) == len(entries)
    assert len({squeezed(entry["prompt"]) for entry in entries}) == len(entries)


@pytest.mark.parametrize("name", LISTS)
def test_answers_are_present_exactly_for_the_computing_kinds(name: str) -> None:
    for entry in read_list(name):
        assert (entry["answer"] is None) == (entry["kind"] in ANSWERLESS), entry["id"]


@pytest.mark.parametrize("name", LISTS)
def test_answers_are_in_canonical_form(name: str) -> None:
    for entry in read_list(name):
        answer, prompt = entry["answer"], entry["prompt"]
        if answer is None:
            continue
        assert prompt is not None
        if entry["kind"] == "reverse":
            assert answer[::-1] in prompt, entry["id"]
        else:
            assert PLAIN_DECIMAL.fullmatch(answer), entry["id"]
            assert answer != "-0", entry["id"]
