"""Checks that the two hand-written lists of requests to foreign tools are well formed.

What the model makes of the requests is measured elsewhere; here only the lists
themselves are read.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ferrule.embedded.missing import write_question

FOLDER = Path(__file__).parents[2] / "src" / "ferrule" / "embedded" / "phrasings"
LISTS = {"open_tools": "ot", "held_out_tools": "ht"}
KINDS = {"one", "default", "typed", "several", "json", "error", "missing", "turns"}
Entry = dict[str, Any]


def read_tools(name: str) -> list[Entry]:
    tools: list[Entry] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["tools"]
    return tools


def read_requests(name: str) -> list[Entry]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def prompts(entry: Entry) -> str:
    return "\n".join(entry.get("prompts") or [entry["prompt"]])


def alternatives(entry: Entry) -> list[Entry]:
    """All calls of an entry, those of its other right answers included."""
    return [call for calls in [entry["calls"], *entry.get("accept", [])] for call in calls]


def copied_texts(schema: Entry, value: object) -> list[str]:
    """The strings in a value that its schema doesn't list: these must have been copied from the question."""
    values = value if isinstance(value, list) else [value]
    listed = "enum" in schema or "enum" in schema.get("items", {})
    return [] if listed else [text for text in values if isinstance(text, str)]


@pytest.mark.parametrize("name", LISTS)
def test_tools_are_enough_and_have_valid_schemas(name: str) -> None:
    tools = read_tools(name)
    assert len(tools) >= 60
    assert len({tool["name"] for tool in tools}) == len(tools)
    assert len({tool["domain"] for tool in tools}) == 20
    for tool in tools:
        Draft202012Validator.check_schema(tool["parameters"])
        for schema in tool["parameters"]["properties"].values():
            if "default" in schema:
                Draft202012Validator(schema).validate(schema["default"])


@pytest.mark.parametrize(("name", "letters"), LISTS.items())
def test_requests_have_their_ids_and_kinds(name: str, letters: str) -> None:
    entries = read_requests(name)
    assert [entry["id"] for entry in entries] == [f"{letters}{number:03d}" for number in range(1, 301)]
    assert {entry["kind"] for entry in entries} == KINDS


@pytest.mark.parametrize("name", LISTS)
def test_offers_and_calls_name_tools_of_the_list(name: str) -> None:
    names = {tool["name"] for tool in read_tools(name)}
    for entry in read_requests(name):
        offered = entry["offered"]
        assert 1 <= len(offered) == len(set(offered)) <= 8, entry["id"]
        assert set(offered) <= names, entry["id"]
        assert {call["name"] for call in alternatives(entry)} <= set(offered), entry["id"]


@pytest.mark.parametrize("name", LISTS)
def test_calls_fit_the_schemas_and_copy_their_texts(name: str) -> None:
    schemas = {tool["name"]: tool["parameters"] for tool in read_tools(name)}
    for entry in read_requests(name):
        for call in alternatives(entry):
            schema = {**schemas[call["name"]], "additionalProperties": False}
            Draft202012Validator(schema).validate(call["arguments"])
            for key, value in call["arguments"].items():
                parameter = schema["properties"][key]
                assert parameter.get("default") != value, (entry["id"], key)
                for text in copied_texts(parameter, value):
                    assert text in prompts(entry), (entry["id"], key)


@pytest.mark.parametrize("name", LISTS)
def test_each_call_has_a_result_and_each_request_words_of_its_reply(name: str) -> None:
    for entry in read_requests(name):
        assert len(entry["results"]) == len(entry["calls"]), entry["id"]
        assert (entry["kind"] == "missing") == (not entry["calls"]), entry["id"]
        assert entry["says"], entry["id"]
        assert ("prompts" in entry) == (entry["kind"] == "turns"), entry["id"]


@pytest.mark.parametrize("name", LISTS)
def test_what_is_missing_is_a_required_argument_of_an_offered_tool(name: str) -> None:
    required = {tool["name"]: tool["parameters"].get("required", []) for tool in read_tools(name)}
    for entry in read_requests(name):
        if entry["kind"] == "missing":
            questions = [write_question(required[tool]).lower() for tool in entry["offered"] if required[tool]]
            assert any(all(said.lower() in asked for said in entry["says"]) for asked in questions), entry["id"]


def test_the_lists_share_no_tool_domain_or_prompt() -> None:
    tools = [tool for name in LISTS for tool in read_tools(name)]
    assert len({tool["name"].lower() for tool in tools}) == len(tools)
    assert len({tool["domain"] for tool in tools}) == 40
    asked = [" ".join(prompts(entry).lower().split()) for name in LISTS for entry in read_requests(name)]
    assert len(set(asked)) == len(asked)
