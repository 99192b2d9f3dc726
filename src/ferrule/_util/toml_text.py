"""Parses TOML that others wrote, within limits under which `tomllib` is fast: one long key costs it many seconds."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MOST_BYTES: Final = 256_000
MOST_KEY_PARTS: Final = 20
DEEPEST: Final = 50

_LARGEST = 2**63
# The last quote is optional: what isn't closed is for tomllib to report.
_TOKEN = re.compile(
    r'''"""(?>(?:[^"\\]|\\.|"(?!""))*)"{0,5}|\'\'\'(?>(?:[^']|'(?!\'\'))*)'{0,5}|\#[^\n]*+'''
    r"""|(?P<part>[\w-]++|"(?>(?:[^"\\\n]|\\[^\n])*)"?|'[^'\n]*+'?)|(?P<dot>\.)|(?P<open>[\[{])|(?P<close>[\]}])"""
    r"|[^\s]",
    re.DOTALL | re.ASCII,
)


def parse_toml(data: bytes) -> dict[str, Any]:
    """Parse the bytes of a TOML file.

    Raises `ValueError`, whose text is a line that says what is wrong and where, also for more than `MOST_BYTES`, a key
    of more than `MOST_KEY_PARTS` parts, tables or arrays nested more than `DEEPEST` levels, and integers of over 64
    bits.
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"over {MOST_BYTES // 1000} kB, which no such file needs; make it shorter")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error
    _check_keys(text)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = f"at end of document, line {len(data.splitlines())}"
        raise ValueError(f"not TOML: {str(error).replace('at end of document', last)}") from error
    except ValueError as error:  # Python's own limit on digits
        raise ValueError("not TOML: an integer has at most 64 bits, and one here has thousands of digits") from error
    _check_values(values)
    return values


def _check_keys(text: str) -> None:
    depth = parts = 0
    follows_dot = False
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "part":
            parts = parts + 1 if follows_dot else 1
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(0, depth - 1)
        follows_dot = kind == "dot"
        if parts > MOST_KEY_PARTS or depth > DEEPEST:
            line = text.count("\n", 0, found.start()) + 1
            what = f"a key has more than {MOST_KEY_PARTS} parts"
            raise ValueError(f"{what if parts > MOST_KEY_PARTS else _TOO_DEEP} at line {line}")


_TOO_DEEP = f"tables or arrays are nested more than {DEEPEST} levels deep"


def _check_values(values: dict[str, Any]) -> None:
    left: list[tuple[Any, str, int]] = [(values, "", 0)]
    while left:
        value, key, depth = left.pop()
        if depth > DEEPEST:
            raise ValueError(f"{_TOO_DEEP} in {key}")
        if isinstance(value, dict):
            left += [(inner, name, depth + 1) for name, inner in value.items()]
        elif isinstance(value, list):
            left += [(inner, key, depth + 1) for inner in value]
        elif isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise ValueError(f"{key}: an integer has at most 64 bits")
