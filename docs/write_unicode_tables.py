"""Writes the characters with the properties that `unicodedata` lacks, from the Unicode Character Database.

    python docs/write_unicode_tables.py [FOLDER]

FOLDER has `DerivedCoreProperties.txt` and `PropList.txt`; Debian's package `unicode-data` installs them. A test
compares the table with them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INSTALLED = Path("/usr/share/unicode")
TABLE = Path(__file__).parents[1] / "src" / "ferrule" / "_util" / "unicode_tables.py"
_PROPERTIES = (
    ("Default_Ignorable_Code_Point", "DerivedCoreProperties.txt", "Characters that are not shown, assigned or not."),
    ("Prepended_Concatenation_Mark", "PropList.txt", "Characters of the category Cf that are shown all the same."),
)
_RANGE = re.compile(r"^([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\w+)", re.MULTILINE)


def write_tables(folder: Path) -> str:
    """The table, as Python."""
    lines = [
        '"""Properties of characters that `unicodedata` lacks, each as the inside of a character class of `re`.',
        "",
        "`python docs/write_unicode_tables.py` writes this file from the Unicode Character Database.",
        '"""',
        "",
        "from typing import Final",
        "",
        "# fmt: off",
    ]
    for name, file, description in _PROPERTIES:
        ranges = list(_join(_read_ranges((folder / file).read_text("utf-8"), name)))
        lines += ["", f"{name.upper()}: Final = (", *(f'    "{_write(*one)}"' for one in ranges), ")"]
        lines += [f'"""{description}"""']
    return "\n".join(lines) + "\n"


def _read_ranges(text: str, name: str) -> Iterator[tuple[int, int]]:
    for found in _RANGE.finditer(text):
        if found[3] == name:
            yield int(found[1], 16), int(found[2] or found[1], 16)


def _join(ranges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join the ranges that touch each other: the database splits them by category."""
    first, last = next(ranges)
    for low, high in ranges:
        if low == last + 1:
            last = high
            continue
        yield first, last
        first, last = low, high
    yield first, last


def _write(first: int, last: int) -> str:
    written = [f"\\u{one:04x}" if one < 0x10000 else f"\\U{one:08x}" for one in (first, last)]
    return written[0] if first == last else "-".join(written)


if __name__ == "__main__":
    TABLE.write_text(write_tables(Path(sys.argv[1]) if len(sys.argv) > 1 else INSTALLED), "utf-8")
