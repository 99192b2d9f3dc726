"""What notations share whose values stand as plain text between tags: writing one, and reading what a tag holds."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from ferrule.dialects.stream import EndOfText, Reading, Stops, Stream


def raw_text(value: Any, closer: str) -> str:
    """A value as it is written: a string is itself, anything else is JSON, in which `closer` is escaped as JSON can.

    A string that holds the closer has no expression; reading what was written finds that out.
    """
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text.replace(closer, f"\\u{ord(closer[0]):04x}{closer[1:]}")


def text_until(stream: Stream, stops: Stops) -> Reading[tuple[str, str]]:
    """(the text before the next of `stops`, that marker); the text is taken, the marker not. Raises `EndOfText`."""
    text = StringIO()
    marker = yield from stream.find(stops, lambda end: text.write(stream.frame(end)))
    if not marker:
        raise EndOfText
    return text.getvalue(), marker
