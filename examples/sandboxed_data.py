"""Code of a model, run on your data without a network and without your files; variables stay from call to call.

The operating system contains the code: without the layers that the sandbox promises, nothing runs, and the error says
what is missing. Only the inputs are visible to it.

    $ python examples/sandboxed_data.py
    4
    Rome
    error: Traceback (most recent call last):
      ...
    FileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'
    Rome sold the most.
"""

import asyncio
import json
import sys

from ferrule import ScriptedModel, ToolCall, model
from ferrule.builtin_tools import PythonSession

SALES = [
    {"city": "Paris", "sold": 12},
    {"city": "Rome", "sold": 31},
    {"city": "Paris", "sold": 7},
    {"city": "Oslo", "sold": 3},
]


def write_code(number: int, code: str) -> ToolCall:
    """A call of the tool `python`."""
    return ToolCall(f"call_{number}", "python", json.dumps({"code": code}))


SCRIPT = ScriptedModel(
    write_code(1, "from collections import Counter\nprint(len(sales))"),
    write_code(
        2, "total = Counter()\nfor row in sales:\n    total[row['city']] += row['sold']\ntotal.most_common(1)[0][0]"
    ),
    write_code(3, "open('/etc/passwd').read()"),
    "Rome sold the most.",
)


async def main() -> None:
    """Ask about the sales; an argument names another model, such as openai:gpt-5."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else SCRIPT
    session = PythonSession(inputs={"sales": SALES}, timeout=10)
    run = await model(chosen).chat("Which city sold the most? The list is `sales`.").using(session).run()
    for message in run.conversation.messages:
        if message.role == "tool":
            print(message.result.text)
    print(run.text)


if __name__ == "__main__":
    asyncio.run(main())
