"""ServiceNow's Apriel: a JSON array of calls with ids, between tags.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IMAGES, Family
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.notations.json_array import JsonArray, Named
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import WrappedResults, offer_array

_APRIEL_TURNS = ("<|end|>", "<|assistant|>", "<|tool_result|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]")


APRIEL = Family(
    name="apriel",
    models="Apriel 1.5",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", Named(writes_id="last"), before=_APRIEL_TURNS),
    message=MessageMarkers(
        Thinking("<thinking>", "</thinking>"), turn_markers=_APRIEL_TURNS, before_call="\n", after_calls="\n"
    ),
    offer=offer_array("<tool_calls>", "</tool_calls>", '{"name": <name>, "arguments": <arguments>, "id": <id>}'),
    losses=frozenset({NO_IMAGES}),
    turns=Turns(
        user=("<|user|>\n", "\n<|end|>\n"),
        assistant="<|assistant|>\n",
        end="\n<|end|>",
        after="\n</s>",
        results=("<|tool_result|>\n", "\n<|end|>\n"),
        system=("<|system|>\n", "\n<|end|>\n"),
        begin="<s>",
        each_result=True,
        image=ImageMarkers("[IMG]"),
        spaced_calls=True,
        forbidden_tokens=("<|assistant|>", "<|tool_result|>"),
    ),
)

_APRIEL16_TURNS = ("<|end|>", "<|begin_assistant|>", "<|begin_tool_result|>", "[END FINAL RESPONSE]")

# Its reasoning is marked by words. What it is told about them before the system prompt is left to the system prompt.
APRIEL16 = replace(
    APRIEL,
    name="apriel16",
    models="Apriel 1.6",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", Named(writes_id="last"), before=_APRIEL16_TURNS),
    message=replace(
        APRIEL.message,
        thinking=Thinking("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", after_close="\n"),
        turn_markers=_APRIEL16_TURNS,
    ),
    results=WrappedResults("<|begin_tool_result|>\n", "\n", between="\n\n", after="\n\n\n"),
    turns=Turns(
        user=("<|begin_user|>\n", "\n"),
        assistant="<|begin_assistant|>\n",
        end="\n<|end|>",
        after="\n",
        results=("", ""),
        system=("<|begin_system|>\n", "\n"),
        begin="<s>",
        opens="Here are my reasoning steps:\n",
        image=ImageMarkers("[IMG]"),
        spaced_calls=True,
        forbidden_tokens=("<|begin_assistant|>", "<|begin_tool_result|>", "<|begin_user|>", "<|begin_system|>"),
        rewrites_history=True,
    ),
)

FAMILIES = (APRIEL, APRIEL16)
