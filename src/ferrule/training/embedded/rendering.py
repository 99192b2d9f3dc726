"""Training conversations as traces of the embedded model."""

from __future__ import annotations

from ferrule.conversation import Conversation
from ferrule.dialects.families.nanochat_tools import NanochatTools
from ferrule.formats.nanochat import get_offered_tools
from ferrule.tokens.render import Trace, render
from ferrule.tokens.tokenizer import Tokenizer

_DIALECT = NanochatTools()


def render_conversation(conversation: Conversation, tokenizer: Tokenizer) -> Trace:
    """A conversation of nanochat's format, with the tools that it offers.

    Raises `DialectError` for tools that it can't offer.
    """
    return render(conversation, _DIALECT, tokenizer, get_offered_tools(conversation) or ())
