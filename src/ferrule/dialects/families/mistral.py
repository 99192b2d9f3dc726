"""Mistral: a list of JSON objects up to tokenizer v7, a name and its JSON since v11, with or without an id.

Calls are read by `notations/mistral.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.mistral import Mistral
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

_MISTRAL_TURNS = ("</s>", "[INST]", "[TOOL_RESULTS]", "[AVAILABLE_TOOLS]")

_MISTRAL_MESSAGE = MessageMarkers(
    Thinking("[THINK]", "[/THINK]", after_open="", before_close="", after_close=""),
    turn_markers=("</s>", "[INST]"),
    result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
)

_MISTRAL_FRAMES = Turns(
    user=("[INST]", "[/INST]"),
    assistant="",
    end="</s>",
    results=("", ""),
    system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    begin="<s>",
    offer="after system",
    forbidden_tokens=("[INST]",),
    rewrites_history=True,
)


def _make_family(name: str, models: str, form: str, results: WrappedResults) -> Family:
    return Family(
        name=name,
        models=models,
        syntax=Mistral(form, before=_MISTRAL_TURNS),
        message=_MISTRAL_MESSAGE,
        results=results,
        offer=JsonOffer("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        turns=replace(_MISTRAL_FRAMES, system=None) if form == "list" else _MISTRAL_FRAMES,
    )


MISTRAL = _make_family(
    "mistral",
    "Mistral since tokenizer v11: Magistral, Devstral, Ministral 3",
    "named",
    WrappedResults("[TOOL_RESULTS]", "[/TOOL_RESULTS]", between=""),
)

MISTRAL_SMALL = _make_family(
    "mistral_small",
    "Mistral Small 3.2",
    "named with id",
    WrappedResults("[TOOL_RESULTS]{id}[TOOL_CONTENT]", "[/TOOL_RESULTS]", between=""),
)

MISTRAL_V7 = _make_family(
    "mistral_v7",
    "Mistral up to tokenizer v7: Mistral Nemo, Mistral Large 2",
    "list",
    WrappedResults('[TOOL_RESULTS]{"content": ', ', "call_id": "{id}"}[/TOOL_RESULTS]', between=""),
)

FAMILIES = (
    MISTRAL,
    MISTRAL_SMALL,
    MISTRAL_V7,
)
