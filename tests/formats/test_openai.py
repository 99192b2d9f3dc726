"""OpenAI's messages read and written, tools' names and schemas as hosted models take them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.errors import ConversationError
from ferrule.formats import openai, openai_responses
from ferrule.formats.openai import ChatStyle, dump, load, make_nine_character_id, shorten_id, write_messages
from ferrule.formats.tool_offers import ToolNames, make_parameters_schema, make_strict_schema
from ferrule.toolspec import ToolSpec
from tables import each_case

PIXEL = "data:image/png;base64,iVBORw=="
BFCL = Path(__file__).parents[3] / "shared" / "vectors" / "bfcl"


def call(call_id: Any = "c1", name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def says(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def result(call_id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


FILE = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": "In French."},
    {"role": "user", "name": "Ann", "content": "Rain?"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Here:"},
            {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        ],
    },
    says(content=None, tool_calls=[call("a", arguments='{"x":  1}'), call("b")]),
    result("a", "one"),
    result("b", [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]),
    says(content="Yes.", reasoning_content="Hm."),
    says(content=None, refusal="I won't."),
]


def test_what_is_read_is_written_the_same() -> None:
    conversation = load({"messages": FILE, "tools": [], "model": "gpt"})
    assert dump(conversation) == (FILE, [])
    assert load(FILE).messages == conversation.messages
    assert conversation.messages[3].parts == (Text("Here:"), Image(b"\x89PNG", "image/png"))


@each_case(
    ("entry", "parts"),
    [
        (says(content=None, tool_calls=[call()]), (ToolCall("c1", "f", "{}"),)),
        (says(content="", tool_calls=[call()]), (ToolCall("c1", "f", "{}"),)),
        (says(tool_calls=[call(arguments={"x": "é"})]), (ToolCall("c1", "f", '{"x": "é"}'),)),
        (says(tool_calls=[call(arguments=None)]), (ToolCall("c1", "f", ""),)),
        (says(tool_calls=[call(None), call("")]), (ToolCall("call_1", "f", "{}"), ToolCall("call_2", "f", "{}"))),
        (says(tool_calls=[call("x"), call("x")]), (ToolCall("x", "f", "{}"), ToolCall("call_1", "f", "{}"))),
        (says(function_call={"name": "f", "arguments": "{}"}), (ToolCall("call_1", "f", "{}"),)),
        (says(content="a", reasoning="Hm."), (Reasoning("Hm."), Text("a"))),
        (says(content=[{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]), (Text("a"), Text("b"))),
        (
            says(content=[{"type": "thinking", "thinking": [{"text": "Hm."}]}, {"type": "text", "text": "a"}]),
            (Reasoning("Hm."), Text("a")),
        ),
        (says(content=""), ()),
        (says(content=None, tool_calls=None, function_call=None, refusal=None, audio=None), ()),
    ],
)  # fmt: skip
def test_an_assistants_message_in_all_its_shapes(entry: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert load([entry]).messages[0].parts == parts


def test_legacy_results_answer_by_name_and_results_come_into_call_order() -> None:
    legacy = [
        says(function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "one"},
        says(tool_calls=[call("a"), call("b"), call("a")]),
        result("b", "2"),
        result("a", "1"),
        result("a", "3"),
    ]
    results = [m.result for m in load(legacy).messages if m.role == "tool"]
    assert [(one.call_id, one.text) for one in results] == [("call_1", "one"), ("a", "1"), ("b", "2"), ("call_2", "3")]


@each_case(
    ("entries", "words"),
    [
        ("hello", r"a list of messages, or an object"),
        ({"prompt": "?"}, r'an object with a list "messages"'),
        (["hello"], r"message 0 must be an object"),
        ([{"role": "critic", "content": ""}], r"message 0: the role must be system, .*not 'critic'"),
        ([{"role": "user"}], r"message 0 \(user\): the content must be a text or a list of parts"),
        ([{"role": "user", "content": 7}], r"message 0 \(user\): the content must be"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], r"part 0: a part of type 'input_audio' can't be"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}],
            r"message 0 \(user\), part 0: the image at 'https://x/y.png' is not fetched; load it and give it as data:",
        ),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}]}],
            r"in base64",
        ),
        (
            [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}],
            r"message 0 \(system\): only a user can show an image",
        ),
        ([result()], r"message 0 \(tool\): the result for 'c1' answers no open call; remove it, or fix its tool_call"),
        ([says(tool_calls=[call()]), result(), result()], r"message 2 \(tool\): the result for 'c1' answers no open"),
        ([{"role": "tool", "content": ""}], r"message 0 \(tool\): a result needs the tool_call_id"),
        ([says(tool_calls=[call()]), says(content="?")], r"message 1 \(assistant\): the call 'c1' before it has no"),
        ([says(tool_calls=[{"type": "custom", "custom": {}}])], r"call 0: a call of type 'custom' can't be held"),
        ([says(tool_calls=["f"])], r"message 0 \(assistant\), call 0: a call is an object"),
        ([says(tool_calls={"id": "x"})], r"message 0 \(assistant\): tool_calls must be a list"),
        ([says(tool_calls=[call(7)])], r"the id must be a text, not 7"),
        ([says(audio={"id": "x"})], r"audio can't be held; replace it by its transcript"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_named_with_its_place_and_cure(entries: Any, words: str) -> None:
    with pytest.raises(ConversationError, match=words):
        load(entries)


def test_what_has_no_place_is_a_loss() -> None:
    image = Image(b"png")
    conversation = Conversation(
        (
            user("?"),
            Message(
                "assistant", (ToolCall("a", "f", "{}", source="<f>"), Text("b"), MalformedCall("m", "f(", "truncated"))
            ),
            tool_message(ToolResult("a", "f", (Text("see"), image), "timeout")),
            tool_message(ToolResult("m", "", (Text("unreadable"),), "invalid")),
            Message("assistant", (Text("c"),), None, {"anthropic": []}),
        )
    )
    messages, losses = dump(conversation)
    load(messages)
    assert sorted({loss.kind for loss in losses}) == ["call", "extra", "status", "text"]
    assert "f(" in str(messages[1]["content"])
    assert messages[3]["content"][-1] == {"type": "text", "text": "unreadable"}
    assert messages[3]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_the_messages_of_a_beginning_are_the_beginning_of_the_messages() -> None:
    conversation = load(FILE)
    for style in (ChatStyle(), ChatStyle(reasoning=None, ids="nine", json_arguments=True, text_lists=False)):
        whole, _ = write_messages(conversation, style)
        for length in range(len(conversation) + 1):
            assert write_messages(Conversation(conversation.messages[:length]), style)[0] == whole[:length]
    items, _ = openai_responses.write_items(conversation)
    assert openai_responses.write_items(Conversation(conversation.messages[:5]))[0] == items[: 4 + 2]


def test_what_was_not_adapted_is_refused() -> None:
    for message in (
        assistant(MalformedCall("m", "f(", "truncated")),
        tool_message(ToolResult("a", "f", (Image(b"png"),))),
        Message("user", (ToolCall("a", "f", "{}"),)),
    ):
        with pytest.raises(ConversationError):
            write_messages(Conversation((message,)))
    with pytest.raises(ConversationError):
        openai_responses.write_items(Conversation((assistant(MalformedCall("m", "f(", "truncated")),)))


texts = st.text(max_size=8)
said = st.text(min_size=1, max_size=8)
images = st.builds(Image, st.binary(min_size=1, max_size=4), st.sampled_from(["image/png", "image/jpeg"]))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Conversations of what the format can say."""
    messages: list[Message] = []
    number = 0
    for role in draw(st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=6)):
        if role == "system":
            messages.append(system(draw(texts)))
        elif role == "user":
            messages.append(user(*draw(st.lists(texts | images, min_size=1, max_size=3))))
        else:
            thought = [Reasoning(one) for one in draw(st.lists(said, max_size=1))]
            words = [Text(one) for one in draw(st.lists(said, max_size=2))]
            made = [ToolCall(f"id{number + at}", draw(said), draw(texts)) for at in range(draw(st.integers(0, 2)))]
            number += len(made)
            messages.append(Message("assistant", (*thought, *words, *made)))
            for one in made:
                content = tuple(Text(text) for text in draw(st.lists(texts, min_size=1, max_size=2)))
                messages.append(tool_message(ToolResult(one.id, one.name, content)))
    return Conversation(tuple(messages))


