"""A message as the JSON of its row: the hash by which it is stored once, its text for a search, and how it is read.

A file may be damaged or forged, so what a row holds is taken for nothing but what it was checked to be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferrule.errors import ConversationError

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def hash_message(data: Mapping[str, Any]) -> str:
    """Compute the SHA-256, in hexadecimal, of a message's JSON."""
    return hashlib.sha256(_ENCODER.encode(data).encode()).hexdigest()


def decode_json(text: object, where: str) -> Any:
    """Decode the JSON of a row. Raises `ConversationError`."""
    try:
        return json.loads(text if isinstance(text, str) else "")
    except ValueError as error:
        raise ConversationError(f"{where}: not JSON: {error}") from error
    except RecursionError as error:
        raise ConversationError(f"{where}: nested too deeply to be read") from error


def decode_message(text: object, name: object, where: str) -> dict[str, Any]:
    """Decode the JSON of a message that was stored by its hash `name`. Raises `ConversationError`."""
    data = decode_json(text, where)
    try:
        is_same = isinstance(data, dict) and hash_message(data) == name
    except RecursionError:
        is_same = False
    if not is_same:
        raise ConversationError(f"{where}: not what it was when it was saved")
    found: dict[str, Any] = data
    return found


def read_text(data: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Read the role and all text of a decoded message. Raises `ConversationError` for what is none."""
    try:
        role, text = data["role"], collect_text(data)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConversationError(f"{where}: not a message") from error
    if not isinstance(role, str):
        raise ConversationError(f"{where}: not a message")
    return role, text


def collect_text(data: Mapping[str, Any]) -> str:
    """Collect all text in a message's JSON (texts, reasoning, calls, results), in a form that SQLite can store."""
    text = "\n".join(_iterate_texts(data["parts"]))
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _iterate_texts(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        for key in ("text", "name", "arguments", "raw"):
            if key in part:
                yield part[key]
        yield from _iterate_texts(part.get("content", ()))
