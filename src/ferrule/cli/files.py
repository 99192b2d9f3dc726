"""Files of conversations that commands read and write, in every known format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ferrule._util.output_files import write_output
from ferrule.conversation import Conversation
from ferrule.errors import ConversationError
from ferrule.formats.conversation_json import escape_surrogates
from ferrule.formats.detection import FORMATS, check_format, detect_format, dump, list_left_out_fields, load
from ferrule.formats.tool_offers import read_offers
from ferrule.session.terminal_output import print_notice
from ferrule.toolspec import ToolSpec

_LISTED = 10


def read_conversations(path: Path, form: str | None = None) -> list[tuple[Conversation, list[ToolSpec]]]:
    """Read the conversations of a file, with the tools offered in each: one JSON document, or JSON lines.

    `-` is stdin; `form` names the format, which is otherwise detected. Fields that a conversation can't hold are listed
    on stderr. Raises `ConversationError`, naming the file and line, and `OSError`.
    """
    if form is not None:
        check_format(form)
    is_piped = str(path) == "-"
    raw = sys.stdin.buffer.read() if is_piped else path.read_bytes()
    name = "standard input" if is_piped else str(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConversationError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    try:
        return [_read_conversation(json.loads(text), name, form)]
    except (ValueError, RecursionError) as error:
        # Not `splitlines`: a JSON string may contain a Unicode line separator.
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise ConversationError(f"{name}: not JSON: {error}") from error
    return [_read_conversation(_decode(line, f"{name}:{number}"), f"{name}:{number}", form) for number, line in lines]


def format_conversation(conversation: Conversation, form: str) -> str:
    """Write a conversation as JSON text in a format. What the format can't express is listed on stderr.

    Raises `ConversationError` for what it refuses to write.
    """
    data, losses = dump(conversation, form)
    for loss in losses:
        print_notice(f"not in the {form} format: {loss.detail}")
    return escape_surrogates(json.dumps(data, ensure_ascii=False, indent=2))


def write_conversation(path: Path, conversation: Conversation, form: str | None = None) -> None:
    """Write a file in the format `form`, or that of its name (`x.nanochat.json`), or else ferrule's own.

    Raises `ConversationError` and `OSError`.
    """
    named = path.suffixes[-2][1:] if len(path.suffixes) > 1 else ""
    text = format_conversation(conversation, form or (named if named in FORMATS else "ferrule"))
    write_output(path, f"{text}\n".encode())


def _read_conversation(data: Any, where: str, form: str | None) -> tuple[Conversation, list[ToolSpec]]:
    try:
        conversation = load(data, form)
        conversation.check()
        tools = read_offers(data)
        rest = list_left_out_fields(data, form or detect_format(data))
    except ConversationError as error:
        raise ConversationError(f"{where}: {error}") from error
    if rest:
        more = f" and {len(rest) - _LISTED} more" if len(rest) > _LISTED else ""
        print_notice(f"{where}: ignored, since a conversation can't hold it: {', '.join(rest[:_LISTED])}{more}")
    return conversation, tools


def _decode(line: str, where: str) -> Any:
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
