"""Says where a file of JSON is broken: duckdb counts bytes and lines of its own buffers. Runs in the sandbox."""

from __future__ import annotations

import json
from typing import Any

from .detection import Unreadable

LARGEST = 256 << 20
"""Bytes of a document, as against lines, that is parsed for its error."""


def explain_json(path: str, kind: str) -> None:
    """Raise `Unreadable` that names the line of the first error, if there is one."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:  # noqa: PTH123 - in the sandbox
        if kind == "json":
            _parse(file.read(LARGEST), 1)
            return
        for number, line in enumerate(file, 1):
            if line.strip():
                value = _parse(line, number)
                if not isinstance(value, dict):
                    raise Unreadable(f"has {_name_kind(value)} in line {number:,} where an object is expected")


def _parse(text: str, line: int) -> Any:
    def refuse(constant: str) -> None:
        raise Unreadable(f"has {constant} in line {line:,}, which JSON doesn't know: write null")

    try:
        # Without the last line break, after which the error would be in a line that the file hasn't.
        return json.loads(text.rstrip("\r\n"), parse_constant=refuse)
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1:,}, character {error.colno:,}"
        raise Unreadable(f"isn't valid JSON in {place}: {error.msg[0].lower()}{error.msg[1:]}") from None


def _name_kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
