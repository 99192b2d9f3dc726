"""Shortens a conversation that has outgrown its model's context by dropping whole turns, oldest first.

A turn is a user's message and everything up to the next one. Calls, results and images are dropped with their turn, so
that no result is left without its call, and no image without its question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from ferrule.conversation import Conversation, Image, Message, iterate_images
from ferrule.errors import ContextLengthError
from ferrule.toolspec import ToolSpec


@runtime_checkable
class ContextMeter(Protocol):
    """A model that knows the length of its context and of conversations, such as a local one."""

    @property
    def context_length(self) -> int:
        """The maximum number of ids of a prompt and what is sampled after it."""
        ...

    def count_tokens(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> int:
        """The length of the prompt that asks the model to continue the conversation, in ids."""
        ...


@dataclass(frozen=True, slots=True)
class Truncation:
    """A shortened conversation, and the messages that were dropped from it, in order."""

    conversation: Conversation
    dropped: tuple[Message, ...] = ()

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the dropped messages, including those in results."""
        return tuple(iterate_images(self.dropped))

    @property
    def summary(self) -> str:
        """What was dropped, as a sentence; empty if nothing was."""
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
    """Drop the fewest oldest turns such that the conversation has at most `limit` tokens.

    What precedes the first user message (the system prompt) stays. `count_tokens` gives the length of a conversation,
    and is called for a number of candidates that grows with the logarithm of the number of turns. Raises
    `ContextLengthError` if the last turn alone is too long.
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
    """What precedes the first user message, and the turns from there on."""
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
