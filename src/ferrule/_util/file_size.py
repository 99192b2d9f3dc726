"""Writes numbers of bytes as people read them."""

from __future__ import annotations

__all__ = ["describe_size"]

_KB = 1024


def describe_size(size: int) -> str:
    """A number of bytes: "941 bytes", "12.1 KB", "3.4 MB" (units of 1024)."""
    if size < _KB:
        return "1 byte" if size == 1 else f"{size:,} bytes"
    number = size / _KB
    for unit in ("KB", "MB", "GB"):
        if number < _KB or unit == "GB":
            break
        number /= _KB
    return f"{number:,.1f} {unit}"
