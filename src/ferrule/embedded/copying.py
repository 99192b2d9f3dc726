"""A grammar of the texts that are copied: whole words of what a model was told, in a row, as they stand there.

A small model finds the right words more often than it writes all of their letters: told that a text is a copy, it only
has to choose where it begins and ends (the idea of copying is Gu et al.'s, 2016, and pointer networks').
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from ferrule.dialects.grammar import NOTHING, Grammar, GrammarChoice, GrammarSequence, LiteralText
from ferrule.dialects.reader.calls import escape_json
from ferrule.embedded.copy_boundaries import NameRules, find_boundaries

_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, kana and Han: scripts without spaces, whose characters are pieces of their own."""
_PIECE = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+|\s+|.", re.DOTALL)


def make_copy_grammar(texts: Sequence[str], rules: NameRules | None = None) -> Grammar | None:
    """Some of the words and signs of one of these texts, escaped as between double quotes; None if they have none.

    A copy neither begins nor ends inside of a word, or with white space; with `rules` it is what people call a thing
    (see `find_boundaries`). What no text in UTF-8 can hold is a `?`, as the model was shown it.
    """
    copies = [copy for text in texts for copy in _list_copies(text.encode("utf-8", "replace").decode(), rules)]
    return GrammarChoice(tuple(copies)) if copies else None


def count_copied_words(texts: Sequence[str], rules: NameRules | None = None) -> int:
    """With how many of the words and emoji of these texts a copy may begin."""
    split = [list(_split(text)) for text in texts]
    return sum(
        may_begin and (piece[0].isalnum() or unicodedata.category(piece[0]) == "So")
        for pieces in split
        for piece, (may_begin, _) in zip(pieces, _list_boundaries(pieces, rules), strict=True)
    )


def _list_copies(text: str, rules: NameRules | None) -> list[Grammar]:
    """The copies from each place of a text on. Each is a piece and those that follow, so all share their ends."""
    copies: list[Grammar] = []
    following: Grammar | None = None
    pieces = list(_split(text))
    boundaries = reversed(_list_boundaries(pieces, rules))
    for piece, (may_begin, may_end) in zip(reversed(pieces), boundaries, strict=True):
        written = LiteralText(escape_json(piece))
        if piece.isspace():
            following = None if following is None else GrammarSequence((written, following))
            continue
        if following is not None:
            more = GrammarChoice((NOTHING, following)) if may_end else following
            following = GrammarSequence((written, more))
        elif may_end:
            following = written
        if may_begin and following is not None:
            copies.append(following)
    return copies


def _list_boundaries(pieces: Sequence[str], rules: NameRules | None) -> list[tuple[bool, bool]]:
    return [(True, True)] * len(pieces) if rules is None else list(find_boundaries(pieces, rules))


def _split(text: str) -> Iterator[str]:
    """Words, white space, and signs one by one. Combining marks belong to what they follow, and don't end a word."""
    piece = ""
    for found in _PIECE.findall(text):
        is_mark = unicodedata.category(found[0]).startswith("M")
        goes_on = piece and unicodedata.category(piece[-1]).startswith("M") and found[0].isalnum()
        if piece and not piece.isspace() and (is_mark or (goes_on and not re.match(f"[{_UNSPACED}]", found))):
            piece += found
            continue
        if piece:
            yield piece
        piece = found
    if piece:
        yield piece
