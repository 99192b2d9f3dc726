"""DeepSeek: JSON after a name between its own tokens (V3, R1, V3.1), and tags with attributes (V3.2 and later).

Calls are read by `notations/invoke.py` and `notations/named_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import DEEPSEEK
from ferrule.dialects.notations.invoke import Invokes, TagLayout
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers, Thinking
from ferrule.dialects.wording import TAGS_FOLLOW, TOOL_LINES, TOOL_LIST, JsonOffer, WrappedResults

_DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")


def make_marked_syntax(
    wrapper: str, misspelled: tuple[str, ...] = (), mark: str = "｜DSML｜", layout: TagLayout | None = None
) -> Invokes:
    """The notation of V3.2 and later, whose tags begin with a mark. Models omit the section's opener, or write another
    word in it."""
    call, parameter = f"<{mark}invoke", (f"<{mark}parameter", f"</{mark}parameter>")
    return Invokes(
        SectionTags(f"<{mark}{wrapper}>", f"</{mark}{wrapper}>", call, f"</{mark}invoke>"),
        parameter,
        typed=("string", "true"),
        begins=(call, *(f"<{mark}{word}>\n{call}" for word in misspelled)),
        layout=layout or TagLayout(),
        tokens=parameter,
        are_rare=True,
    )


def make_marked_offer(wrapper: str, mark: str = "｜DSML｜") -> JsonOffer:
    """The offer that shows this notation."""
    return JsonOffer(
        TOOL_LIST,
        f'{TAGS_FOLLOW}<{mark}{wrapper}>\n<{mark}invoke name="name">\n<{mark}parameter name="key" string="true">'
        f'text</{mark}parameter>\n<{mark}parameter name="key" string="false">JSON</{mark}parameter>\n'
        f"</{mark}invoke>\n</{mark}{wrapper}>",
    )


DEEPSEEK_V32 = Family(
    name="deepseek_v32",
    models="DeepSeek V3.2",
    syntax=make_marked_syntax("function_calls"),
    message=MessageMarkers(
        TIGHT_THINKING, turn_markers=_DEEPSEEK, result=("<function_results>", "</function_results>"), before_call="\n\n"
    ),
    results=WrappedResults("<result>", "</result>", before="<function_results>\n", after="\n</function_results>"),
    offer=make_marked_offer("function_calls"),
    turns=replace(DEEPSEEK, results=("\n\n", ""), opens="<think>", resumes=("\n\n", "<think>"), spaced_calls=True),
)

_V4 = make_marked_syntax("tool_calls", ("tool", "toolcalls"), layout=TagLayout(no_parameters="\n"))
_V41_MARK = "｜DSML｜ "
_V4_TURNS = replace(DEEPSEEK, results=("<｜User｜>", ""), opens="<think>", spaced_calls=True)
_V41 = make_marked_syntax("calls", mark=_V41_MARK)

DEEPSEEK_V4 = Family(
    name="deepseek_v4",
    models="DeepSeek V4",
    syntax=replace(_V4, also=_V41),
    message=MessageMarkers(
        replace(TIGHT_THINKING, ends_at_call=True), turn_markers=_DEEPSEEK, result=("<tool_result>", "</tool_result>"),
        before_call="\n\n",
    ),
    results=WrappedResults("<tool_result>", "</tool_result>", between="\n\n"),
    offer=make_marked_offer("tool_calls"),
    turns=_V4_TURNS,
    other_turns=(("deepseek_v4_nothink", _V4_TURNS.skip_reasoning("</think>")),),
)  # fmt: skip

_SYSTEM = "<｜System｜>"
_V41_TURNS = replace(_V4_TURNS, system=(_SYSTEM, ""), forbidden_tokens=(*DEEPSEEK.forbidden_tokens, _SYSTEM))

DEEPSEEK_V41 = replace(
    DEEPSEEK_V4,
    name="deepseek_v41",
    models="DeepSeek V4.1",
    syntax=replace(_V41, also=_V4),
    message=replace(DEEPSEEK_V4.message, turn_markers=(*_DEEPSEEK, _SYSTEM)),
    offer=make_marked_offer("calls", _V41_MARK),
    turns=_V41_TURNS,
    other_turns=(("deepseek_v41_nothink", _V41_TURNS.skip_reasoning("</think>")),),
)


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
    DEEPSEEK_V41,
    DEEPSEEK_V3,
    DEEPSEEK_V31,
)
