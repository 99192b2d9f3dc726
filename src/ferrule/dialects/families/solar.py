"""Upstage's Solar Open: reasoning, text and calls are separate messages in one turn (1); names and values (2).

Calls are read by `notations/key_value.py` and `notations/named_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IMAGES, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers, Thinking
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LIST, JsonOffer, WrappedResults

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

_HEADER_END, _END = "<|im:content|>", "<|im:end|>"
_CALL = ("<|tool_call:start|>", "<|tool_call:end|>")
_RESPONSE = ("<|tool_response:start|>", "<|tool_response:end|>")

SOLAR_OPEN2 = Family(
    name="solar_open2",
    models="Solar Open 2",
    syntax=KeyValue(
        *_CALL, key=("<|tool_arg:start|>", ""), value=("<|tool_arg:value|>", "<|tool_arg:end|>"),
    ),
    message=MessageMarkers(
        replace(TIGHT_THINKING, open="<|think:start|>", close="<|think:end|>"),
        turn_markers=("<|im:start|>", _HEADER_END, _END), result=_RESPONSE, before_call="\n",
    ),
    results=WrappedResults(*_RESPONSE),
    offer=JsonOffer(
        TOOL_LIST,
        f"{PAIRS_FOLLOW}{_CALL[0]}name\n<|tool_arg:start|>key<|tool_arg:value|>value<|tool_arg:end|>\n{_CALL[1]}",
    ),
    turns=Turns(
        user=(f"<|im:start|>user{_HEADER_END}", f"{_END}\n"), assistant=f"<|im:start|>assistant{_HEADER_END}",
        end=f"\n{_END}", after="\n", results=(f"<|im:start|>tool{_HEADER_END}", f"\n{_END}\n"),
        system=(f"<|im:start|>system{_HEADER_END}## System Prompt\n\n", f"{_END}\n"), opens="<|think:start|>",
        forbidden_tokens=("<|im:start|>",),
    ),
)  # fmt: skip

FAMILIES = (SOLAR_OPEN, SOLAR_OPEN2)
