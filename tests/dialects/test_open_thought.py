"""A call in reasoning is one where no closer follows it, in the families whose models forget it; else it is a draft."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read

from ferrule.conversation import MalformedCall, Reasoning, Text, ToolCall
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.toolspec import ToolSpec
from tables import each_case

TOOL = ToolSpec("f", "", {"properties": {"a": {"type": "string"}}})
CALL = ToolCall("call_1", "f", '{"a": "x"}')
NAMES = [
    name
    for name, family in load_families().items()
    if family.message.thinking and family.message.thinking.may_stay_open
]


def parts_of(name, text, *, stopped=True, opens=""):
    """The parts of a message, read alike whole, in pieces, and by the ids of its markers."""
    notation = get_notation(name)
    whole = read(notation.reader([TOOL], opens=opens), [text], stopped)
    check_spans(whole, text)
    for size in (1, 3, 7):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert joined(read(notation.reader([TOOL], opens=opens), pieces, stopped)) == joined(whole)
    return parts(whole)


def written(name):
    return get_notation(name).call(CALL, [TOOL])


def test_the_families_are_those_whose_servers_do_so():
    known = {"glm45", "glm47", "qwen3_coder", "hermes", "nemotron_v3", "mimo", "poolside_v1"}
    assert known <= set(NAMES)


@each_case("stopped", [False, True])
@each_case("name", NAMES)
def test_a_call_after_reasoning_that_nothing_closes_is_a_call(name, stopped):
    thinking = get_notation(name).family.message.thinking
    for opens, begun in (("", thinking.open), (thinking.open, "")):
        found = parts_of(name, f"{begun}Hm, so{written(name)}", stopped=stopped, opens=opens)
        assert [type(part) for part in found] == [Reasoning, ToolCall]
        assert (found[0].text, found[1].decode()) == ("Hm, so", {"a": "x"})


@each_case("name", NAMES)
def test_a_draft_in_closed_reasoning_is_reasoning(name):
    thinking = get_notation(name).family.message.thinking
    draft = f"Hm{written(name)} or not"
    [thought, *rest] = parts_of(name, f"{thinking.open}{draft}{thinking.close}Yes.{written(name)}")
    assert thought == Reasoning(draft)
    assert [type(part) for part in rest] == [Text, ToolCall]


@pytest.mark.parametrize("name", NAMES)
def test_the_end_of_a_turn_ends_the_reasoning_too(name):
    notation = get_notation(name)
    begun = f"{notation.family.message.thinking.open}Hm{written(name)}"
    for marker in notation.family.message.turn_markers:
        found = parts_of(name, f"{begun}{marker}", stopped=False)
        assert [type(part) for part in found] == [Reasoning, ToolCall]


@each_case("name", NAMES)
def test_a_draft_that_is_cut_off_is_no_call(name):
    text = f"{get_notation(name).family.message.thinking.open}Hm{written(name)} or rather"
    assert [type(part) for part in parts_of(name, text, stopped=False)] == [Reasoning]
    assert [type(part) for part in parts_of(name, text, stopped=True)] == [Reasoning, ToolCall, Text]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_is_cut_off_is_one_no_sooner_than_elsewhere(name):
    notation, text = get_notation(name), written(name)
    for end in range(len(text)):
        elsewhere = calls(read(notation.reader([TOOL]), [text[:end]], stopped=False))
        begun = f"{notation.family.message.thinking.open}Hm{text[:end]}"
        found = calls(read(notation.reader([TOOL]), [begun], stopped=False))
        assert found == elsewhere[: len(found)]


def test_what_cannot_be_read_there_is_answered():
    found = parts_of("hermes", "<think>\nHm\n<tool_call>\n{oops}\n</tool_call>")
    assert [type(part) for part in found] == [Reasoning, MalformedCall]


def test_calls_are_numbered_as_if_no_draft_had_been():
    draft = "<think>\nHm <tool_call>\n{oops}\n</tool_call>\n</think>\n\n"
    [_, call] = parts_of("hermes", draft + written("hermes"))
    assert call.id == "call_1"


def test_a_dialect_reads_it_as_its_notation_does():
    control = {"<think>", "<tool_call>", "</tool_call>"}
    body = json.dumps({"name": "f", "arguments": {"a": "x"}})
    pieces = ["<think>", "\nHm\n", "<tool_call>", f"\n{body}\n", "</tool_call>"]
    reader = get_dialect("hermes").reader([TOOL])
    events = [event for piece in pieces for event in reader.feed(piece, piece in control)] + reader.close(stopped=True)
    assert [type(part) for part in parts(events)] == [Reasoning, ToolCall]
