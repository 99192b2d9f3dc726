"""What a template writes for a conversation's beginnings, derived from one rendering instead of one for each."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from template_cases import ALL, EMBEDDED, LLAMA, MISTRAL, NAMES, QWEN, WEATHER, contents

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.template.dialect import TemplateDialect
from ferrule.dialects.template.engine import TemplateEngine
from ferrule.dialects.template.sentinels import RenderingCache
from ferrule.errors import DialectError
from tables import each_case

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
ROLES = ("system", "user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant")
MESSAGES = [
    {"role": role, "content": f"text {number}", "n": number, **({"tool_calls": ["f"]} if number == 4 else {})}
    for number, role in enumerate(ROLES)
]
TOOLS = [{"type": "function", "function": {"name": "f"}}]

# Each writes the messages and something that depends on more than those before it; `{}` is replaced by the main loop.
LOOP = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
PROMPT = "{% if add_generation_prompt %}[assistant]{% endif %}"
DERIVED = {
    "plain": LOOP + PROMPT,
    "first message apart": (
        "{% if messages and messages[0].role == 'system' %}<{{ messages[0].content }}>{% set rest = messages[1:] %}"
        "{% else %}{% set rest = messages %}{% endif %}{% for m in rest %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        + PROMPT
    ),
    "looks back": (
        "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != m.role %}[{{ m.role }}]"
        "{% endif %}{{ m.content }}{% endfor %}" + PROMPT
    ),
    "looks ahead at results": (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if m.role == 'tool' and (loop.last or "
        "messages[loop.index0 + 1].role != 'tool') %}!{% endif %}{% endfor %}" + PROMPT
    ),
    "looks ahead at a number": (
        "{% for m in messages %}{{ m.n }}{% if loop.last or messages[loop.index0 + 1].n == 5 %}!{% endif %}{% endfor %}"
    ),
    "last of another loop": (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c if loop.last or messages[9] else '' }}"
        "{% endfor %}{% endfor %}"
    ),
    "next item": "{% for m in messages %}{{ m.n }}{% if m.n == 3 and loop.nextitem %}…{% endif %}{% endfor %}" + PROMPT,
    "last question": (
        "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}{{ m.content if loop.index0 > ns.last else '' }}|{% endfor %}"
    ),
    "state of an iteration": (
        "{% set ns = namespace(open=false) %}{% for m in messages %}{{ m.n }}{% set ns.open = m.role == 'assistant' %}"
        "{% endfor %}{% if add_generation_prompt and not ns.open %}[assistant]{% endif %}"
    ),
    "state that is set anew": (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = m.n %}{% endfor %}{% set ns.n = 7 %}"
        "{% for m in messages %}{{ m.n }}{% endfor %}{{ ns.n }}" + PROMPT
    ),
    "ending with the tools": LOOP + "{{ tools | tojson }}" + PROMPT,
    "ending with a macro": "{% macro f() %}{{ messages[0].role }}{% endmacro %}" + LOOP + "{{ f() }}" + PROMPT,
    "ending with a part of a message": "{% set s = messages[0].content %}" + LOOP + "{{ s }}" + PROMPT,
    "ending with a namespace": "{% set ns = namespace(n=1) %}" + LOOP + "{{ ns.n }}" + PROMPT,
    "ending with what is set by default": "{% set x = x if x is defined else 'X' %}" + LOOP + "{{ x }}" + PROMPT,
    "another loop at the end": LOOP + "{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}" + PROMPT,
    "prompt within the loop": (
        "{% for m in messages %}{{ m.n }}{% if add_generation_prompt %}?{% endif %}{% endfor %}" + PROMPT
    ),
    "prompt by another name": "{% set asked = add_generation_prompt %}" + LOOP + "{% if asked %}[assistant]{% endif %}",
    "a loop where there are tools": "{% if tools %}" + LOOP + "{% else %}-" + LOOP + "{% endif %}" + PROMPT,
    "whether there are any": "{% if messages | length != 0 %}({% endif %}" + LOOP + PROMPT,
    "broken off": "{% for m in messages %}{% if m.n == 20 %}{% break %}{% endif %}{{ m.n }}{% endfor %}" + PROMPT,
}
RENDERED = {
    "length": "{{ messages | length }}" + LOOP,
    "length of the loop": "{% for m in messages %}{{ loop.length }}{{ m.n }}{% endfor %}",
    "from the end": "{% for m in messages %}{{ loop.revindex }}{% endfor %}",
    "last message": LOOP + "{{ messages[-1].role }}",
    "last by a filter": LOOP + "{{ (messages | last).role }}",
    "backwards": "{% for m in messages[::-1] %}{{ m.n }}{% endfor %}" + LOOP,
    "backwards by a filter": "{% for m in messages | reverse %}{{ m.n }}{% endfor %}" + LOOP,
    "all but the last": "{% for m in messages[:-1] %}{{ m.n }}{% endfor %}" + LOOP,
    "as JSON": "{{ messages | tojson }}" + LOOP,
    "as text": "{{ messages }}" + LOOP,
    "joined": "{{ messages | map(attribute='n') | join(',') }}" + LOOP,
    "added": "{% for m in [] + messages %}{{ m.n }}{% endfor %}" + LOOP,
    "compared": "{{ messages == [] }}{{ {'n': 1} in messages }}" + LOOP + "{{ messages[0] in messages[1:] }}",
    "selected": "{% for m in messages if m.n > 2 %}{{ m.n }}{% endfor %}" + LOOP,
    "in each iteration": "{% for m in messages %}{% for o in messages %}{{ o.n }}{% endfor %}{% endfor %}",
    "within a macro": "{% macro f(all) %}{% for m in all %}{{ m.n }}{% endfor %}{% endmacro %}{{ f(messages) }}",
    "captured": "{% set text %}{% for m in messages %}{{ m.n }}{% endfor %}{% endset %}{{ text }}.",
    "otherwise": "{% for m in messages %}{{ m.n }}{% else %}none{% endfor %}" + LOOP,
    "joiner": "{% set comma = joiner(',') %}{% for m in messages %}{{ comma() }}{% endfor %}{{ comma() }}",
    "cycler": "{% set c = cycler('a', 'b') %}{% for m in messages %}{{ c.next() }}{% endfor %}{{ c.next() }}",
    "an iterator": (
        "{% set found = tools | map(attribute='type') if tools else [] %}{% for m in messages %}"
        "{% if m.n == 4 %}{{ found | list }}{% endif %}{% endfor %}{{ found | list }}"
    ),
    "a loop kept": (
        "{% set ns = namespace(l=0) %}{% for m in messages %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}"
    ),
    "state that the loop before leaves": (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = m.n %}{% endfor %}"
        "{% for m in messages %}{% set ns.n = 7 %}{{ m.n }}{% endfor %}{{ ns.n }}" + PROMPT
    ),
    "looks ahead after all": (
        "{% for m in messages %}{{ m.n }}{% if loop.last or m.n == 4 or messages | length == 9 %}!{% endif %}"
        "{% if m.n == 2 and not loop.last %}?{% endif %}{% endfor %}"
    ),
    "left early": "{% for m in messages %}{% if m.n == 5 %}{% break %}{% endif %}{{ m.n }}{% endfor %}{{ tools }}",
    "skipped": "{% for m in messages %}{% if m.n == 0 %}{% continue %}{% endif %}{{ m.n }}{% endfor %}",
}
SEARCH = "{% if message.role == 'user' %}{% set ns.last = loop.index0 %}"
BACKWARDS = QWEN.replace(
    "{%- for message in messages %}" + SEARCH,
    "{%- for message in messages[::-1] %}{% if ns.last < 0 and message.role == 'user' %}"
    "{% set ns.last = messages | length - 1 - loop.index0 %}",
)
WITH_IDS = QWEN.replace("\\n' + content + '\\n</tool", "\\n' + message.tool_call_id + content + '\\n</tool")
REAL = {"qwen": QWEN, "llama": LLAMA, "mistral": MISTRAL, "embedded": EMBEDDED}


@each_case("template", [*DERIVED, *RENDERED, *REAL])
def test_what_is_derived_is_what_would_be_rendered(template):
    engine = TemplateEngine({**DERIVED, **RENDERED, **REAL}[template])
    derived = 0
    for tools in (None, TOOLS if template not in REAL else None):
        for prompt in (False, True):
            derived += _compare_beginnings(engine, tools, prompt)
    assert bool(derived) == (template not in RENDERED)


def _compare_beginnings(engine, tools, prompt):
    """How many beginnings are derived; all must be as rendered, also those with the ending of another conversation."""

    def render(length, prompt):
        try:
            return engine.render(MESSAGES[:length], tools, NOW, prompt, NAMES)
        except DialectError:
            return None

    if render(len(MESSAGES), prompt) is None:
        return 1  # one that refuses a system message
    recording = engine.record(MESSAGES, tools, NOW, prompt, NAMES)
    assert recording.text == render(len(MESSAGES), prompt)
    ending = engine.record(MESSAGES[1:2], None, NOW, True, NAMES).ending if recording.ending is not None else None
    count = 0
    for length in range(1, len(MESSAGES)):
        found = recording.derive(length)
        assert found is None or found == render(length, prompt)
        asked = recording.derive(length, ending) if ending is not None else None
        assert asked is None or asked == render(length, True)
        count += found is not None
    return count


@each_case(
    ("template", "ending"),
    [
        ("plain", "[assistant]"),
        ("ending with what is set by default", "X[assistant]"),
        ("ending with the tools", None),
        ("ending with a macro", None),
        ("ending with a part of a message", None),
        ("ending with a namespace", None),
        ("another loop at the end", None),
        ("prompt within the loop", None),
        ("prompt by another name", None),
        ("state of an iteration", None),
        ("a loop where there are tools", None),
    ],
)
def test_an_ending_is_the_same_everywhere_or_none(template, ending):
    assert TemplateEngine(DERIVED[template]).record(MESSAGES, TOOLS, NOW, True, NAMES).ending == ending


def test_a_template_can_not_reach_the_recording():
    for expression in (
        "messages._recording",
        "messages._recording.reveal_all()",
        "messages[1:]._offset",
        "_loop_0.finish_iteration()",
        "_loop__0.finish_iteration()",
        "namespace.__self__",
        "namespace().place",
        "messages.append(messages[0])",
        "messages[-99].role",
    ):
        engine = TemplateEngine(LOOP + f"{{{{ {expression} }}}}")
        try:
            plain = engine.render(MESSAGES, None, NOW, False, NAMES)
        except DialectError as error:
            with pytest.raises(DialectError, match=f"^{re.escape(str(error))}$"):
                engine.record(MESSAGES, None, NOW, False, NAMES)
        else:
            assert engine.record(MESSAGES, None, NOW, False, NAMES).text == plain


class Counter:
    """Counts the renderings of a template that begins with `{{- count() }}`."""

    def __init__(self):
        self.renderings = 0

    def __call__(self):
        self.renderings += 1
        return ""

    def take(self):
        count, self.renderings = self.renderings, 0
        return count


def _make_counted(template, notation="hermes", **variables):
    counter = Counter()
    counted = TemplateDialect(
        get_notation(notation), "{{- count() }}" + template, variables={**NAMES, **variables, "count": counter}
    )
    counted.layout(Conversation((user("Hi"),)))  # finds once what every layout needs
    counter.take()
    return counted, counter


def _nine_messages(*words, call_id="call_1"):
    first, second, third, city, result, fourth = words
    call = ToolCall(call_id, "weather", json.dumps({"city": city, "days": 1}))
    return Conversation(
        (
            system("Be brief."),
            user(first),
            assistant(second),
            user("Weather?"),
            assistant(call),
            tool_message(ToolResult(call_id, "weather", (Text(result),))),
            assistant(third),
            user("And?"),
            assistant(fourth),
        )
    )


ONE = _nine_messages("Hi.", "Hello.", "It rains.", "Paris", "rain", "No.")
OTHER = _nine_messages("<|im_end|>", "A </tool_call>", "x\n\ny", 'a "b"', "</tool_response>", "<think>")


@pytest.mark.parametrize(("template", "notation"), [(QWEN, "hermes"), (LLAMA, "llama3_json")])
def test_how_often_a_conversation_of_nine_messages_is_rendered(template, notation):
    dialect, counter = _make_counted(template, notation)
    plain = TemplateDialect(get_notation(notation), template, special_tokens=NAMES)
    assert dialect.layout(ONE, [WEATHER]).segments == plain.layout(ONE, [WEATHER]).segments
    assert counter.take() <= 4
    # Of the same shape: only what it contains is new.
    layout = dialect.layout(OTHER, [WEATHER])
    assert counter.take() == 1
    expected = TemplateDialect(get_notation(notation), template, special_tokens=NAMES).layout(OTHER, [WEATHER])
    assert (layout.segments, layout.prompt, layout.losses) == (expected.segments, expected.prompt, expected.losses)
    assert dialect.layout(ONE, [WEATHER]).segments == plain.layout(ONE, [WEATHER]).segments


def test_the_number_of_renderings_does_not_grow_with_the_turns():
    dialect, counter = _make_counted(QWEN)
    for turns in (1, 5, 30):
        dialect.layout(Conversation((user("Hi"), assistant("Ho")) * turns))
        assert counter.take() <= 3


@pytest.mark.parametrize(
    ("template", "notation"),
    [(QWEN, "hermes"), (BACKWARDS, "hermes"), (MISTRAL, "mistral_v7"), (WITH_IDS, "hermes")],
)
def test_a_conversation_with_other_ids_of_calls_is_rendered_once(template, notation):
    dialect, counter = _make_counted(template, notation)
    words = ("Hi.", "Hello.", "It rains.", "Paris", "rain", "No.")
    for number, call_id in enumerate(("call_1", "q0Z00000y", "toolu_01AbC", "f:0", "chatcmpl-tool-7", "123456789")):
        conversation = Conversation(_nine_messages(*words, call_id=call_id).messages[1:])
        layout = dialect.layout(conversation, [WEATHER])
        assert counter.take() == 1 or number < 2  # the second looks like a sentinel
        new = TemplateDialect(get_notation(notation), template, special_tokens=NAMES)
        assert layout.segments == new.layout(conversation, [WEATHER]).segments
        assert (call_id in layout.text) == (template == WITH_IDS or (template == MISTRAL and len(call_id) == 9))


def test_a_template_that_inspects_the_ids_of_calls_gets_them():
    checking = "{{ 'Known: ' if message.tool_call_id.startswith('call') else '' }}{{ message.tool_call_id[-3:] }}"
    checked = QWEN.replace("tool_response>\\n' + content", f"tool_response>\\n' }}}}{checking}{{{{ content")
    dialect = TemplateDialect(get_notation("hermes"), checked, special_tokens=NAMES)
    for call_id, shown in (("call_100", "Known: 100rain"), ("c_200", "200rain")):
        layout = dialect.layout(_nine_messages(*"abcd", "rain", "f", call_id=call_id), [WEATHER])
        assert f"<tool_response>\n{shown}" in layout.text


@pytest.mark.parametrize("template", [QWEN, BACKWARDS])
def test_a_conversation_that_grows_is_rendered_four_times_for_each_message(template):
    dialect, counter = _make_counted(template)
    counts = []
    for length in range(2, 10):
        conversation = Conversation(ONE.messages[:length])
        layout = dialect.layout(conversation, [WEATHER])
        counts.append(counter.take())
        new = TemplateDialect(get_notation("hermes"), template, special_tokens=NAMES)
        expected = new.layout(conversation, [WEATHER])
        assert (layout.segments, layout.prompt) == (expected.segments, expected.prompt)
    assert max(counts) <= 4
    # One that begins in the same way and ends in another.
    dialect.layout(Conversation((*ONE.messages[:5], user("Stop."), assistant("Stopped."))), [WEATHER])
    assert counter.take() <= 5


def test_the_beginnings_that_are_kept_are_limited():
    cache = RenderingCache()
    for number in range(30):
        cache.put_beginning(number, "x" * 1_000_000)
    kept = [cache.get_beginning(number) for number in range(30)]
    assert kept[-1] is not None
    assert sum(len(text) for text in kept if text is not None) <= 10_000_000


def test_where_the_history_is_rewritten_each_turn_is_rendered_once():
    dialect, counter = _make_counted(QWEN)
    thought = assistant(Reasoning("Hm."), "Ho")
    layout = dialect.layout(Conversation((user("Hi"), thought) * 3))
    assert counter.take() <= 4
    assert [loss.kind for loss in layout.losses] == ["reasoning", "reasoning"]


def test_conversations_of_one_shape_keep_their_own_kinds_times_and_ids():
    dated = TemplateDialect(get_notation("hermes"), "{{- strftime_now('%d') }}" + QWEN)
    for day in range(2):
        later = Conversation(ONE.messages, NOW + timedelta(days=day))
        assert dated.layout(later, [WEATHER]).text.startswith(f"0{4 + day}<|im_start|>")
    said = ALL["qwen"].layout(Conversation((user("Hi"), assistant("cut"))))
    broken = ALL["qwen"].layout(Conversation((user("Hi"), assistant(MalformedCall("call_1", "cut", "truncated")))))
    assert [s.trained for layout in (said, broken) for s in layout.segments if s.text == "cut"] == [True, False]
    written = TemplateDialect(get_notation("hermes"), WITH_IDS)
    for call_id in ("call_1", "call_2"):
        assert f"{call_id}rain" in written.layout(_nine_messages(*"abcd", "rain", "f", call_id=call_id), [WEATHER]).text
    assert contents(ALL["qwen"].layout(ONE, [WEATHER]))[-1] == "No."
