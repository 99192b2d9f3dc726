"""Meta: Llama 3's JSON without a closer, Llama 4's list of Python calls, Muse's tags in messages with recipients.

Calls are read by `notations/bare_json.py`, `notations/invoke.py`, `notations/pythonic.py` and
`notations/recipients.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import LLAMA3, ImageMarkers, Turns
from ferrule.dialects.notations.bare_json import BareJson
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.notations.pythonic import Pythonic
from ferrule.dialects.notations.recipients import Recipients
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers
from ferrule.dialects.wording import (
    INVOKE_EXAMPLE,
    TAGS_FOLLOW,
    TOOL_LINES,
    TOOL_LIST,
    JsonOffer,
    WrappedResults,
)

MUSE_GLIMMER = Family(
    name="muse_glimmer",
    models="Muse",
    syntax=Recipients(
        Invokes(
            SectionTags("<atem:function_calls>", "</atem:function_calls>", "<atem:invoke", "</atem:invoke>"),
            ("<atem:parameter", "</atem:parameter>"),
        )
    ),
    message=MessageMarkers(
        replace(TIGHT_THINKING, open=" to=self<|message|>", close="<|eom|>", read_by_syntax=True),
        turn_markers=("<|eom|>", "<|eot|>"),
        result=("<tool_output name=", "</tool_output>"),
        answer=(" to=user<|message|>", ""),
        preamble=(" to=user<|message|>", "<|eom|>"),
        between="<|start|>assistant",
    ),
    results=WrappedResults('<tool_output name="{name}">\n', "\n</tool_output>"),
    offer=JsonOffer(
        TOOL_LIST,
        f"{TAGS_FOLLOW}<function_calls>\n{INVOKE_EXAMPLE}\n</function_calls>".replace("<", "<atem:").replace(
            "<atem:/", "</atem:"
        ),
    ),
    turns=Turns(
        user=("<|start|>user<|message|>", "<|eot|>"),
        assistant="<|start|>assistant",
        end="<|eot|>",
        results=("<|start|>tool {name}<|message|>", "<|eot|>"),
        system=("<|start|>system<|message|>", "<|eot|>"),
        begin="<|begin_of_text|>",
        each_result=True,
        image=ImageMarkers("<|patch|>"),
    ),
)


_LLAMA_4_SYNTAX = Pythonic("<|python_start|>", "<|python_end|>", is_bare=True)
_LLAMA_TURNS = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>")

LLAMA3_JSON = Family(
    name="llama3_json",
    models="Llama 3.1, Llama 3.2, Llama 3.3",
    aliases=("llama3",),
    syntax=BareJson("<|python_tag|>", before=_LLAMA_TURNS, python=_LLAMA_4_SYNTAX),
    message=MessageMarkers(turn_markers=_LLAMA_TURNS),
    results=WrappedResults("", "", quoted=True),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_TEXT_BESIDE}),
    offer=JsonOffer(TOOL_LINES, '\n\nA call is a message of its own: {"name": NAME, "parameters": ARGUMENTS}'),
    turns=replace(LLAMA3, stops=("<|eom_id|>", "<|end_of_text|>")),
)

LLAMA_4 = Family(
    name="pythonic",
    models="Llama 4, Llama 3.2 (1B and 3B), ToolACE",
    syntax=_LLAMA_4_SYNTAX,
    message=MessageMarkers(
        turn_markers=("<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>", "<|header_start|>", "<|end_of_text|>")
    ),
    results=WrappedResults("", "", quoted=True),
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
        image=ImageMarkers("<|image|>"),
        stops=("<|eom|>",),
        forbidden_tokens=("<|header_start|>",),
    ),
)

FAMILIES = (
    MUSE_GLIMMER,
    LLAMA3_JSON,
    LLAMA_4,
)
