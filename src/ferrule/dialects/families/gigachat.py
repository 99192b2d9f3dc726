"""Sber's GigaChat: JSON in a message with its own role (3) or after a marker (3.1), and tags as DeepSeek's (3.5).

Calls are read by `notations/invoke.py` and `notations/role_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.deepseek import make_marked_offer, make_marked_syntax
from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.role_json import RoleJson
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_LINES, JsonOffer

# Compared with the templates of GigaChat 3.1 and GigaChat 3, both of 10B, that llama.cpp has.
_GIGACHAT_FRAMES = Turns(
    user=("user<|role_sep|>\n", "<|message_sep|>\n\n"),
    assistant="assistant<|role_sep|>\n",
    end="<|message_sep|>",
    after="\n\n",
    results=("function result<|role_sep|>\n", "<|message_sep|>\n\n"),
    system=("system<|role_sep|>\n", "<|message_sep|>\n\n"),
    begin="<s>",
    each_result=True,
    stops=("</s>",),
    forbidden_tokens=("<|role_sep|>",),
)


GIGACHAT31 = Family(
    name="gigachat31",
    models="GigaChat 3.1",
    syntax=RoleJson(),
    message=MessageMarkers(turn_markers=("</s>",)),
    offer=JsonOffer(TOOL_LINES),
    turns=_GIGACHAT_FRAMES,
)

GIGACHAT3 = replace(
    GIGACHAT31,
    name="gigachat3",
    models="GigaChat 3",
    syntax=RoleJson(in_messages=True),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL}),
    # A call is a separate message after the model's text, whose end must not stop the model: it stops at `</s>`, which
    # its template doesn't write.
    turns=replace(_GIGACHAT_FRAMES, end="<|message_sep|></s>", last="</s>", stops=(), forbidden_tokens=()),
)

GIGACHAT35 = Family(
    name="gigachat35",
    models="GigaChat 3.5",
    syntax=make_marked_syntax("tool_calls", mark="｜GCML｜"),
    message=MessageMarkers(
        Thinking(after_open="", before_close=""), turn_markers=("<|message_sep|>", "</s>"), before_call="\n\n"
    ),
    offer=make_marked_offer("tool_calls", "｜GCML｜"),
)

FAMILIES = (
    GIGACHAT3,
    GIGACHAT31,
    GIGACHAT35,
)
