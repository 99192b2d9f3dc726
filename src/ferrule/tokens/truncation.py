"""Shortens a conversation that has outgrown its model: whole turns go, the oldest first.

A turn is a user's message and all that answers it. Calls, results and images leave with their turn, so that no result
is left without its call, and no image without the question that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ferrule.conversation import Conversation, Image, Message
from ferrule.errors import ContextLengthError
from ferrule.toolspec import ToolSpec


@runtime_checkable
class ContextMeter(Protocol):
    """A model that knows how long its context is and how much of it a conversation takes, such as a local one."""

    @property
    def context_length(self) -> int:
        """The most ids that a prompt and what is sampled after it can have together."""
        ...

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> int:
        """The length of the prompt that asks the model to continue the conversation, in ids."""
        ...


@dataclass(frozen=True, slots=True)
class Truncation:
    """What is left of a conversation, and the messages that were dropped from it, in order."""

    conversation: Conversation
    dropped: tuple[Message, ...] = ()

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the dropped messages, those in results included."""
        return tuple(
            part
            for message in self.dropped
            for part in (message.result.content if message.role == "tool" else message.parts)
            if isinstance(part, Image)
        )

    @property
    def summary(self) -> str:
        """What was dropped, as a sentence; empty where nothing was."""
        if not self.dropped:
            return ""
        turns = sum(message.role == "user" for message in self.dropped)
        images = f", {_count(len(self.images), 'image')}" if self.images else ""
        return (
            f"the oldest {_count(turns, 'turn')} ({_count(len(self.dropped), 'message')}{images}) left out: "
            "the conversation had outgrown the model's context"
        )


def drop_oldest_turns(
    conversation: Conversation, count_tokens: Callable[[Conversation], int], *, limit: int
) -> Truncation:
    """The conversation without its oldest turns, as few of them as bring it to at most `limit` tokens.

    What stands before the first user message (the system prompt) stays. `count_tokens` gives the length of a
    conversation, and is asked for a number of candidates that grows with the logarithm of the number of turns. Raises
    `ContextLengthError` where the last turn alone is too long.
    """
    if count_tokens(conversation) <= limit:
        return Truncation(conversation)
    head, turns = split_turns(conversation)

    def keep_from(first: int) -> Conversation:
        return replace(conversation, messages=(*head, *(message for turn in turns[first:] for message in turn)))

    too_few, enough = 0, len(turns) - 1
    if enough < 1 or count_tokens(keep_from(enough)) > limit:
        raise ContextLengthError(
            f"the last turn alone has more than {limit} tokens; a conversation is shortened by whole turns only"
        )
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if count_tokens(keep_from(middle)) <= limit:
            enough = middle
        else:
            too_few = middle
    return Truncation(keep_from(enough), tuple(message for turn in turns[:enough] for message in turn))


def split_turns(conversation: Conversation) -> tuple[tuple[Message, ...], list[list[Message]]]:
    """What stands before the first user message, and the turns from there on."""
    head: list[Message] = []
    turns: list[list[Message]] = []
    for message in conversation.messages:
        if message.role == "user":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
        else:
            head.append(message)
    return tuple(head), turns


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
