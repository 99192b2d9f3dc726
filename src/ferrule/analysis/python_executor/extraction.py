"""Which extracted values stand in the task and its context: a model may invent some, or compute them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

_NUMBER: Final = re.compile(r"(?<![\w.])[-+−]?\d[\d,_' ]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SEPARATORS: Final = ",_' "
_GROUPED: Final = re.compile(r"[-+−]?\d{1,3}(?:[,_' ]\d{3})+(?:\.\d+)?(?:[eE][-+]?\d+)?")
"""One number with separators of thousands; other separators stand between the numbers of a list."""
_SCALES: Final = (1.0, 0.01, 1e3, 1e6, 1e9)
"""`5%` may be extracted as 0.05, `2 k` as 2000, `3 million` as 3000000."""


def find_unknown_numbers(values: Mapping[str, Any], text: str) -> list[str]:
    """Names, with their values, of extracted numbers that the text doesn't hold, also not as %, k, M or G."""
    known = set()
    for found in _NUMBER.finditer(text):
        for number in _read_numbers(found.group().strip(_SEPARATORS)):
            known |= {round(number * scale, 9) for scale in _SCALES}
    return [f"{name} = {value}" for name, value in _list_numbers(values) if round(float(value), 9) not in known]


def _read_numbers(text: str) -> Iterator[float]:
    """The number that digits with separators are, and those of a list that they may be."""
    for entry in re.split(", +", text):
        parts = [] if _GROUPED.fullmatch(entry) else re.split(f"[{_SEPARATORS}]+", entry)
        for part in dict.fromkeys(("".join(re.split(f"[{_SEPARATORS}]", entry)), *parts)):
            with suppress(ValueError):
                yield float(part.replace("−", "-"))


def _list_numbers(value: Any, name: str = "") -> Iterator[tuple[str, int | float]]:
    """The numbers in JSON data with the names that lead to them, at most a thousand digits long."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _list_numbers(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _list_numbers(each, f"{name}[{index}]")
    elif isinstance(value, float) or (type(value) is int and abs(value) < 10**300):
        yield name, value
