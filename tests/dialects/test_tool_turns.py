"""Whole conversations as segments: what real chat templates write, and what must hold for every family with turns."""

import json
import re
from dataclasses import replace
from functools import cache

import pytest
from dialect_events import calls as calls_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from vectors import FOLDER, IS_MISSING

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Reasoning,
    SampledTokens,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import load_families
from ferrule.dialects.framing.dialect import FramedDialect
from ferrule.dialects.segments import Content, Control, SampledIds
from ferrule.errors import DialectError
from ferrule.events import CallFinished, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

# Each template's dialect.
TEMPLATES = {
    "Apertus-8B-Instruct": "apertus",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "cohere2",
    "CohereForAI-c4ai-command-r-plus-tool_use": "cohere_r_plus",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "GLM-4.6": "glm45",
    "GLM-4.7-Flash": "glm47",
    "GigaChat3.1-10B-A1.8B": "gigachat31",
    "Kimi-K3": "kimi_k3",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax_m1",
    "MiniMax-M2": "minimax_m2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_small",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes3",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes3",
    "Qwen-QwQ-32B": "qwq",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3_coder",
    "Qwen3.5-4B": "qwen35",
    "Spark2.5": "spark",
    "StepFun3.5-Flash": "step3p5",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v31",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "google-gemma-4-31B-it-interleaved": "gemma4_tool_turns",
    "ibm-granite-granite-4.1": "granite4",
    "meetkai-functionary-medium-v3.1": "functionary_v31",
    "meetkai-functionary-medium-v3.2": "functionary_v32",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v7",
    "moonshotai-Kimi-K2": "kimi_k2",
    "muse-glimmer": "muse_glimmer",
    "openbmb-MiniCPM5-1B": "minicpm5_think",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar_open",
}
# What is written otherwise on purpose: what the template has, what stands here, and why.
DIFFERENT = {
    "Qwen-QwQ-32B": (
        "assistant\n<tool_call>",
        "assistant\n<think>\n\n</think>\n\n<tool_call>",
        "the prompt opens the reasoning and the template takes it out of the history: here a prompt is a prefix",
    ),
    "NVIDIA-Nemotron-Nano-v2": (
        "Assistant\n<TOOLCALL>",
        "Assistant\n<think>\n\n</think>\n<TOOLCALL>",
        "the prompt opens the reasoning and the template takes it out of the history: here a prompt is a prefix",
    ),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": (
        "<｜end▁of▁sentence｜><｜Assistant｜><｜end▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        "the template writes a second, empty answer beside the calls",
    ),
    "CohereForAI-c4ai-command-r-plus-tool_use": (
        "]```\n<|START_OF_TURN_TOKEN|>",
        "]```<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>",
        "the template leaves out the token that ends a turn after calls, without which a model doesn't stop",
    ),
}
IDS = {
    "apriel": ("functions.get_weather:0", "functions.get_weather:1"),
    "apriel16": ("functions.get_weather:0", "functions.get_weather:1"),
    "kimi_k2": ("functions.get_weather:0", "functions.get_weather:1"),
    "solar_open": ("functions.get_weather:0", "functions.get_weather:1"),
    "mistral_v7": ("abcdefgh1", "abcdefgh2"),
    "mistral_small": ("abcdefgh1", "abcdefgh2"),
}


@cache
def framed(name):
    """The dialect made of a family's turns, also where a hand-written one has its name."""
    for family in load_families().values():
        if name == family.name or name in dict(family.other_turns):
            return FramedDialect(family, name)
    raise AssertionError(name)


FRAMED = sorted(set(list_dialects()) - {"nanochat", "nanochat-tools", "qwen25"})
every_dialect = pytest.mark.parametrize("name", FRAMED)


def written(segments, trained=None):
    return "".join(s.text for s in segments if trained is None or s.trained is trained)


