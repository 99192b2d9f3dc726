"""Families that write calls as Python does."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, Family, JsonOffer, QuotedResults, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.pythonic import Pythonic
from ferrule.dialects.turns import CHATML, Turns

_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")

LLAMA_4 = Family(
    name="pythonic",
    models="Llama 4, Llama 3.2 (1B and 3B), ToolACE",
    syntax=Pythonic("<|python_start|>", "<|python_end|>", is_bare=True),
    prose=Prose(turn_markers=("<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>", "<|header_start|>", "<|end_of_text|>")),
    results=QuotedResults(),
    offer=JsonOffer(
        "The functions you can call, one JSON object a line:\n",
        "\n\nTo call some, answer with nothing but a list: <|python_start|>[name(key=value), ...]<|python_end|>",
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING}),
    aliases=("llama4_pythonic",),
    turns=Turns(
        user=("<|header_start|>user<|header_end|>\n\n", "<|eot|>"),
        assistant="<|header_start|>assistant<|header_end|>\n\n",
        end="<|eot|>",
        results=("<|header_start|>ipython<|header_end|>\n\n", "<|eot|>"),
        system=("<|header_start|>system<|header_end|>\n\n", "<|eot|>"),
        begin="<|begin_of_text|>",
        each_result=True,
        stops=("<|eom|>",),
        strays=("<|header_start|>",),
    ),
)

OLMO_3 = Family(
    name="olmo3",
    models="OLMo 3",
    syntax=Pythonic("<function_calls>", "</function_calls>", is_list=False),
    prose=Prose(Thinking(), turn_markers=_CHATML, result=("<function_response>", "</function_response>")),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        "You can call these functions:\n<functions>\n",
        "\n</functions>\nWrite calls as <function_calls>name(key=value)</function_calls>, one a line.",
    ),
    turns=replace(CHATML, results=("<|im_start|>environment\n", "<|im_end|>\n"), each_result=True),
)

LFM_2 = Family(
    name="lfm2",
    models="LFM2, LFM2.5",
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>"),
    prose=Prose(Thinking(), turn_markers=_CHATML, result=("<|tool_response_start|>", "<|tool_response_end|>")),
    results=WrappedResults("<|tool_response_start|>", "<|tool_response_end|>"),
    offer=JsonOffer(
        "List of tools: <|tool_list_start|>\n",
        "\n<|tool_list_end|>\nTo call some: <|tool_call_start|>[name(key=value), ...]<|tool_call_end|>",
    ),
    turns=replace(CHATML, begin="<|startoftext|>", results=("<|im_start|>tool\n", "<|im_end|>\n"), each_result=True),
)

FAMILIES = (LLAMA_4, OLMO_3, LFM_2)
