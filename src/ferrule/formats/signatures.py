"""What a provider signed, kept beside a message so that it goes back to it verbatim.

Anthropic signs what its models think and Google nearly everything; each takes a signature back only beside the very
text that it was made for. A message's `extra` holds these texts once more, with the place of the part that they are
of. Where that part was changed since, they no longer hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ferrule.conversation import Reasoning, Text

SignedPiece: TypeAlias = dict[str, Any]
"""`at` (the index of a part), `text` (a piece of it; empty where nothing can be read), and what was signed with it."""


def find_pieces(pieces: Iterable[Mapping[str, Any]], index: int) -> list[SignedPiece]:
    """Those of the part at `index`, in order."""
    return [dict(piece) for piece in pieces if piece.get("at") == index]


def match_pieces(pieces: Sequence[Mapping[str, Any]], part: object, kind: type[Text] | type[Reasoning]) -> bool:
    """Whether the pieces make up a part, which is to be of `kind`. Pieces without any text stand before any part."""
    text = "".join(piece.get("text", "") for piece in pieces)
    return text == part.text if isinstance(part, kind) else not text


class PartPositions:
    """Which part of a message each piece falls into, where pieces of one kind that follow one another make one part."""

    def __init__(self) -> None:
        self._count = 0
        self._last: object = None

    def find_index(self, kind: type[Text] | type[Reasoning], text: str) -> int:
        """The index of the part that the piece is of; for one without any text, of the part that it stands before."""
        if self._last is kind:
            return self._count - 1
        if not text:
            return self._count
        self._last = kind
        self._count += 1
        return self._count - 1

    def call(self) -> None:
        """A call stands here, which is a part of its own."""
        self._last = None
        self._count += 1
