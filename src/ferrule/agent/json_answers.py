"""Finds the JSON document of an answer: the last complete one, which may follow reasoning and prose with braces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ferrule.tools.strict_json import decode_json, decode_json_at

_FENCE_OPENS = re.compile(r"```(?:json)?[^\S\n]*+\n")
_FENCE_CLOSES = re.compile(r"\n[^\S\n]*+```")
_CODE_OPENS = re.compile(r"```(?!json\b)\w[^\n`]*+\n")
# Most braces of prose open no document, and a failed look at one takes as long as the text before it.
_OPENS = re.compile(r"""\{(?=\s*+(?:["}]|\Z))|\[(?=\s*+(?:[\[{"\]\-\dtfn]|\Z))""")
_MOST_FAILURES = 1000
"""How many braces and brackets that open no document are looked at."""
_MOST_COMMAS = 100
"""How many trailing commas of an answer are left out: each takes another look at the document."""


def read_answer(text: str, may_be_list: bool) -> Any:
    """The value of an answer: JSON by itself, the only fenced block, or the last object of a text.

    `may_be_list`: without an object, the last list of a text counts, too. Raises `ValueError`, about the whole text.
    """
    fenced = _find_fenced(text)
    whole = fenced[0] if len(fenced) == 1 else text.strip()
    try:
        return decode_json(whole)
    except ValueError:
        if (found := _read_whole(whole)) is not None:
            return found
        if (found := _find_last(_leave_out_code(text), may_be_list)) is not None:
            return found
        raise


def _read_whole(text: str) -> Any:
    """An object or list that is the whole text, and may have trailing commas; None if it isn't."""
    read = _read_at(text, 0, iter(range(_MOST_COMMAS))) if text[:1] in ("{", "[") else None
    return read[0] if isinstance(read, tuple) and not text[read[1] :].strip() else None


def _find_last(text: str, may_be_list: bool) -> Any:
    """The last complete object; None if there is none, or if an object around it isn't complete.

    An empty object may be a placeholder, and a list in prose a footnote: it counts only if there is no object.
    """
    last: Any = None
    listed: Any = None
    at = failures = 0
    commas = iter(range(_MOST_COMMAS))
    while (opened := _OPENS.search(text, at)) and failures < _MOST_FAILURES:
        read = _read_at(text, opened.start(), commas)
        if read is None:
            at = opened.end()
            failures += 1
        elif isinstance(read, int):
            return None
        else:
            found, at = read
            if isinstance(found, dict) and found:
                last = found
            elif isinstance(found, list):
                listed = found
    return listed if last is None and may_be_list else last


def _read_at(text: str, start: int, commas: Iterator[int]) -> tuple[Any, int] | int | None:
    """The document that begins at `start`, and where it ends; None if none does, its start if it isn't closed or can't
    be taken. `commas` has an item for each trailing comma that may still be left out."""
    while True:
        try:
            return decode_json_at(text, start)
        except json.JSONDecodeError as error:
            if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
                return start
            comma = error.pos if text[error.pos] == "," else text.rfind(",", start, error.pos)
            if comma < 0 or text[comma + 1 :].lstrip()[:1] not in ("}", "]") or text[comma + 1 : error.pos].strip():
                return None
            if text[start:comma].rstrip().endswith(",") or next(commas, None) is None:
                return start
            text = f"{text[:comma]} {text[comma + 1 :]}"
        except (ValueError, RecursionError):
            return start


def _leave_out_code(text: str) -> str:
    """The text without its fenced blocks of a language other than JSON."""
    kept: list[str] = []
    at = 0
    while (opened := _CODE_OPENS.search(text, at)) and (closed := _FENCE_CLOSES.search(text, opened.end() - 1)):
        kept.append(text[at : opened.start()])
        at = closed.end()
    return "".join([*kept, text[at:]])


def _find_fenced(text: str) -> list[str]:
    """Find the fenced blocks. A single pattern would search for the closing fence from every possible opening one."""
    blocks: list[str] = []
    at = 0
    while (opened := _FENCE_OPENS.search(text, at)) and (closed := _FENCE_CLOSES.search(text, opened.end())):
        blocks.append(text[opened.end() : closed.start()])
        at = closed.end()
    return blocks
