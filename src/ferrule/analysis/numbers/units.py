"""Units of measurement: which one stands after a number, and which a line of output names, in a column's name too.

"4.12 ms" is what an output with a column `p50_us` has as 4120. Only powers of a thousand are read, of one unit.
"""

from __future__ import annotations

import re
from typing import Final

Unit = tuple[str, float]
"""The unit without its prefix, and what the prefix multiplies it with: ("s", 0.001) for "ms"."""

_PREFIXES: Final = {"": 1.0, "n": 1e-9, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3}
_LARGE: Final = {"M": 1e6, "G": 1e9, "T": 1e12}
_BASES: Final = ("s", "g", "m", "l", "L", "B", "W", "Wh", "J", "V", "Hz", "pc", "eV", "Pa", "bit", "mol")
_WORDS: Final[dict[str, Unit]] = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("millisecond", "milliseconds"), ("s", 1e-3)),
    **dict.fromkeys(("microsecond", "microseconds"), ("s", 1e-6)),
    **dict.fromkeys(("byte", "bytes"), ("B", 1.0)),
    **dict.fromkeys(("kilobytes", "kb"), ("B", 1e3)),
    **dict.fromkeys(("megabytes", "mb"), ("B", 1e6)),
    **dict.fromkeys(("gigabytes", "gb"), ("B", 1e9)),
    **dict.fromkeys(("t", "tonne", "tonnes", "tons"), ("g", 1e6)),
    **dict.fromkeys(("gram", "grams"), ("g", 1.0)),
    **dict.fromkeys(("kilogram", "kilograms"), ("g", 1e3)),
    **dict.fromkeys(("metre", "metres", "meter", "meters"), ("m", 1.0)),
    **dict.fromkeys(("kilometre", "kilometres", "kilometer", "kilometers"), ("m", 1e3)),
    **dict.fromkeys(("litre", "litres", "liter", "liters"), ("l", 1.0)),
    **{f"{prefix}wh": ("Wh", factor) for prefix, factor in (("k", 1e3), ("m", 1e6), ("g", 1e9))},
    **{f"{prefix}w": ("W", factor) for prefix, factor in (("k", 1e3), ("g", 1e9))},
}
_UNITS: Final[dict[str, Unit]] = {
    **_WORDS,
    **{
        prefix + base: ("l" if base == "L" else base, factor)
        for prefix, factor in (_PREFIXES | _LARGE).items()
        for base in _BASES
    },
}
_NEXT = re.compile("[ \u00a0\u2009\u202f]?([A-Za-zµμ]{1,12})(?![A-Za-z0-9µμ/·^²³⁻]|[ ]per[ ])")
_TOKEN = re.compile(r"[^\W\d_]+")


def read_unit(text: str, at: int) -> Unit | None:
    """The unit that stands at a place of a text, unless it is one of several: "ng/mL", "km²", "kg per m"."""
    match = _NEXT.match(text, at)
    return _UNITS.get(match[1]) if match else None


def find_units(line: str) -> frozenset[Unit]:
    """All units that a line of output names."""
    return frozenset(_UNITS[token] for token in _TOKEN.findall(line) if token in _UNITS)
