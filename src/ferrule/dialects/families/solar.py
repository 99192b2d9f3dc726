"""Upstage's Solar Open: reasoning, text and calls are separate messages in one turn."""

from __future__ import annotations

from ferrule.dialects.family import NO_IMAGES, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

_NEXT = "<|begin|>assistant"

_TURNS = (_NEXT, "<|content|>", "<|end|>", "<|flush|>")

SOLAR_OPEN = Family(
    name="solar_open",
    models="Solar Open",
    syntax=NamedJson(
        "<|tool_call:begin|>", "<|tool_call:args|>", "<|tool_call:end|>", kind=("", "<|tool_call:name|>"),
        section=("<|tool_calls|>", "<|calls|>"), before=_TURNS, id_first=True,
    ),
    message=MessageMarkers(
        Thinking("<|think|>", "<|end|>", "", "", ""), turn_markers=_TURNS, answer=("<|content|>", "<|end|>"),
        preamble=("<|content|>", "<|end|>"), between=_NEXT, result=("<|tool_response|>", "<|tool_response:end|>"),
    ),
    results=WrappedResults(
        "<|tool_response:begin|>{id}<|tool_response:name|>{name}<|tool_response:result|>", "<|tool_response:end|>",
        between="",
    ),
    offer=JsonOffer("## Tools\n\nThe functions you can call, one JSON object a line:\n"),
    losses=frozenset({NO_IMAGES}),
    # Its template writes `<|end|>` for `<|flush|>` once the conversation continues; this is how the model ended its
    # turn.
    turns=Turns(
        user=("<|begin|>user<|content|>", "<|end|>"), assistant=_NEXT, end="<|flush|>", calls_end="",
        results=("<|begin|>tool<|tool_response|>", "<|end|>"), stops=("<|calls|>",), end_closes_text=True,
        system=("<|begin|>system<|content|>## System Prompt\n\n", "<|end|>"), rewrites_history=True,
    ),
)  # fmt: skip

FAMILIES = (SOLAR_OPEN,)
