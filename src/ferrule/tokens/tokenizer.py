"""The `Tokenizer` protocol, a tokenizer of single bytes, and streaming decoding of ids.

Text and control tokens are separate: `encode_text` never returns a control token, whatever the text looks like, and a
control token is only ever reached by its own name. This keeps content from becoming control.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ferrule.errors import TokenizerError


class Tokenizer(Protocol):
    """Text to ids and back. Immutable, and equal only to itself."""

    def __hash__(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines a text's ids; ids with another fingerprint mean nothing here."""
        ...

    @property
    def control(self) -> Mapping[str, int]:
        """Every added token and its id."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest id."""
        ...

    def encode_text(self, text: str) -> list[int]:
        """The ids of ordinary text, none of which is in `control`."""
        ...

    def decode_token(self, token: int) -> bytes:
        """The bytes that a token represents; for a control token, those of its name."""
        ...


@lru_cache(maxsize=1)
def make_byte_alphabet() -> dict[str, int]:
    """The character for each byte in a byte-level `tokenizer.json`, as introduced by GPT-2.

    Printable bytes represent themselves; the others are moved to the code points from 256 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(256 + n): byte for n, byte in enumerate(others)})
    return alphabet


class TokenizerFile(NamedTuple):
    """A `tokenizer.json` as bytes and as data, for several readers of which one may fit."""

    path: Path
    raw: bytes
    settings: Any

    @property
    def fingerprint(self) -> str:
        """A hash of the file, which determines a text's ids."""
        return hashlib.sha256(self.raw).hexdigest()[:16]


def read_tokenizer_file(path: Path | str | TokenizerFile) -> TokenizerFile:
    """Read `path`, unless it is read already. Raises `TokenizerError` if it can't be read."""
    if isinstance(path, TokenizerFile):
        return path
    path = Path(path)
    try:
        raw = path.read_bytes()
        return TokenizerFile(path, raw, json.loads(raw))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} can't be read as a tokenizer: {error}") from error


class TokenTable:
    """A vocabulary in memory: its control tokens by name, the bytes of the others by id."""

    def __init__(self, fingerprint: str, control: Mapping[str, int], texts: Mapping[int, bytes]) -> None:
        self.fingerprint = fingerprint
        self.control = control
        self._names = {token: name for name, token in control.items()}
        self._texts = texts
        self.vocabulary_size = 1 + max(*self._names, *texts)

    def decode_token(self, token: int) -> bytes:
        """The bytes of an ordinary token, the name of a control token. Raises `TokenizerError` for neither."""
        found = self._texts.get(token)
        if found is not None:
            return found
        if token in self._names:
            return self._names[token].encode()
        raise TokenizerError(f"token id {token} is not in this vocabulary")


class ByteTokenizer(TokenTable):
    """One id per byte, read from a byte-level `tokenizer.json` without merges.

    It needs only this file; `tokenizers` gives the same ids (a test compares them).
    """

    def __init__(self, path: Path | str | TokenizerFile) -> None:
        """Read `path`. Raises `TokenizerError` if it is not a byte-level tokenizer without merges."""
        file = read_tokenizer_file(path)
        control, ids_by_byte = _read_tables(file.settings, file.path)
        super().__init__(file.fingerprint, control, {token: bytes([byte]) for byte, token in enumerate(ids_by_byte)})
        # If ids are the bytes themselves, encoding is a copy.
        self._identity = ids_by_byte == list(range(256))
        self._ids_by_byte = ids_by_byte

    def encode_text(self, text: str) -> list[int]:
        """The ids of the text's UTF-8 bytes. A lone surrogate, which UTF-8 can't encode, becomes `?`."""
        encoded = text.encode("utf-8", "replace")
        return list(encoded) if self._identity else [self._ids_by_byte[byte] for byte in encoded]


def _read_tables(settings: Any, path: Path) -> tuple[dict[str, int], list[int]]:
    try:
        model = settings["model"]
        if model["type"] != "BPE" or model["merges"]:
            raise TokenizerError(f"{path} has merges; the byte tokenizer reads vocabularies of single bytes")
        control = {entry["content"]: int(entry["id"]) for entry in settings["added_tokens"]}
        vocabulary = model["vocab"]
        return control, [int(vocabulary[character]) for character in list_byte_characters()]
    except (KeyError, TypeError) as error:
        raise TokenizerError(f"{path} is not a byte-level tokenizer.json: {error!r} is missing or invalid") from error


def list_byte_characters() -> list[str]:
    """The characters of `make_byte_alphabet`, in the order of their bytes."""
    alphabet = make_byte_alphabet()
    return sorted(alphabet, key=alphabet.__getitem__)


def make_byte_tokenizer_json(control: Sequence[str]) -> dict[str, Any]:
    """A `tokenizer.json` of 256 bytes, ids equal to the bytes, and the given control tokens after them."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 256 + n,
                "content": name,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for n, name in enumerate(control)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {character: byte for byte, character in enumerate(list_byte_characters())},
            "merges": [],
        },
    }


class Detokenizer:
    """Decodes one message's ids; incomplete characters wait for the next ids.

    An id past the vocabulary is no text: many models have more ids than their tokenizer, up to a round number.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._names = {token: name for name, token in tokenizer.control.items()}
        self._size = tokenizer.vocabulary_size
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: Iterable[int]) -> list[tuple[str, bool]]:
        """The pieces completed by `ids`, as (text, is it a control token); consecutive text is joined."""
        pieces: list[tuple[str, bool]] = []
        run: list[bytes] = []
        for token in ids:
            name = self._names.get(token)
            if name is None:
                if token < self._size:
                    run.append(self._tokenizer.decode_token(token))
                continue
            # A control token ends the text before it, so the bytes of an incomplete character become U+FFFD here.
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
        """The rest at the end: U+FFFD for each incomplete character, otherwise nothing."""
        return self._decoder.decode(b"", final=True)
