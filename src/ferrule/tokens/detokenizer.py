"""Text from ids as they come, never half a character."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from ferrule.tokens.tokenizer import Tokenizer


class Detokenizer:
    """Decodes one message's ids; bytes that don't yet make a character wait for the next ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._names = {token: name for name, token in tokenizer.control.items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: Iterable[int]) -> list[tuple[str, bool]]:
        """The pieces that `ids` complete, as (text, is it a control token); text between two of those is joined."""
        pieces: list[tuple[str, bool]] = []
        run: list[bytes] = []
        for token in ids:
            name = self._names.get(token)
            if name is None:
                run.append(self._tokenizer.token_bytes(token))
                continue
            # A control token ends the text before it, so bytes of an unfinished character become U+FFFD here.
            text = self._decoder.decode(b"".join(run), final=True)
            run.clear()
            if text:
                pieces.append((text, False))
            pieces.append((name, True))
        text = self._decoder.decode(b"".join(run))
        if text:
            pieces.append((text, False))
        return pieces

    def flush(self) -> str:
        """What is left at the end: U+FFFD for each broken character, else nothing."""
        return self._decoder.decode(b"", final=True)
