"""Searches files with Python's regular expressions, where there is no ripgrep: a program, so that it can be killed.

It reads a JSON object with `pattern`, `is_literal`, `ignores_case`, `context` and `paths` from standard input, and
writes what ripgrep's `--json` does. As ripgrep's, its exit status is 2, with the reasons on standard error, for an
invalid pattern and for files that couldn't be read.
"""

# Run by its path, without ferrule.
# ruff: noqa: PTH123

import base64
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any

_MAX_FILE_BYTES = 64 * 1024 * 1024
_unread: list[str] = []


def main() -> None:
    """Search the files that are named on standard input."""
    request = json.load(sys.stdin)
    written = re.escape(request["pattern"]) if request["is_literal"] else request["pattern"]
    try:
        pattern = re.compile(written.encode(), re.IGNORECASE if request["ignores_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        sys.exit(2)
    found_any = False
    for path in request["paths"]:
        for message in _search_file(path, pattern, request["context"]):
            found_any = True
            sys.stdout.write(json.dumps(message) + "\n")
    sys.stderr.write("\n".join(_unread[:1000]))
    sys.exit(2 if _unread else 0 if found_any else 1)


def _search_file(path: str, pattern: re.Pattern[bytes], context: int) -> Iterator[dict[str, Any]]:
    content = _read(path)
    if content is None or not pattern.search(content):
        return
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    matches = {number: found for number, line in enumerate(lines) if (found := pattern.search(line.rstrip(b"\r")))}
    shown = {each for number in matches for each in range(number - context, number + context + 1)}
    for number in sorted(shown.intersection(range(len(lines)))):
        match = matches.get(number)
        data = {"path": {"text": path}, "lines": _write_bytes(lines[number])}
        spans = [{"start": match.start(), "end": match.end()}] if match else []
        yield {
            "type": "match" if match else "context",
            "data": {**data, "line_number": number + 1, "submatches": spans},
        }
    if matches and b"\0" in content:
        yield {"type": "end", "data": {"path": {"text": path}, "binary_offset": content.index(b"\0")}}


def _write_bytes(line: bytes) -> dict[str, str]:
    try:
        return {"text": line.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(line).decode()}


def _read(path: str) -> bytes | None:
    """The content of a regular file, reached by no link; None for anything else, and for a huge one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        _unread.append(f"{path}: {error.strerror} (os error {error.errno})")
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > _MAX_FILE_BYTES:
            _unread.append(f"{path}: over 64 MB, not searched")
            return None
        return file.read()


if __name__ == "__main__":
    main()
