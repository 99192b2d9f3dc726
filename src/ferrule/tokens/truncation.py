"""Conversations that are too long, shortened by whole turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.conversation import Conversation, Message
from ferrule.dialects.protocol import Dialect
from ferrule.errors import TokenizerError
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.toolspec import ToolSpec


def truncated(
    conversation: Conversation,
    dialect: Dialect,
    tokenizer: Tokenizer,
    tools: Sequence[ToolSpec] = (),
    *,
    length: int,
) -> Conversation:
    """The conversation without its oldest turns, as few of them as let it render to at most `length` ids.

    A turn is a user's message and all that answers it: calls, results and images leave together, so that no result
    is left without its call. System messages before the first turn stay. Raises `TokenizerError` where the last
    turn alone is too long.
    """
    head, turns = turns_of(conversation)
    for dropped in range(max(1, len(turns))):
        kept = [message for turn in turns[dropped:] for message in turn]
        shorter = replace(conversation, messages=(*head, *kept))
        if len(render(shorter, dialect, tokenizer, tools)) <= length:
            return conversation if not dropped else shorter
    raise TokenizerError(f"the last turn alone has more than {length} tokens; it can't be shortened by whole turns")


def turns_of(conversation: Conversation) -> tuple[tuple[Message, ...], list[list[Message]]]:
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
