"""Stops a turn in which the model makes the same failing call again and again: each costs a request, and none helps."""

from __future__ import annotations

from ferrule.agent.hooks import Hooks, RunState
from ferrule.conversation import Conversation, ToolCall, ToolResult

__all__ = ["StopRepetition"]

MOST = 8
"""How often one call may fail in the same way; from the third on, its result tells the model to try something else."""


class StopRepetition(Hooks):
    """Stops the run after the same call has failed in the same way, with no call between them that succeeded."""

    async def after_results(self, state: RunState) -> None:
        """See `Hooks`."""
        for (name, _, _), count in _count_failures(state.conversation).items():
            if count >= MOST:
                state.stop("repetition", f"{name} failed {count} times in the same way, with the same arguments")


def _count_failures(conversation: Conversation) -> dict[tuple[str, str, str], int]:
    """Count the calls that failed, by name, arguments and reason, back to the question or the last that succeeded."""
    counts: dict[tuple[str, str, str], int] = {}
    results: dict[str, ToolResult] = {}
    for message in reversed(conversation.messages):
        if message.role == "user":
            break
        if message.role == "tool":
            if not message.result.is_error:
                break
            results[message.result.call_id] = message.result
        for call in message.calls:
            result = results.get(call.id)
            if isinstance(call, ToolCall) and result is not None:
                reason = result.text.partition("\n")[0]  # what follows may count the failures, or tell times
                key = (call.name, call.arguments, reason)
                counts[key] = counts.get(key, 0) + 1
    return counts
