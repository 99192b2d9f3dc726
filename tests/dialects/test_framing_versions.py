"""Versions of one family's framing: without reasoning, older and newer ones, and how each writes values."""

import json

import pytest
from dialect_events import calls, parts, read

from ferrule.conversation import (
    Conversation,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.framing.dialect import FramedDialect
from ferrule.toolspec import ToolSpec
from tables import each_case

CALL = ToolCall("1", "look_up", '{"text": "a"}')
RESULT = tool_message(ToolResult("1", "look_up", (Text("b"),)))
WITHOUT_REASONING = sorted(name for f in load_families().values() for name, turns in f.other_turns if not turns.reasons)


def framed(name):
    family = next(f for f in load_families().values() if name == f.name or name in dict(f.other_turns))
    return FramedDialect(family, name)


def lay_out(name, *messages):
    return framed(name).layout(Conversation(messages))


def trained_text(layout):
    return "".join(segment.text for segment in layout.segments if segment.trained)


@each_case(
    ("name", "thinks", "prompt", "answer"),
    [
        ("glm47", "<think>", "<|assistant|></think>", "So."),
        ("spark", "<think>", "<|Bot|></think>", "So."),
        ("poolside_v1", "<think>", "<assistant>\n</think>", "\nSo."),
        ("nemotron_v3", "<think>\n", "assistant\n<think></think>", "So."),
        ("nemotron_v3_ultra", "<think>\n", "assistant\n<think></think>", "So."),
        ("minimax_m2", "<think>\n", "]~b]ai\n", "So."),
        ("minicpm5", "", "assistant\n<think>\n\n</think>\n\n", "So."),
        ("qwen35", "<think>\n", "assistant\n<think>\n\n</think>\n\n", "So."),
        ("deepseek_v4", "<think>", "<｜Assistant｜></think>", "So."),
        ("deepseek_v41", "<think>", "<｜Assistant｜></think>", "So."),
    ],
)
def test_turns_without_reasoning_end_it_in_the_prompt(name, thinks, prompt, answer):
    assert lay_out(name, user("?")).prompt[-1].text.endswith(thinks)
    layout = lay_out(f"{name}_nothink", user("?"), assistant("So."), user("!"))
    assert layout.prompt[-1].text.endswith(prompt)
    assert trained_text(layout).startswith(answer)
    assert not layout.losses


def test_all_turns_without_reasoning_are_named_alike():
    assert WITHOUT_REASONING
    assert all(name.endswith("_nothink") for name in WITHOUT_REASONING)


@each_case("name", WITHOUT_REASONING)
def test_reasoning_has_no_place_there_and_is_reported(name):
    dialect = framed(name)
    assert not dialect.capabilities.reasoning
    messages = (user("?"), assistant(Reasoning("Hm."), CALL), RESULT, assistant(Reasoning("Hm."), "So."))
    layout = dialect.layout(Conversation(messages))
    assert "Hm." not in layout.text
    assert [loss.kind for loss in layout.losses] == ["reasoning", "reasoning"]
    assert layout.losses[0].detail == f"{name} has no place for it"
    plain = (user("?"), assistant(CALL), RESULT, assistant("So."))
    assert layout.text == dialect.layout(Conversation(plain)).text


@each_case("name", WITHOUT_REASONING)
def test_what_is_written_there_is_read_after_its_prompt(name):
    dialect = framed(name)
    for said in (("So.",), (CALL,), ("So:", CALL)):
        message = assistant(*said)
        layout = dialect.layout(Conversation((user("?"), message)))
        prompt = dialect.layout(Conversation((user("?"),))).prompt[-1].text
        written = trained_text(layout).removesuffix(dialect.turns.calls_end or "").removesuffix(dialect.turns.end)
        events = read(dialect.reader(opens=prompt), written)
        found = [part.text if isinstance(part, Text) else part.decode() for part in parts(events)]
        assert found == [part if isinstance(part, str) else part.decode() for part in said]


def test_white_space_after_a_closer_that_the_prompt_wrote_is_not_text():
    for opens, text in (("<assistant>\n</think>", "\nSo."), ("<assistant>\n", "\nSo."), ("", "<think>a</think>\nSo.")):
        found = [p for p in parts(read(get_notation("poolside_v1").reader(opens=opens), text)) if isinstance(p, Text)]
        assert found == [Text("\nSo." if opens == "<assistant>\n" else "So.")]


def test_minicpm_5_leaves_it_to_the_model_whether_to_reason():
    assert trained_text(lay_out("minicpm5", user("?"), assistant("So."))) == "So.<|im_end|>"
    thought = lay_out("minicpm5", user("?"), assistant(Reasoning("Hm."), "So."))
    assert trained_text(thought) == "<think>\nHm.\n</think>\n\nSo.<|im_end|>"


def test_a_message_of_gigachat_3_ends_in_what_stops_the_model():
    dialect = get_dialect("gigachat3")
    assert dialect.stops == ("</s>",)
    for said in ("So.", CALL):
        layout = lay_out("gigachat3", user("?"), assistant(said))
        assert trained_text(layout).endswith("<|message_sep|></s>")
    both = trained_text(lay_out("gigachat3", user("?"), assistant("So:", CALL)))
    assert both.count("</s>") == 1, "its text is followed by the call in the same turn"


def test_a_call_of_gpt_oss_has_its_recipient_before_the_channel_or_after_it():
    before = '<|start|>assistant to=functions.look_up<|channel|>commentary json<|message|>{"text": "a"}<|call|>'
    after = (
        '<|start|>assistant<|channel|>commentary to=functions.look_up <|constrain|>json<|message|>{"text": "a"}<|call|>'
    )
    messages = (user("?"), assistant(CALL), RESULT)
    assert before in lay_out("gpt_oss", *messages).text
    assert after in lay_out("harmony", *messages).text
    result = "<|start|>functions.look_up to=assistant<|channel|>commentary<|message|>"
    assert lay_out("gpt_oss", *messages).text.endswith(f'{result}"b"<|end|>')
    assert lay_out("harmony", *messages).text.endswith(f"{result}b<|end|>")
    for name in ("gpt_oss", "harmony"):
        for text in (before, after):
            events = read(get_dialect(name).reader(), text.removeprefix("<|start|>assistant"))
            assert [call.decode() for call in calls(events)] == [{"text": "a"}]


def test_the_turns_of_apriel_16():
    call = ToolCall("functions.look_up:0", "look_up", '{"text": "a"}')
    result = tool_message(ToolResult("functions.look_up:0", "look_up", (Text("b"),)))
    layout = lay_out("apriel16", user("?"), assistant(Reasoning("Hm."), call), result, assistant("So."))
    assert "".join(segment.text for segment in layout.with_prompt) == (
        "<s><|begin_user|>\n?\n<|begin_assistant|>\nHere are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\n\n"
        '<tool_calls>[{"name": "look_up", "arguments": {"text": "a"}, "id": "functions.look_up:0"}]</tool_calls>\n'
        "<|end|>\n<|begin_tool_result|>\nb\n\n\n\n<|begin_assistant|>\nHere are my reasoning steps:\n\n"
        "[BEGIN FINAL RESPONSE]\nSo.\n<|end|>\n<|begin_assistant|>\nHere are my reasoning steps:\n"
    )
    events = read(
        get_dialect("apriel16").reader(opens="Here are my reasoning steps:\n"), "Hm.\n[BEGIN FINAL RESPONSE]\nSo."
    )
    assert parts(events) == [Reasoning("Hm."), Text("So.")]


ARGUMENTS = {"flag": True, "items": ["a", None], "left": None, "count": 2}


@pytest.mark.parametrize(
    ("name", "flag", "items"),
    [
        ("qwen3_coder", "True", '["a", null]'),
        ("step3p5", "True", '["a", null]'),
        ("nemotron_v3", "True", '["a", null]'),
        ("qwen35", "true", '["a", null]'),
        ("seed_oss", "True", "['a', None]"),
        ("minicpm5", "True", "['a', None]"),
    ],
)
def test_values_are_written_as_the_models_template_writes_them(name, flag, items):
    written = get_notation(name).call(ToolCall("1", "f", json.dumps(ARGUMENTS)))
    read_back = [call.decode() for call in calls(read(get_notation(name).reader(), written))]
    values = ("".join(written.split())).replace('"', "'")
    for value in (flag, items, "null", "2"):
        assert "".join(value.split()).replace('"', "'") in values
    assert read_back[0].keys() == ARGUMENTS.keys()


@pytest.mark.parametrize("name", ["qwen3_coder", "seed_oss", "minicpm5"])
def test_values_that_python_could_not_express_are_written_in_json(name):
    spec = ToolSpec("f", "", {"type": "object", "properties": {"flag": {"type": ["boolean", "string"]}, "any": {}}})
    arguments = {"flag": True, "any": {"a": [True, None]}}
    notation = get_notation(name)
    written = notation.call(ToolCall("1", "f", json.dumps(arguments)), [spec])
    assert "true" in written
    assert "True" not in written
    assert [call.decode() for call in calls(read(notation.reader([spec]), written))] == [arguments]


def test_gemma_4_writes_arguments_in_alphabetical_order():
    call = ToolCall("1", "f", '{"b": {"z": 1, "Y": 2}, "A": true}')
    assert get_notation("gemma4").call(call) == "<|tool_call>call:f{A:true,b:{Y:2,z:1}}<tool_call|>"
