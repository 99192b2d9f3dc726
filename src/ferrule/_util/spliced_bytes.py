"""Texts as they are or in UTF-8, and bytes of which a part was replaced without a copy of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["EncodedText", "SplicedBytes", "decode_text"]


@dataclass(frozen=True, slots=True)
class SplicedBytes:
    """`base` with `new` in place of `base[start:end]`."""

    base: bytes
    start: int
    end: int
    new: bytes

    def __len__(self) -> int:
        return len(self.base) - (self.end - self.start) + len(self.new)

    @property
    def parts(self) -> tuple[memoryview, bytes, memoryview]:
        """What it consists of, in order."""
        view = memoryview(self.base)
        return view[: self.start], self.new, view[self.end :]

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)

    def cut_lines(self, margin: int) -> tuple[bytes, bytes, int]:
        """The lines around the change, before it and after it, and how many lines are before these.

        They reach `margin` bytes further than the change and what it might be shifted by.
        """
        margin += self.end - self.start + len(self.new)
        first = self.base.rfind(b"\n", 0, max(0, self.start - margin)) + 1
        last = self.base.find(b"\n", self.end + margin) + 1 or len(self.base)
        changed = self.base[first : self.start] + self.new + self.base[self.end : last]
        return self.base[first:last], changed, self.base.count(b"\n", 0, first)


EncodedText: TypeAlias = str | bytes | SplicedBytes
"""A text, or its UTF-8: to decode a large one takes long."""


def decode_text(text: EncodedText) -> str:
    """The text itself."""
    return text if isinstance(text, str) else bytes(text).decode()
