"""What is printed where an encoding has no such character: a common sign as ASCII, any other as an escape."""

from __future__ import annotations

import codecs

_SIGNS = {
    "▸": ">",
    "›": ">",
    "→": "->",
    "…": "...",
    "•": "*",
    "·": "-",
    "×": "x",
    "÷": "/",
    "≈": "~",
    "✗": "x",
    "✓": "+",
    "⟦": "[[",
    "⟧": "]]",
    "–": "-",
    "—": "-",
    "−": "-",
    "─": "-",
    "━": "-",
    "│": "|",
    "▌": "|",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
}

ERRORS = "ferrule-plain"
"""The name under which a stream is given this handler of encoding errors."""


def replace_unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that can't be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    failed = error.object[error.start : error.end]
    escaped = (_SIGNS.get(one) or one.encode("ascii", "backslashreplace").decode() for one in failed)
    return "".join(escaped), error.end


codecs.register_error(ERRORS, replace_unencodable)
