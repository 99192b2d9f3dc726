"""Whose words are trained, in templates that frame turns in their own ways."""

import json

import pytest
from template_cases import WEATHER, contents, control, trained

from ferrule.conversation import (
    Conversation,
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
from ferrule.dialects.segments import SampledIds
from ferrule.dialects.template.dialect import make_template_dialect
from ferrule.dialects.template.messages import encode_messages, encode_tools, keep_text
from ferrule.errors import DialectError
from tables import each_case

OFFER = "{% for t in tools or [] %}{{ '<|tool|>' + t | tojson }}{% endfor %}"
CALLS = (
    "{% for c in m.tool_calls or [] %}<tool_call>"
    '{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}</tool_call>{% endfor %}'
)
THOUGHT = "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"


def template(*, before="", assistant_="<|a|>", body=THOUGHT + "{{ m.content or '' }}" + CALLS, end="<|end|>", **more):
    """A template with one thing that is out of the ordinary."""
    roles = {
        "system": "<|s|>{{ m.content }}<|end|>",
        "user": "<|u|>{{ m.content }}<|end|>",
        "tool": "<|t|>{{ m.content }}<|end|>",
    } | {role: text for role, text in more.items() if role in ("system", "user", "tool")}
    branches = "".join(f"{{% elif m.role == '{role}' %}}{text}" for role, text in roles.items())
    loop = f"{{% for m in messages %}}{{% if m.role == 'assistant' %}}{assistant_}{body}{end}{branches}{{% endif %}}"
    prompt = more.get("prompt", "{% if add_generation_prompt %}<|a|>{% endif %}")
    return f"{before}{OFFER}{loop}{{% endfor %}}{prompt}"


SAME_TURN = "{% if not (loop.previtem and loop.previtem.role in ('tool', 'assistant')) %}<|a|>{% endif %}"
ENDS_LATER = "{% if not (loop.nextitem and loop.nextitem.role in ('tool', 'assistant')) %}<|end|>{% endif %}"
#: What each does that most templates don't.
TEMPLATES = {
    "nothing of the kind": template(),
    "writes the prompt unasked": template(
        before="<|s|>Be good.<|end|>", prompt="<|a|><think>\n\n</think>", assistant_="<|a|>"
    ),
    "goes on in one turn": template(assistant_=SAME_TURN, end=ENDS_LATER, tool="[{{ m.content }}]"),
    "goes on in one turn, and so does the prompt": template(
        assistant_=SAME_TURN,
        end=ENDS_LATER,
        tool="<tool_response>{{ m.content }}</tool_response>",
        prompt="{% if add_generation_prompt and messages[-1].role != 'tool' %}<|a|>{% endif %}",
    ),
    "has a header in the history that the prompt after a result has not": template(
        prompt="{% if add_generation_prompt and messages[-1].role != 'tool' %}<|a|>{% endif %}"
    ),
    "puts the results between a call and its text": template(
        body=THOUGHT
        + CALLS
        + "{% set ns = namespace(on=true) %}{% if m.tool_calls %}{% for r in messages[loop.index:] %}"
        "{% if r.role != 'tool' %}{% set ns.on = false %}{% elif ns.on %}"
        "<tool_response>{{ r.content }}</tool_response>{% endif %}{% endfor %}{% endif %}{{ m.content or '' }}",
        tool="",
    ),
    "closes a turn only before the next": template(end="{% if not loop.last %}<|end|>{% endif %}"),
    "closes the history otherwise": template(end="{{ '<|return|>' if loop.last else '<|end|>' }}"),
    "writes ids in the history only": template(
        body="{{ m.content or '' }}{% set last = loop.last %}{% for c in m.tool_calls or [] %}<tool_call>"
        '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}'
        '{% if not last %}, "id": "{{ c.id }}"{% endif %}}</tool_call>{% endfor %}',
        end="{% if not loop.last %}<|end|>{% endif %}",
    ),
    "leaves a result's turn open": template(
        tool="<|t|>{{ m.content }}{% if loop.last %}<|end|>{% endif %}",
        prompt="{% if add_generation_prompt %}<|a|>{% endif %}",
    ),
    "closes reasoning in the prompt": template(
        assistant_="<a>\n",
        body="{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>{% else %}</think>{% endif %}\n"
        "{{ m.content or '' }}" + CALLS,
        end="\n</a>\n",
        user="<u>\n{{ m.content }}\n</u>\n",
        prompt="{% if add_generation_prompt %}<a>\n</think>\n{% endif %}",
    ),
    "adds words to the prompt": template(
        assistant_="<|a|>\n", prompt="{% if add_generation_prompt %}<|a|>\nHere I think:\n{% endif %}"
    ),
    "looks at the ends of descriptions": template(
        before="{% for t in tools or [] %}{% set d = t.function.description %}"
        "{{ d if d.endswith('.') else d + '.' }}{% endfor %}"
    ),
    "closes the turn before in the prompt": template(
        end="",
        user="{{ '<|end|>' if not loop.first }}<|u|>{{ m.content }}",
        tool="<|end|><|t|>{{ m.content }}",
        system="{{ '<|end|>' if not loop.first }}<|s|>{{ m.content }}",
        assistant_="{{ '<|end|>' if not loop.first }}<|a|>",
        prompt="{% if add_generation_prompt %}<|end|><|a|>{% endif %}",
    ),
    "refuses to end with an answer": template(
        before="{% if messages[-1].role == 'assistant' and messages | length == 6 %}"
        "{{ raise_exception('whose turn is it?') }}{% endif %}"
    ),
    "has an end that nobody has named": template(end="[|endofturn|]\n"),
    "ends a turn with what begins the next": template(
        end="", system="<|s|>{{ m.content }}", user="<|u|>{{ m.content }}", tool="<|t|>{{ m.content }}"
    ),
    "gives calls a turn of their own": template(
        body=THOUGHT + "{{ m.content or '' }}{% if m.content and m.tool_calls %}<|end|>\n<|a|>{% endif %}" + CALLS
    ),
    "gives calls a turn of their own, and text an empty one": template(
        body=CALLS + "{% if m.tool_calls %}<|end|><|a|>{% endif %}" + THOUGHT + "{{ m.content or '' }}"
    ),
    "shows tools before the last question": template(
        before="{% set asked = namespace(at=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set asked.at = loop.index0 %}{% endif %}{% endfor %}{% if asked.at < 0 %}" + OFFER + "{% endif %}{# ",
        user="{% if loop.index0 == asked.at %}" + OFFER + "{% endif %}<|u|>{{ m.content }}<|end|>",
    ).replace("{# " + OFFER, ""),
    "wants tools": template(
        before="{% if tools is not defined or not tools %}{{ raise_exception('tools!') }}{% endif %}"
    ),
}


def call(number, city):
    return ToolCall(f"call_{number}", "weather", json.dumps({"city": city, "days": number}))


def answer(asked, text):
    return tool_message(ToolResult(asked.id, asked.name, (Text(text),)))


PARIS, ROME = call(1, "by-the-assistant Paris"), call(2, "by-the-assistant Rome")
THINK, SAY, END = (f"by-the-assistant {word}" for word in ("thinks", "says", "ends"))
ASK, GOT, MORE = (f"by-others {word}" for word in ("ask", "got", "more"))
CONVERSATIONS = {
    "answer": (user(ASK), assistant(SAY)),
    "answers": (user(ASK), assistant(SAY), user(MORE), assistant(END)),
    "answer to a system": (system("by-others rule"), user(ASK), assistant(SAY), user(MORE)),
    "call": (user(ASK), assistant(PARIS)),
    "result": (user(ASK), assistant(PARIS), answer(PARIS, GOT)),
    "call and answer": (user(ASK), assistant(PARIS), answer(PARIS, GOT), assistant(END)),
    "reasoning": (user(ASK), assistant(Reasoning(THINK), PARIS), answer(PARIS, GOT), assistant(END)),
    "text beside a call": (user(ASK), assistant(SAY, PARIS), answer(PARIS, GOT), assistant(END)),
    "an empty result": (user(ASK), assistant(SAY, PARIS), answer(PARIS, ""), assistant(END)),
    "no arguments": (user(ASK), assistant(ToolCall("c", "weather", "{}")), answer(PARIS, GOT), assistant(END)),
    "calls": (user(ASK), assistant(PARIS, ROME), answer(PARIS, GOT), answer(ROME, MORE), assistant(END)),
    "call after call": (
        *(user(ASK), assistant(PARIS), answer(PARIS, GOT), assistant(ROME), answer(ROME, MORE)),
        *(assistant(END), user("by-others thanks"), assistant("by-the-assistant welcome")),
    ),
    "answer after answer": (user(ASK), assistant(SAY), assistant(END)),
    "the same words": (
        user("OK"),
        assistant("OK"),
        user("OK"),
        assistant("OK", PARIS),
        answer(PARIS, "OK"),
        assistant("OK"),
        user("OK"),
    ),
    "an empty answer": (user(ASK), assistant(""), user(MORE), assistant(END)),
    "the assistant first": (assistant(SAY), user(MORE), assistant(END)),
    "a call first": (assistant(Reasoning(THINK), PARIS), answer(PARIS, GOT), assistant(END)),
}


def rendered(dialect, conversation, tools, prompt=False):
    messages = encode_messages(conversation, dialect.learned.shape, keep_text)
    return dialect.engine.render(messages, encode_tools(tools, keep_text), conversation.now, prompt, dialect.variables)


@pytest.fixture(scope="module")
def dialects():
    return {name: make_template_dialect(text) for name, text in TEMPLATES.items()}


@each_case("how", TEMPLATES)
@each_case("what", CONVERSATIONS)
def test_only_what_the_assistant_wrote_is_trained(dialects, how, what):
    dialect, conversation = dialects[how], Conversation(CONVERSATIONS[what])
    layout = dialect.layout(conversation, [WEATHER])
    whole = rendered(dialect, conversation, [WEATHER])
    unasked = layout.prompt[0].text if how == "writes the prompt unasked" else ""
    assert layout.text + unasked == whole
    said = "".join(trained(layout))
    assert "by-others" not in said
    assert said.count("by-the-assistant") == whole.count("by-the-assistant")
    assert "<|a|>" not in said
    assert "<a>" not in said
    assert "tool_response" not in said
    assert "<tool_call>" not in control(layout).replace(said, "") or "<tool_call>" in said
    assert said.count("<tool_call>") == whole.count("<tool_call>")


def test_the_tests_templates_are_all_hermes(dialects):
    assert {dialect.notation.name for dialect in dialects.values()} == {"hermes"}


SPOKEN = '<tool_call>{"name": "weather", "arguments": {"city": "by-the-assistant Paris", "days": 1}}</tool_call>'


@pytest.mark.parametrize(
    ("how", "what", "said"),
    [
        ("nothing of the kind", "text beside a call", [f"{SAY}{SPOKEN}<|end|>", f"{END}<|end|>"]),
        ("writes the prompt unasked", "call and answer", [f"{SPOKEN}<|end|>", f"{END}<|end|>"]),
        ("goes on in one turn", "call and answer", [SPOKEN, f"{END}<|end|>"]),
        (
            "puts the results between a call and its text",
            "text beside a call",
            [SPOKEN, f"{SAY}<|end|>", f"{END}<|end|>"],
        ),
        ("puts the results between a call and its text", "an empty result", [SPOKEN, f"{SAY}<|end|>", f"{END}<|end|>"]),
        ("closes a turn only before the next", "answers", [f"{SAY}<|end|>", END]),
        ("closes the history otherwise", "answers", [f"{SAY}<|end|>", f"{END}<|return|>"]),
        ("closes reasoning in the prompt", "answers", [f"{SAY}</a>", f"{END}</a>"]),
        ("has an end that nobody has named", "answers", [f"{SAY}[|endofturn|]", f"{END}[|endofturn|]"]),
        ("ends a turn with what begins the next", "answers", [f"{SAY}<|u|>", END]),
        ("ends a turn with what begins the next", "call and answer", [f"{SPOKEN}<|t|>", END]),
        ("ends a turn with what begins the next", "answer after answer", [SAY, END]),
        (
            "gives calls a turn of their own",
            "text beside a call",
            [f"{SAY}<|end|>", f"{SPOKEN}<|end|>", f"{END}<|end|>"],
        ),
        (
            "gives calls a turn of their own, and text an empty one",
            "call and answer",
            [f"{SPOKEN}<|end|>", f"{END}<|end|>"],
        ),
        ("shows tools before the last question", "answers", [f"{SAY}<|end|>", f"{END}<|end|>"]),
        ("adds words to the prompt", "answers", [f"{SAY}<|end|>", f"{END}<|end|>"]),
    ],
)
def test_where_words_begin_and_end(dialects, how, what, said):
    assert trained(dialects[how].layout(Conversation(CONVERSATIONS[what]), [WEATHER])) == said


@pytest.mark.parametrize(
    ("how", "stops"),
    [
        ("has an end that nobody has named", ("[|endofturn|]",)),
        ("ends a turn with what begins the next", ("<|u|>", "<|t|>")),
        ("gives calls a turn of their own", ("<|end|>",)),
    ],
)
def test_with_what_a_model_stops(dialects, how, stops):
    assert dialects[how].layout(Conversation((user(ASK),))).stops == stops


def test_calls_that_end_where_the_next_turn_begins():
    """As Solar's: calls have a closer of their own, which ends the turn as well."""
    calls = (
        "{% if m.tool_calls %}{% for c in m.tool_calls %}<|tool_call:begin|>{{ c.id }}<|tool_call:name|>"
        "{{ c.function.name }}<|tool_call:args|>{{ c.function.arguments | tojson }}"
        "<|tool_call:end|>{% endfor %}<|calls|>"
        "{% else %}<|content|>{{ m.content }}<|end|>{% endif %}"
    )
    turns = {
        "user": "<|begin|>user<|content|>{{ m.content }}<|end|>",
        "tool": "<|begin|>tool<|content|>{{ m.content }}",
    }
    dialect = make_template_dialect(
        template(
            assistant_="<|begin|>assistant",
            body="{% if m.reasoning_content %}<|think|>{{ m.reasoning_content }}<|end|><|begin|>assistant{% endif %}"
            + calls,
            end="",
            prompt="{% if add_generation_prompt %}<|begin|>assistant{% endif %}",
            **turns,
        )
    )
    assert dialect.notation.name == "solar_open"
    layout = dialect.layout(Conversation(CONVERSATIONS["reasoning"]), [WEATHER])
    assert layout.stops == ("<|flush|>", "<|calls|>")
    assert trained(layout)[0].endswith("<|calls|>")
    # The model begins its own next part, and opens its text: neither ends a generation.
    assert not {"<|begin|>", "<|begin|>assistant", "<|content|>"} & {*layout.forbidden_tokens}


def test_a_header_is_a_stray_unless_the_model_writes_it(dialects):
    assert "<|a|>" in dialects["nothing of the kind"].layout(Conversation((user(ASK),))).forbidden_tokens
    own = make_template_dialect(
        template(
            body="{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think><|eom|><|a|>{% endif %}"
            "{{ m.content or '' }}" + CALLS
        )
    )
    layout = own.layout(Conversation((user(ASK), assistant(Reasoning(THINK), SAY))))
    assert trained(layout) == [f"<think>{THINK}</think><|eom|><|a|>{SAY}<|end|>"]
    assert "<|a|>" not in layout.forbidden_tokens


@pytest.mark.parametrize("what", ["answers", "call", "result"])
def test_an_end_that_is_not_written_is_told(dialects, what):
    conversation = Conversation(CONVERSATIONS[what])
    losses = dialects["closes a turn only before the next"].layout(conversation, [WEATHER]).losses
    assert [loss.kind for loss in losses] == ([] if what == "result" else ["end"])
    assert dialects["nothing of the kind"].layout(conversation, [WEATHER]).losses == ()


def test_ids_that_hold_the_functions_name():
    """As Kimi's: a call is named by its id alone."""
    dialect = make_template_dialect(
        template(
            body="{{ m.content or '' }}{% if m.tool_calls %}<|tool_calls_section_begin|>{% for c in m.tool_calls %}"
            "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}"
            "<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>{% endif %}",
            tool="<|t|>{{ m.tool_call_id }}: {{ m.content }}<|end|>",
        )
    )
    assert dialect.notation.name.startswith("kimi_k2")
    layout = dialect.layout(Conversation(CONVERSATIONS["call after call"]), [WEATHER])
    assert [layout.text.count(f"functions.weather:{n}<|") for n in range(3)] == [1, 1, 0]
    assert [layout.text.count(f"<|t|>functions.weather:{n}:") for n in range(3)] == [1, 1, 0]
    own = ToolCall("functions.weather:7", "weather", "{}")
    layout = dialect.layout(Conversation((user(ASK), assistant(own), answer(own, GOT))), [WEATHER])
    assert layout.text.count("functions.weather:7") == 2


#: As Gemma 4 and DiffusionGemma write it: results stand in the turn of their call, and the text beside it after them.
ONE_TURN = (
    "{% macro said(m) %}{% if m.reasoning_content %}<|channel>thought\n{{ m.reasoning_content }}\n<channel|>{% endif %}"
    "{% for c in m.tool_calls or [] %}<|tool_call>call:{{ c.function.name + '{' }}"
    '{% for k, v in c.function.arguments.items() %}{{ k }}:{% if v is string %}<|"|>{{ v }}<|"|>{% else %}{{ v }}'
    "{% endif %}{{ ',' if not loop.last }}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}{% endmacro %}"
    "{% for t in tools or [] %}<|tool>{{ t | tojson }}<tool|>{% endfor %}"
    "{% for m in messages %}{% if m.role == 'user' %}<|turn>user\n{{ m.content }}<turn|>\n"
    "{% elif m.role == 'assistant' %}"
    "{% if not (loop.previtem and loop.previtem.role == 'tool') %}<|turn>model\n{% endif %}"
    "{{ said(m) }}{% set ns = namespace(on=true) %}{% if m.tool_calls %}{% for r in messages[loop.index:] %}"
    "{% if r.role != 'tool' %}{% set ns.on = false %}{% elif ns.on %}"
    '<|tool_response>response:{value:<|"|>{{ r.content }}<|"|>}<tool_response|>{% endif %}{% endfor %}{% endif %}'
    "{{ m.content or '' }}"
    "{% if not (m.tool_calls and loop.nextitem and loop.nextitem.role == 'tool') %}<turn|>\n{% endif %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt and messages[-1].role != 'tool' %}<|turn>model\n{% endif %}"
)


def test_a_result_and_the_next_answer_in_the_turn_of_a_call():
    dialect = make_template_dialect(ONE_TURN)
    assert dialect.notation.name == "gemma4"
    for beside in ((), (SAY,)):
        first = assistant(Reasoning(THINK), *beside, PARIS, ROME)
        told = (user(ASK), first, answer(PARIS, GOT), answer(ROME, MORE), assistant(Reasoning(THINK), END))
        said = "".join(trained(dialect.layout(Conversation(told), [WEATHER])))
        assert said.count("by-the-assistant") == 5 + len(beside)
        assert not any(word in said for word in ("by-others", "tool_response", "<|turn>", "model\n"))


def test_a_prompt_that_is_written_unasked_is_the_prompt(dialects):
    dialect = dialects["writes the prompt unasked"]
    layout = dialect.layout(Conversation((user(ASK),)))
    assert layout.text.endswith(f"<|u|>{ASK}<|end|>")
    assert layout.prompt[0].text == "<|a|><think>\n\n</think>"
    assert not dialect.rewrites_history


def test_sampled_words_stand_together_where_a_result_comes_between_them(dialects):
    dialect = dialects["puts the results between a call and its text"]
    sampled = SampledTokens((5, 6), (-0.1, -0.2), "abc", dialect.name, "turn")
    message = Message("assistant", (Text(SAY), PARIS), sampled)
    layout = dialect.layout(Conversation((user(ASK), message, answer(PARIS, GOT), user(MORE))), [WEATHER])
    kinds = [type(segment) for segment in layout.segments]
    assert kinds.count(SampledIds) == 1
    after = "".join(s.text for s in layout.segments[kinds.index(SampledIds) + 1 :])
    assert after == f"<tool_response>{GOT}</tool_response><|u|>{MORE}<|end|>"


def test_descriptions_that_a_template_looks_at(dialects):
    dialect = dialects["looks at the ends of descriptions"]
    layout = dialect.layout(Conversation((user(ASK),)), [WEATHER])
    assert WEATHER.description[:-1] in contents(layout)
    assert WEATHER.description[:-1] not in control(layout)


MARKUP = template(
    body='{% for c in m.tool_calls or [] %}<function name="{{ c.function.name }}">'
    '{% for k, v in c.function.arguments.items() %}<param name="{{ k }}">'
    "{% if v is string and ('<' in v or '&' in v or '\n' in v) %}<![CDATA[{{ v }}]]>{% else %}{{ v }}{% endif %}"
    "</param>{% endfor %}</function>{% endfor %}{{ m.content or '' }}"
)


@pytest.mark.parametrize("city", ["Paris", "<|end|>", "a & b", "two\nlines", "</param>"])
def test_values_that_a_template_frames_by_what_is_in_them(city):
    dialect = make_template_dialect(MARKUP)
    assert dialect.notation.name == "minicpm5"
    layout = dialect.layout(Conversation((user(ASK), assistant(call(1, city)))), [WEATHER])
    assert city in contents(layout)
    [said] = trained(layout)
    assert (f"<![CDATA[{city}]]>" if city != "Paris" else ">Paris<") in said


@pytest.mark.parametrize(
    "written", ['v | replace("\\\\", "\\\\\\\\") | replace("\'", "\\\\\'") | replace(\'\\n\', \'\\\\n\')', "v | tojson"]
)
def test_values_with_escapes(written):
    quoted = '{{ "\'" + (' + written + ') + "\'" }}' if "replace" in written else "{{ " + written + " }}"
    dialect = make_template_dialect(
        template(
            body="{% if m.tool_calls %}<|tool_call_start|>[{% for c in m.tool_calls %}{{ c.function.name }}("
            "{% for k, v in c.function.arguments.items() %}{{ k }}={% if v is string %}" + quoted + "{% else %}"
            "{{ v | tojson }}{% endif %}{{ ', ' if not loop.last }}{% endfor %}){% endfor %}]"
            "<|tool_call_end|>{% endif %}{{ m.content or '' }}"
        )
    )
    assert dialect.notation.name == "lfm2"
    city = 'it\'s "a\\b"\n<|end|>'
    layout = dialect.layout(Conversation((user(ASK), assistant(call(1, city)))), [WEATHER])
    assert [text for text in contents(layout) if "<|end|>" in text]
    assert trained(layout)[0].count("<|end|>") == 2


def test_a_conversation_that_wants_another_shape():
    dialect = make_template_dialect(
        template(
            body="{% if not m.content and not m.tool_calls %}{{ raise_exception('empty') }}{% endif %}"
            "{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for p in m.content or [] %}{{ p.text }}{% endfor %}{% endif %}" + CALLS,
            system="{{ m.content if m.content is string else m.content[0].text }}",
            user="<|u|>{{ m.content if m.content is string else m.content[0].text }}<|end|>",
        )
    )
    layout = dialect.layout(Conversation((user(ASK), assistant(""), user(MORE))))
    assert layout.text.endswith(f"<|u|>{ASK}<|end|><|a|><|end|><|u|>{MORE}<|end|>")


#: The tools stand in the first message, whoever it is of, as Llama 3.1's templates put them there.
FIRST_IS_A_USER = (
    "{% set first = messages[0] %}{% set rest = messages[1:] %}<|begin|>"
    "{% if tools %}<|u|>Given {{ tools[0] | tojson }}: {{ first.content }}<|end|>{% else %}{% set rest = messages %}"
    "{% endif %}{% for m in rest %}<|{{ m.role[0] }}|>{{ m.content or '' }}" + CALLS + "<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|a|>{% endif %}"
)


def test_an_assistant_who_is_taken_for_a_user():
    dialect = make_template_dialect(FIRST_IS_A_USER)
    conversation = Conversation(CONVERSATIONS["the assistant first"])
    assert trained(dialect.layout(conversation)) == [f"{SAY}<|end|>", f"{END}<|end|>"]
    with pytest.raises(DialectError, match="at the beginning of a conversation as a user's"):
        dialect.layout(conversation, [WEATHER])


@pytest.mark.parametrize("prompt", ["", "<|tools|>"])
def test_an_assistant_who_begins_without_a_header(prompt):
    """Templates whose header is the end of a user's turn, or that have none."""
    dialect = make_template_dialect(
        template(user="<|u|>{{ m.content }}" + prompt, assistant_="", prompt="", before="{{ messages[0].role[:0] }}")
    )
    said = trained(dialect.layout(Conversation(CONVERSATIONS["the assistant first"]), [WEATHER]))
    assert said == [f"{SAY}<|end|>", f"{END}<|end|>"]


def test_a_template_for_tools_and_nothing_else():
    dialect = make_template_dialect(TEMPLATES["wants tools"])
    assert dialect.layout(Conversation((user(ASK),)), [WEATHER]).text.endswith(f"{ASK}<|end|>")
    with pytest.raises(DialectError, match="tools!"):
        dialect.layout(Conversation((user(ASK),)))