@given(conversations())
def test_any_conversation_comes_back(conversation: Conversation) -> None:
    messages, losses = dump(conversation)
    assert load(json.loads(json.dumps(messages)), now=conversation.now) == conversation
    assert losses == []


def specs(*names: str) -> list[ToolSpec]:
    return [ToolSpec(name, "", {}) for name in names]


@given(st.lists(st.text(max_size=70) | st.sampled_from(["a.b", "a_b", "a b", "a-b"]), max_size=8), st.text(max_size=5))
def test_names_go_there_and_back_and_never_collide(names: list[str], gone: str) -> None:
    mapped = ToolNames(specs(*names))
    wires = {mapped.encode(name) for name in names}
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", mapped.encode(name)) for name in [*names, gone])
    assert all(mapped.decode(mapped.encode(name)) == name for name in names)
    assert len(wires) == len(set(names))
    assert gone in names or mapped.encode(gone) not in wires
    assert [ToolNames(specs(*reversed(names))).encode(name) for name in names] == [
        mapped.encode(name) for name in names
    ]


def test_names_that_are_allowed_stay() -> None:
    names = ToolNames(specs("get_weather", "math.add"))
    assert names.encode("get_weather") == "get_weather"
    assert (names.encode("math.add"), names.decode("math_add")) == ("math_add", "math.add")
    assert names.decode("made_up") == "made_up"
    assert ToolNames(specs("math.add", "math_add")).encode("math.add").startswith("math_add_")


@given(st.text(), st.text())
def test_ids_are_what_providers_take(first: str, second: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]{9}", make_nine_character_id(first))
    assert len(shorten_id(first * 9)) <= 40
    assert (make_nine_character_id(first) == make_nine_character_id(second)) == (first == second)


