"""Notations for models without a notation of their own: any model can be prompted to write them.

Calls are read by `notations/fenced.py`, `notations/invoke.py`, `notations/json_in_tag.py` and `notations/react.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, NO_TEXT_BESIDE, Family
from ferrule.dialects.notations.fenced import FencedCode, JsonObjects
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.notations.json_in_tag import JsonInTag
from ferrule.dialects.notations.react import ReAct
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import INVOKE_EXAMPLE, TAGS_FOLLOW, TOOL_LIST, TOOL_RESPONSE, JsonOffer, WrappedResults

_TOOLS = "The tools, one JSON object a line:\n"

REACT = Family(
    name="react",
    models="any model, asked to write Thought, Action and Action Input",
    syntax=ReAct(),
    message=MessageMarkers(
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
    message=MessageMarkers(Thinking(), before_call="\n"),
    results=WrappedResults("Result of {name}:\n", ""),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, write:\n```json\n{"name": <name>, "arguments": <arguments>}\n```'),
)

FENCED_CODE = Family(
    name="fenced_code",
    models="any model, asked to act by code, as smolagents does",
    syntax=FencedCode("python"),
    message=MessageMarkers(Thinking(), before_call="\n"),
    results=WrappedResults("Observation:\n", ""),
    offer=JsonOffer(_TOOLS, "\n\nAct by writing code, and stop after it:\n```python\n<code>\n```"),
    one_tool=("python", "code"),
)


JSON_IN_TAG = Family(
    name="json_in_tag",
    models="any model, asked for JSON in a tag",
    syntax=JsonInTag("tool_call"),
    message=MessageMarkers(Thinking(), result=TOOL_RESPONSE, before_call="\n"),
    results=WrappedResults("<tool_response>", "</tool_response>"),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, write:\n<tool_call name="<name>"><arguments as JSON></tool_call>'),
)

RAW_JSON = Family(
    name="raw_json",
    models="any model, asked to answer with JSON alone",
    syntax=JsonObjects(),
    message=MessageMarkers(Thinking()),
    results=WrappedResults("Result of {name}:\n", ""),
    offer=JsonOffer(_TOOLS, '\n\nTo call one, answer with nothing but {"name": <name>, "arguments": <arguments>}'),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_TEXT_BESIDE}),
)


ANTHROPIC_XML = Family(
    name="anthropic_xml",
    models="Claude before it had tools of its own, and what was trained on its notation",
    syntax=Invokes(SectionTags("<function_calls>", "</function_calls>", "<invoke", "</invoke>")),
    message=MessageMarkers(result=("<function_results>", "</function_results>"), before_call="\n"),
    results=WrappedResults(
        "<result>\n<tool_name>{name}</tool_name>\n<stdout>\n", "\n</stdout>\n</result>",
        before="<function_results>\n", after="\n</function_results>",
    ),
    offer=JsonOffer(TOOL_LIST, f"{TAGS_FOLLOW}<function_calls>\n{INVOKE_EXAMPLE}\n</function_calls>"),
)  # fmt: skip

FAMILIES = (
    REACT,
    FENCED_JSON,
    FENCED_CODE,
    JSON_IN_TAG,
    RAW_JSON,
    ANTHROPIC_XML,
)
