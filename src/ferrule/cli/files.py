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
from ferrule.formats.detection import FORMATS, FileRow, check_format, dump, load_row
from ferrule.session.terminal.output import print_notice

_LISTED = 10


def read_rows(path: Path, form: str | None = None) -> list[FileRow]:
    """Read the conversations of a file, with the tools offered in each: one JSON document, or JSON lines.

    `-` is stdin; `form` names the format, which is otherwise detected. Ignored fields are listed on stderr.
    Raises `ConversationError`, naming the file and line, and `OSError`.
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
        return [_read_row(json.loads(text), name, form)]
    except (ValueError, RecursionError) as error:
        # Not `splitlines`: a JSON string may contain a Unicode line separator.
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise ConversationError(f"{name}: not JSON: {error}") from error
    return [_read_row(_decode(line, f"{name}:{number}"), f"{name}:{number}", form) for number, line in lines]


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


def _read_row(data: Any, where: str, form: str | None) -> FileRow:
    try:
        row = load_row(data, form)
        row.conversation.check()
    except ConversationError as error:
        raise ConversationError(f"{where}: {error}") from error
    if row.ignored:
        more = f" and {len(row.ignored) - _LISTED} more" if len(row.ignored) > _LISTED else ""
        listed = ", ".join(row.ignored[:_LISTED])
        print_notice(f"{where}: ignored, since a conversation can't hold it: {listed}{more}")
    return row


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