@pytest.mark.parametrize(
    ("given_schema", "fitted"),
    [
        ({"type": "float"}, {"type": "number"}),
        ({"type": "any"}, {}),
        ({"type": "tuple"}, {"type": "array", "items": {}}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "int", "required": True}, {"type": "integer"}),
        ({"anyOf": [{"type": "str"}, True]}, {"anyOf": [{"type": "string"}, True]}),
        ({"type": "dict", "properties": {"y": {"type": "list"}}}, None),
        ("nonsense", {}),
    ],
)
def test_parameters_become_schemas_of_objects(given_schema: Any, fitted: dict[str, Any] | None) -> None:
    if fitted is None:
        fitted = {"type": "object", "properties": {"y": {"type": "array", "items": {}}}}
    schema = make_parameters_schema({"type": "dict", "properties": {"x": given_schema}})
    assert schema == {"type": "object", "properties": {"x": fitted}}
    jsonschema.Draft202012Validator.check_schema(schema)
    assert make_parameters_schema(schema) == schema
    assert make_parameters_schema({}) == {"type": "object", "properties": {}}


# Accepted answers that are not what their own documents ask for.
WRONG_ANSWERS = {
    "simple_python_307": "a boolean for a venue's name",
    "live_simple_71-35-0": "a metric that is not on the list",
    "live_simple_106-63-0": "parameters are left out that are required",
    "live_simple_112-68-0": "parameters are left out that are required",
    "parallel_152": "null for a number",
}


@pytest.mark.skipif(not BFCL.is_dir(), reason="../shared/vectors is missing")
@pytest.mark.parametrize("name", ["simple_python", "live_simple", "parallel"])
def test_every_document_of_bfcl_becomes_an_offer_and_its_answers_fit(name: str) -> None:
    answers = {entry["id"]: entry["ground_truth"] for entry in _lines(f"{name}.answers.jsonl")}
    wrong = set()
    for entry in _lines(f"{name}.jsonl"):
        made = [ToolSpec(one["name"], one["description"], one["parameters"]) for one in entry["function"]]
        names = ToolNames(made)
        offers = {names.decode(one["function"]["name"]): one["function"] for one in openai.write_offers(made, names)}
        assert list(offers) == [spec.name for spec in made]
        for offer in offers.values():
            jsonschema.Draft202012Validator.check_schema(offer["parameters"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", offer["name"])
        for tool_name, accepted in ((key, value) for answer in answers[entry["id"]] for key, value in answer.items()):
            if not _fits(accepted, offers[tool_name]["parameters"]):
                wrong.add(entry["id"])
    assert wrong == {identifier for identifier in WRONG_ANSWERS if identifier.startswith(name)}


def _fits(accepted: Any, schema: dict[str, Any]) -> bool:
    """Whether arguments fit a schema. A default that the document itself gives does, whatever its type."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(_first_of(accepted, schema))
    return all(error.schema.get("default", error) == error.instance for error in errors)


def _first_of(accepted: Any, schema: dict[str, Any]) -> Any:
    """The first of the values that are accepted, of a field and of those in it; `""` stands for leaving it out."""
    if isinstance(accepted, list) and schema.get("type") != "array":
        return _first_of(next((one for one in accepted if one != ""), ""), schema)
    if isinstance(accepted, dict) and schema.get("type") == "object":
        fields, required = schema.get("properties", {}), schema.get("required", ())
        chosen = {}
        for field, values in accepted.items():
            alternatives = values if isinstance(values, list) else [values]
            if alternatives:
                first = next((one for one in alternatives if one != ""), "")
                chosen[field] = _first_of(first, fields.get(field, {}))
        return {field: value for field, value in chosen.items() if value != "" or field in required}
    if isinstance(accepted, list):
        return [_first_of(one, schema.get("items", {})) for one in accepted]
    return accepted


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BFCL / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {}},
        {"type": "object", "properties": {"x": {"type": "object"}}},
        {"type": "object", "properties": {"x": {"oneOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"x": {"type": "array", "items": True}}},
        {"type": "object", "properties": {"x": {"anyOf": [{"type": "string", "minLength": 2}]}}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"allOf": []}}},
    ],
)
def test_schemas_that_have_no_strict_form(schema: dict[str, Any]) -> None:
    assert make_strict_schema(schema) is None


def test_the_strict_form_only_narrows() -> None:
    schema = {
        "type": "object",
        "properties": {
            "x": {"$ref": "#/$defs/y", "description": "a y"},
            "z": {"type": "array", "items": {"enum": [1]}},
        },
        "$defs": {"y": {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}}},
    }
    strict = make_strict_schema(schema)
    assert strict is not None
    assert strict["required"] == ["x", "z"]
    assert strict["properties"]["x"] == {"$ref": "#/$defs/y"}
    assert strict["$defs"]["y"]["additionalProperties"] is False
    fits = {"x": {"a": None}, "z": [1]}
    jsonschema.validate(fits, strict)
    jsonschema.validate(fits, schema)
