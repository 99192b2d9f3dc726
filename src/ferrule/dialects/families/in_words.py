"""Notations in words and code, for models that have none of their own: any model can be asked to write them."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import (
    NO_GAPS,
    NO_IDS,
    NO_IMAGES,
    NO_PARALLEL,
    NO_TEXT_BESIDE,
    Family,
    JsonOffer,
    WrappedResults,
)
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.fenced import FencedCode, JsonObjects
from ferrule.dialects.notations.json_in_tag import JsonInTag
from ferrule.dialects.notations.positional import MarkedResults, Positional, UsageOffer
from ferrule.dialects.notations.react import ReAct
from ferrule.dialects.turns import CHATML

_TOOLS = "The tools, one JSON object a line:\n"
_OVIS = Positional("<tool_call>", "</tool_call>", "<image>")
_RESULT = ("<tool_response>", "</tool_response>")

REACT = Family(
    name="react",
    models="any model, asked to write Thought, Action and Action Input",
    syntax=ReAct(),
    prose=Prose(
        Thinking(
            "Thought:", "Final Answer:", after_open=" ", after_close=" ", ends_at_call=True, closes_before_call=False
        ),
        before_call="\n",
    ),
    results=WrappedResults("Observation: ", ""),
    offer=JsonOffer(
        _TOOLS,
        "\n\nWrite these lines:\nThought: what to do next\nAction: the name of a tool\nAction Input: its arguments, as "
        "one JSON object\nand stop; an Observation follows. When you know the answer:\nFinal Answer: the answer",
    ),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL}),
)

FENCED_JSON = Family(
    name="fenced_json",
    models="any model, asked for a block of JSON",
    syntax=JsonObjects("```json", "```"),
    prose=Prose(Thinking(), before_call="\n"),
    results=WrappedResults("Result of {name}:\n", ""),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, write:\n```json\n{"name": <name>, "arguments": <arguments>}\n```'),
)

FENCED_CODE = Family(
    name="fenced_code",
    models="any model, asked to act by code, as smolagents does",
    syntax=FencedCode("python"),
    prose=Prose(Thinking(), before_call="\n"),
    results=WrappedResults("Observation:\n", ""),
    offer=JsonOffer(_TOOLS, "\n\nAct by writing code, and stop after it:\n```python\n<code>\n```"),
    one_tool=("python", "code"),
)

OVIS = Family(
    name="ovis",
    models="Ovis 2.5 with tools",
    syntax=_OVIS,
    prose=Prose(Thinking(), turn_markers=("<|im_start|>", "<|im_end|>", "<|endoftext|>"), result=_RESULT),
    results=MarkedResults(*_RESULT, image="<image>"),
    offer=UsageOffer(_OVIS, "You can call these tools:\n"),
    losses=frozenset({NO_IDS, NO_GAPS}),
    # A call's closer pauses the model; the results stand in its own turn.
    turns=replace(CHATML, calls_end="", results=("", "\n"), resumes=("", ""), stops=("</tool_call>", "<|endoftext|>")),
)

JSON_IN_TAG = Family(
    name="json_in_tag",
    models="any model, asked for JSON in a tag",
    syntax=JsonInTag("tool_call"),
    prose=Prose(Thinking(), result=_RESULT, before_call="\n"),
    results=WrappedResults("<tool_response>", "</tool_response>"),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, write:\n<tool_call name="<name>"><arguments as JSON></tool_call>'),
)

RAW_JSON = Family(
    name="raw_json",
    models="any model, asked to answer with JSON alone",
    syntax=JsonObjects(),
    prose=Prose(Thinking()),
    results=WrappedResults("Result of {name}:\n", ""),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, answer with nothing but {"name": <name>, "arguments": <arguments>}'),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_TEXT_BESIDE}),
)

FAMILIES = (REACT, FENCED_JSON, FENCED_CODE, OVIS, JSON_IN_TAG, RAW_JSON)
