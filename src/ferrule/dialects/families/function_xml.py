"""Families that write a call as tags which carry its names: Qwen's coders, and those that took it from them."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.function_xml import FunctionXml
from ferrule.dialects.turns import CHATML, Turns

_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_RESULT = ("<tool_response>", "</tool_response>")
_BEFORE = "# Tools\n\nThe functions you can call are listed here, one JSON object a line:\n<tools>\n"

QWEN3_CODER = Family(
    name="qwen3_coder",
    models="Qwen 3 Coder, Qwen 3.5, Nemotron 3, Granite 4.2",
    syntax=FunctionXml(),
    prose=Prose(Thinking(), turn_markers=_CHATML, result=_RESULT, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(
        _BEFORE,
        "\n</tools>\n\nTo call one, write its name and each argument between tags, like this:\n<tool_call>\n"
        "<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>",
    ),
    aliases=("qwen35", "nemotron_v3", "granite42"),
    turns=replace(CHATML, results=("<|im_start|>user\n", "\n<|im_end|>\n"), rewrites_history=False),
    other_turns=(
        ("qwen35", replace(CHATML, opens="<think>\n")),
        ("nemotron_v3", replace(CHATML, results=("<|im_start|>user\n", "\n<|im_end|>\n"), opens="<think>\n")),
    ),
)

STEP3P5 = replace(
    QWEN3_CODER,
    name="step3p5",
    models="Step 3.5",
    syntax=FunctionXml(between=""),
    prose=replace(QWEN3_CODER.prose, thinking=Thinking(after_close="\n")),
    results=WrappedResults(*_RESULT, between=""),
    aliases=(),
    other_turns=(),
    turns=replace(CHATML, results=("<|im_start|>tool_response\n", "<|im_end|>\n"), opens="<think>\n"),
)

MIMO = replace(
    QWEN3_CODER,
    name="mimo",
    models="MiMo V2",
    syntax=FunctionXml(frame="", between=""),
    prose=replace(QWEN3_CODER.prose, thinking=Thinking(after_open="", before_close="", after_close="")),
    offer=JsonOffer(
        _BEFORE,
        "\n</tools>\n\nTo call one, write its name and each argument between tags, without spaces around values:\n"
        "<tool_call>\n<function=name>\n<parameter=key>value</parameter>\n</function>\n</tool_call>",
    ),
    aliases=(),
    turns=replace(
        CHATML,
        user=("<|im_start|>user\n", "<|im_end|>"),
        after="",
        results=("<|im_start|>tool\n", "\n<|im_end|>"),
        system=("<|im_start|>system\n", "<|im_end|>"),
        thinks=True,
        tight_calls=True,
    ),
    other_turns=(),
)

SEED_OSS = Family(
    name="seed_oss",
    models="Seed-OSS",
    syntax=FunctionXml("<seed:tool_call>", "</seed:tool_call>", frame=""),
    prose=Prose(
        Thinking("<seed:think>", "</seed:think>", after_open="", before_close="", after_close="\n"),
        turn_markers=("<seed:bos>", "<seed:eos>"),
        before_call="\n",
    ),
    offer=JsonOffer(
        "The functions you can call are listed here, one JSON object a line:\n",
        "\n\nTo call one, write its name and each argument between tags, like this:\n<seed:tool_call>\n"
        "<function=name>\n<parameter=key>value</parameter>\n</function>\n</seed:tool_call>",
    ),
    turns=Turns(
        user=("<seed:bos>user\n", "<seed:eos>"),
        assistant="<seed:bos>assistant\n",
        end="<seed:eos>",
        results=("<seed:bos>tool\n", "<seed:eos>"),
        system=("<seed:bos>system\n", "<seed:eos>"),
        each_result=True,
        strays=("<seed:bos>",),
    ),
)

FAMILIES: tuple[Family, ...] = (QWEN3_CODER, STEP3P5, MIMO, SEED_OSS)
