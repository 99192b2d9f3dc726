"""The result of a call on the command line: text printed, images written or described."""

from __future__ import annotations

import json
import mimetypes
import sys
from pathlib import Path

from ferrule.cli.event_json import result_json
from ferrule.cli.files import written
from ferrule.cli.guard import complain
from ferrule.cli.words import answer_words, image_words
from ferrule.conversation import Image, Text, ToolResult


def show(result: ToolResult, folder: Path | None, as_json: bool) -> None:
    """Print a result; what failed goes to stderr. Images are written to `folder`, named by their hash.

    Raises `OSError` where they can't be.
    """
    files = {} if folder is None else _write_images(result, folder)
    if as_json:
        data = result_json(result) | ({"files": list(files.values())} if files else {})
        print(json.dumps(data, ensure_ascii=False))
        return
    if result.status == "invalid":
        wrong = [line.removeprefix("error: ").removeprefix("- ") for line in result.text.splitlines()]
        complain("; ".join(wrong).replace(":; ", ": ", 1))
        return
    stream = sys.stderr if result.is_error else sys.stdout
    for part in result.content:
        if isinstance(part, Text):
            print(answer_words(part.text) if stream.isatty() else part.text, file=stream)
        else:
            print(files.get(part.hash) or f"{image_words(part)}; --out FOLDER writes it", file=stream)


def _write_images(result: ToolResult, folder: Path) -> dict[str, str]:
    """Paths by hash."""
    files: dict[str, str] = {}
    for part in result.content:
        if isinstance(part, Image):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{part.hash}{mimetypes.guess_extension(part.media_type) or '.bin'}"
            written(path, part.data)
            files[part.hash] = str(path)
    return files
