"""DeepSeek: JSON after a name between its own tokens (V3, R1, V3.1), and tags with attributes, DSML (V3.2, V4)."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import DEEPSEEK
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers, Thinking
from ferrule.dialects.wording import TAGS_FOLLOW, TOOL_LINES, TOOL_LIST, JsonOffer, WrappedResults

_DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")


def _make_dsml_syntax(wrapper: str, misspelled: tuple[str, ...] = ()) -> Invokes:
    """DeepSeek's notation; models omit the section's opener, or write another word for it."""
    call = "<｜DSML｜invoke"
    return Invokes(
        SectionTags(f"<｜DSML｜{wrapper}>", f"</｜DSML｜{wrapper}>", call, "</｜DSML｜invoke>"),
        ("<｜DSML｜parameter", "</｜DSML｜parameter>"),
        typed=("string", "true"),
        begins=(call, *(f"<｜DSML｜{word}>\n{call}" for word in misspelled)),
        tokens=("<｜DSML｜parameter", "</｜DSML｜parameter>"),
        are_rare=True,
    )


def _make_dsml_offer(wrapper: str) -> JsonOffer:
    return JsonOffer(
        TOOL_LIST,
        f'{TAGS_FOLLOW}<｜DSML｜{wrapper}>\n<｜DSML｜invoke name="name">\n<｜DSML｜parameter name="key" string="true">'
        'text</｜DSML｜parameter>\n<｜DSML｜parameter name="key" string="false">JSON</｜DSML｜parameter>\n'
        f"</｜DSML｜invoke>\n</｜DSML｜{wrapper}>",
    )


DEEPSEEK_V32 = Family(
    name="deepseek_v32",
    models="DeepSeek V3.2",
    syntax=_make_dsml_syntax("function_calls"),
    message=MessageMarkers(
        TIGHT_THINKING, turn_markers=_DEEPSEEK, result=("<function_results>", "</function_results>"), before_call="\n\n"
    ),
    results=WrappedResults("<result>", "</result>", before="<function_results>\n", after="\n</function_results>"),
    offer=_make_dsml_offer("function_calls"),
    turns=replace(DEEPSEEK, results=("\n\n", ""), opens="<think>", resumes=("\n\n", "<think>"), spaced_calls=True),
)

DEEPSEEK_V4 = Family(
    name="deepseek_v4",
    models="DeepSeek V4, V4.1",
    syntax=_make_dsml_syntax("tool_calls", ("tool", "toolcalls")),
    message=MessageMarkers(
        replace(TIGHT_THINKING, ends_at_call=True), turn_markers=_DEEPSEEK, result=("<tool_result>", "</tool_result>"),
        before_call="\n\n",
    ),
    results=WrappedResults("<tool_result>", "</tool_result>", between="\n\n"),
    offer=_make_dsml_offer("tool_calls"),
    turns=replace(DEEPSEEK, results=("<｜User｜>", ""), opens="<think>", spaced_calls=True),
)  # fmt: skip


_DEEPSEEK_TURNS = ("<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")

_DEEPSEEK_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")

_DEEPSEEK_RESULT = ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>")

_DEEPSEEK_MESSAGE = MessageMarkers(
    Thinking(after_open="", before_close="", after_close=""), turn_markers=_DEEPSEEK_TURNS, result=_DEEPSEEK_RESULT
)

DEEPSEEK_V3 = Family(
    name="deepseek_v3",
    models="DeepSeek V3, DeepSeek R1 and its distillations",
    aliases=("deepseek_r1",),
    syntax=NamedJson(
        "<｜tool▁call▁begin｜>",
        "\n",
        "<｜tool▁call▁end｜>",
        section=_DEEPSEEK_SECTION,
        kind=("function", "<｜tool▁sep｜>"),
        fence=("```json\n", "\n```"),
        before=_DEEPSEEK_TURNS,
        between="\n",
    ),
    message=_DEEPSEEK_MESSAGE,
    results=WrappedResults(*_DEEPSEEK_RESULT, before="<｜tool▁outputs▁begin｜>", after="<｜tool▁outputs▁end｜>"),
    offer=JsonOffer(
        TOOL_LINES,
        "\n\nA call is written so:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n"
        "```json\nARGUMENTS\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    turns=replace(DEEPSEEK, resumes=("", "")),
)

DEEPSEEK_V31 = Family(
    name="deepseek_v31",
    models="DeepSeek V3.1",
    syntax=NamedJson(
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        section=_DEEPSEEK_SECTION,
        before=_DEEPSEEK_TURNS,
    ),
    message=_DEEPSEEK_MESSAGE,
    results=WrappedResults(*_DEEPSEEK_RESULT, between=""),
    offer=JsonOffer(
        f"## Tools\n{TOOL_LINES}",
        "\n\nA call is written so:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    turns=replace(DEEPSEEK, opens="<think>", resumes=("", "")),
)

FAMILIES = (
    DEEPSEEK_V32,
    DEEPSEEK_V4,
    DEEPSEEK_V3,
    DEEPSEEK_V31,
)
