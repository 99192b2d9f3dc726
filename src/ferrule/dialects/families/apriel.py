"""ServiceNow's Apriel: a JSON array of calls with ids, between tags."""

from __future__ import annotations

from ferrule.dialects.family import NO_IMAGES, Family
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.notations.json_array import JsonArray, Named
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import offer_array

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

FAMILIES = (APRIEL,)
