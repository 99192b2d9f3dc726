"""A vocabulary of any size, for what has to be measured without a tokenizer of that size at hand."""

import itertools
import re
import string

CONTROL = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")


class MadeVocabulary:
    """The 256 bytes, syllables and words of them up to a size, and control tokens behind these."""

    def __init__(self, size: int) -> None:
        syllables = [(first + vowel).encode() for first in string.ascii_lowercase for vowel in "aeiouy"]
        words = (b"".join(each) for count in (1, 2, 3) for each in itertools.product(syllables, repeat=count))
        beginnings = (space + word for word in words for space in (b"", b" "))
        many = itertools.chain((bytes([byte]) for byte in range(256)), beginnings)
        self._texts = list(itertools.islice(many, size - len(CONTROL)))
        self.control = {name: len(self._texts) + at for at, name in enumerate(CONTROL)}
        self._names = {token: name for name, token in self.control.items()}
        self.vocabulary_size = size

    def decode_token(self, token: int) -> bytes:
        """The bytes of a token."""
        return self._names[token].encode() if token in self._names else self._texts[token]

    def encode(self, call: str) -> list[int]:
        """The ids of a call: control tokens by their names, the others the longest that fit."""
        known = {text: token for token, text in enumerate(self._texts)}
        pieces = re.split("(" + "|".join(map(re.escape, CONTROL)) + ")", call)
        return [token for piece in pieces if piece for token in self._encode_text(piece, known)]

    def _encode_text(self, text: str, known: dict[bytes, int]) -> list[int]:
        if text in self.control:
            return [self.control[text]]
        rest, ids = text.encode(), []
        while rest:
            size = next(size for size in range(min(8, len(rest)), 0, -1) if rest[:size] in known)
            ids.append(known[rest[:size]])
            rest = rest[size:]
        return ids
