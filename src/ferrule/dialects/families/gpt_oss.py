"""OpenAI's gpt-oss: harmony, whose messages name their channel and recipient."""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.harmony import Harmony
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

HARMONY = Family(
    name="harmony",
    models="gpt-oss",
    aliases=("gpt_oss",),
    syntax=Harmony(),
    message=MessageMarkers(
        Thinking("<|channel|>analysis<|message|>", "<|end|>", "", "", "", read_by_syntax=True),
        turn_markers=("<|end|>", "<|return|>", "<|call|>"),
        answer=("<|channel|>final<|message|>", "<|end|>"),
        preamble=("<|channel|>commentary<|message|>", "<|end|>"),
        between="<|start|>assistant",
    ),
    results=WrappedResults(
        "<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>", "<|end|>", between=""
    ),
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

FAMILIES = (HARMONY,)
