"""Recorded inputs of other engines' tests: what they pin is what we read, or the reason why not stands here."""

import json
from pathlib import Path

import pytest
from dialect_events import parts, read

from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors"

# Fields that are pinned upstream and are otherwise here, each on purpose.
OTHERWISE = {
    ("hermes-sglang-005", "content"): "a call that is not JSON is kept as a malformed call, not shown as the answer",
    ("hermes-llamacpp-L3352", "content"): "begins with a prefilled text, which a reader never sees",
    ("hermes-llamacpp-L6114", "content"): "begins with a prefilled text, which a reader never sees",
}
OPENS = {"hermes-llamacpp-L3305": "<think>\n"}
PREFILLED = "Hello, "


def vectors(name):
    path = VECTORS / name
    if not path.exists():
        pytest.skip("../shared/vectors is missing")
    return json.loads(path.read_text(encoding="utf-8"))


def compare(vector, found, asserted):
    """Compare the asserted fields of a vector with what was read, stripped where engines disagree on white space."""
    calls = [part for part in found if isinstance(part, ToolCall)]
    expected = vector["expected_calls"]
    if "drop" in asserted:
        assert len(calls) == len(expected)
    if "name" in asserted:
        assert [call.name for call in calls] == [call["name"] for call in expected]
    for ours, theirs in zip(calls, expected, strict="drop" in asserted):
        if "argval" in asserted:
            decoded = ours.decode()
            assert {key: decoded.get(key) for key in theirs["arguments"]} == theirs["arguments"]
        if "args" in asserted:
            assert set(ours.decode()) == set(theirs["arguments"])
    text = "".join(part.text for part in found if isinstance(part, Text))
    if "content" in asserted:
        assert text.strip() == (vector["expected_content"] or "").strip()
    if "reasoning" in asserted:
        reasoning = "".join(part.text for part in found if isinstance(part, Reasoning))
        assert reasoning.strip() == (vector.get("expected_reasoning") or "").strip()
    return text


def test_what_other_engines_pin_holds():
    used = set()
    for vector in vectors("parse/hermes.json"):
        reader = get_dialect("hermes").reader(opens=OPENS.get(vector["id"], ""))
        skipped = {field for field in vector["asserted"] if (vector["id"], field) in OTHERWISE}
        used |= {(vector["id"], field) for field in skipped}
        text = compare(vector, parts(read(reader, [vector["text"]])), set(vector["asserted"]) - skipped)
        if vector.get("options", {}).get("continue_final_message"):
            assert PREFILLED + text == vector["expected_content"]
    assert used == set(OTHERWISE)


def test_recorded_streams_give_the_same_at_any_chunking():
    for vector in vectors("streamed/hermes.json"):
        for chunks in (vector["chunks"], list(vector["text"])):
            found = parts(read(get_dialect("hermes").reader(), chunks))
            compare(vector, found, {"drop", "name", "argval", "args", "content"})


@pytest.mark.parametrize("template", ["Qwen-Qwen3-0.6B", "MiMo-VL"])
def test_tool_turns_are_written_as_the_template_writes_them(template):
    expected = vectors("render/tool_turns.json")[template]["n2r"]["text"]
    calls = (
        ToolCall("call_1", "get_weather", '{"city": "Paris", "days": 2}'),
        ToolCall("call_2", "get_weather", '{"city": "Rome", "days": 1}'),
    )
    thought = [Reasoning("THOUGHT")] if "THOUGHT" in expected else []
    conversation = Conversation(
        (
            user("Weather?"),
            assistant(*thought, *calls),
            tool_message(ToolResult("call_1", "get_weather", (Text('{"t": 21}'),))),
            tool_message(ToolResult("call_2", "get_weather", (Text('{"t": 25}'),))),
        )
    )
    layout = get_dialect("hermes").layout(conversation)
    text = "".join(segment.text for segment in layout.with_prompt)
    assert text.removeprefix("<|im_start|>user\nWeather?") == expected
