"""Rigging's notations, in XML, for models that are instructed in the system prompt.

Calls are read by `notations/invoke.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.notations.invoke import Invokes, TagLayout, map_groups
from ferrule.dialects.notations.native_words import NativeOffer, NativeResults
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.notations.tag_values import TagValues
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_LIST, JsonOffer, WrappedResults
from ferrule.toolspec import ToolSpec

_NATIVE_CALLS = Invokes(
    SectionTags("<tool-calls>", "</tool-calls>", "<tool-call", "</tool-call>"),
    name="function",
    owner="tool",
    layout=TagLayout(after="\n   ", lead="   ", indent="      "),
    escapes_names=True,
    values=TagValues(has_entities=True),
)


def _select_groups(tools: Sequence[ToolSpec]) -> tuple[Invokes, NativeResults]:
    groups = map_groups(tools)
    return replace(_NATIVE_CALLS, groups=groups), NativeResults(groups)


NATIVE = Family(
    name="native",
    models="any model, prompted with rigging's XML and its system prompt",
    syntax=_NATIVE_CALLS,
    message=MessageMarkers(Thinking(), result=("<tool-results>", "</tool-results>"), before_call="\n"),
    results=NativeResults(),
    offer=NativeOffer(),
    select_for_tools=_select_groups,
)


NATIVE_3 = Family(
    name="native_3",
    models="any model, prompted for a tag for each call, with JSON in it",
    syntax=Invokes(
        SectionTags("", "", "<rg-tool-call", "</rg-tool-call>"),
        begins=("<rg-tool-call",),
        layout=TagLayout(calls="\n"),
        escapes_names=True,
        in_json=True,
    ),
    message=MessageMarkers(Thinking(), result=("<rg-tool-response", "</rg-tool-response>"), before_call="\n"),
    results=WrappedResults('<rg-tool-response name="{name}">\n', "\n</rg-tool-response>"),
    offer=JsonOffer(
        TOOL_LIST, '\n</tools>\n\nTo call one:\n<rg-tool-call name="name">\n{"key": "value"}\n</rg-tool-call>'
    ),
)

FAMILIES = (
    NATIVE,
    NATIVE_3,
)
