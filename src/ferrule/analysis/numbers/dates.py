"""Reads written dates as days, so that two dates can be compared however they are written."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ferrule.analysis.numbers import patterns

_DAYS: Final = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y")


def find_days(text: str) -> Iterator[str]:
    """The dates of a text, as ISO 8601 has them; both days of one that may be read in two ways."""
    for match in patterns.DATE.finditer(text):
        yield from read_days(match)


def read_days(match: re.Match[str]) -> Iterator[str]:
    """The days that a match of `patterns.DATE` may stand for; none for a time, or a day without a year."""
    if match["iso"]:
        yield match[0]
        return
    plain = re.sub(r"(?<=[0-9])(?:st|nd|rd|th)\b|\bof\b|[,]|(?<=[a-z])\.", " ", match[0])
    for form in _DAYS:
        with suppress(ValueError):
            yield datetime.datetime.strptime(" ".join(plain.split()), form).date().isoformat()  # noqa: DTZ007
