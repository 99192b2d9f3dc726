"""Inkling: a JSON object in a message of its own type.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_object import JsonObject, Keys
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer

_INKLING = ("<|message_model|>", "<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>")

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
    message=MessageMarkers(
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

FAMILIES = (INKLING,)
