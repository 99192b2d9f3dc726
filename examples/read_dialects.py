"""What a model wrote, as events: the same call in the notations of several families, in pieces as they would arrive.

A call that is nearly right is repaired, and the event says how; without repairs, it is a malformed call.

    $ python examples/read_dialects.py
    hermes       weather {"city": "Paris", "days": 2}
    mistral      weather {"city": "Paris", "days": 2}
    pythonic     weather {"city": "Paris", "days": 2}
    glm47        weather {"city": "Paris", "days": 2}
    qwen3_coder  weather {"city": "Paris", "days": 2}
    repaired:    weather {"city": "Paris", "days": 2} (single_quotes, trailing_comma)
    not a call:  invalid_json
"""

import json

from ferrule import CallFinished, CallMalformed, ToolCall, ToolSpec
from ferrule.dialects import get_notation

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
WEATHER = ToolSpec("weather", "The weather of the days to come.", SCHEMA)
CALL = ToolCall("call_1", "weather", '{"city": "Paris", "days": 2}')


def read(family: str, text: str, repair: bool = True) -> list[object]:
    """The events of a text that arrives in pieces of seven characters."""
    reader = get_notation(family).reader([WEATHER], repair=repair)
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close()


def main() -> None:
    """Write one call as each family does, and read it back."""
    for family in ("hermes", "mistral", "pythonic", "glm47", "qwen3_coder"):
        for event in read(family, get_notation(family).call(CALL)):
            if isinstance(event, CallFinished):
                print(family.ljust(12), event.call.name, json.dumps(event.call.decode()))
    nearly = "<tool_call>{'name': 'weather', 'arguments': {'city': 'Paris', 'days': 2,}}</tool_call>"
    for event in read("hermes", nearly):
        if isinstance(event, CallFinished):
            print("repaired:   ", event.call.name, json.dumps(event.call.decode()), f"({', '.join(event.repairs)})")
    for event in read("hermes", nearly, repair=False):
        if isinstance(event, CallMalformed):
            print("not a call: ", event.kind)


if __name__ == "__main__":
    main()
