"""Files of conversations that a command is given, whatever they look like, and those that it writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ferrule.cli.files import written
from ferrule.cli.guard import complain
from ferrule.conversation import Conversation
from ferrule.conversation_json import escaped
from ferrule.errors import ConversationError
from ferrule.formats.recognise import FORMATS, dump, known, load


def read_conversations(path: Path, form: str | None = None) -> list[Conversation]:
    """The conversations of a file: one JSON object or list of messages, or one of these a line.

    `-` is standard input; `form` names the format, which is otherwise told by what it looks like. Raises
    `ConversationError`, naming the file and line, and `OSError`.
    """
    if form is not None:
        known(form)
    is_piped = str(path) == "-"
    raw = sys.stdin.buffer.read() if is_piped else path.read_bytes()
    name = "standard input" if is_piped else str(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConversationError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    try:
        return [_conversation(json.loads(text), name, form)]
    except (ValueError, RecursionError) as error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise ConversationError(f"{name}: not JSON: {error}") from error
    return [_conversation(_decoded(line, f"{name}:{number}"), f"{name}:{number}", form) for number, line in lines]


def conversation_text(conversation: Conversation, form: str) -> str:
    """A conversation as JSON text in a format. What the format can't hold is told on stderr.

    Raises `ConversationError` for what it refuses to write.
    """
    data, losses = dump(conversation, form)
    for loss in losses:
        complain(f"not in the {form} format: {loss.detail}")
    return escaped(json.dumps(data, ensure_ascii=False, indent=2))


def write_conversation(path: Path, conversation: Conversation, form: str | None = None) -> None:
    """Write a file, in the format that `form` names, or its name does (`x.nanochat.json`), or else ferrule's own.

    Raises `ConversationError` and `OSError`.
    """
    named = path.suffixes[-2][1:] if len(path.suffixes) > 1 else ""
    text = conversation_text(conversation, form or (named if named in FORMATS else "ferrule"))
    written(path, f"{text}\n".encode())


def _conversation(data: Any, where: str, form: str | None) -> Conversation:
    try:
        conversation = load(data, form)
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
