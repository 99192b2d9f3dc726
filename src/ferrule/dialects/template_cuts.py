"""Cuts what a chat template rendered: at the sentinels, and where each assistant's words begin and end.

No template says where its headers end. A header ends where the generation prompt does, which is the part that two
renderings have in common: the conversation up to the message with the prompt, and the whole one. A message ends with
the last marker that the template writes after it when nothing follows.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from ferrule.dialects.template_messages import Slots

_SPECIAL = re.compile(r"<[|｜][^<>\s]*?[|｜]>|<[a-z_]+_of_[a-z_]+>|</?s>|<turn\||<eos>")


@dataclass(frozen=True, slots=True)
class Cut:
    """A rendering with sentinels: `pieces` as `Slots.cut` has them, and where in it each piece begins."""

    text: str
    pieces: tuple[str, ...]
    starts: tuple[int, ...]
    slots: Slots

    @classmethod
    def of(cls, text: str, slots: Slots) -> Cut:
        """Cut a rendering."""
        pieces = slots.cut(text)
        frame = len(slots.salt) + 1
        lengths = (len(piece) + (frame if at % 2 else 0) for at, piece in enumerate(pieces))
        return cls(text, tuple(pieces), tuple(accumulate(lengths, initial=0)), slots)

    @property
    def numbers(self) -> list[int]:
        """The slots that are there, in the order of the text."""
        return [int(number) for number in self.pieces[1::2]]

    def after(self, number: int) -> int:
        """Where the last place of a slot ends; -1 where it has none."""
        for at in range(len(self.pieces) - 2, 0, -2):
            if int(self.pieces[at]) == number:
                return self.starts[at + 1]
        return -1

    def last_of(self, message: int) -> int | None:
        """The last slot of a message."""
        own = (number for number in reversed(self.numbers) if self.slots.slots[number].message == message)
        return next(own, None)

    def next_slot(self, position: int) -> int:
        """Where the first slot at or after a position begins; the end of the text where none does."""
        starts = self.starts[1:-1:2]
        found = bisect_right(starts, position - 1)
        return starts[found] if found < len(starts) else len(self.text)


class Markers:
    """What is known to be a marker: never cut inside of, and looked for where a message ends."""

    def __init__(self, known: Collection[str]) -> None:
        names = sorted((name for name in known if name.strip()), key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, names), _SPECIAL.pattern]))

    def found(self, text: str) -> list[str]:
        """The markers in a text, in order."""
        return [match[0] for match in self.matches(text)]

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """The same, with their places."""
        return self._pattern.finditer(text)

    def common(self, one: str, other: str) -> int:
        """How long both begin alike: all of `one`, or up to a marker that they share only the beginning of."""
        length = _common(one, other)
        if length == len(one):
            return length
        for text in (one, other):
            for match in self._pattern.finditer(text, max(0, length - 200)):
                if match.start() < length < match.end():
                    length = match.start()
        return length


def _common(one: str, other: str) -> int:
    limit = min(len(one), len(other))
    return next((at for at in range(limit) if one[at] != other[at]), limit)


def end_of_message(gap: str, own_tail: str, ends: Collection[str], markers: Markers) -> tuple[int, str]:
    """Where a message ends in `gap`, which follows its last content, and with which marker (may be none).

    `own_tail` is what follows that content when nothing follows the message.
    """
    wanted = sum(marker in ends for marker in markers.found(own_tail))
    at = 0
    for match in markers.matches(gap):
        if match[0] in ends:
            at += 1
            if at == wanted:
                return match.end(), match[0]
    closing = own_tail.rstrip() if not wanted else ""
    return (len(closing), "") if gap.startswith(closing) else (markers.common(gap, closing), "")


def aligned(cut: Cut, direct: str) -> list[str] | None:
    """The content at each slot as the direct rendering has it; None where that is not the same text otherwise.

    Content may come out as it was, stripped, or escaped as in a JSON string.
    """
    if not direct.startswith(cut.pieces[0]):
        return None
    position = len(cut.pieces[0])
    found = []
    for at in range(1, len(cut.pieces), 2):
        following = cut.pieces[at + 1]
        for written in spellings(cut.slots.slots[int(cut.pieces[at])].text):
            end = position + len(written)
            if direct.startswith(written, position) and direct.startswith(following, end):
                position = end + len(following)
                found.append(written)
                break
        else:
            return None
    return found if position == len(direct) else None


def spellings(text: str) -> Iterable[str]:
    stripped = (
        text,
        text.strip(),
        text.strip("\n"),
        text.lstrip(),
        text.rstrip(),
        text.lstrip("\n"),
        text.rstrip("\n"),
    )
    yield from dict.fromkeys(stripped)
    for plain in dict.fromkeys(stripped):
        for is_ascii in (False, True):
            yield json.dumps(plain, ensure_ascii=is_ascii)[1:-1]
