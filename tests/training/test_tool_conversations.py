"""Conversations with foreign tools: seeded, their calls valid, their texts copied, their replies from the results."""

import datetime
import itertools
import json
import keyword
import random
import re

import jsonschema
import pytest

from ferrule import Policy, model, tool
from ferrule._util.word_lists import show_list
from ferrule.conversation import ToolCall
from ferrule.embedded.missing import split_name, write_question
from ferrule.formats.nanochat import dump, get_offered_tools, load, read_offered_tools
from ferrule.models.scripted import ScriptedModel
from ferrule.training.synth import EARLY, Example, Mix, draw_examples, to_json
from ferrule.training.synth.generator import load_shipped_grammar
from ferrule.training.synth.tool_use.inventing import ToolInventor
from ferrule.training.synth.tool_use.offer_drawing import OfferDrawer
from ferrule.training.synth.tool_use.tool_replies import (
    DECLINED,
    write_joint_reply,
    write_tool_reply,
)

TOOLS = Mix(tools=1.0)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return list(draw_examples(5, 400, mix=TOOLS))


def test_a_seed_draws_the_same_conversations(examples: list[Example]) -> None:
    assert list(draw_examples(5, 60, mix=TOOLS)) == examples[:60]
    assert list(draw_examples(6, 60, mix=TOOLS)) != examples[:60]


def test_the_mix_is_three_quarters_of_tools_by_length() -> None:
    drawn = list(draw_examples(3, 1500))
    with_tools = [example for example in drawn if example.tools is not None]
    share = sum(example.characters for example in with_tools) / sum(example.characters for example in drawn)
    assert 0.65 < share < 0.85
    assert all(example.characters <= Mix().most_tool_characters for example in with_tools)
    one_turn = sum(len(example.turns) == 1 for example in with_tools) / len(with_tools)
    assert 0.15 < one_turn < 0.4


def test_every_call_fits_the_schema_of_an_offered_tool(examples: list[Example]) -> None:
    seen = set()
    for example in examples:
        data = to_json(example)
        specs = {spec.name: spec for spec in read_offered_tools(data) or ()}
        conversation = load(data)
        assert dump(conversation) == data
        assert get_offered_tools(conversation) == list(specs.values())
        for message in conversation.messages:
            for call in message.calls:
                assert isinstance(call, ToolCall)
                arguments = call.decode()
                jsonschema.validate(arguments, dict(specs[call.name].parameters))
                seen |= {type(value) for value in arguments.values()}
    assert seen == {str, int, float, bool, list}


def test_what_keeps_its_default_is_left_out(examples: list[Example]) -> None:
    for example in examples:
        specs = {spec.name: spec for spec in read_offered_tools(to_json(example)) or ()}
        for message in load(to_json(example)).messages:
            for call in message.calls:
                assert isinstance(call, ToolCall)
                schema = specs[call.name].parameters
                for name, value in call.decode().items():
                    assert name in schema.get("required", ()) or value != schema["properties"][name].get("default")


def test_the_texts_of_a_call_are_copied_from_the_conversation(examples: list[Example]) -> None:
    copied = 0
    for example in examples:
        specs = {spec.name: spec for spec in read_offered_tools(to_json(example)) or ()}
        said = ""
        for message in load(to_json(example)).messages:
            said += message.text if message.role == "user" else ""
            for call in message.calls:
                assert isinstance(call, ToolCall)
                for name, value in call.decode().items():
                    schema = specs[call.name].parameters["properties"][name]
                    if call.name != "calculator" and isinstance(value, str) and "enum" not in schema:
                        copied += value in said
                        assert value in said or _is_set_by_words(value), (call, said)
    assert copied > 300


def _is_set_by_words(value: str) -> bool:
    """Whether a text may be what a template's words stand for, rather than a copy."""
    return re.fullmatch(r"[\w .:-]{1,30}", value) is not None


def test_small_talk_names_the_tools_that_are_offered(examples: list[Example]) -> None:
    said = set()
    for example in examples:
        for turn in example.turns:
            assert "arithmetic" not in turn.reply or turn.steps
            if turn.reply.startswith("I'm a small model"):
                names = [
                    "calculator" if t["name"] == "calculator" else split_name(t["name"]) for t in example.tools or ()
                ]
                assert turn.reply == f"I'm a small model inside ferrule. My tools: {show_list(names)}."
                said.add(turn.reply)
    assert said


def test_replies_are_made_of_the_results(examples: list[Example]) -> None:
    alone = joint = 0
    for offered, turn in ((one.tools or (), turn) for one in examples for turn in one.turns):
        names = {tool["name"] for tool in offered}
        foreign = [step for step in turn.steps if step.call.partition("(")[0] in names]
        if len(turn.steps) == 1 and foreign:
            assert turn.reply == write_tool_reply(turn.steps[0].output)
            alone += 1
        elif len(turn.steps) > 1 and foreign:
            joint += 1
            parts = [write_joint_reply([""], [step.output]) for step in turn.steps]
            assert re.fullmatch(" ".join(f"[^\n]+{re.escape(part)}" for part in parts), turn.reply)
    assert alone > 300
    assert joint > 30


