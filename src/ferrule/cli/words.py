"""Calls and results in one line for people: nothing in them can move the cursor or hide."""

from __future__ import annotations

import json
import re

from ferrule.conversation import Image, MalformedCall, Text, ToolCall, ToolResult
from ferrule.execution.showing import visible

_LONGEST = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def arguments_words(call: ToolCall | MalformedCall) -> str:
    """What a call was given: the bare text of a single string, else `name=value` pairs."""
    if isinstance(call, MalformedCall):
        return _shortened(call.raw)
    try:
        arguments = call.decoded()
    except (ValueError, RecursionError):
        return _shortened(call.arguments)
    if not isinstance(arguments, dict):
        return _shortened(call.arguments)
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return _shortened(values[0])
    return _shortened(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()))


def result_words(result: ToolResult | str) -> str:
    """What came of a call, or what a running one says."""
    if isinstance(result, str):
        return _shortened(result)
    return "  ".join(_shortened(part.text) if isinstance(part, Text) else image_words(part) for part in result.content)


def image_words(image: Image) -> str:
    """An image by its kind, size and hash."""
    return f"[{visible(image.media_type)}, {len(image.data):,} bytes, {image.hash}]"


def answer_words(text: str) -> str:
    """Text for a terminal: line ends and tabs stay, other control characters are written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def _shortened(text: str) -> str:
    text = text.strip()
    if len(text) <= _LONGEST:
        return visible(text)
    half = _LONGEST // 2
    return f"{visible(text[:half])} … {len(text) - 2 * half:,} characters … {visible(text[-half:])}"
