"""A conversation that waits for a decision is saved, and goes on in another process, which may run on another day.

The store keeps with the call what a person must see to decide on it.

    $ python examples/resume.py
    first process:  paused; waiting: book {'city': 'Rome'}
    second process: booked Rome
    second process: Your trip to Rome is booked.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from ferrule import Decision, Policy, ScriptedModel, ToolCall, model, tool
from ferrule.store import Store


@tool(approval="always")
def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


def begin(file: Path) -> str:
    """Ask for a trip, save the paused conversation, and return its id."""
    script = ScriptedModel(ToolCall("call_1", "book", '{"city": "Rome"}'))
    run = model(script).chat("A trip to Rome, please.").using(book, policy=Policy(), on_ask="pause").run_sync()
    [waiting] = run.pending
    print(
        f"first process:  {run.stopped}; waiting: {waiting.request.tool} {dict(waiting.request.arguments)}", flush=True
    )
    with Store(file) as store:
        return store.save(run.conversation, pending=run.pending)


def go_on(file: Path, id: str) -> None:  # noqa: A002 - the word for it
    """Load the conversation, allow what waits, and let the model answer."""
    with Store(file) as store:
        stored = store.load(id)
        # A decision holds for these arguments only: the call could not be exchanged for another one.
        decisions = {waiting.call.id: waiting.decide(Decision.allow(by="Ada")) for waiting in stored.pending}
        agent = model(ScriptedModel("Your trip to Rome is booked.")).using(book, on_ask="pause")
        run = agent.chat(stored.conversation).run_sync(decisions=decisions)
        store.save(run.conversation, id=id)
    print("second process:", run.conversation.messages[2].result.text)
    print("second process:", run.text)


def main() -> None:
    """Begin here, and go on in a new process."""
    if len(sys.argv) > 2:
        go_on(Path(sys.argv[1]), sys.argv[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "conversations.db"
        subprocess.run([sys.executable, __file__, str(file), begin(file)], check=True)


if __name__ == "__main__":
    main()
