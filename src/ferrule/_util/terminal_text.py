"""Escapes untrusted text: on a terminal or a page it can't move the cursor, hide, or imitate our own output."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ferrule._util.unicode_tables import DEFAULT_IGNORABLE_CODE_POINT, PREPENDED_CONCATENATION_MARK

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NOT_SHOWN = re.compile(f"[{DEFAULT_IGNORABLE_CODE_POINT}\u2800]")
_SHOWN_FORMATS = re.compile(f"[{PREPENDED_CONCATENATION_MARK}]")
_NOT_PLAIN = re.compile("[^ -~]")
_OVERLAY = 1
"""The combining class of marks that are drawn over the character before them."""


def escape_line(text: str) -> str:
    """Escape a text for one line: each character that is invisible or changes how others are shown.

    These are control, bidirectional and zero-width characters, line ends, spaces other than the plain one, and marks
    that cover the character before them.
    """
    if text.isascii() and text.isprintable():
        return text
    return _replace(text, frozenset(filter(is_hidden, set(text))), _escape, _is_mark_of_writing, "")


def escape_text(text: str, before: str = "") -> str:
    """Escape a text of several lines: each character that moves the cursor or hides something.

    Line ends, tabs, spaces of every kind, and joiners and marks in emoji and in scripts that need them stay. `before`
    is what was shown just before it, if it comes in pieces.
    """
    if text.isascii() and text.isprintable():
        return text
    return replace_hidden(text, _escape, before)


def escape_json(value: Any, indent: int | None = None) -> str:
    """Dump a value as JSON, with the characters escaped that `escape_text` escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return replace_hidden(text, lambda character: json.dumps(character)[1:-1])


def replace_hidden(text: str, replace: Callable[[str], str], before: str = "") -> str:
    """Replace the characters that `escape_text` escapes by what `replace` returns for each."""
    return _replace(text, frozenset(filter(is_hidden, set(text) - {"\n", "\t"})), replace, _is_of_writing, before)


@lru_cache(maxsize=4096)
def is_hidden(character: str) -> bool:
    """Whether a character is invisible or changes how others are shown, apart from its place in ordinary writing."""
    category = unicodedata.category(character)
    if category in _INVISIBLE_CATEGORIES:
        return _SHOWN_FORMATS.match(character) is None
    covers = category == "Me" or unicodedata.combining(character) == _OVERLAY
    is_space = category == "Zs" and character != " "
    return covers or is_space or _NOT_SHOWN.match(character) is not None


def _replace(
    text: str,
    hidden: frozenset[str],
    replace: Callable[[str], str],
    is_kept: Callable[[str, str], bool],
    before: str,
) -> str:
    """Replace the hidden characters, but those that are to be kept after what is shown before them."""
    if not hidden:
        return text
    last, end = before[-2:], 0

    def show(found: re.Match[str]) -> str:
        nonlocal last, end
        character, start = found[0], found.start()
        if character not in hidden:
            return character
        last = (last + text[max(end, start - 2) : start])[-2:]
        shown = character if is_kept(character, last) else replace(character)
        last, end = (last + shown)[-2:], found.end()
        return shown

    return _NOT_PLAIN.sub(show, text)


def _is_of_writing(character: str, before: str) -> bool:
    """Whether a hidden character is part of ordinary writing after `before`, the last two characters that are shown."""
    if unicodedata.category(character) == "Zs" or "\U0001f000" <= character <= "\U0001faff":
        return True  # a space, or an emoji newer than Python's Unicode tables
    last = before[-1:]
    is_emoji = bool(last) and (unicodedata.category(last) in ("So", "Sk", "Cn") or last in "\ufe0f\u20e3")
    if character == "\u20e3":
        return re.search("[0-9#*]\ufe0f?$", before) is not None
    if character == "\ufe0f":
        return (is_emoji and last != "\ufe0f") or (bool(last) and last in "0123456789#*\u203c\u2049\u2194")
    if "\u180b" <= character <= "\u180f":
        return "\u1820" <= last <= "\u18aa"  # a variant of a Mongolian letter, or a break in a Mongolian word
    is_letter = last > "\u0600" and unicodedata.category(last)[0] in "LM" and not is_hidden(last)
    is_joiner = (character == "\u200d" and (is_emoji or is_letter)) or (character == "\u200c" and is_letter)
    return is_joiner or _is_mark_of_writing(character, before)


def _is_mark_of_writing(character: str, before: str) -> bool:
    """Whether a mark that covers is a part of the character before it (≠), or a mark of a script after its letter."""
    last = before[-1:]
    if not last or unicodedata.combining(character) != _OVERLAY:
        return False
    if len(unicodedata.normalize("NFC", last + character)) == 1:
        return True
    script, of = (unicodedata.name(one, "").partition(" ")[0] for one in (character, last))
    return script == of or (script == "VEDIC" and "\u0900" <= last <= "\u0dff")


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
