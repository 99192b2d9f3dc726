"""The calls that a kept conversation ends in: whether a command can go on with them, and what people decide on them."""

from __future__ import annotations

from ferrule.cli.asking import Asking
from ferrule.cli.keeping import Keeper
from ferrule.cli.permission import Nobody, Terms
from ferrule.conversation import Conversation, ToolCall
from ferrule.errors import ConversationError
from ferrule.events import MessageFinished, Usage
from ferrule.execution import Decision, Pending
from ferrule.registry import ToolRegistry
from ferrule.runs.lazy import NAME as SEARCH


def check_waiting(keeper: Keeper, registry: ToolRegistry, terms: Terms) -> None:
    """Raise `ConversationError` where the calls of a resumed conversation can't be answered here."""
    waiting = {call.name for call in keeper.resumed.pending if isinstance(call, ToolCall)}
    missing = waiting - {*registry.names, SEARCH}
    if missing:
        raise ConversationError(
            f"calls of {', '.join(sorted(missing))} wait, which isn't offered here; give --tools or --mcp"
        )
    count = len(_undecided(keeper))
    if count and isinstance(terms.approver, Nobody):
        raise ConversationError(
            f"{count} call{'s wait' if count > 1 else ' waits'} for a decision, and nobody can be asked here; "
            "resume it at a terminal, or allow all with --yes"
        )


def last_message(conversation: Conversation) -> MessageFinished:
    """The message with the open calls, as if it had just been written."""
    message = next(message for message in reversed(conversation.messages) if message.role == "assistant")
    return MessageFinished(message, Usage(), "calls")


async def decisions_on(keeper: Keeper, asking: Asking) -> dict[str, Decision]:
    """What is decided on the waiting calls, by call id: what was decided before they were kept isn't asked again."""
    for waiting in _undecided(keeper):
        if waiting.request is not None:
            keeper.decisions[waiting.call.id] = waiting.decide(await asking.decide(waiting.request))
    return keeper.decisions


def _undecided(keeper: Keeper) -> list[Pending]:
    return [one for one in keeper.pending if one.request is not None and one.call.id not in keeper.decisions]
