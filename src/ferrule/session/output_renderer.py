"""Shows the typed output of a run: the checked value as JSON on stdout, everything else on stderr."""

from __future__ import annotations

from ferrule.agent.run import Run
from ferrule.conversation import MalformedCall, ToolCall
from ferrule.events import Event, LossesReported, MessageFinished, ResultReady
from ferrule.session.terminal.output import print_json, print_notice
from ferrule.transcript import summarize_arguments, summarize_result


class OutputRenderer:
    """Prints `Run.output`, which is JSON data, at the end of each turn; calls and losses are notices on stderr."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall | MalformedCall] = {}

    def show(self, event: Event) -> None:
        """Print a call with its result, or what was lost; the text is part of the answer."""
        if isinstance(event, MessageFinished):
            self._calls = {call.id: call for call in event.message.calls}
        elif isinstance(event, ResultReady):
            call = self._calls.get(event.result.call_id)
            arguments = "" if call is None else f"  {summarize_arguments(call)}"
            print_notice(f"{event.result.name}{arguments}  →  {summarize_result(event.result)}")
        elif isinstance(event, LossesReported):
            for loss in event.losses:
                head = "incomplete" if loss.kind == "answer" else f"not preserved: {loss.kind}"
                print_notice(f"{head}: {loss.detail}")

    def clear(self) -> None:
        """Do nothing: every line is complete."""

    def finish(self, run: Run, /, conversation_id: str | None = None) -> None:  # noqa: ARG002 - for JSON lines
        """Print the answer, if it is complete."""
        if run.stopped == "done":
            print_json(run.output)

    def notify(self, text: str) -> None:
        """Print a notice on stderr."""
        print_notice(text)
