"""Signed pieces of a message, kept so that they are sent back to the provider verbatim.

Anthropic signs its models' reasoning and Google nearly everything; each accepts a signature only with the exact text
for which it was created. A message's `extra` contains a copy of these texts, with the index of their part. If that part
was changed, they are no longer valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ferrule.conversation import Reasoning, Text

SignedPiece: TypeAlias = dict[str, Any]
"""`at` (the index of a part), `text` (a piece of it; empty if it is unreadable), and the signature data."""


def find_pieces(pieces: Iterable[Mapping[str, Any]], index: int) -> list[SignedPiece]:
    """The pieces of the part at `index`, in order."""
    return [dict(piece) for piece in pieces if piece.get("at") == index]


def match_pieces(pieces: Sequence[Mapping[str, Any]], part: object, kind: type[Text] | type[Reasoning]) -> bool:
    """Whether the pieces make up a part, which must be of `kind`. Pieces without text may precede any part."""
    text = "".join(piece.get("text", "") for piece in pieces)
    return text == part.text if isinstance(part, kind) else not text


class PartPositions:
    """Assigns pieces to parts, where consecutive pieces of one kind form one part."""

    def __init__(self) -> None:
        self._count = 0
        self._last: object = None

    def find_index(self, kind: type[Text] | type[Reasoning], text: str) -> int:
        """The index of the piece's part; for one without text, of the part that it precedes."""
        if self._last is kind:
            return self._count - 1
        if not text:
            return self._count
        self._last = kind
        self._count += 1
        return self._count - 1

    def call(self) -> None:
        """Add a call, which is a separate part."""
        self._last = None
        self._count += 1
