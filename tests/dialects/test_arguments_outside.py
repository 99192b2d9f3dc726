"""An argument beside the name of a call, in JSON: the call would run without it, so it is none."""

import pytest

from ferrule.dialects.catalogue import get_notation
from ferrule.events import CallFinished, CallMalformed
from ferrule.toolspec import ToolSpec
from tables import each_case

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
WEATHER = ToolSpec("weather", "", SCHEMA)


@each_case(
    ("family", "text"),
    [
        ("hermes", '<tool_call>{"name": "weather", "city": "Paris"}</tool_call>'),
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}, "days": 3}</tool_call>'),
        ("granite", '<|tool_call|>[{"days": 3, "name": "weather", "arguments": {}}]'),
        ("mistral_v7", '[TOOL_CALLS] [{"name": "weather", "city": "Paris"}]'),
        ("glm47", '<tool_call>{"name": "weather", "city": "Paris"}</tool_call>'),
    ],
)
@each_case("repair", [True, False])
def test_a_call_with_an_argument_outside_of_its_arguments_is_malformed(family, text, repair):
    reader = get_notation(family).reader([WEATHER], repair=repair)
    events = [event for character in text for event in reader.feed(character)] + reader.close(stopped=True)
    assert not any(isinstance(event, CallFinished) for event in events)
    assert any(isinstance(event, CallMalformed) for event in events)


@pytest.mark.parametrize("beside", ['"type": "function"', '"thought": "Look it up."', '"index": 0'])
def test_what_is_no_argument_may_stand_beside_the_name(beside):
    reader = get_notation("hermes").reader([WEATHER])
    events = reader.feed(f'<tool_call>{{"name": "weather", {beside}, "arguments": {{"city": "Paris"}}}}</tool_call>')
    [finished] = [event for event in events if isinstance(event, CallFinished)]
    assert finished.call.decode() == {"city": "Paris"}
