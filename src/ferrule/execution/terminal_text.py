"""Text from elsewhere, escaped for a terminal: nothing in it can move the cursor, hide, or pass for our own."""

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
    """`text` on one line, with each character that shows nothing or changes how others show written as its escape.

    Control and bidirectional characters, zero-width ones, line ends, spaces that aren't the plain one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def escape_text(text: str, before: str = "") -> str:
    """`text` for a terminal as somebody wrote it, with each character that moves the cursor or hides as its escape.

    Line ends, tabs and spaces of every kind stay, and what joins emoji or the letters of a script that needs it.
    `before` is what was shown just before it, where it comes in pieces.
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
    """JSON of a value, in which a character that turns the line or can't be seen stands as its escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _UNSAFE_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    if category in _INVISIBLE_CATEGORIES or character in _INVISIBLE_LETTERS:
        return True
    is_variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return is_variation or (category == "Zs" and character != " ")


def _is_of_writing(character: str, last: str) -> bool:
    """Whether a character that shows nothing is part of how people write, after `last`."""
    if unicodedata.category(character) == "Zs" or "\U0001f000" <= character <= "\U0001faff":
        return True  # a space, or an emoji that is younger than Python's tables
    is_emoji = bool(last) and (unicodedata.category(last) in ("So", "Sk", "Cn") or last in "\ufe0f\u20e3")
    if character == "\ufe0f":
        return (is_emoji and last != "\ufe0f") or (bool(last) and last in "0123456789#*\u203c\u2049\u2194")
    is_letter = last > "\u0600" and unicodedata.category(last)[0] in "LM" and not _is_hidden(last)
    return (character == "\u200d" and (is_emoji or is_letter)) or (character == "\u200c" and is_letter)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
