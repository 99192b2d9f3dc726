"""A call as a person is shown it before deciding: nothing in it can move the cursor, hide, or pass for our words."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from ferrule.execution.decisions import Request

_LONGEST = 4_000
_MOST_LINES = 60

_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """`text` on one line, with each character that shows nothing or changes how others show written as its escape.

    Control and bidirectional characters, zero-width ones, line ends, spaces that aren't the plain one.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def shown_request(request: Request) -> list[str]:
    """The lines that tell of a call: its tool, its arguments, what it would do, and why it is asked."""
    lines = [f"▸ {visible(request.tool)} asks to run"]
    if not request.arguments:
        lines.append("  without arguments")
    for name, value in request.arguments.items():
        lines.extend(_shown_argument(visible(name), value))
    if request.intent is not None:
        lines.extend(f"  will {effect.kind}: {visible(effect.target)}" for effect in request.intent.effects)
        if request.intent.preview:
            lines.extend(_block(request.intent.preview))
    lines.append(f"  why you are asked: {visible(request.reason)}")
    if request.problem:
        lines.extend(_block(f"not taken: {request.problem}"))
    return lines


def _shown_argument(name: str, value: Any) -> list[str]:
    if isinstance(value, str) and "\n" in value.rstrip("\n"):
        return [f"  {name}:", *_block(value)]
    return [f"  {name}: {visible(_shortened(json.dumps(value, ensure_ascii=False)))}"]


def _block(text: str) -> list[str]:
    """Several lines, each behind a bar, so that none passes for a line of ours."""
    lines = _shortened(text).split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half:,} lines not shown …", *lines[-half:]]
    return [f"  │ {visible(line)}" for line in lines]


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters not shown … {text[-half:]}"


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    if category in _INVISIBLE_CATEGORIES or character in _INVISIBLE_LETTERS:
        return True
    is_variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return is_variation or (category == "Zs" and character != " ")


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
