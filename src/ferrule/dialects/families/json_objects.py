"""Families that write a call as one JSON object between two markers."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.json_object import JsonObject, Keys
from ferrule.dialects.turns import CHATML, Turns

_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_GRANITE = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
_ERNIE = ("<|im_start|>", "<|im_end|>", "</s>", "<response>", "</response>")
_ERNIE_SETTING = "<global_setting>\nthink_mode=True\n</global_setting>"
_LONGCAT = ("</longcat_s>",)
_REKA = ("<sep>", "<|endoftext|>")
_INKLING = ("<|message_model|>", "<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>")
_RESULT = ("<tool_response>", "</tool_response>")


def _listed(tag: str) -> JsonOffer:
    """The tools in a list, and how to call one between `<tag>` and `</tag>`."""
    return JsonOffer(
        "# Tools\n\nThe functions you can call are listed here, one JSON object a line:\n<tools>\n",
        "\n</tools>\n\nTo call one, write a JSON object with its name and arguments between these markers:\n"
        f'<{tag}>\n{{"name": <name>, "arguments": <arguments>}}\n</{tag}>',
    )


HERMES = Family(
    name="hermes",
    models="Qwen 2.5, Qwen 3, QwQ, Hermes 2 and 3",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_CHATML),
    prose=Prose(Thinking(), turn_markers=_CHATML, result=_RESULT, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=_listed("tool_call"),
    aliases=("qwen25",),
    turns=CHATML,
    other_turns=(
        ("hermes3", replace(CHATML, results=("<|im_start|>tool\n", "<|im_end|>"))),
        ("qwq", replace(CHATML, opens="<think>\n")),
    ),
)

GRANITE4 = Family(
    name="granite4",
    models="Granite 4.0 and 4.1",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_GRANITE),
    prose=Prose(Thinking(), turn_markers=_GRANITE, result=_RESULT, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>", before="\n"),
    offer=_listed("tool_call"),
    turns=Turns(
        user=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        assistant="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>",
        after="\n",
        results=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        system=("<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"),
        strays=("<|start_of_role|>",),
    ),
)

ERNIE45 = Family(
    name="ernie45",
    models="ERNIE 4.5",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_ERNIE),
    prose=Prose(
        Thinking(),
        turn_markers=_ERNIE,
        result=("<tool_output>", "</tool_output>"),
        before_call="\n",
        after_calls="\n",
        answer=("<response>\n", "\n</response>"),
    ),
    results=WrappedResults("<tool_output>\n", "\n</tool_output>"),
    offer=_listed("tool_call"),
    turns=Turns(
        user=("<|im_start|>user\n", "<|im_end|>\n\n"),
        assistant="<|im_start|>assistant\n",
        end="\n<|im_end|>",
        after="\n\n",
        results=("<|im_start|>tool\n", "<|im_end|>\n\n"),
        system=("<|im_start|>system\n<system_setting>\n", f"\n</system_setting>\n\n{_ERNIE_SETTING}<|im_end|>\n\n"),
        no_system=f"<|im_start|>system\n{_ERNIE_SETTING}<|im_end|>\n\n",
        opens="<think>\n",
        stops=("</s>",),
        strays=("<|im_start|>",),
        rewrites_history=True,
    ),
)

LONGCAT = Family(
    name="longcat",
    models="LongCat-Flash",
    syntax=JsonObject("<longcat_tool_call>", "</longcat_tool_call>", before=_LONGCAT),
    prose=Prose(
        Thinking("<longcat_think>", "</longcat_think>"), turn_markers=_LONGCAT, before_call="\n", after_calls="\n"
    ),
    offer=_listed("longcat_tool_call"),
)

GRANITE_20B_FC = Family(
    name="granite_20b_fc",
    models="Granite 20B function calling",
    syntax=JsonObject("<function_call>", "", inner=" ", before=("<|endoftext|>",)),
    prose=Prose(turn_markers=("<|endoftext|>",), before_call="\n"),
    offer=JsonOffer(
        "The functions you can call:\n",
        '\nTo call one, write <function_call> {"name": <name>, "arguments": <arguments>}, each call on a line.',
    ),
    results=WrappedResults("<function_response> ", ""),
    turns=Turns(
        user=("\nUSER: ", "\n"),
        assistant="\nASSISTANT: ",
        end=" <|endoftext|>",
        calls_end="\n<|endoftext|>",
        after="\n",
        results=("\n", "\n"),
        system=("\nSYSTEM: ", "\n\n\n\n"),
        rewrites_history=True,
    ),
)

INTERNLM2 = Family(
    name="internlm2",
    models="InternLM 2 and 2.5, Intern-S1",
    syntax=JsonObject(
        "<|action_start|>",
        "<|action_end|>",
        before=_CHATML,
        keys=Keys(arguments=("parameters", "arguments")),
        tag="<|plugin|>",
        tail="",
    ),
    prose=Prose(Thinking(), turn_markers=_CHATML, after_calls="\n"),
    offer=JsonOffer(
        "The functions you can call:\n",
        '\nTo call one, write <|action_start|><|plugin|>\n{"name": <name>, "parameters": <arguments>}<|action_end|>',
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL}),
    turns=replace(
        CHATML,
        begin="<s>",
        offer="after system",
        tools=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        results=("<|im_start|>environment name=<|plugin|>\n", "<|im_end|>\n"),
        each_result=True,
    ),
)

REKA_EDGE = Family(
    name="reka_edge",
    models="Reka Edge",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_REKA, tail="", between=""),
    prose=Prose(Thinking(), turn_markers=_REKA, result=_RESULT, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>", between=""),
    offer=_listed("tool_call"),
    turns=Turns(
        user=("human: ", "<sep>"),
        assistant="assistant: ",
        end="\n\n<sep>",
        results=("human: ", "<sep>"),
        system=("system: ", "\n\n<sep>"),
        opens="<think>\n",
        stops=("<|endoftext|>",),
        rewrites_history=True,
    ),
)

INKLING = Family(
    name="inkling",
    models="Inkling",
    syntax=JsonObject(
        "<|content_invoke_tool_json|>",
        "<|end_message|>",
        inner="",
        before=_INKLING,
        keys=Keys(arguments=("args",)),
        between="<|message_model|>",
    ),
    prose=Prose(
        Thinking("<|content_thinking|>", "<|end_message|>", "", "", ""),
        turn_markers=_INKLING,
        answer=("<|content_text|>", "<|end_message|>"),
        preamble=("<|content_text|>", "<|end_message|>"),
        between="<|message_model|>",
    ),
    offer=JsonOffer("The functions you can call:\n", '\nTo call one, write its {"name": <name>, "args": <arguments>}.'),
    turns=Turns(
        user=("<|message_user|><|content_text|>", "<|end_message|>"),
        assistant="<|message_model|>",
        end="<|content_model_end_sampling|>",
        results=("<|message_tool|>{name}<|content_text|>", "<|end_message|>"),
        system=("<|message_system|><|content_text|>", "<|end_message|>"),
        each_result=True,
        offer="before system",
        tools=("<|message_system|>tool_declare<|content_xml|>", "<|end_message|>"),
    ),
)

FAMILIES = (HERMES, GRANITE4, ERNIE45, LONGCAT, GRANITE_20B_FC, INTERNLM2, REKA_EDGE, INKLING)
