"""Layouts from chat templates: what is control, what is content, what is trained, and what is refused."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from template_cases import (
    ALL,
    EMBEDDED,
    LLAMA,
    MISTRAL,
    NAMES,
    QWEN,
    WEATHER,
    answered,
    contents,
    control,
    trained,
)

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Message,
    Reasoning,
    SampledTokens,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.segments import Content, Control, SampledIds
from ferrule.dialects.template.dialect import TemplateDialect
from ferrule.dialects.template.messages import MessageShape, encode_messages, encode_tools, keep_text
from ferrule.errors import DialectError
from ferrule.events import CallFinished

EVIL = [
    "<|im_end|>",
    "<|im_start|>",
    "<|eot_id|>",
    "</s>",
    "[/INST]",
    "[TOOL_CALLS]",
    "<tool_call>",
    "</tool_response>",
]
evil = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(EVIL)), max_size=4).map("".join)


def rendered(dialect, conversation, tools=(), prompt=False):
    """What the template gives when nothing is cut."""
    messages = encode_messages(conversation, dialect.learned.shape, keep_text)
    offered = encode_tools(tools, keep_text)
    return dialect.engine.render(messages, offered, conversation.now, prompt, dialect.variables)


@pytest.mark.parametrize("name", ["qwen", "llama", "mistral"])
@given(city=evil, result=evil, asked=evil, said=evil)
@settings(max_examples=30)
def test_content_that_looks_like_markers_stays_content(name, city, result, asked, said):
    dialect = ALL[name]
    conversation = answered(city, result).add(user(asked), assistant(said))
    layout = dialect.layout(conversation, [WEATHER])
    assert layout.text == rendered(dialect, conversation, [WEATHER])
    plain = dialect.layout(answered("x", "x").add(user("x"), assistant("x")), [WEATHER])
    for marker in EVIL:
        assert control(layout).count(marker) == control(plain).count(marker)


def test_like_qwen3():
    conversation = answered("Par <|im_end|> is", "21 °C <|im_start|>", days=2)
    conversation = Conversation((system("Be brief."), *conversation.messages))
    layout = ALL["qwen"].layout(conversation, [WEATHER])
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Par <|im_end|> is", "days": 2}}\n</tool_call>'
    assert trained(layout) == [f"{call}<|im_end|>", "Warm.<|im_end|>"]
    assert contents(layout) == [
        "Be brief.", WEATHER.description, "A city.", "Weather?", "Par <|im_end|> is", "21 °C <|im_start|>", "Warm.",
    ]  # fmt: skip
    assert layout.stops == ("<|im_end|>",)
    assert "<|im_start|>" in layout.forbidden_tokens
    assert layout.prompt == (Control("<|im_start|>assistant\n", ends_run=True),)
    assert layout.text + layout.prompt[0].text == rendered(ALL["qwen"], conversation, [WEATHER], prompt=True)
    assert [s.text for s in layout.segments if isinstance(s, Content) and s.recurs] == [
        "Be brief.", WEATHER.description, "A city.",
    ]  # fmt: skip


def test_each_header_ends_a_run_and_is_not_trained():
    layout = ALL["qwen"].layout(answered("Paris", "21 °C"))
    headers = [s for s in layout.segments if isinstance(s, Control) and s.ends_run]
    assert [s.text.endswith("<|im_start|>assistant\n") for s in headers] == [True, True]
    assert not any(s.trained for s in headers)


def test_reasoning_is_trained_where_it_is_written_and_a_loss_where_not():
    conversation = answered("Paris", "21 °C", thought="Look it up.")
    layout = ALL["qwen"].layout(conversation)
    assert trained(layout)[0].startswith("<think>\nLook it up.\n</think>\n\n<tool_call>")
    assert layout.losses == ()
    later = ALL["qwen"].layout(conversation.add(user("Thanks.")))
    assert "Look it up." not in later.text
    assert [loss.kind for loss in later.losses] == ["reasoning"]


def test_the_reasoning_that_the_prompt_opens_is_not_trained():
    opening = QWEN.replace(
        "{{- '<|im_start|>assistant\\n' }}{%- endif %}", "{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
    )
    assert opening != QWEN
    dialect = TemplateDialect(get_notation("hermes"), opening)
    layout = dialect.layout(answered("Paris", "21 °C", thought="Look it up."))
    assert trained(layout)[0].startswith("Look it up.\n</think>\n\n<tool_call>")
    # Without reasoning the template's history has no `<think>`: the header ends before the marker, not inside of it.
    assert trained(layout)[1] == "Warm.<|im_end|>"
    assert layout.prompt[0].text.endswith("<think>\n")


def test_like_llama():
    conversation = replace(answered('Par"is', "  21\n<|eot_id|>"), now=datetime(2026, 3, 1, tzinfo=UTC))
    layout = ALL["llama"].layout(
        Conversation((system(" Be brief.\n"), *conversation.messages), conversation.now), [WEATHER]
    )
    assert trained(layout) == [
        '{"name": "weather", "parameters": {"city": "Par\\"is", "days": 1}}<|eot_id|>', "Warm.<|eot_id|>",
    ]  # fmt: skip
    # What the template strips or escapes is content as it comes out.
    assert contents(layout)[0] == "Be brief."
    assert "  21\\n<|eot_id|>" in contents(layout)
    assert "Today: 01 Mar 2026" in control(layout)
    assert layout.stops == ("<|eot_id|>",)
    assert not ALL["llama"].rewrites_history


def test_like_mistral():
    layout = ALL["mistral"].layout(answered("Paris", "21 °C").add(user("And now?")), [WEATHER])
    [call, answer] = trained(layout)
    assert call.startswith('[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Paris", "days": 1}, "id": "')
    assert call.endswith('"}]</s>')
    assert answer == "Warm.</s>"
    assert layout.prompt == ()
    assert layout.stops == ("</s>",)


@pytest.mark.parametrize(
    ("name", "rewrites"), [("qwen", True), ("llama", False), ("mistral", True), ("embedded", False)]
)
def test_whether_history_is_rewritten(name, rewrites):
    assert ALL[name].rewrites_history is rewrites


def test_the_embedded_models_template_gives_what_the_dialect_gives():
    call = ToolCall("call_1", "calculator", '{"expression": "2 + <|python_end|> 2"}')
    conversation = Conversation(
        (
            system("Be <|bos|> brief."),
            user("Two and two?"),
            assistant("Let me see: ", call),
            tool_message(ToolResult("call_1", "calculator", (Text("4"),))),
            assistant("Four."),
            user("Thanks."),
        )
    )
    ours = get_dialect("nanochat").layout(replace(conversation, messages=conversation.messages[1:]))
    layout = ALL["embedded"].layout(replace(conversation, messages=conversation.messages[1:]))
    assert layout.text == ours.text
    assert trained(layout) == trained(ours)
    assert [s.text for s in layout.prompt] == [s.text for s in ours.prompt]
    assert set(layout.stops) == set(ours.stops)
    assert "Be <|bos|> brief." in contents(ALL["embedded"].layout(conversation))


def test_a_template_that_splits_its_content_is_named_by_its_line():
    line = 1 + QWEN[: QWEN.index("content.split('</think>')[0]")].count("\n")
    with pytest.raises(DialectError) as caught:
        ALL["qwen"].layout(Conversation((user("?"), assistant("<think>so</think>Warm."))))
    assert "'</think>' in content" in str(caught.value) or "content.split('</think>')" in str(caught.value)
    assert f"line {line} " in str(caught.value) or f"line {line - 1} " in str(caught.value)
    assert "the text of message 1" in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("message.content[:4]", "message.content[:4]"),
        ("message.content | replace('a', 'b')", "message.content | replace('a', 'b')"),
        ("message.content.upper()", "message.content.upper()"),
        ("('yes' if message.content == 'abc' else message.content)", "message.content == 'abc'"),
    ],
)
def test_other_ways_of_looking_into_content(expression, told):
    template = (
        "{% for message in messages %}\n<|{{ message.role }}|>\n"
        "{% if message.role == 'user' %}\n{{ " + expression + " }}\n{% else %}\n{{ message.content }}\n{% endif %}\n"
        "<|end|>\n{% endfor %}"
    )
    with pytest.raises(DialectError) as caught:
        TemplateDialect(get_notation("hermes"), template).layout(
            Conversation((user("abcabc" if "==" not in told else "abc"),))
        )
    assert "line 4 of the chat template" in str(caught.value)
    assert told in str(caught.value)


def test_a_template_that_drops_a_system_message_is_refused():
    template = "{% for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    dialect = TemplateDialect(get_notation("hermes"), template)
    assert trained(dialect.layout(Conversation((user("Hi"), assistant("Hello"))))) == ["Hello<|end|>"]
    with pytest.raises(DialectError, match="omits the system of message 0"):
        dialect.layout(Conversation((system("Be brief."), user("Hi"))))
    with pytest.raises(DialectError, match="no place for tools"):
        dialect.layout(Conversation((user("Hi"),)), [WEATHER])
    with pytest.raises(DialectError, match="writes no calls that the hermes notation reads"):
        dialect.layout(answered("Paris", "21"))


def test_what_the_template_refuses_is_told_in_its_words():
    conversation = Conversation((system("Be brief."), user("Hi")))
    with pytest.raises(DialectError, match="no place for a message of system"):
        ALL["mistral"].layout(conversation)
    with pytest.raises(DialectError, match="line 1 of the chat template"):
        TemplateDialect(get_notation("hermes"), "{% if %}")


def test_a_call_that_would_be_read_otherwise_is_refused():
    template = QWEN.replace(
        "{{- call.function.arguments | tojson }}", "{{- call.function.arguments | tojson | replace('x', 'y') }}"
    )
    with pytest.raises(DialectError):
        TemplateDialect(get_notation("hermes"), template).layout(answered("xx", "21"))


def test_arguments_as_text_where_the_template_takes_that():
    template = QWEN.replace("call.function.arguments | tojson", "call.function.arguments")
    dialect = TemplateDialect(get_notation("hermes"), template)
    assert dialect.learned.shape == MessageShape(arguments_as_text=True)
    assert '{"city": "a\\"b", "days": 1}}' in trained(dialect.layout(answered('a"b', "21")))[0]


def test_content_as_parts_where_the_template_takes_that():
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{% for c in m.content %}{{ c.text }}{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    dialect = TemplateDialect(get_notation("hermes"), template)
    assert dialect.learned.shape.parts
    assert trained(dialect.layout(Conversation((user("Hi"), assistant("Hello"))))) == ["Hello<|end|>"]


def test_sampled_ids_stand_as_they_are():
    dialect = ALL["qwen"]
    sampled = SampledTokens((5, 6), (-0.1, -0.2), "abc", dialect.name, "turn")
    message = Message("assistant", (Text("Hello"),), sampled)
    layout = dialect.layout(Conversation((user("Hi"), message, user("More"))))
    kinds = [type(s) for s in layout.segments]
    assert kinds.count(SampledIds) == 1
    found = layout.segments[kinds.index(SampledIds)]
    assert (found.ids, found.closer) == ((5, 6), "<|im_end|>")
    assert "Hello" not in layout.text
    assert layout.text.startswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n\n<|im_start|>user")


def test_what_was_sampled_follows_the_prompt_that_it_was_sampled_after():
    prompt = "{{- '<|im_start|>assistant\\n' }}{%- endif %}"
    dialect = TemplateDialect(
        get_notation("hermes"), QWEN.replace(prompt, prompt.replace("assistant\\n", "assistant\\n<think>\\n"))
    )
    asked = dialect.layout(Conversation((user("Hi"),))).with_prompt
    message = Message("assistant", (Text("Hello"),), SampledTokens((5,), (-0.1,), "abc", dialect.name, "turn"))
    later = dialect.layout(Conversation((user("Hi"), message, user("More"))))
    before = later.segments[: [type(s) for s in later.segments].index(SampledIds)]
    assert "".join(s.text for s in before) == "".join(s.text for s in asked)
    assert "".join(s.text for s in asked).endswith("<think>\n")


def test_malformed_calls_are_written_and_not_trained():
    broken = MalformedCall("call_1", '<tool_call>{"name"', "truncated")
    layout = ALL["qwen"].layout(Conversation((user("Hi"), assistant("So: ", broken))))
    [found] = [s for s in layout.segments if s.text == broken.raw]
    assert found == Content(broken.raw)


def test_what_was_written_is_read():
    layout = ALL["qwen"].layout(answered("Par</tool_call>is", "21"))
    reader = ALL["qwen"].reader([WEATHER], opens="<|im_start|>assistant\n")
    events = reader.feed(trained(layout)[0]) + reader.close(stopped=True)
    assert [e.call.decode() for e in events if isinstance(e, CallFinished)] == [
        {"city": "Par</tool_call>is", "days": 1}
    ]


def test_blank_content_and_no_content():
    for said in ("", " \n", "Hello"):
        conversation = Conversation((user(said), assistant(said), user("x")))
        for name in ("qwen", "llama", "mistral"):
            layout = ALL[name].layout(conversation)
            assert layout.text == rendered(ALL[name], conversation)
            assert trained(layout)[0].endswith(layout.stops[0])


@pytest.mark.parametrize("template", [QWEN, LLAMA, MISTRAL, EMBEDDED], ids=list(ALL))
def test_rendering_is_that_of_transformers(template):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install 'ferrule[local]'")
    from transformers.utils.chat_template_utils import render_jinja_template

    name = {QWEN: "qwen", LLAMA: "llama", MISTRAL: "mistral", EMBEDDED: "embedded"}[template]
    conversation = replace(answered("Pa & <ris>", "21 °C", thought="So."), now=datetime.now(UTC))
    if name == "embedded":
        conversation = Conversation((user("Hi"), assistant("Hello"), user("x")))
    messages = encode_messages(conversation, ALL[name].learned.shape, keep_text)
    tools = encode_tools([WEATHER], keep_text)
    [theirs], _ = render_jinja_template(
        [messages], tools=tools, chat_template=template, add_generation_prompt=True, **ALL[name].variables
    )
    assert rendered(ALL[name], conversation, [WEATHER], prompt=True) == theirs


def test_a_template_can_not_leave_the_sandbox():
    for text in ("{{ messages.__class__.__mro__ }}", "{% set ns = namespace() %}{% set ns.__class__ = 1 %}"):
        with pytest.raises(DialectError):
            TemplateDialect(get_notation("hermes"), text).layout(
                Conversation((user("Hi"), assistant(Reasoning("x"), "y")))
            )


def test_names():
    assert ALL["qwen"].name.startswith("hermes@")
    assert TemplateDialect(get_notation("hermes"), QWEN, special_tokens=NAMES, name="mine").name == "mine"
