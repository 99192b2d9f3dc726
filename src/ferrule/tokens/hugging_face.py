"""A Hugging Face `tokenizer.json`, through the `tokenizers` library (the extra `ferrule[local]`).

Text is encoded by a copy without any added tokens. The library's own switch, `split_special_tokens`, still finds those
that were added as not special, such as `<tool_call>` and `<think>` in many models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ferrule.errors import TokenizerError
from ferrule.tokens.tokenizer import TokenizerFile, make_byte_alphabet, read_tokenizer_file

_SPACE = "▁"


class HuggingFaceTokenizer:
    """Text to ids and back like `transformers`, for text without added tokens."""

    def __init__(self, path: Path | str | TokenizerFile) -> None:
        """Read a `tokenizer.json`, or the one in a folder. Raises `TokenizerError` if that fails."""
        if not isinstance(path, TokenizerFile) and Path(path).is_dir():
            path = Path(path, "tokenizer.json")
        file = read_tokenizer_file(path)
        path, settings = file.path, file.settings
        try:
            added = settings.get("added_tokens") or ()
            self.control: dict[str, int] = {str(entry["content"]): int(entry["id"]) for entry in added}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TokenizerError(f"{path} can't be read as a tokenizer: {error}") from error
        self.fingerprint = file.fingerprint
        self._plain = _remove_added_tokens(settings, path)
        vocabulary = self._plain.get_vocab(with_added_tokens=False)
        self.vocabulary_size = 1 + max(*self.control.values(), *vocabulary.values(), -1, -1)
        self._control_ids = frozenset(self.control.values())
        # Only if the name of an added token is also an ordinary entry can plain encoding produce its id.
        self._can_leak = any(name in vocabulary for name in self.control)
        self._is_byte_level = "ByteLevel" in _collect_types(settings.get("decoder"), settings.get("pre_tokenizer"))
        self._is_metaspace = _SPACE in json.dumps([settings.get("decoder")], ensure_ascii=False)
        self._names = {token: name for name, token in self.control.items()}
        self._texts: dict[int, str] = {token: text for text, token in vocabulary.items() if token not in self._names}

    def encode_text(self, text: str) -> list[int]:
        """The ids of ordinary text; a lone surrogate, which UTF-8 can't encode, becomes `?`."""
        # A batch of one: only this method skips the offsets, which take a tenth of the time.
        ids: list[int] = self._plain.encode_batch_fast((_make_encodable(text),), add_special_tokens=False)[0].ids
        return self._break_control(text, ids) if self._can_leak else ids

    def _break_control(self, text: str, ids: list[int]) -> list[int]:
        """`ids` or, if one belongs to a control token, those of the text split inside the names that produced it."""
        found = self._control_ids.intersection(ids)
        if not found:
            return ids
        name = max((n for n in self.control if self.control[n] in found), key=len)
        if name not in text or len(name) < 2:
            # For example an unknown token, which no split can avoid: omitted, since it represents no text.
            return [token for token in ids if token not in self._control_ids]
        pieces = text.split(name)
        halves = [pieces[0], *(name[1:] + piece for piece in pieces[1:])]
        cut = [half + name[0] if at < len(halves) - 1 else half for at, half in enumerate(halves)]
        return [token for piece in cut if piece for token in self.encode_text(piece)]

    def decode_token(self, token: int) -> bytes:
        """The bytes of an ordinary token, the name of a control token.

        Raises `TokenizerError` for an unknown id, and if the decoder is neither byte-level nor SentencePiece's.
        """
        if token in self._names:
            return self._names[token].encode()
        text = self._texts.get(token)
        if text is None:
            raise TokenizerError(f"token id {token} is not in this vocabulary")
        if self._is_byte_level:
            alphabet = make_byte_alphabet()
            return bytes(alphabet[character] for character in text)
        if self._is_metaspace:
            is_byte = len(text) == 6 and text.startswith("<0x") and text.endswith(">")
            return bytes([int(text[3:5], 16)]) if is_byte else text.replace(_SPACE, " ").encode()
        raise TokenizerError("this tokenizer's decoder is not supported: the bytes of a single token are not certain")


def _make_encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _remove_added_tokens(settings: dict[str, Any], path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise TokenizerError(
            f"reading {path} needs the tokenizers library; install it with: pip install 'ferrule[local]'"
        ) from error
    plain = {**settings, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    for step in _iterate_steps(plain.get("pre_tokenizer")):
        # "first" adds a space only before the first text of a prompt; a run here is hardly ever that.
        if step.get("prepend_scheme") == "first":
            plain = json.loads(json.dumps(plain).replace('"prepend_scheme": "first"', '"prepend_scheme": "never"'))
    try:
        return Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the library raises Exception itself for an invalid file
        raise TokenizerError(f"{path} can't be read as a tokenizer: {error}") from error


def _iterate_steps(part: Any) -> Iterator[dict[str, Any]]:
    """A pre-tokenizer or decoder, and its steps if it is a sequence."""
    if isinstance(part, dict):
        yield part
        for inner in part.get("pretokenizers") or part.get("decoders") or ():
            yield from _iterate_steps(inner)


def _collect_types(*parts: Any) -> set[str]:
    return {str(step.get("type")) for part in parts for step in _iterate_steps(part)}
