"""Training conversations as traces of the embedded model, and as the texts that these consist of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ferrule.conversation import Conversation
from ferrule.dialects.families.nanochat_tools import NanochatTools
from ferrule.dialects.segments import Content
from ferrule.formats.nanochat import get_offered_tools
from ferrule.tokens.render import Trace, render
from ferrule.tokens.tokenizer import Tokenizer

_DIALECT = NanochatTools()


def render_conversation(conversation: Conversation, tokenizer: Tokenizer) -> Trace:
    """A conversation of nanochat's format, with the tools that it offers.

    Raises `DialectError` for tools that it can't offer.
    """
    return render(conversation, _DIALECT, tokenizer, get_offered_tools(conversation) or ())


def list_texts(conversation: Conversation) -> Iterator[str]:
    """The texts between the control tokens of a conversation. Raises `DialectError` as above."""
    layout = _DIALECT.layout(conversation, get_offered_tools(conversation) or ())
    for is_text, segments in groupby(layout.segments, lambda segment: isinstance(segment, Content)):
        if is_text:
            yield "".join(segment.text for segment in segments if isinstance(segment, Content))
