"""Reads the `charset` that an `.editorconfig` of a workspace gives a file (https://spec.editorconfig.org)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from ferrule.coding.search.globs import GlobInvalid, compile_glob, expand_braces
from ferrule.errors import FileAccessRefused
from ferrule.sandbox.file_access import AccessSnapshot, FileAccess

__all__ = ["find_charset"]

_NAME: Final = ".editorconfig"
_MOST_BYTES: Final = 64 * 1024
_MOST_IN_PATTERNS: Final = 20_000
"""The most characters in the patterns that are compared with one path, without braces: compiling them takes long."""
_COMMENT: Final = re.compile(r"\s[#;]")


@dataclass(slots=True)
class _Patterns:
    """The patterns of sections; those beyond the limit match nothing."""

    left: int = _MOST_IN_PATTERNS

    def match(self, pattern: str, name: str) -> bool:
        try:
            self.left -= sum(map(len, expand_braces(pattern)))
            return self.left >= 0 and compile_glob(pattern)(name)
        except GlobInvalid:
            return False


def find_charset(access: FileAccess, real: str, snapshot: AccessSnapshot | None = None) -> str | None:
    """The charset for the file at a real path, such as `latin1` or `utf-8-bom`; None if none is given.

    A nearer `.editorconfig` decides before one further up, none outside the allowed folder of the file counts. One that
    can't be read, or isn't allowed to be, is none.
    """
    top, patterns = access.find_folder(real), _Patterns()
    folder = os.path.dirname(real)  # noqa: PTH120 - a string, for every file that is read
    while top is not None:
        path = f"{folder}/{_NAME}"
        if os.path.lexists(path):
            found, is_root = _read(_load(access, path, snapshot), real[len(folder) + 1 :], patterns)
            if found is not None or is_root:
                return found
        if folder in (str(top), "/"):
            break
        folder = os.path.dirname(folder)  # noqa: PTH120
    return None


def _load(access: FileAccess, path: str, snapshot: AccessSnapshot | None) -> str:
    try:
        with open(access.open_file(path, snapshot=snapshot), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read(_MOST_BYTES).decode("utf-8-sig", "replace")
    except (OSError, FileAccessRefused):
        return ""


def _read(text: str, name: str, patterns: _Patterns) -> tuple[str | None, bool]:
    """The charset for the file of that relative path, by the last section that matches, and whether it is the root."""
    charset, is_root, applies, is_preamble = None, False, False, True
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            applies, is_preamble = patterns.match(line[1:-1], name), False
        elif not line.startswith(("#", ";", "=")):
            key, _, value = (part.strip().lower() for part in line.partition("="))
            value = _COMMENT.split(value, maxsplit=1)[0].rstrip()
            if is_preamble and key == "root":
                is_root = value == "true"
            elif applies and key == "charset":
                charset = None if value == "unset" else value
    return charset, is_root
