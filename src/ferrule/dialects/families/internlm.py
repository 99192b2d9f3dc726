"""InternLM of the Shanghai AI Laboratory: a JSON object after two markers.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS
from ferrule.dialects.notations.json_object import JsonObject, Keys
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer

INTERNLM2 = Family(
    name="internlm2",
    models="InternLM 2, InternLM 2.5, Intern-S1",
    syntax=JsonObject(
        "<|action_start|>",
        "<|action_end|>",
        before=CHATML_MARKERS,
        keys=Keys(arguments=("parameters", "arguments")),
        tag="<|plugin|>",
        tail="",
    ),
    message=MessageMarkers(Thinking(), turn_markers=CHATML_MARKERS, after_calls="\n"),
    offer=JsonOffer(
        "The functions you can call:\n",
        '\nTo call one, write <|action_start|><|plugin|>\n{"name": <name>, "parameters": <arguments>}<|action_end|>',
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL}),
    turns=replace(
        CHATML,
        begin="<s>",
        offer="after system",
        tools=("<|im_start|>system name=<|plugin|>\n", "<|im_end|>\n"),
        results=("<|im_start|>environment name=<|plugin|>\n", "<|im_end|>\n"),
        each_result=True,
    ),
)

FAMILIES = (INTERNLM2,)
