"""Rendered conversations for people, trained and untrained tokens apart, and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ferrule.cli.words import answer_words
from ferrule.conversation import Conversation
from ferrule.dialects import get_dialect
from ferrule.errors import TokenizerError
from ferrule.models.embedded import embedded_folder, read_tokenizer
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.tokens.trace import Trace

_TRAINED, _UNTRAINED = "green", "bright_black"


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that follow each other and are all trained, or all not, as text."""

    trained: bool
    text: str


class Renderer:
    """A tokenizer and a dialect, and where what they give is shown."""

    def __init__(self, tokenizer: str, dialect: str | None) -> None:
        """`dialect` None goes by the tokenizer's control tokens. Raises `TokenizerError` and `DialectError`."""
        from rich.console import Console

        path = embedded_folder() if tokenizer == "embedded" else Path(tokenizer)
        self._tokenizer = _tokenizer(path / "tokenizer.json" if path.is_dir() else path)
        fitting = "nanochat" if "<|python_start|>" in self._tokenizer.control else "hermes"
        self._dialect = get_dialect(dialect or fitting)
        self._console = Console(highlight=False, soft_wrap=True)
        self._tokens = self._trained = 0

    def show(self, conversation: Conversation, as_json: bool) -> None:
        """Print one conversation."""
        trace = render(conversation, self._dialect, self._tokenizer)
        self._tokens += len(trace)
        self._trained += sum(trace.mask)
        pieces = pieces_of(trace, self._tokenizer)
        if as_json:
            listed = [{"trained": piece.trained, "text": piece.text} for piece in pieces]
            data = {"dialect": self._dialect.name, "ids": trace.ids, "mask": trace.mask, "pieces": listed}
            print(json.dumps(data, ensure_ascii=False))
        elif self._console.is_terminal:
            self._print(*pieces)
        else:
            print("".join(f"⟦{piece.text}⟧" if piece.trained else piece.text for piece in pieces))

    def explain(self, count: int) -> None:
        """Print the legend and the counts."""
        whole = f"\n{self._dialect.name}: {count:,} conversation{'' if count == 1 else 's'}, {self._tokens:,} tokens, "
        trained, rest = f"{self._trained:,} trained", f"{self._tokens - self._trained:,} not trained"
        if self._console.is_terminal:
            self._print(Piece(False, whole), Piece(True, trained), Piece(False, f", {rest}"))
        else:
            print(f"{whole}⟦{trained}⟧, {rest}")

    def _print(self, *pieces: Piece) -> None:
        from rich.text import Text

        styled = ((answer_words(piece.text), _TRAINED if piece.trained else _UNTRAINED) for piece in pieces)
        self._console.print(Text.assemble(*styled))


def pieces_of(trace: Trace, tokenizer: Tokenizer) -> list[Piece]:
    """The text of a trace, cut where training begins and ends."""
    pieces = []
    for trained, tokens in groupby(zip(trace.mask, trace.ids, strict=True), key=lambda token: bool(token[0])):
        written = b"".join(tokenizer.token_bytes(token) for _, token in tokens)
        pieces.append(Piece(trained, written.decode("utf-8", "replace")))
    return pieces


def _tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise TokenizerError(f"{path}: there is no such tokenizer")
    return read_tokenizer(path)
