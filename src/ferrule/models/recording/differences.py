"""What a request has that the nearest recorded one doesn't have, in a few lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any

from ferrule.models.recording.request import Request, Row

_MOST_LINES = 6
_SHOWN = 80
"""Characters shown of a text."""
_BEFORE = 25
"""Characters shown before the place where two texts begin to differ."""


def find_nearest(request: Request, recorded: Sequence[Request]) -> int | None:
    """The index of the recorded request that is most like this one; the latest of several. None if there is none."""
    order = [(_rate_similarity(request, one), at) for at, one in enumerate(recorded)]
    return max(order)[1] if order else None


def _rate_similarity(request: Request, other: Request) -> tuple[bool, int, float, int]:
    """How alike two requests are: in length, in equal messages, in the words of the others, and around them."""
    pairs = list(zip(request.messages, other.messages, strict=False))
    same = sum(one == two for one, two in pairs)
    words = sum(_rate_words(describe_parts(one), describe_parts(two)) for one, two in pairs if one != two)
    around = (request.tools == other.tools) + (request.settings == other.settings)
    return len(request.messages) == len(other.messages), same, words, around


def _rate_words(one: str, two: str) -> float:
    """The share of words that two texts have in common."""
    first, second = set(one.split()), set(two.split())
    return len(first & second) / max(1, len(first | second))


def describe_differences(recorded: Request, request: Request) -> list[str]:
    """One line for each difference, the messages first; a last line counts those that are left out."""
    lines = [
        *_compare_messages(recorded.messages, request.messages),
        *_compare_settings(recorded.settings, request.settings),
        *_compare_tools(recorded.tools, request.tools),
    ]
    if len(lines) > _MOST_LINES:
        rest = len(lines) - _MOST_LINES + 1
        lines[_MOST_LINES - 1 :] = [f"… and {rest} more differences"]
    return lines


def _compare_messages(recorded: Iterable[Row], now: Iterable[Row]) -> Iterator[str]:
    for at, (old, new) in enumerate(zip_longest(recorded, now)):
        if old == new:
            continue
        where = f"message {at} ({(new or old)['role']})"
        if old is None or new is None:
            kind, message = ("new", new) if old is None else ("missing", old)
            yield f"{where} is {kind}: {_shorten(describe_parts(message))}"
        elif old["role"] != new["role"]:
            yield f"message {at}: recorded from {old['role']}, now from {new['role']}"
        else:
            yield f"{where}: {_contrast(describe_parts(old), describe_parts(new))}"


def describe_parts(message: Row) -> str:
    """What a message says, on one line. Raises `LookupError` and `TypeError` for what is no message."""
    if not isinstance(message["role"], str):
        raise TypeError("a message has no role")
    return " ".join(_describe_part(part) for part in message["parts"])


def _describe_part(part: Row) -> str:
    if part["type"] in ("text", "reasoning"):
        return str(part["text"])
    if part["type"] == "tool_call":
        return f"{part['name']}({part['arguments']}) [{part['id']}]"
    if part["type"] == "tool_result":
        inner = " ".join(map(_describe_part, part["content"]))
        return f"{part['name']} [{part['call_id']}] {part['status']}: {inner}"
    if part["type"] == "malformed_call":
        return str(part["raw"])
    return f"[{part['type']} {part.get('blob', '')} {part.get('media_type', '')}]"


def check_offers(tools: Sequence[Row], settings: Row) -> None:
    """Raise `LookupError`, `TypeError` or `ValueError` for what can't be the tools and settings of a request."""
    for tool in tools:
        if not isinstance(tool["name"], str) or "description" not in tool or "parameters" not in tool:
            raise ValueError("a tool has no name, description or parameters")
    if not isinstance(settings, dict):
        raise TypeError("settings must be an object")


def _compare_settings(recorded: Row, now: Row) -> Iterator[str]:
    for name in sorted({*recorded, *now}):
        old, new = (json.dumps(side[name]) if name in side else "not set" for side in (recorded, now))
        if old != new:
            yield f"setting {name}: {_contrast(old, new, quoted=False)}"


def _compare_tools(recorded: Sequence[Row], now: Sequence[Row]) -> Iterator[str]:
    old, new = ({tool["name"]: tool for tool in side} for side in (recorded, now))
    for name in old.keys() - new.keys():
        renamed = get_close_matches(name, new.keys() - old.keys(), 1)
        yield f"tool {name} is not offered any more" + (f"; {renamed[0]} is new" if renamed else "")
    for name in new.keys() - old.keys():
        if not get_close_matches(name, old.keys() - new.keys(), 1):
            yield f"tool {name} is new"
    for name in [name for name in old if name in new]:
        for field in ("description", "parameters"):
            if old[name][field] != new[name][field]:
                sides = [_write_field(side[name][field]) for side in (old, new)]
                yield f"tool {name}, {field}: {_contrast(*sides)}"
    if list(old) != list(new) and old.keys() == new.keys():
        yield f"the tools are in another order: recorded {', '.join(old)}, now {', '.join(new)}"


def _write_field(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _contrast(old: str, new: str, *, quoted: bool = True) -> str:
    """Both texts, around the place where they begin to differ."""
    same = next(
        (at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), min(len(old), len(new))
    )
    start = max(0, same - _BEFORE) if max(len(old), len(new)) > _SHOWN else 0
    shown = [_shorten(text, start, quoted=quoted) for text in (old, new)]
    return f"recorded {shown[0]}, now {shown[1]}"


def _shorten(text: str, start: int = 0, *, quoted: bool = True) -> str:
    cut = text[start : start + _SHOWN]
    marked = f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(text) else ''}"
    return repr(marked) if quoted else marked
