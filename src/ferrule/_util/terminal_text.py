"""Escapes untrusted text for a terminal: it can't move the cursor, hide, or imitate our own output."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_UNSAFE_IN_JSON = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escape_line(text: str) -> str:
    """Escape a text for one line: each character that is invisible or changes how others are shown.

    These are control, bidirectional and zero-width characters, line ends, and spaces other than the plain one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def escape_text(text: str, before: str = "") -> str:
    """Escape a text of several lines: each character that moves the cursor or hides something.

    Line ends, tabs, spaces of every kind, and joiners in emoji and in scripts that need them stay. `before` is the
    text shown just before it, if it comes in pieces.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = []
    last = before[-1:]
    for character in text:
        stays = character in "\n\t" or not _is_hidden(character) or _is_of_writing(character, last)
        shown.append(character if stays else _escape(character))
        last = character
    return "".join(shown)


def escape_json(value: Any, indent: int | None = None) -> str:
    """Dump a value as JSON, with bidirectional and invisible characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _UNSAFE_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    if category in _INVISIBLE_CATEGORIES or character in _INVISIBLE_LETTERS:
        return True
    is_variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return is_variation or (category == "Zs" and character != " ")


def _is_of_writing(character: str, last: str) -> bool:
    """Whether an invisible character is part of ordinary writing after the character `last`."""
    if unicodedata.category(character) == "Zs" or "\U0001f000" <= character <= "\U0001faff":
        return True  # a space, or an emoji newer than Python's Unicode tables
    is_emoji = bool(last) and (unicodedata.category(last) in ("So", "Sk", "Cn") or last in "\ufe0f\u20e3")
    if character == "\ufe0f":
        return (is_emoji and last != "\ufe0f") or (bool(last) and last in "0123456789#*\u203c\u2049\u2194")
    is_letter = last > "\u0600" and unicodedata.category(last)[0] in "LM" and not _is_hidden(last)
    return (character == "\u200d" and (is_emoji or is_letter)) or (character == "\u200c" and is_letter)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
