"""Cuts a rendered chat template at its sentinels, and compares the template's own text between them.

No template declares where its markers begin and end, so two texts are compared up to a marker that both contain
completely: a cut inside one would train half a header.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ferrule.dialects.template.messages import ContentSlots

_SPECIAL = re.compile(r"<[|｜][^<>\s]*?[|｜]>|<(?=[a-z_]+_of_[a-z_])[a-z_]++>|</?s>|<turn\||<eos>")
# What may be a marker although it is not declared: never cut inside, but not an end of turn either.
_TAG = re.compile(r"</?[^<>\s/][^<>\s]{0,40}>|\[/?[A-Z][A-Z_]*\]")


@dataclass(frozen=True, slots=True)
class Cut:
    """A rendering with sentinels: `pieces` alternate between template text and the numbers of slots, with template text
    at both ends; `starts` is where each piece begins, and the end of the last.

    The place of a slot is its index in `numbers`: a template may write one several times.
    """

    text: str
    pieces: tuple[str, ...]
    starts: tuple[int, ...]
    slots: ContentSlots
    numbers: tuple[int, ...]
    _begins: tuple[int, ...]

    @classmethod
    def make(cls, text: str, slots: ContentSlots, similar: Cut | None = None) -> Cut:
        """Cut a rendering at its sentinels. It is faster with one that begins with the same text."""
        shared = 2 * similar.count_shared(text) if similar is not None else 0
        pieces = [*similar.pieces[:shared]] if similar is not None else []
        starts = [*similar.starts[: shared + 1]] if similar is not None else [0]
        at = starts[-1]
        for number, begin, end in slots.cut(text, at):
            pieces += [text[at:begin], number]
            starts += [begin, end]
            at = end
        pieces.append(text[at:])
        starts.append(len(text))
        return cls(text, tuple(pieces), tuple(starts), slots, tuple(map(int, pieces[1::2])), tuple(starts[1:-1:2]))

    def count_shared(self, text: str) -> int:
        """How many sentinels a text has in common with this one, from its beginning on."""
        low, high = 0, len(self.numbers)
        while low < high:
            middle = (low + high + 1) // 2
            start, end = self.starts[2 * low], self.starts[2 * middle]
            if text.startswith(self.text[start:end], start):
                low = middle
            else:
                high = middle - 1
        return low

    def begin(self, place: int) -> int:
        """Where the sentinel at a place begins."""
        return self._begins[place]

    def end(self, place: int) -> int:
        """Where the sentinel at a place ends; 0, where the text begins, for a place of -1."""
        return self.starts[2 * place + 2] if place >= 0 else 0

    def get_text_before(self, place: int) -> str:
        """The template's text before the sentinel at a place, back to the previous one."""
        return self.pieces[2 * place]

    def get_text_after(self, place: int) -> str:
        """The template's text after the sentinel at a place, up to the next; the first text for a place of -1."""
        return self.pieces[2 * place + 2]

    def find_places(self, number: int) -> list[int]:
        """The places of a slot, in order."""
        return [place for place, found in enumerate(self.numbers) if found == number]

    def find_next_place(self, position: int) -> int:
        """The first place whose sentinel begins at or after a position; one past the last if none does."""
        return bisect_left(self._begins, position)

    def find_next_slot(self, position: int) -> int:
        """Where the sentinel at that place begins; the end of the text if there is none."""
        place = bisect_left(self._begins, position)
        return self._begins[place] if place < len(self._begins) else len(self.text)


class TemplateMarkers:
    """The known markers: never cut inside, and searched for at the end of a message."""

    def __init__(self, known: Collection[str]) -> None:
        self._names = tuple(known)
        names = sorted((name for name in known if name.strip()), key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, names), _SPECIAL.pattern]))
        self._whole = re.compile(f"{self._pattern.pattern}|{_TAG.pattern}")

    def with_more(self, *more: str) -> TemplateMarkers:
        """These and more markers."""
        return TemplateMarkers((*self._names, *more))

    def find(self, text: str) -> list[str]:
        """The markers in a text, in order."""
        return [match[0] for match in self.iterate(text)]

    def iterate(self, text: str) -> Iterator[re.Match[str]]:
        """The same, with their positions."""
        return self._pattern.finditer(text)

    def strip_from(self, text: str) -> str:
        """The text between the markers."""
        return self._pattern.sub("", text)

    def common_prefix(self, one: str, other: str) -> int:
        """The length of the common prefix: all of `one`, or up to a marker of which both contain only the beginning."""
        length = _count_common(one, other)
        if length == len(one):
            return length
        for text in (one, other):
            for match in self._whole.finditer(text, max(0, length - 200)):
                if match.start() < length < match.end():
                    length = match.start()
        return length

    def common_suffix(self, one: str, other: str) -> int:
        """The length of the common suffix, up to a marker of which both contain only the end."""
        length = _count_common(one[::-1], other[::-1])
        for text in (one, other):
            for match in self._whole.finditer(text):
                if match.start() < len(text) - length < match.end():
                    length = len(text) - match.end()
        return length


def _count_common(one: str, other: str) -> int:
    common, limit = 0, min(len(one), len(other))
    while common < limit:  # by halves, since comparing slices is faster than comparing characters
        middle = (common + limit + 1) // 2
        if one[common:middle] == other[common:middle]:
            common = middle
        else:
            limit = middle - 1
    return common


def find_message_end(
    gap: str, own_tail: str, ends: Collection[str], closers: Collection[str], markers: TemplateMarkers
) -> tuple[int, str]:
    """Where a message ends in `gap`, which follows its last content, and with which marker (may be empty).

    `own_tail` is what follows that content when nothing follows the message; `closers` are the markers that end a
    message only when something follows.
    """
    own = [match for match in markers.iterate(own_tail) if match[0] in ends]
    found = [match for match in markers.iterate(gap) if match[0] in ends]
    if own and len(found) >= len(own):
        return found[len(own) - 1].end(), found[len(own) - 1][0]
    # The turn continues, or its end is not written before something follows.
    closing = own_tail[: own[0].start()] if own else own_tail.rstrip()
    length = markers.common_prefix(gap, closing)
    if length < len(closing):
        # The end of the message exists, after something that the template omits from the last message.
        at = gap.find(closing[length:], length)
        if at < 0:
            return length, ""
        length = at + len(closing) - length
    following = next(markers.iterate(gap[length:]), None)
    if following and following[0] in closers and not gap[length:][: following.start()].strip():
        return length + following.end(), following[0]
    return length, ""


def align(cut: Cut, direct: str) -> list[str] | None:
    """The content at each slot in the direct rendering; None if the rest of the text differs.

    Content may be unchanged, stripped, or escaped (see `list_spellings`).
    """
    first = cut.slots.restore_ids(cut.pieces[0])
    if not direct.startswith(first):
        return None
    position = len(first)
    found = []
    for at in range(1, len(cut.pieces), 2):
        following = cut.slots.restore_ids(cut.pieces[at + 1])
        for written in list_spellings(cut.slots.slots[int(cut.pieces[at])].text):
            end = position + len(written)
            if direct.startswith(written, position) and direct.startswith(following, end):
                position = end + len(following)
                found.append(written)
                break
        else:
            return None
    return found if position == len(direct) else None


def list_spellings(text: str) -> Iterable[str]:
    """How a template may write a text: unchanged, stripped, or escaped as in JSON, a Python string, or XML."""
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
        yield plain.translate(_IN_PYTHON)
        yield plain.translate(_IN_XML)


_IN_PYTHON = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})
_IN_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"})
