"""Moonshot's Kimi: JSON after an id that contains the name (K2, K2.5), and tags with attributes (K3).

Calls are read by `notations/invoke.py` and `notations/named_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.notations.invoke import FLAT_LAYOUT, Invokes
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers, Thinking
from ferrule.dialects.wording import TAGS_FOLLOW, TOOL_LINES, TOOL_LIST, JsonOffer, WrappedResults

KIMI_K3 = Family(
    name="kimi_k3",
    models="Kimi K3",
    syntax=Invokes(
        SectionTags("<|open|>tools<|sep|>", "<|close|>tools<|sep|>", "<|open|>call", "<|close|>call<|sep|>"),
        ("<|open|>argument", "<|close|>argument<|sep|>"),
        end="<|sep|>",
        name="tool",
        key="key",
        typed=("type", "string"),
        layout=FLAT_LAYOUT,
        tokens=("<|open|>argument", "<|close|>argument<|sep|>", "<|open|>call", "<|close|>call<|sep|>"),
        escapes_names=True,
        is_numbered=True,
    ),
    message=MessageMarkers(
        replace(TIGHT_THINKING, open="<|open|>think<|sep|>", close="<|close|>think<|sep|>"),
        turn_markers=(
            "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>",
        ),
        answer=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        preamble=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        TOOL_LIST,
        f'{TAGS_FOLLOW}<|open|>tools<|sep|><|open|>call tool="name" index="1"<|sep|><|open|>argument key="key" '
        'type="string"<|sep|>value<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    ),
    turns=Turns(
        user=('<|open|>message role="user"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>"),
        assistant='<|open|>message role="assistant"<|sep|>',
        end="<|close|>message<|sep|><|end_of_msg|>",
        results=(
            '<|open|>message role="tool" tool="{name}" index="{index}"<|sep|>',
            "<|close|>message<|sep|><|end_of_msg|>",
        ),
        system=('<|open|>message role="system"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>"),
        offer="before system",
        tools=(
            '<|open|>message role="system" type="tool-declare"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>",
        ),
        opens="<|open|>think<|sep|>",
        each_result=True,
        empty_text=True,
        last="<|end_of_msg|>",
    ),
)  # fmt: skip


_KIMI_TURNS = ("<|im_end|>", "<|im_assistant|>", "<|im_user|>", "<|im_system|>", "[EOS]")

_KIMI_FRAMES = Turns(
    user=("<|im_user|>user<|im_middle|>", "<|im_end|>"),
    assistant="<|im_assistant|>assistant<|im_middle|>",
    end="<|im_end|>",
    results=("<|im_system|>tool<|im_middle|>", "<|im_end|>"),
    system=("<|im_system|>system<|im_middle|>", "<|im_end|>"),
    offer="before system",
    tools=("<|im_system|>tool_declare<|im_middle|>", "<|im_end|>"),
    each_result=True,
    stops=("[EOS]",),
    forbidden_tokens=("<|im_user|>", "<|im_assistant|>", "<|im_system|>"),
    rewrites_history=True,
)

KIMI_K2 = Family(
    name="kimi_k2",
    models="Kimi K2, Kimi K2 Thinking",
    syntax=NamedJson(
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        before=_KIMI_TURNS,
        has_ids=True,
    ),
    message=MessageMarkers(
        Thinking(after_open="", before_close="", after_close="", ends_at_call=True), turn_markers=_KIMI_TURNS
    ),
    # Two characters, not a line break: this is how the models' template writes it.
    results=WrappedResults("## Return of {id}\\n", ""),
    offer=JsonOffer(TOOL_LINES),
    turns=_KIMI_FRAMES,
)

# Compared with the templates of Kimi K2.5 that Xinference 4.1 has, and of Kimi K2 Instruct and Thinking that llama.cpp
# has: all later than that of `kimi_k2`.
_KIMI_NAMED = replace(_KIMI_FRAMES, results=("<|im_system|>{name}<|im_middle|>", "<|im_end|>"))
_IMAGE = ImageMarkers("<|media_pad|>", "<|media_begin|>image<|media_content|>", "<|media_end|>\n")

KIMI_K25 = replace(
    KIMI_K2,
    name="kimi_k25",
    models="Kimi K2.5, and Kimi K2 with its later templates",
    results=WrappedResults("## Return of {id}\n", ""),
    turns=replace(_KIMI_NAMED, opens="<think>", image=_IMAGE),
    other_turns=(("kimi_k2_instruct", _KIMI_NAMED), ("kimi_k2_thinking", replace(_KIMI_NAMED, thinks=True))),
)

FAMILIES = (
    KIMI_K3,
    KIMI_K2,
    KIMI_K25,
)
