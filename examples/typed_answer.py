"""An answer as a pydantic model: one that doesn't fit is sent back with what is wrong with it.

A model that can be constrained to a JSON Schema gets it; any other is told about it in the prompt.

    $ python examples/typed_answer.py
    first answer: {"vendor": "ACME", "total": "a lot", "due": "2026-03-01"}
    sent back:    total: got the string "a lot"; expected a number
    output:       Invoice(vendor='ACME', total=129.5, due=datetime.date(2026, 3, 1))
"""

import sys
from datetime import date

from pydantic import BaseModel

from ferrule import ScriptedModel, model

MAIL = "ACME sends an invoice of 129.50, to be paid by the first of March 2026."


class Invoice(BaseModel):
    """What an invoice asks for."""

    vendor: str
    total: float
    due: date


SCRIPT = ScriptedModel(
    '{"vendor": "ACME", "total": "a lot", "due": "2026-03-01"}',
    '{"vendor": "ACME", "total": 129.5, "due": "2026-03-01"}',
)


def main() -> None:
    """Read the invoice; an argument names another model, such as openai:gpt-5."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else SCRIPT
    run = model(chosen).chat(f"What is asked for here? {MAIL}").parse_as(Invoice, retries=2).run_sync()
    answers = [message for message in run.conversation.messages if message.role == "assistant"]
    print("first answer:", answers[0].text)
    for message in run.conversation.messages[2:]:
        if message.role == "user":
            print("sent back:   ", next(line for line in message.text.splitlines() if "total" in line).lstrip("- "))
    print("output:      ", repr(run.output))


if __name__ == "__main__":
    main()
