"""What stands in a file beside its messages: offered, refused by its name, or said to be left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferrule.errors import ConversationError
from ferrule.formats.detection import list_left_out_fields
from ferrule.formats.tool_offers import read_offers
from ferrule.toolspec import ToolSpec
from tables import each_case

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = ToolSpec("weather", "The weather.", SCHEMA)
PLAIN = {"name": "weather", "description": "The weather."}


@each_case(
    "outer",
    [
        {"tools": [{"type": "function", "function": {**PLAIN, "parameters": SCHEMA}}]},
        {"tools": [{"type": "function", **PLAIN, "parameters": SCHEMA}]},
        {"tools": [{**PLAIN, "input_schema": SCHEMA}]},
        {"tools": [{**PLAIN, "inputSchema": SCHEMA}]},
        {"functions": [{**PLAIN, "parameters": SCHEMA}]},
        {"tools": json.dumps([{"type": "function", "function": {**PLAIN, "parameters": SCHEMA}}])},
        {"conversations": [], "tools": json.dumps([{**PLAIN, "parameters": SCHEMA}])},
        {"messages": [{"role": "system", "content": "", "tools": [{**PLAIN, "parameters": SCHEMA}]}]},
        {"messages": [{"role": "system", "functions": json.dumps([{**PLAIN, "parameters": SCHEMA}])}]},
        [{"role": "system", "content": "", "tools": [{**PLAIN, "parameters": SCHEMA}]}],
        {"tools": [{**PLAIN, "parameters": SCHEMA}], "functions": [{**PLAIN, "parameters": SCHEMA}]},
    ],
)
def test_tools_are_read_as_each_format_writes_them(outer: dict[str, Any]) -> None:
    assert read_offers(outer) == [WEATHER]


@pytest.mark.parametrize("data", [[], {}, {"tools": []}, {"tools": None}])
def test_a_file_without_tools_offers_none(data: Any) -> None:
    assert read_offers(data) == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"type": "web_search"},
            r"tools\[0\] is not a function, so it can't be offered here: its type is 'web_search'",
        ),
        ("weather", r"tools\[0\] is not a function"),
        ({"function": {"parameters": {}}}, r"tools\[0\] must have a name"),
    ],
)
def test_what_can_not_be_offered_is_refused_by_its_place(entry: Any, words: str) -> None:
    with pytest.raises(ConversationError, match=words):
        read_offers({"tools": [entry]})


def test_what_a_conversation_has_no_place_for_is_named() -> None:
    openai = {
        "model": "m",
        "tool_choice": "auto",
        "tools": [],
        "messages": [{"role": "user", "content": "", "weight": 0}],
    }
    assert list_left_out_fields(openai, "openai") == ["model", "tool_choice", "weight of message 0"]
    assert list_left_out_fields(openai["messages"], "openai") == ["weight of message 0"]
    misplaced = [{"role": "user", "content": "Hi.", "tool_calls": [{}], "function_call": None, "reasoning": "Hm."}]
    assert list_left_out_fields(misplaced, "openai") == ["tool_calls of message 0", "reasoning of message 0"]
    assert list_left_out_fields({"system": "", "max_tokens": 5, "messages": []}, "anthropic") == ["max_tokens"]
    assert list_left_out_fields({"input": "", "instructions": "", "store": False}, "openai-responses") == ["store"]
    assert list_left_out_fields({"messages": [], "source": "x"}, "nanochat") == []
    assert list_left_out_fields({"conversations": [], "system": "Be brief.", "tools": "[]"}, "ovis") == ["system"]
    assert list_left_out_fields({"messages": [{"role": "system", "content": "", "tools": []}]}, "openai") == []


def test_fields_of_messages_are_named_in_formats_that_keep_them() -> None:
    said = [{"role": "user", "content": ""}, {"role": "assistant", "content": "", "weight": 0, "thinking": "Hm."}]
    assert list_left_out_fields({"messages": said}, "nanochat") == ["weight of message 1", "thinking of message 1"]
    turns = [{"from": "human", "value": ""}, {"from": "gpt", "value": "", "train": False}]
    assert list_left_out_fields({"conversations": turns, "image": "a.png"}, "ovis") == ["train of message 1"]


@pytest.mark.parametrize("tools", ["[", "{}", {"f": {}}, 7])
def test_tools_that_are_no_list_are_refused(tools: Any) -> None:
    with pytest.raises(ConversationError, match='"tools" of message 0 must be a list of tools'):
        read_offers([{"role": "system", "tools": tools}])