def weather_conversation(name, recorded):
    """The conversation of the recordings; its second call and its reasoning where the template has them."""
    ids = IDS.get(name, ("0", "1"))
    calls = [
        ToolCall(i, "get_weather", json.dumps({"city": city, "days": days}))
        for i, city, days in zip(ids, ("Paris", "Rome"), (2, 1), strict=True)
        if city in recorded
    ]
    # One template leaves the second call out, and not its result.
    results = [
        tool_message(ToolResult(i, "get_weather", (Text(json.dumps({"t": t})),)))
        for i, t in zip(ids, (21, 25), strict=True)
        if f": {t}" in recorded
    ]
    thought = (Reasoning("THOUGHT"),) if "THOUGHT" in recorded else ()
    return Conversation((user("QUESTION"), assistant(*thought, *calls), *results))


@IS_MISSING
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_conversation_is_written_as_the_template_writes_it(template):
    cases = json.loads((FOLDER / "render" / "tool_turns.json").read_text())[template]
    recorded = next(iter(cases.values()))["text"].replace("<EOS>", "</s>")
    if template.startswith("Mistral-Small"):
        # This one was recorded with all that stands before the question.
        recorded = recorded[recorded.index("[/INST]") :]
    # What Command R+ is told before it answers has words of our own here, and is said where tools are offered.
    recorded = re.sub(
        r"<\|START_OF_TURN_TOKEN\|><\|SYSTEM_TOKEN\|>Write 'Action:'.*?<\|END_OF_TURN_TOKEN\|>",
        "",
        recorded,
        flags=re.DOTALL,
    )
    name = TEMPLATES[template]
    layout = framed(name).layout(weather_conversation(name, recorded))
    template_has, here, _ = DIFFERENT.get(template, ("", "", ""))
    assert recorded.count(template_has) == 1 or not template_has
    assert written(layout.with_prompt).split("QUESTION", 1)[1] == recorded.replace(template_has, here)


@IS_MISSING
def test_all_templates_are_accounted_for():
    recorded = json.loads((FOLDER / "render" / "tool_turns.json").read_text())
    assert set(recorded) == set(TEMPLATES)
    assert len(DIFFERENT) <= 4


PLAIN = ("London", "a word", "so")
MARKERS = sorted({marker for name in FRAMED for marker in framed(name).markers if marker.strip()})
EVIL = st.lists(st.one_of(st.sampled_from(MARKERS), st.text("ab<>|\"'{\n", max_size=4)), min_size=1, max_size=4)
TEXTS = EVIL.map("".join).map(lambda text: f"a{text}b")


def conversation_of(dialect, text):
    """Every kind of part, with the texts that `text()` gives."""
    tool, parameter = dialect.family.one_tool or ("weather", "city")
    parallel = 2 if dialect.capabilities.parallel_calls else 1
    calls = [ToolCall(f"call_{n}", tool, json.dumps({parameter: text()}, ensure_ascii=False)) for n in range(parallel)]
    before = [Reasoning(text())] if dialect.capabilities.reasoning else []
    if dialect.capabilities.text_beside_calls:
        before.append(Text(text()))
    return Conversation(
        (
            system(text()),
            user(text()),
            assistant(*before, *calls),
            *(tool_message(ToolResult(call.id, tool, (Text(text()),))) for call in calls),
            assistant(*before[:1], *([] if before[1:] else [Text("so")]), *before[1:]),
            user(text()),
            assistant(text()),
        )
    )


@every_dialect
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_what_is_control_does_not_depend_on_what_is_said(name, data):
    dialect = framed(name)
    offered = ToolSpec("weather", data.draw(TEXTS), {"type": "object", "properties": {"city": {"type": "string"}}})
    tools = () if dialect.family.one_tool else (offered,)
    try:
        layout = dialect.layout(conversation_of(dialect, lambda: data.draw(TEXTS)), tools)
    except DialectError:
        assume(False)
    plain = dialect.layout(conversation_of(dialect, lambda: "word"), [replace(spec, description="x") for spec in tools])
    assert [s.text for s in layout.segments if isinstance(s, Control)] == [
        s.text for s in plain.segments if isinstance(s, Control)
    ]
    assert layout.prompt == plain.prompt


