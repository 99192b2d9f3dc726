"""iFlytek's Spark 2.5, which writes calls as GLM does.

Calls are read by `notations/key_value.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.glm import GLM47
from ferrule.dialects.framing.turns import Turns

# Compared with the template of Spark 2.5 that llama.cpp has.
_TURNS = Turns(
    user=("<｜start▁of▁sentence｜><|User|>", "<｜end▁of▁sentence｜>"),
    assistant="<｜start▁of▁sentence｜><|Bot|>",
    end="<｜end▁of▁sentence｜>",
    results=("<｜start▁of▁sentence｜><|Tool|>", "<｜end▁of▁sentence｜>"),
    system=("<｜start▁of▁sentence｜><|System|>\n", "<｜end▁of▁sentence｜>"),
    opens="<think>",
    forbidden_tokens=("<｜start▁of▁sentence｜>",),
)

SPARK = replace(
    GLM47,
    name="spark",
    models="Spark 2.5",
    message=replace(
        GLM47.message,
        turn_markers=("<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|Bot|>", "<|User|>", "<|Tool|>"),
    ),
    turns=_TURNS,
    other_turns=(("spark_nothink", _TURNS.skip_reasoning("</think>")),),
)

FAMILIES = (SPARK,)
