"""Training conversations as traces of the embedded model."""

from __future__ import annotations

from dataclasses import replace

from ferrule.conversation import Conversation
from ferrule.dialects.families.nanochat_tools import NanochatTools
from ferrule.formats.nanochat import get_offered_tools
from ferrule.tokens.render import Trace, render
from ferrule.tokens.tokenizer import Tokenizer

_DIALECT = NanochatTools()


def render_conversation(conversation: Conversation, tokenizer: Tokenizer) -> Trace:
    """A conversation of nanochat's format, with the tools that it offers.

    An assistant's message with `"trained": false` is masked: it was written in the model's place. Raises
    `DialectError` for tools that it can't offer.
    """
    tools = get_offered_tools(conversation) or ()
    trace = render(conversation, _DIALECT, tokenizer, tools)
    for place, message in enumerate(conversation.messages):
        if message.extra.get("nanochat", {}).get("keys", {}).get("trained") is False:
            ends = (
                len(render(Conversation(conversation.messages[:end]), _DIALECT, tokenizer, tools))
                for end in (place, place + 1)
            )
            trace = _mask(trace, *ends)
    return trace


def _mask(trace: Trace, start: int, end: int) -> Trace:
    return replace(trace, mask=(*trace.mask[:start], *(0,) * (end - start), *trace.mask[end:]))
