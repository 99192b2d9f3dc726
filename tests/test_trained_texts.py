"""The texts that models were trained on are data: each is byte for byte what `trained_texts.json` has.

`python tests/test_trained_texts.py` writes that file again, for a text that is meant to change: read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ferrule import calculator
from ferrule.conversation import Conversation, Message, Text, ToolCall, ToolResult, assistant, system, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.text_protocol import encode_conversation
from ferrule.errors import DialectError, ToolFailed
from ferrule.toolspec import ToolSpec
from tables import each_case

FILE = Path(__file__).with_suffix("").with_name("trained_texts.json")

NUMBER = {"type": "integer", "description": "How many days ahead", "default": 1}
WEATHER = ToolSpec(
    "get_weather",
    "Tell the weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city to look up"}, "days": NUMBER},
        "required": ["city"],
    },
)
TOOLS = (calculator.spec, WEATHER)
CALCULATION = ToolCall("call_1", "calculator", '{"expression": "12 * 34"}')
FORECAST = ToolCall("call_2", "get_weather", '{"city": "São Paulo", "days": 2}')
PRODUCT = ToolResult("call_1", "calculator", (Text("408"),))
BROKEN = ToolResult("call_2", "get_weather", (Text("error: no forecast for <São Paulo>"),), "error")

EXPRESSIONS = """
1 + 1
2 / 3
1 / 0
7 // 0
2 ** 100
2 ** 1000000
10 ** 400 * 10 ** 400
(1 + 2
1 +
x + 1
"banana".count("a")
"banana".upper()
"banana"[9]
"banana"[1:3]
len("banana")
len(7)
print(1)
"a" * 100000000
1 if 2 else 3
[1, 2]
not 1
1 < 2
0.1 + 0.2
1_000 * 3
12 x 3
5 % 0
True + 1
"a" + 1
__import__("os")
1e400
0777
3 ^ 2
√9
""".strip().splitlines()


def asked(dialect: str) -> tuple[Conversation, tuple[ToolSpec, ...]]:
    """A conversation that this dialect can write: two calls at once and their results, one, or none."""
    spoken = (system("Be brief."), user("What is 12 * 34, and how is the weather?"))
    ending = (assistant("408, and I can't tell."), user("Thanks."))
    both, one = ((CALCULATION, FORECAST), (PRODUCT, BROKEN)), ((CALCULATION,), (PRODUCT,))
    for (calls, results), tools in ((both, TOOLS), (one, TOOLS), (one, TOOLS[:1]), (one, ()), (((), ()), ())):
        answers = tuple(Message("tool", (result,)) for result in results)
        middle = (Message("assistant", calls), *answers) if calls else ()
        conversation = Conversation((*spoken, *middle, *ending), now="2026-01-02T03:04:05+00:00")
        try:
            get_dialect(dialect).layout(conversation, tools)
        except DialectError:
            continue
        return conversation, tools
    raise AssertionError(f"{dialect} writes no conversation")


def written(write: Any, *values: Any) -> Any:
    """What a notation writes; None for what it refuses."""
    try:
        text = write(*values)
    except DialectError:
        return None
    return text[0] if isinstance(text, tuple) else text


def texts_of_notation(name: str) -> dict[str, Any]:
    """Offers, calls and results as a family's models read and write them, and the same in plain messages."""
    notation = get_notation(name)

    def plain(*messages: Message) -> str:
        return "\n\n".join(
            each.text for each in encode_conversation(notation, Conversation(messages), TOOLS)[0].messages
        )

    return {
        "offer": written(notation.offer, TOOLS),
        "calls": [written(notation.call, call, TOOLS) for call in (CALCULATION, FORECAST)],
        "results": [written(notation.result, result) for result in (PRODUCT, BROKEN)],
        "lowered": written(plain, user("Hello."), Message("assistant", (CALCULATION,)), Message("tool", (PRODUCT,))),
    }


def texts_of_dialect(name: str) -> dict[str, Any]:
    """A whole conversation, with what of it is trained set apart."""
    pieces: list[list[Any]] = []
    for segment in get_dialect(name).layout(*asked(name)).with_prompt:
        text, trained = getattr(segment, "text", repr(segment)), getattr(segment, "trained", False)
        if pieces and pieces[-1][0] == trained:
            pieces[-1][1] += text
        else:
            pieces.append([trained, text])
    return {"layout": pieces}


def reason(expression: str) -> str:
    """What the calculator answers."""
    try:
        return calculator(expression)
    except ToolFailed as failed:
        return f"error: {failed.reason}"


def all_texts() -> dict[str, dict[str, Any]]:
    """Every text, by what writes it."""
    return {
        "calculator": {expression: reason(expression) for expression in EXPRESSIONS},
        "notations": {name: texts_of_notation(name) for name in sorted(load_families())},
        "dialects": {name: texts_of_dialect(name) for name in list_dialects()},
    }


KEPT: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


@each_case("name", KEPT["notations"] if KEPT else ())
def test_a_notation_writes_what_its_models_were_trained_on(name: str) -> None:
    assert texts_of_notation(name) == KEPT["notations"][name]


@each_case("name", KEPT["dialects"] if KEPT else ())
def test_a_dialect_writes_what_its_models_were_trained_on(name: str) -> None:
    assert texts_of_dialect(name) == KEPT["dialects"][name]


def test_the_calculator_answers_what_the_embedded_model_was_trained_on() -> None:
    assert {expression: reason(expression) for expression in EXPRESSIONS} == KEPT["calculator"]


def test_every_family_is_among_the_texts() -> None:
    assert (sorted(load_families()), list(list_dialects())) == (sorted(KEPT["notations"]), sorted(KEPT["dialects"]))


if __name__ == "__main__":
    FILE.write_text(json.dumps(all_texts(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
