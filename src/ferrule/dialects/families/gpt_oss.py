"""OpenAI's gpt-oss: harmony, whose messages name their channel and recipient.

A call's recipient is after the channel (`harmony`, as the documents of the format have it) or before it (`gpt_oss`, as
the models' chat template writes it). Each is read in both.

Calls are read by `notations/harmony.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.harmony import Harmony
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

_RESULTS = WrappedResults(
    "<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>", "<|end|>", between=""
)

HARMONY = Family(
    name="harmony",
    models="gpt-oss, LLM-jp 4.1",
    syntax=Harmony(),
    message=MessageMarkers(
        Thinking("<|channel|>analysis<|message|>", "<|end|>", "", "", "", read_by_syntax=True),
        turn_markers=("<|end|>", "<|return|>", "<|call|>"),
        answer=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|>"),
        between="<|start|>assistant",
    ),
    results=_RESULTS,
    offer=JsonOffer("# Tools\n\nThese functions are called in the commentary channel, to=functions.NAME:\n"),
    turns=Turns(
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant="<|start|>assistant",
        # Its template writes `<|end|>` here once the conversation continues; this is how the model ended it.
        end="<|return|>",
        calls_end="",
        results=("", ""),
        system=("<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"),
        begin="<|start|>system<|message|>Reasoning: medium\n\n# Valid channels: analysis, commentary, final.<|end|>",
        end_closes_text=True,
        stops=("<|call|>",),
        rewrites_history=True,
    ),
)

GPT_OSS = replace(
    HARMONY,
    name="gpt_oss",
    models="gpt-oss",
    syntax=Harmony(" to=functions.{name}<|channel|>commentary json<|message|>"),
    results=replace(_RESULTS, quoted=True),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL}),
)

FAMILIES = (GPT_OSS, HARMONY)
