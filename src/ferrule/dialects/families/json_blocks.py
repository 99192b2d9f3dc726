"""Families that write the name of a call apart from a block of JSON, or the object of a call without a closer."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_TEXT_BESIDE, Family, JsonOffer, QuotedResults, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.bare_json import BareJson
from ferrule.dialects.notations.harmony import Harmony
from ferrule.dialects.notations.heading_json import HeadingJson
from ferrule.dialects.notations.mistral import Mistral
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.notations.role_json import RoleJson
from ferrule.dialects.turns import DEEPSEEK, LLAMA3, Turns

_OFFERED = "You can call these tools, one JSON object a line:\n"
_DEEPSEEK_TURNS = ("<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
_DEEPSEEK_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_DEEPSEEK_RESULT = ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>")
_DEEPSEEK_PROSE = Prose(
    Thinking(after_open="", before_close="", after_close=""), turn_markers=_DEEPSEEK_TURNS, result=_DEEPSEEK_RESULT
)
_LLAMA_TURNS = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>")
_MISTRAL_TURNS = ("</s>", "[INST]", "[TOOL_RESULTS]", "[AVAILABLE_TOOLS]")
_MISTRAL_PROSE = Prose(
    Thinking("[THINK]", "[/THINK]", after_open="", before_close="", after_close=""),
    turn_markers=("</s>", "[INST]"),
    result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
)
_KIMI_TURNS = ("<|im_end|>", "<|im_assistant|>", "<|im_user|>", "<|im_system|>", "[EOS]")

DEEPSEEK_V3 = Family(
    name="deepseek_v3",
    models="DeepSeek V3, DeepSeek R1 and its distillations",
    aliases=("deepseek_r1",),
    syntax=NamedJson(
        "<｜tool▁call▁begin｜>",
        "\n",
        "<｜tool▁call▁end｜>",
        section=_DEEPSEEK_SECTION,
        kind=("function", "<｜tool▁sep｜>"),
        fence=("```json\n", "\n```"),
        before=_DEEPSEEK_TURNS,
        between="\n",
    ),
    prose=_DEEPSEEK_PROSE,
    results=WrappedResults(*_DEEPSEEK_RESULT, before="<｜tool▁outputs▁begin｜>", after="<｜tool▁outputs▁end｜>"),
    offer=JsonOffer(
        _OFFERED,
        "\n\nA call is written so:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n"
        "```json\nARGUMENTS\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    turns=replace(DEEPSEEK, resumes=("", "")),
)

DEEPSEEK_V31 = Family(
    name="deepseek_v31",
    models="DeepSeek V3.1",
    syntax=NamedJson(
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        section=_DEEPSEEK_SECTION,
        before=_DEEPSEEK_TURNS,
    ),
    prose=_DEEPSEEK_PROSE,
    results=WrappedResults(*_DEEPSEEK_RESULT, between=""),
    offer=JsonOffer(
        f"## Tools\n{_OFFERED}",
        "\n\nA call is written so:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    turns=replace(DEEPSEEK, opens="<think>", resumes=("", "")),
)

KIMI_K2 = Family(
    name="kimi_k2",
    models="Kimi K2, Kimi K2 Thinking, Kimi K2.5",
    syntax=NamedJson(
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        before=_KIMI_TURNS,
        has_ids=True,
    ),
    prose=Prose(Thinking(after_open="", before_close="", after_close="", ends_at_call=True), turn_markers=_KIMI_TURNS),
    # Two characters, not a line break: the models' template writes it so.
    results=WrappedResults("## Return of {id}\\n", ""),
    offer=JsonOffer(_OFFERED),
    turns=Turns(
        user=("<|im_user|>user<|im_middle|>", "<|im_end|>"),
        assistant="<|im_assistant|>assistant<|im_middle|>",
        end="<|im_end|>",
        results=("<|im_system|>tool<|im_middle|>", "<|im_end|>"),
        system=("<|im_system|>system<|im_middle|>", "<|im_end|>"),
        offer="before system",
        tools=("<|im_system|>tool_declare<|im_middle|>", "<|im_end|>"),
        each_result=True,
        stops=("[EOS]",),
        strays=("<|im_user|>", "<|im_assistant|>", "<|im_system|>"),
        rewrites_history=True,
    ),
)


_MISTRAL_FRAMES = Turns(
    user=("[INST]", "[/INST]"),
    assistant="",
    end="</s>",
    results=("", ""),
    system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    begin="<s>",
    offer="after system",
    strays=("[INST]",),
    rewrites_history=True,
)


def _mistral(name: str, models: str, form: str, results: WrappedResults) -> Family:
    return Family(
        name=name,
        models=models,
        syntax=Mistral(form, before=_MISTRAL_TURNS),
        prose=_MISTRAL_PROSE,
        results=results,
        offer=JsonOffer("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        turns=replace(_MISTRAL_FRAMES, system=None) if form == "list" else _MISTRAL_FRAMES,
    )


MISTRAL = _mistral(
    "mistral",
    "Mistral since tokenizer v11: Magistral, Devstral, Ministral 3",
    "named",
    WrappedResults("[TOOL_RESULTS]", "[/TOOL_RESULTS]", between=""),
)
MISTRAL_SMALL = _mistral(
    "mistral_small",
    "Mistral Small 3.2",
    "named with id",
    WrappedResults("[TOOL_RESULTS]{id}[TOOL_CONTENT]", "[/TOOL_RESULTS]", between=""),
)
MISTRAL_V7 = _mistral(
    "mistral_v7",
    "Mistral up to tokenizer v7: Mistral Nemo, Mistral Large 2",
    "list",
    WrappedResults('[TOOL_RESULTS]{"content": ', ', "call_id": "{id}"}[/TOOL_RESULTS]', between=""),
)

HARMONY = Family(
    name="harmony",
    models="gpt-oss",
    aliases=("gpt_oss",),
    syntax=Harmony(),
    prose=Prose(
        Thinking("<|channel|>analysis<|message|>", "<|end|>", "", "", "", read_by_syntax=True),
        turn_markers=("<|end|>", "<|return|>", "<|call|>"),
        answer=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|>"),
        between="<|start|>assistant",
    ),
    results=WrappedResults(
        "<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>", "<|end|>", between=""
    ),
    offer=JsonOffer("# Tools\n\nThese functions are called in the commentary channel, to=functions.NAME:\n"),
    turns=Turns(
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant="<|start|>assistant",
        # Its template writes `<|end|>` here once the conversation goes on; the model ended it so.
        end="<|return|>",
        calls_end="",
        results=("", ""),
        system=("<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"),
        begin="<|start|>system<|message|>Reasoning: medium\n\n# Valid channels: analysis, commentary, final.<|end|>",
        end_closes_text=True,
        stops=("<|call|>",),
        rewrites_history=True,
    ),
)

FUNCTIONARY_V31 = Family(
    name="functionary_v31",
    models="Functionary 3.1",
    syntax=NamedJson("<function=", ">", "</function>", before=_LLAMA_TURNS),
    prose=Prose(turn_markers=_LLAMA_TURNS),
    offer=JsonOffer(_OFFERED, "\n\nA call is written so:\n<function=NAME>ARGUMENTS</function>"),
    turns=replace(LLAMA3, calls_end="<|eom_id|>"),
)

FUNCTIONARY_V32 = Family(
    name="functionary_v32",
    models="Functionary 3.2",
    syntax=HeadingJson(">>>", "all", before=_LLAMA_TURNS),
    prose=Prose(turn_markers=_LLAMA_TURNS, answer=(">>>all\n", ""), preamble=(">>>all\n", "")),
    offer=JsonOffer(_OFFERED, "\n\nA call is written so:\n>>>NAME\nARGUMENTS"),
    turns=replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), opens=">>>"),
)


LLAMA3_JSON = Family(
    name="llama3_json",
    models="Llama 3.1, 3.2 and 3.3",
    aliases=("llama3",),
    syntax=BareJson("<|python_tag|>", before=_LLAMA_TURNS),
    prose=Prose(turn_markers=_LLAMA_TURNS),
    results=QuotedResults(),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_TEXT_BESIDE}),
    offer=JsonOffer(_OFFERED, '\n\nA call is a message of its own: {"name": NAME, "parameters": ARGUMENTS}'),
    turns=replace(LLAMA3, stops=("<|eom_id|>", "<|end_of_text|>")),
)

GIGACHAT3 = Family(
    name="gigachat3",
    models="GigaChat 3 and 3.1",
    syntax=RoleJson(),
    prose=Prose(turn_markers=("</s>",)),
    offer=JsonOffer(_OFFERED),
    turns=Turns(
        user=("user<|role_sep|>\n", "<|message_sep|>\n\n"),
        assistant="assistant<|role_sep|>\n",
        end="<|message_sep|>",
        after="\n\n",
        results=("function result<|role_sep|>\n", "<|message_sep|>\n\n"),
        system=("system<|role_sep|>\n", "<|message_sep|>\n\n"),
        begin="<s>",
        each_result=True,
        stops=("</s>",),
        strays=("<|role_sep|>",),
    ),
)

FAMILIES = (
    DEEPSEEK_V3, DEEPSEEK_V31, KIMI_K2, MISTRAL, MISTRAL_SMALL, MISTRAL_V7, HARMONY, FUNCTIONARY_V31, FUNCTIONARY_V32,
    LLAMA3_JSON, GIGACHAT3,
)  # fmt: skip
