"""The curated functions: a purpose in plain words and questions that they answer, in `curated/*.toml`.

Their signatures, parameters, results and most examples come from introspection.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("curated")


@dataclass(frozen=True, slots=True)
class CuratedFunction:
    """A curated function: its path, its purpose on one line, and ways of asking for it.

    The other fields are for what introspection doesn't find, and empty where it does.
    """

    path: str
    purpose: str
    asks: tuple[str, ...]
    signature: str = ""
    returns: str = ""
    example: str = ""


def load_curated_functions() -> list[CuratedFunction]:
    """Read all curated functions, by file and in the files' order."""
    return [
        CuratedFunction(
            path,
            entry["purpose"],
            tuple(entry["asks"]),
            entry.get("signature", ""),
            entry.get("returns", ""),
            entry.get("example", "").strip(),
        )
        for file in sorted(FOLDER.glob("*.toml"))
        for path, entry in tomllib.loads(file.read_text(encoding="utf-8")).items()
    ]


def read_curated_files() -> bytes:
    """All files of curated functions, unparsed: what a cache of them depends on."""
    return b"".join(file.read_bytes() for file in sorted(FOLDER.glob("*.toml")))