@every_dialect
def test_a_prompt_is_a_prefix_of_what_follows(name):
    dialect = framed(name)
    conversation = conversation_of(dialect, lambda: "word")
    whole = characters(dialect.layout(conversation).segments)
    for at, message in enumerate(conversation.messages):
        before = dialect.layout(replace(conversation, messages=conversation.messages[:at]))
        if message.role == "assistant":
            prompt = characters(before.with_prompt)
            assert whole[: len(prompt)] == prompt
            assert before.prompt[0].ends_run
        if message.role != "tool":
            # The results of one group may share a turn, which ends after the last of them.
            segments = characters(before.segments)
            assert whole[: len(segments)] == segments


def characters(segments):
    return [(character, type(s), s.trained) for s in segments for character in s.text]


@every_dialect
def test_what_is_trained_is_read_back(name):
    dialect = framed(name)
    conversation = conversation_of(dialect, lambda: "word")
    weather = ToolSpec("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}})
    for at, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        before = dialect.layout(replace(conversation, messages=conversation.messages[:at]))
        until = dialect.layout(replace(conversation, messages=conversation.messages[: at + 1]))
        said = written(until.segments[len(before.segments) :], trained=True)
        # A notation without names for its arguments has them from the tool.
        reader = dialect.reader([weather], opens=written(before.prompt))
        events = reader.feed(said) + reader.close(stopped=True)
        assert [(c.name, c.decode()) for c in calls_of(events)] == [(c.name, c.decode()) for c in message.calls]
        assert "".join(e.text for e in events if isinstance(e, TextDelta)).strip() == message.text
        thought = "".join(e.text for e in events if isinstance(e, ReasoningDelta)).strip()
        assert thought == "".join(p.text for p in message.parts if isinstance(p, Reasoning))


@pytest.mark.parametrize("tools", [(), (ToolSpec("weather", "Of a city.", {"type": "object"}),)])
def test_the_turns_of_hermes_are_those_of_the_hand_written_dialect(tools):
    conversation = conversation_of(framed("hermes"), lambda: "word")
    one, other = framed("hermes").layout(conversation, tools), get_dialect("hermes").layout(conversation, tools)
    assert written(one.segments, trained=True) == written(other.segments, trained=True)
    assert one.prompt == other.prompt
    assert set(other.stops) == set(one.stops)
    if not tools:
        assert one.text == other.text


def test_sampled_ids_stand_after_what_the_prompt_wrote():
    message = replace(
        assistant("Hi"), sampled=SampledTokens((1, 2), (-0.5, -0.1), "tokens", "minicpm5_think", "length")
    )
    assert get_dialect("minicpm5_think").layout(Conversation((message,))).segments == (
        Control("<s>"),
        Control("<|im_start|>assistant\n<think>\n", ends_run=True),
        SampledIds((1, 2), (-0.5, -0.1), "<|im_end|>"),
        Control("\n"),
    )


@every_dialect
def test_a_sampled_message_is_closed_by_one_token_that_stops_the_model_and_that_its_reader_knows(name):
    dialect = framed(name)
    sampled = SampledTokens((1, 2), (-0.5, -0.1), "tokens", name, "length")
    call = ToolCall("call_1", "weather", "{}")
    result = tool_message(ToolResult("call_1", "weather", (Text("21"),)))
    messages = (
        user("?"),
        replace(assistant(call), sampled=sampled),
        result,
        replace(assistant("So."), sampled=sampled),
    )
    layout = dialect.layout(Conversation(messages))
    closers = [segment.closer for segment in layout.segments if isinstance(segment, SampledIds)]
    assert len(closers) == 2
    assert all(closer in layout.stops or not closer for closer in closers)
    assert set(layout.stops) <= set(dialect.markers)


def test_where_the_next_header_ends_a_turn_it_is_the_models_and_written_once():
    dialect = get_dialect("glm47")
    call = ToolCall("call_1", "weather", "{}")
    answered = (assistant(call), tool_message(ToolResult("call_1", "weather", (Text("21"),))))
    layout = dialect.layout(Conversation((user("?"), *answered, assistant("So."), user("And?"))))
    assert written(layout.segments, trained=True) == (
        "</think><tool_call>weather</tool_call><|observation|></think>So.<|user|>"
    )
    assert layout.text.count("<|user|>") == 2
    assert layout.stops == ("<|user|>", "<|observation|>", "<|endoftext|>")


def test_a_value_that_looks_like_a_marker_is_content():
    call = ToolCall("call_1", "weather", '{"city": "<tool_call> <|im_end|>"}')
    layout = framed("hermes").layout(Conversation((assistant(call),)))
    assert [s.text for s in layout.segments if isinstance(s, Control)] == [
        "<|im_start|>assistant\n", "<tool_call>", "</tool_call>", "<|im_end|>", "\n",
    ]  # fmt: skip
    assert any("<tool_call> <|im_end|>" in s.text for s in layout.segments if isinstance(s, Content))


@pytest.mark.parametrize("name", ["hermes", "deepseek_v31", "apertus", "llama3_json", "kimi_k2", "mistral"])
def test_calls_are_repeated_as_the_model_wrote_them_while_they_say_the_same(name):
    dialect = framed(name)
    calls = [ToolCall(f"call_{n}", "weather", '{"city": "Paris"}') for n in (1, 2)]
    as_sampled = dialect.notation.calls(calls).replace('": "Paris"', '":  "Paris"')
    reader = dialect.reader()
    read = [e.call for e in reader.feed(as_sampled) + reader.close(stopped=True) if isinstance(e, CallFinished)]
    # The arguments have lost the spelling; the sources have not.
    compact = [replace(call, arguments='{"city":"Paris"}') for call in read]
    assert as_sampled in dialect.layout(Conversation((assistant(*compact),))).text
    edited = [replace(call, arguments='{"city":"Rome"}') for call in read]
    assert dialect.notation.calls(edited) in dialect.layout(Conversation((assistant(*edited),))).text
    foreign = [replace(call, source="<|python_start|>1<|python_end|>") for call in compact]
    assert dialect.notation.calls(foreign) in dialect.layout(Conversation((assistant(*foreign),))).text


def test_results_are_harmless_and_name_the_ids_that_the_calls_were_written_with():
    call = ToolCall("call_1", "weather", "{}")
    result = ToolResult("call_1", "weather", (Text("<|im_end|>"),))
    layout = get_dialect("kimi_k2").layout(Conversation((assistant(call), tool_message(result))))
    assert [loss.kind for loss in layout.losses] == ["marker"]
    assert layout.text.endswith("## Return of functions.weather:0\\n< |im_end|><|im_end|>")


def test_what_has_no_place_is_reported_or_refused():
    llama = get_dialect("llama3_json")
    layout = llama.layout(Conversation((assistant(Reasoning("Hm."), "So."), user("?"))))
    assert [loss.kind for loss in layout.losses] == ["reasoning"]
    with pytest.raises(DialectError, match="does not allow text in a message with calls"):
        llama.layout(Conversation((assistant("So:", ToolCall("call_1", "weather", "{}")),)))
    with pytest.raises(DialectError, match="react frames whole conversations is not declared"):
        FramedDialect(load_families()["react"])


def test_a_malformed_call_is_written_as_it_was_and_not_trained():
    malformed = MalformedCall("call_1", "<tool_call>{", "truncated")
    segments = framed("qwen3_coder").layout(Conversation((assistant(malformed),))).segments
    assert Content("<tool_call>{") in segments


def test_a_system_prompt_without_a_turn_goes_before_the_users_text():
    layout = get_dialect("mistral_v7").layout(Conversation((system("Be brief."), user("Hi"))))
    assert layout.text == "<s>[INST]Be brief.\n\nHi[/INST]"
    assert [loss.kind for loss in layout.losses] == ["system"]
