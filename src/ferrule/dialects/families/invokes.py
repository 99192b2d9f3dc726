"""Families that write a call as tags with attributes, and what came of those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.dialects.family import Family, JsonOffer, WrappedResults
from ferrule.dialects.groups import groups_of
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.invoke import Invokes, Layout
from ferrule.dialects.notations.native_words import NativeOffer, NativeResults
from ferrule.dialects.notations.nested_tags import NestedTags
from ferrule.dialects.notations.recipients import Recipients
from ferrule.dialects.notations.sections import Section
from ferrule.dialects.notations.tag_values import TagValues
from ferrule.dialects.turns import CHATML, DEEPSEEK, Turns
from ferrule.toolspec import ToolSpec

_CHATML = ("<|im_start|>", "<|im_end|>")
_DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>")
_TIGHT = Thinking(after_open="", before_close="", after_close="")
_FLAT = Layout(section="", calls="", before="", after="")
_UNTYPED = TagValues(untyped=frozenset({"string"}))
_LISTED = "# Tools\n\nThe functions you can call are listed here, one JSON object a line:\n<tools>\n"
_HOW = "\n</tools>\n\nTo call some, write their names and arguments between tags, like this:\n"
_INVOKE = '<invoke name="name">\n<parameter name="key">value</parameter>\n</invoke>'

_MINIMAX_FRAMES = Turns(
    user=("]~b]user\n", "[e~[\n"),
    assistant="]~b]ai\n",
    end="[e~[",
    after="\n",
    results=("]~b]tool\n", "[e~[\n"),
    system=("]~b]system\n", "[e~[\n"),
    begin="]~!b[",
    strays=("]~b]",),
)

MINIMAX_M2 = Family(
    name="minimax_m2",
    models="MiniMax M2, M2.5",
    syntax=Invokes(Section("<minimax:tool_call>", "</minimax:tool_call>", "<invoke", "</invoke>")),
    prose=Prose(Thinking(), turn_markers=("[e~[", "]~b]"), before_call="\n"),
    results=WrappedResults("<response>", "</response>"),
    offer=JsonOffer(_LISTED, f"{_HOW}<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>"),
    turns=replace(_MINIMAX_FRAMES, opens="<think>\n", spaced_calls=True, rewrites_history=True),
)

MINIMAX_M3 = Family(
    name="minimax_m3",
    models="MiniMax M3",
    syntax=NestedTags(),
    prose=Prose(
        replace(_TIGHT, open="<mm:think>", close="</mm:think>"), turn_markers=("[e~[", "]~b]"), before_call="\n"
    ),
    results=WrappedResults("<response>", "</response>"),
    offer=JsonOffer(
        _LISTED,
        f'{_HOW}]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="name">]<]minimax[>[<key>value]<]minimax[>[</key>'
        "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    turns=replace(_MINIMAX_FRAMES, system=("]~b]developer\n", "[e~[\n"), unthinking="</mm:think>", tight_calls=True),
)

DOTS = Family(
    name="dots",
    models="dots",
    syntax=Invokes(
        Section("<dots_function_call>", "</dots_function_call>", "<invoke", "</invoke>"), layout=_FLAT, or_json=True
    ),
    prose=Prose(Thinking()),
    results=WrappedResults("", ""),
    offer=JsonOffer(_LISTED, f"{_HOW}<dots_function_call>{_INVOKE}</dots_function_call>".replace(">\n<", "><")),
)

ANTHROPIC_XML = Family(
    name="anthropic_xml",
    models="Claude before it had tools of its own, and what was trained on its notation",
    syntax=Invokes(Section("<function_calls>", "</function_calls>", "<invoke", "</invoke>")),
    prose=Prose(result=("<function_results>", "</function_results>"), before_call="\n"),
    results=WrappedResults(
        "<result>\n<tool_name>{name}</tool_name>\n<stdout>\n", "\n</stdout>\n</result>",
        before="<function_results>\n", after="\n</function_results>",
    ),
    offer=JsonOffer(_LISTED, f"{_HOW}<function_calls>\n{_INVOKE}\n</function_calls>"),
)  # fmt: skip


def _dsml(wrapper: str, misspelled: tuple[str, ...] = ()) -> Invokes:
    """DeepSeek's notation; models leave the section's opener away, or write another word for it."""
    call = "<｜DSML｜invoke"
    return Invokes(
        Section(f"<｜DSML｜{wrapper}>", f"</｜DSML｜{wrapper}>", call, "</｜DSML｜invoke>"),
        ("<｜DSML｜parameter", "</｜DSML｜parameter>"),
        typed=("string", "true"),
        begins=(call, *(f"<｜DSML｜{word}>\n{call}" for word in misspelled)),
        tokens=("<｜DSML｜parameter", "</｜DSML｜parameter>"),
        are_rare=True,
    )


def _dsml_offer(wrapper: str) -> JsonOffer:
    return JsonOffer(
        _LISTED,
        f'{_HOW}<｜DSML｜{wrapper}>\n<｜DSML｜invoke name="name">\n<｜DSML｜parameter name="key" string="true">text'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="key" string="false">JSON</｜DSML｜parameter>\n'
        f"</｜DSML｜invoke>\n</｜DSML｜{wrapper}>",
    )


DEEPSEEK_V32 = Family(
    name="deepseek_v32",
    models="DeepSeek V3.2",
    syntax=_dsml("function_calls"),
    prose=Prose(
        _TIGHT, turn_markers=_DEEPSEEK, result=("<function_results>", "</function_results>"), before_call="\n\n"
    ),
    results=WrappedResults("<result>", "</result>", before="<function_results>\n", after="\n</function_results>"),
    offer=_dsml_offer("function_calls"),
    turns=replace(DEEPSEEK, results=("\n\n", ""), opens="<think>", resumes=("\n\n", "<think>"), spaced_calls=True),
)

DEEPSEEK_V4 = Family(
    name="deepseek_v4",
    models="DeepSeek V4, V4.1",
    syntax=_dsml("tool_calls", ("tool", "toolcalls")),
    prose=Prose(
        replace(_TIGHT, ends_at_call=True), turn_markers=_DEEPSEEK, result=("<tool_result>", "</tool_result>"),
        before_call="\n\n",
    ),
    results=WrappedResults("<tool_result>", "</tool_result>", between="\n\n"),
    offer=_dsml_offer("tool_calls"),
    turns=replace(DEEPSEEK, results=("<｜User｜>", ""), opens="<think>", spaced_calls=True),
)  # fmt: skip

MUSE_GLIMMER = Family(
    name="muse_glimmer",
    models="Muse",
    syntax=Recipients(
        Invokes(
            Section("<atem:function_calls>", "</atem:function_calls>", "<atem:invoke", "</atem:invoke>"),
            ("<atem:parameter", "</atem:parameter>"),
        )
    ),
    prose=Prose(
        replace(_TIGHT, open=" to=self<|message|>", close="<|eom|>", read_by_syntax=True),
        turn_markers=("<|eom|>", "<|eot|>"),
        result=("<tool_output name=", "</tool_output>"),
        answer=(" to=user<|message|>", ""),
        preamble=(" to=user<|message|>", "<|eom|>"),
        between="<|start|>assistant",
    ),
    results=WrappedResults('<tool_output name="{name}">\n', "\n</tool_output>"),
    offer=JsonOffer(
        _LISTED,
        f"{_HOW}<function_calls>\n{_INVOKE}\n</function_calls>".replace("<", "<atem:").replace("<atem:/", "</atem:"),
    ),
    turns=Turns(
        user=("<|start|>user<|message|>", "<|eot|>"),
        assistant="<|start|>assistant",
        end="<|eot|>",
        results=("<|start|>tool {name}<|message|>", "<|eot|>"),
        system=("<|start|>system<|message|>", "<|eot|>"),
        begin="<|begin_of_text|>",
        each_result=True,
    ),
)

MINICPM5 = Family(
    name="minicpm5",
    models="MiniCPM 5",
    syntax=Invokes(
        Section("", "", "<function", "</function>"),
        ("<param", "</param>"),
        begins=('<function name="', '<functionname="', '<function\u0120name="'),
        layout=replace(_FLAT, calls="\n"),
        tokens=("<param", "</param>"),
        values=TagValues(has_cdata=True),
    ),
    prose=Prose(Thinking(), turn_markers=_CHATML, result=("<tool_response>", "</tool_response>"), before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(_LISTED, f'{_HOW}<function name="name"><param name="key">value</param></function>'),
    turns=replace(CHATML, begin="<s>", opens="<think>\n", stops=()),
)

KIMI_K3 = Family(
    name="kimi_k3",
    models="Kimi K3",
    syntax=Invokes(
        Section("<|open|>tools<|sep|>", "<|close|>tools<|sep|>", "<|open|>call", "<|close|>call<|sep|>"),
        ("<|open|>argument", "<|close|>argument<|sep|>"),
        end="<|sep|>",
        name="tool",
        key="key",
        typed=("type", "string"),
        layout=_FLAT,
        tokens=("<|open|>argument", "<|close|>argument<|sep|>", "<|open|>call", "<|close|>call<|sep|>"),
        escapes_names=True,
        is_numbered=True,
    ),
    prose=Prose(
        replace(_TIGHT, open="<|open|>think<|sep|>", close="<|close|>think<|sep|>"),
        turn_markers=(
            "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>",
        ),
        answer=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        preamble=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        _LISTED,
        f'{_HOW}<|open|>tools<|sep|><|open|>call tool="name" index="1"<|sep|><|open|>argument key="key" type="string"'
        "<|sep|>value<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
    ),
    turns=Turns(
        user=('<|open|>message role="user"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>"),
        assistant='<|open|>message role="assistant"<|sep|>',
        end="<|close|>message<|sep|><|end_of_msg|>",
        results=(
            '<|open|>message role="tool" tool="{name}" index="{index}"<|sep|>',
            "<|close|>message<|sep|><|end_of_msg|>",
        ),
        system=('<|open|>message role="system"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>"),
        offer="before system",
        tools=(
            '<|open|>message role="system" type="tool-declare"<|sep|>', "<|close|>message<|sep|><|end_of_msg|>",
        ),
        opens="<|open|>think<|sep|>",
        each_result=True,
        empty_text=True,
        last="<|end_of_msg|>",
    ),
)  # fmt: skip

STEP3 = Family(
    name="step3",
    models="Step 3",
    syntax=Invokes(
        Section(
            "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<steptml:invoke", "</steptml:invoke>",
            ("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>"),
        ),
        ("<steptml:parameter", "</steptml:parameter>"),
        layout=replace(_FLAT, lead="<｜tool_call_begin｜>function<｜tool_sep｜>", tail="<｜tool_call_end｜>"),
        tokens=("<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"),
        values=_UNTYPED,
    ),
    prose=Prose(Thinking()),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        _LISTED,
        f"{_HOW}<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"name\">"
        '<steptml:parameter name="key">value</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>",
    ),
)  # fmt: skip

_NATIVE_CALLS = Invokes(
    Section("<tool-calls>", "</tool-calls>", "<tool-call", "</tool-call>"),
    name="function",
    owner="tool",
    layout=Layout(after="\n   ", lead="   ", indent="      "),
    escapes_names=True,
    values=TagValues(has_entities=True),
)


def _native_among(tools: Sequence[ToolSpec]) -> tuple[Invokes, NativeResults]:
    groups = groups_of(tools)
    return replace(_NATIVE_CALLS, groups=groups), NativeResults(groups)


NATIVE = Family(
    name="native",
    models="any model that is told of it: the fifth seed's XML, its system prompt included",
    syntax=_NATIVE_CALLS,
    prose=Prose(Thinking(), result=("<tool-results>", "</tool-results>"), before_call="\n"),
    results=NativeResults(),
    offer=NativeOffer(),
    among=_native_among,
)

NATIVE_3 = Family(
    name="native_3",
    models="any model that is told of it: a tag for each call, and JSON in it",
    syntax=Invokes(
        Section("", "", "<rg-tool-call", "</rg-tool-call>"),
        begins=("<rg-tool-call",),
        layout=Layout(calls="\n"),
        escapes_names=True,
        in_json=True,
    ),
    prose=Prose(Thinking(), result=("<rg-tool-response", "</rg-tool-response>"), before_call="\n"),
    results=WrappedResults('<rg-tool-response name="{name}">\n', "\n</rg-tool-response>"),
    offer=JsonOffer(
        _LISTED, '\n</tools>\n\nTo call one:\n<rg-tool-call name="name">\n{"key": "value"}\n</rg-tool-call>'
    ),
)

FAMILIES: tuple[Family, ...] = (
    MINIMAX_M2, MINIMAX_M3, DOTS, ANTHROPIC_XML, DEEPSEEK_V32, DEEPSEEK_V4, MUSE_GLIMMER, MINICPM5, KIMI_K3, STEP3,
    NATIVE, NATIVE_3,
)  # fmt: skip
