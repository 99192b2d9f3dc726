"""Files of conversations that a command is given, whatever they look like."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ferrule.conversation import Conversation
from ferrule.errors import ConversationError
from ferrule.formats import nanochat


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a file: one JSON object or list of messages, or one of these a line.

    `-` is standard input. Raises `ConversationError`, naming the file and line, and `OSError`.
    """
    is_piped = str(path) == "-"
    raw = sys.stdin.buffer.read() if is_piped else path.read_bytes()
    name = "standard input" if is_piped else str(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConversationError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    try:
        return [_conversation(json.loads(text), name)]
    except (ValueError, RecursionError) as error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise ConversationError(f"{name}: not JSON: {error}") from error
    return [_conversation(_decoded(line, f"{name}:{number}"), f"{name}:{number}") for number, line in lines]


def _conversation(data: Any, where: str) -> Conversation:
    messages = {"messages": data} if isinstance(data, list) else data
    try:
        conversation = nanochat.load(messages)
        conversation.check()
    except ConversationError as error:
        raise ConversationError(f"{where}: {error}") from error
    return conversation


def _decoded(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"{where}: not JSON: {error}") from error


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