def test_all_kinds_of_turns_occur(examples: list[Example]) -> None:
    kinds = set(itertools.chain.from_iterable(example.section.split("+") for example in examples))
    assert kinds == {"call", "two", "follow", "missing", "decline", "calculator", "chat", "withheld"}
    turns = [turn for example in examples for turn in example.turns]
    assert any(turn.reply == DECLINED for turn in turns)
    withheld = [turn for turn in turns if not turn.is_trained]
    assert withheld
    assert all(turn.reply.startswith("I'm not sure. Should I call ") and not turn.steps for turn in withheld)


@pytest.mark.parametrize("seed", [164_830, 218_466])
def test_a_made_up_noun_is_no_keyword_of_python(seed: int) -> None:
    """Of these seeds the first words are `del` and `for`."""
    assert not keyword.iskeyword(ToolInventor().invent(random.Random(seed)).domain)


def test_early_conversations_have_one_turn() -> None:
    assert all(len(example.turns) == 1 for example in draw_examples(1, 200, mix=EARLY))


@pytest.mark.parametrize(
    ("result", "reply"),
    [
        ("18", "The result is 18."),
        ("true", "The result is true."),
        ("Sunny, 20 degrees.", "Sunny, 20 degrees."),
        ("event created", "event created"),
        ('{"temperature": 18.50, "sky_now": "light rain"}', "temperature: 18.50, sky now: light rain."),
        ('{"ok": true, "owner": null, "tags": ["a", "b", "c"]}', "ok: yes, owner: none, tags: a, b and c."),
        ('{"wind": {"speed": 4, "from": "N"}}', "wind: (speed: 4, from: N)."),
        ('["Paris", "Rome"]', "Paris and Rome."),
        (
            '[{"name": "Foo", "price": 3}, {"name": "Bar", "price": 4}]',
            "1) name: Foo, price: 3; 2) name: Bar, price: 4.",
        ),
        ("[]", "Nothing was found."),
        ("{}", "Nothing was found."),
        ("", "Nothing was found."),
        ("error: no such place: Paris", "That didn't work: no such place: Paris."),
        (
            "error: denied: this call needs approval, and nobody can be asked (the profile ask asks before f)",
            "That didn't work: denied: this call needs approval, and nobody can be asked.",
        ),
        (
            'error: Wrong arguments:\n- at: got the string "x"; expected a time\n- b: got nothing; expected a text',
            'That didn\'t work: at: got the string "x"; expected a time.',
        ),
        ('ok\n[the user changed the arguments before the call was run; a: "1" → "2"]', "The result is ok."),
        ("[]\n[the user allowed this call and says: go on]", "Nothing was found."),
        ("First line\n" + "x" * 300, "First line … (the result goes on)"),
        ("One sentence. " + "Another one. " * 30, "One sentence. … (the result goes on)"),
        (str(["item"] * 60).replace("'", '"'), "item … (the result goes on)"),
    ],
)
def test_a_result_decides_its_reply(result: str, reply: str) -> None:
    assert write_tool_reply(result) == reply


def test_the_errors_of_ferrule_itself_are_in_the_training_data(examples: list[Example]) -> None:
    @tool
    def set_alarm(at: datetime.time) -> str:
        """Sets an alarm."""
        raise ValueError(f"no {at}")

    def fail(at: str, policy: Policy | None = None) -> str:
        asked = ToolCall("call_1", "set_alarm", json.dumps({"at": at}))
        run = model(ScriptedModel(asked, "Done.")).using(set_alarm, policy=policy).chat("Wake me.").run_sync()
        return next(message.result.text for message in run.conversation.messages if message.role == "tool")

    drawn = [step.output for example in examples for turn in example.turns for step in turn.steps]
    for text, form in (
        (
            fail("07:30:00", Policy(profile="ask")),
            r"error: denied: this call needs approval, and nobody can be asked \(",
        ),
        (fail("x"), r"error: Wrong arguments:\n- \w+: got the string .*; expected "),
        (fail("07:30:00"), r"error: \w+Error: "),
    ):
        assert re.match(form, text)
        assert any(re.match(form, output) for output in drawn)


def test_several_results_are_told_apart_by_their_labels() -> None:
    assert (
        write_joint_reply(["Paris", "Oslo"], ["18", "error: timeout"]) == "Paris: 18. Oslo: That didn't work: timeout."
    )


def test_the_question_for_what_is_missing_names_it() -> None:
    assert write_question(["city"]) == "Which city?"
    assert write_question(["cityName", "due_date"]) == "Which city name and due date?"


def test_held_out_texts_are_never_drawn_in_training() -> None:
    def list_texts(held_out: bool) -> set[str]:
        found = set()
        for example in draw_examples(2, 250, mix=TOOLS, held_out=held_out):
            for turn in example.turns:
                for step in turn.steps:
                    found |= set(re.findall(r'="([^"]{9,})"', step.call))
        return found

    training, evaluation = list_texts(held_out=False), list_texts(held_out=True)
    assert len(evaluation) > 50
    assert len(training & evaluation) < 0.1 * len(evaluation)


def test_what_a_sibling_of_an_offered_tool_could_do_is_declined_at_times() -> None:
    templates = load_shipped_grammar().tools
    drawer = OfferDrawer(templates, ToolInventor())
    rng, found = random.Random(4), 0
    for _ in range(200):
        offer = drawer.draw_offer(rng, 3)
        sibling = drawer.draw_sibling(rng, offer)
        if sibling is not None:
            found += 1
            domains = {tool.template.domain for tool in offer.foreign}
            assert sibling.template.domain in domains
            assert all(sibling.template != tool.template for tool in offer.foreign)
    assert found > 60
