"""A grammar of the texts that are copied: whole words of what a model was told, in a row, as they stand there.

A small model finds the right words more often than it writes all of their letters: told that a text is a copy, it only
has to choose where it begins and ends (the idea of copying is Gu et al.'s, 2016, and pointer networks').
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.dialects.grammar import NOTHING, Grammar, GrammarChoice, GrammarSequence, LiteralText
from ferrule.dialects.notations.pythonic import write_literal

_PIECE = re.compile(r"[^\W_]+|\s+|.", re.DOTALL)


def make_copy_grammar(texts: Sequence[str]) -> Grammar | None:
    """Some of the words and signs of one of these texts, escaped as between double quotes; None if they have none.

    A copy neither begins nor ends inside of a word, or with white space.
    """
    copies = [copy for text in texts for copy in _list_copies(text)]
    return GrammarChoice(tuple(copies)) if copies else None


def _list_copies(text: str) -> list[Grammar]:
    """The copies from each place of a text on. Each is a piece and those that follow, so all share their ends."""
    copies: list[Grammar] = []
    following: Grammar | None = None
    for piece in reversed(_PIECE.findall(text)):
        written = LiteralText(write_literal(piece)[1:-1])
        if not piece.isspace():
            more = NOTHING if following is None else GrammarChoice((NOTHING, following))
            following = GrammarSequence((written, more))
            copies.append(following)
        elif following is not None:
            following = GrammarSequence((written, following))
    return copies
