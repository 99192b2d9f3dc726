"""IBM's Granite: a JSON array (3), an object between tags (4), objects without a closer (20B function calling).

Calls are read by `notations/json_array.py` and `notations/json_object.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import ArrayLayout, JsonArray
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE, JsonOffer, WrappedResults, offer_array, offer_tagged_object

_GRANITE_TURNS = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<response>", "</response>")


GRANITE = Family(
    name="granite",
    models="Granite 3",
    syntax=JsonArray(
        "<|tool_call|>", layout=ArrayLayout(" ["), also=(("<tool_call>", "</tool_call>"),), before=_GRANITE_TURNS
    ),
    message=MessageMarkers(Thinking(after_close="\n"), turn_markers=_GRANITE_TURNS, before_call="\n"),
    offer=offer_array("<|tool_call|> "),
    turns=Turns(
        user=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        assistant="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>",
        after="\n",
        results=("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>\n"),
        system=("<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"),
        each_result=True,
        offer="after system",
        tools=("<|start_of_role|>available_tools<|end_of_role|>", "<|end_of_text|>\n"),
        forbidden_tokens=("<|start_of_role|>",),
    ),
)

_GRANITE = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")


GRANITE4 = Family(
    name="granite4",
    models="Granite 4.0, Granite 4.1",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_GRANITE),
    message=MessageMarkers(Thinking(), turn_markers=_GRANITE, result=TOOL_RESPONSE, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>", before="\n"),
    offer=offer_tagged_object("tool_call"),
    turns=Turns(
        user=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        assistant="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>",
        after="\n",
        results=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        system=("<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"),
        forbidden_tokens=("<|start_of_role|>",),
    ),
)

GRANITE_20B_FC = Family(
    name="granite_20b_fc",
    models="Granite 20B function calling",
    syntax=JsonObject("<function_call>", "", inner=" ", before=("<|endoftext|>",)),
    message=MessageMarkers(turn_markers=("<|endoftext|>",), before_call="\n"),
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

FAMILIES = (
    GRANITE,
    GRANITE4,
    GRANITE_20B_FC,
)
