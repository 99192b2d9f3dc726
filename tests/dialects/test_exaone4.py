"""A family that was added as one file: its vectors, as another engine's renderer writes them."""

from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import detect_family, get_dialect
from ferrule.dialects.catalogue import get_notation
from ferrule.events import CallFinished, ReasoningDelta

WRITTEN = """[|user|]
Weather?[|endofturn|]
[|assistant|]
<think>
Look it up.
</think>

<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>
<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>[|endofturn|]
[|tool|]
<tool_result>{"result": "21"}</tool_result>
<tool_result>{"result": "a \\"warm\\" day"}</tool_result>[|endofturn|]
[|assistant|]
<think>

</think>

Warm.[|endofturn|]
"""


def test_a_conversation_is_written_and_its_calls_are_read():
    cities = ("Paris", "Rome")
    calls = [ToolCall(f"c{at}", "weather", f'{{"city": "{city}"}}') for at, city in enumerate(cities)]
    results = [
        tool_message(ToolResult(call.id, "weather", (Text(text),)))
        for call, text in zip(calls, ("21", 'a "warm" day'), strict=True)
    ]
    answer = assistant(Reasoning("Look it up."), *calls)
    layout = get_dialect("exaone4").layout(Conversation((user("Weather?"), answer, *results, assistant("Warm."))))
    assert layout.text == WRITTEN
    said = WRITTEN.partition("[|assistant|]\n")[2].partition("[|endofturn|]")[0]
    reader = get_notation("exaone4").reader()
    events = reader.feed(said) + reader.close(stopped=True)
    assert [e.call.decode()["city"] for e in events if isinstance(e, CallFinished)] == list(cities)
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Look it up."


TEMPLATE = """{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}
{%- if m.role == 'tool' %}{{ '[|tool|]<tool_result>' + m.content + '</tool_result>' }}
{%- else %}{{ '[|' + m.role + '|]\n' }}
{%- if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function | tojson + '</tool_call>' }}{% endfor %}
{%- endif %}{{ '[|endofturn|]\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '[|assistant|]\n' }}{% endif %}"""


def test_its_template_is_recognised():
    found = detect_family(TEMPLATE)
    assert found is not None
    assert found.name == "exaone4"
    assert found.certainty > 0.9
