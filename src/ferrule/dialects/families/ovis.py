"""Ovis 2.5 with tools: values without keys, and results and images in the model's own turn.

Calls are read by `notations/positional.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_GAPS, NO_IDS, Family
from ferrule.dialects.framing.turns import CHATML, ImageMarkers
from ferrule.dialects.notations.positional import MarkedResults, Positional, UsageOffer
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE

_OVIS = Positional("<tool_call>", "</tool_call>", "<image>")


OVIS = Family(
    name="ovis",
    models="Ovis 2.5 with tools",
    syntax=_OVIS,
    # White space around reasoning is part of it: a row of training data is laid out unchanged.
    message=MessageMarkers(
        Thinking(after_open="", before_close="", after_close="", ends_at_call=True),
        turn_markers=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
        result=TOOL_RESPONSE,
    ),
    results=MarkedResults(*TOOL_RESPONSE, image="<image>"),
    offer=UsageOffer(_OVIS, "You can call these tools:\n"),
    losses=frozenset({NO_IDS, NO_GAPS}),
    # A call's closer pauses the model; the results are in its own turn.
    turns=replace(
        CHATML,
        calls_end="",
        results=("", ""),
        resumes=("", ""),
        inline=True,
        image=ImageMarkers(),
        stops=("</tool_call>", "<|endoftext|>"),
    ),
)

FAMILIES = (OVIS,)
