"""Byte pairs merged within words: the tokenizer of the embedded model.

A word has the same ids wherever it stands, after a space, a quote or an underscore, so that a model which copies it
copies ids. Digits are single, as arithmetic needs them; only words that are hardly ever copied have their space with
them. Needs nothing but its `tokenizer.json`, for which `tokenizers` gives the same ids (a test compares them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ferrule.errors import TokenizerError
from ferrule.tokens.tokenizer import (
    TokenizerFile,
    TokenTable,
    list_byte_characters,
    make_byte_alphabet,
    make_byte_tokenizer_json,
    read_tokenizer_file,
)

_WITH_SPACE = (
    "the a an of in to and is are was be been it its that this for do does did with by on you my your me i we he she "
    "they has have had how many much what which when where who at from or not so as if there can will would should "
    "one out up off each all about get please"
)
PATTERN = (
    rf" (?:{'|'.join(_WITH_SPACE.split())})(?![A-Za-z])|: (?:str|int|bool|float|list)(?![A-Za-z])|, |=\"|[A-Za-z]+"
    r"|[^A-Za-z]"
)
"""The pieces that a text is divided into, within which bytes are merged; the same in Python and in `tokenizers`."""
_PRE_TOKENIZER: Mapping[str, Any] = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ],
}
_KEPT_PIECES = 65_536
"""Pieces whose ids are kept: texts repeat their words."""


class WordTokenizer(TokenTable):
    """Reads a `tokenizer.json` that `make_word_tokenizer_json` has made."""

    def __init__(self, path: Path | TokenizerFile) -> None:
        """Read `path`. Raises `TokenizerError` if it is not such a tokenizer."""
        file = read_tokenizer_file(path)
        path, settings = file.path, file.settings
        try:
            if settings["pre_tokenizer"] != _PRE_TOKENIZER or settings["model"]["type"] != "BPE":
                raise TokenizerError(f"{path} divides texts in another way than the tokenizer of words")
            control = {entry["content"]: int(entry["id"]) for entry in settings["added_tokens"]}
            ids: dict[str, int] = settings["model"]["vocab"]
            alphabet = str.maketrans({sign: chr(byte) for sign, byte in make_byte_alphabet().items()})
            texts = {
                token: text.translate(alphabet).encode("latin-1") for text, token in ids.items() if text not in control
            }
            self._ids_by_byte = [ids[sign] for sign in list_byte_characters()]
            self._merges = {
                (ids[left], ids[right]): (rank, ids[left + right])
                for rank, (left, right) in enumerate(settings["model"]["merges"])
            }
        except (KeyError, TypeError, ValueError) as error:
            raise TokenizerError(f"{path} is not a tokenizer of words: {error!r} is missing or invalid") from error
        super().__init__(file.fingerprint, control, texts)
        self._split = re.compile(PATTERN).findall
        self._encode_piece = lru_cache(_KEPT_PIECES)(self._merge)

    def encode_text(self, text: str) -> list[int]:
        """The ids of a text. A lone surrogate, which UTF-8 can't encode, becomes `?`."""
        return [token for piece in self._split(text) for token in self._encode_piece(piece)]

    def _merge(self, piece: str) -> tuple[int, ...]:
        ids = [self._ids_by_byte[byte] for byte in piece.encode("utf-8", "replace")]
        while best := min(
            ((*self._merges[pair], pair) for pair in pairwise(ids) if pair in self._merges), default=None
        ):
            # All places at once: no pair of what was just merged comes before it, and a long word has many.
            _, merged, pair = best
            ids = _replace_pair(ids, pair, merged)
        return tuple(ids)


def _replace_pair(ids: list[int], pair: tuple[int, int], merged: int) -> list[int]:
    replaced: list[int] = []
    for one in ids:
        if replaced and (replaced[-1], one) == pair:
            replaced[-1] = merged
        else:
            replaced.append(one)
    return replaced


def make_word_tokenizer_json(control: Sequence[str], merges: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A `tokenizer.json`: ids 0 to 255 are bytes, then come the control tokens, then what each of `merges` makes."""
    settings = make_byte_tokenizer_json(control)
    # With the control tokens, which no merge makes: else the library gives them ids from its end.
    vocabulary = settings["model"]["vocab"]
    for piece in (*control, *(left + right for left, right in merges)):
        vocabulary[piece] = len(vocabulary)
    settings["model"]["merges"] = [list(pair) for pair in merges]
    return {**settings, "pre_tokenizer": _PRE_TOKENIZER}
