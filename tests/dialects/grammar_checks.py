"""Whether a text is in a grammar, with bytes as tokens."""

from __future__ import annotations

from typing import ClassVar

from ferrule.dialects.grammar import ControlToken, GrammarSequence
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from ferrule.toolspec import ToolSpec


class Bytes:
    """The tokens are bytes, and one that ends."""

    control: ClassVar = {"<end>": 256}
    vocabulary_size = 257

    def decode_token(self, token):
        return bytes([token])


def is_in(grammar, text):
    matcher = GrammarMatcher(GrammarSequence((grammar, ControlToken("<end>"))), VocabularyIndex(Bytes()))
    for token in (*text.encode(), 256):
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def spec_of(properties, required=()):
    return ToolSpec("f", "", {"type": "object", "properties": properties, "required": list(required)})
