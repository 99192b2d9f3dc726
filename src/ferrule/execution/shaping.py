"""What a tool gave back, as the parts that a model reads, within a limit.

Text, JSON values (pydantic models and dataclasses among them), images, or a list that mixes text and images. What is
over the limit is cut in the middle; the whole is kept by its content hash, where `read_result` finds it.
"""

from __future__ import annotations

import inspect
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from ferrule.blobs import BlobStore
from ferrule.conversation import Image, Text
from ferrule.errors import ToolFailed

LIMIT = 30_000
"""Characters of text in one result, unless an executor is told otherwise."""

# Tuples: asked of every result, and a union type takes five times as long.
_PARTS = (Text, Image)
_LISTS = (list, tuple)
# What needs no looking into; a float may be infinite, which `to_json` has words for.
_PLAIN = (int, bool, type(None))


def shaped(value: Any) -> tuple[Text | Image, ...]:
    """The parts of a returned value, of any length.

    Raises `ToolFailed` for what is neither text, a JSON value nor an image.
    """
    if type(value) is str:
        return (Text(value if value.isascii() else _sound(value)),)
    if type(value) in _PLAIN:
        return (Text(to_json(value).decode()),)
    if isinstance(value, _PARTS):
        return (value,)
    if isinstance(value, _LISTS) and any(isinstance(part, _PARTS) for part in value):
        return _joined([shaped(part)[0] for part in value])
    return (Text(_json_text(value)),)


def limited(
    parts: tuple[Text | Image, ...], limit: int, blobs: BlobStore, can_read: bool = True
) -> tuple[Text | Image, ...]:
    """The parts with at most `limit` characters of text, and the notices of what was left out.

    Several texts share the limit evenly. `can_read` says whether the model has `read_result` to open the rest with.
    """
    if len(parts) == 1 and isinstance(parts[0], Text) and len(parts[0].text) <= limit:
        return parts
    texts = [part.text for part in parts if isinstance(part, Text)]
    if sum(map(len, texts)) <= limit:
        return parts
    share = limit // len(texts)
    return tuple(Text(cut(part.text, share, blobs, can_read)) if isinstance(part, Text) else part for part in parts)


def cut(text: str, limit: int, blobs: BlobStore, can_read: bool = True) -> str:
    """`text` with its middle left out where it is longer than `limit`, and a notice in its place."""
    if len(text) <= limit:
        return text
    name = blobs.put(text.encode())
    head, tail = limit - limit // 2, limit // 2
    opener = f'; read_result("{name}", {head}) opens it' if can_read else ""
    notice = f"[… {len(text) - head - tail:,} characters left out; the whole is kept as {name}{opener} …]"
    return f"{text[:head]}\n{notice}\n{text[len(text) - tail :]}"


def _joined(parts: list[Text | Image]) -> tuple[Text | Image, ...]:
    """The parts with texts that follow each other made one, a line each."""
    joined: list[Text | Image] = []
    for part in parts:
        if isinstance(part, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(f"{joined[-1].text}\n{part.text}")
        else:
            joined.append(part)
    return tuple(joined)


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return _sound(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        raise ToolFailed("the tool gave back bytes, which can't be shown; it should give text, JSON values or an image")
    if inspect.isgenerator(value) or inspect.isasyncgen(value) or inspect.iscoroutine(value):
        if inspect.iscoroutine(value):
            value.close()
        raise ToolFailed(f"the tool gave back a {type(value).__name__}; it should give its result itself")
    try:
        return to_json(_in_order(value), inf_nan_mode="strings").decode()
    except (PydanticSerializationError, RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise ToolFailed(
            f"the tool gave back a {type(value).__name__} that can't be written as JSON ({reason})"
        ) from error


def _in_order(value: Any) -> Any:
    """The value with its sets sorted: their own order differs from run to run."""
    if isinstance(value, set | frozenset):
        return sorted((_in_order(element) for element in value), key=lambda element: (str(type(element)), str(element)))
    if type(value) is dict:
        return {key: _in_order(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return [_in_order(element) for element in value]
    return value


def _sound(text: str) -> str:
    """The text without lone surrogates, which no encoding can carry; pairs become their character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
