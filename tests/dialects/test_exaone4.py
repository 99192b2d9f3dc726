"""A family that was added as one file: its vectors, as another engine's renderer writes them."""

from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import for_template, get_dialect
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
    assert [e.call.decoded()["city"] for e in events if isinstance(e, CallFinished)] == list(cities)
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Look it up."


def test_its_template_is_recognised():
    found = for_template(f"{{% for m in messages %}}{WRITTEN}[|system|]{{% endfor %}}")
    assert found is not None
    assert (found.name, found.certainty) == ("exaone4", 0.97)
