"""Finds the assistant's text in a rendered conversation.

A header ends where the generation prompt does, as far as two renderings agree: the conversation up to the message with
the prompt, and the complete one. The message itself is what the template writes when nothing follows it; anything else
inside it in the complete conversation (a result between a call and the text beside it) belongs to others. A message
ends with the last marker that the template writes after it when nothing follows, or else with the one that closes it
before the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferrule.dialects.template.cuts import Cut, TemplateMarkers, find_message_end
from ferrule.errors import DialectError

if TYPE_CHECKING:
    from ferrule.dialects.template.probe import TemplateFacts

Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """An assistant message in a rendering: its header from `header` to the first of `parts`, `end` is after the turn's
    marker.

    `opened` is what a generation prompt would have written in addition to the header; `closer` the marker at the end.
    """

    message: int
    header: int
    parts: tuple[Stretch, ...]
    opened: str
    closer: str

    @property
    def start(self) -> int:
        """Where the message's text begins."""
        return self.parts[0][0]

    @property
    def end(self) -> int:
        """Where it ends, including the turn's marker."""
        return self.parts[-1][1]


class SpanFinder:
    """Finds the spans in one complete conversation."""

    def __init__(self, whole: Cut, learned: TemplateFacts, known: TemplateMarkers) -> None:
        self._whole, self._learned, self._known = whole, learned, known
        self._places: dict[int, list[int]] = {}
        for place, number in enumerate(whole.numbers):
            self._places.setdefault(number, []).append(place)

    def find_span(self, message: int, asked: Cut, alone: Cut) -> Span:
        """The span of a message. `asked` is what precedes it with the prompt for it, `alone` the conversation that ends
        with it. Raises `DialectError` if the header can't be identified."""
        whole, learned = self._whole, self._learned
        place, base = self._find_last_shared(message, asked)
        header = whole.end(place)
        wanted, gap = asked.text[asked.end(base) :], whole.text[header : whole.find_next_slot(header)]
        length = self._measure_header(message, wanted, gap)
        start = header + length
        own_place = self._find_match(alone, place)
        words = _Words(self._known, whole, alone, message, start, own_place, length)
        parts = words.find_stretches()
        tail = learned.strip_prompt(words.tail)
        end, closer = find_message_end(
            whole.text[parts[-1][1] : whole.find_next_slot(parts[-1][1])],
            tail,
            learned.ends,
            learned.closers,
            self._known,
        )
        parts[-1] = (parts[-1][0], parts[-1][1] + end)
        opened = wanted[self._known.common_prefix(wanted, gap[:length]) :]
        return Span(message, header, tuple(self._strip_headers(parts)), opened, closer)

    def _strip_headers(self, parts: list[Stretch]) -> Iterator[Stretch]:
        """The parts without a header in the middle, and without a second turn that is empty.

        A model stops where its turn ends, so it writes no header after that: it comes from a template that gives a
        message two turns (one for its calls, one for its text).
        """
        whole, header = self._whole, self._learned.header
        for start, end in parts:
            begin = start
            for match in self._known.iterate(whole.text[start:end]) if header else ():
                after = start + match.end()
                at = whole.text.find(header, after, min(end, whole.find_next_slot(after)))
                if match[0] not in self._learned.stops or at < begin:
                    continue
                yield begin, after
                begin = at + self._known.common_prefix(self._learned.opened, whole.text[at:end])
                begin = max(begin, at + len(header))
            if begin == start or whole.find_next_slot(begin) < end:
                yield begin, end

    def _find_last_shared(self, message: int, asked: Cut) -> tuple[int, int]:
        """The places, here and in `asked`, of the last content before the message; -1 if there is none.

        Anything before that may have been rewritten.
        """
        own = (p for p, n in enumerate(self._whole.numbers) if self._whole.slots.slots[n].message == message)
        limit = next(own, len(self._whole.numbers))
        for base in range(len(asked.numbers) - 1, -1, -1):
            place = self._find_counterpart(asked, base)
            if 0 <= place < limit:
                return place, base
        return -1, -1

    def _find_counterpart(self, other: Cut, place: int) -> int:
        """The place here of the content at a place of another rendering; -1 if it isn't here."""
        number = other.numbers[place]
        here, rank = self._places.get(number, []), other.numbers[:place].count(number)
        return here[rank] if rank < len(here) else -1

    def _find_match(self, other: Cut, place: int) -> int:
        """The place there of the content at a place here; -1 if it isn't there."""
        if place < 0:
            return -1
        number = self._whole.numbers[place]
        there = other.find_places(number)
        rank = self._places[number].index(place)
        return there[rank] if rank < len(there) else -1

    def _measure_header(self, message: int, wanted: str, gap: str) -> int:
        """How much of `gap`, which precedes the text, is not the assistant's: `wanted` is the same stretch in the
        prompt for the message."""
        known, learned = self._known, self._learned
        common = known.common_prefix(wanted, gap)
        if not learned.header or learned.header in gap[:common]:
            return common
        # The prompt and the history close the previous turn, or word the header, in two ways.
        at = gap.find(learned.header)
        if at >= 0:
            return at + known.common_prefix(learned.opened, gap[at:])
        # No header: the message continues the turn of what precedes it.
        if not known.find(gap[common:]) or not known.find(wanted[common:]) or common == len(wanted):
            return common
        following = known.find(wanted[common:])[0]
        if following in learned.opening or following in learned.ends:
            return common
        raise DialectError(f"this chat template doesn't show where the header of message {message} ends")


class _Words:
    """The parts of a message's own rendering that are also in the complete one."""

    def __init__(
        self, known: TemplateMarkers, whole: Cut, alone: Cut, message: int, start: int, own_place: int, header: int
    ) -> None:
        self._known, self._whole, self._alone, self._start = known, whole, alone, start
        slots = alone.slots.slots
        self._own = [p for p in range(own_place + 1, len(alone.numbers)) if slots[alone.numbers[p]].message == message]
        before = alone.text[alone.end(own_place) : alone.find_next_slot(alone.end(own_place))]
        opened = whole.text[start - header : start]
        #: The template's own text before the first content of the message, and after its last.
        self._lead = before[known.common_prefix(opened, before) :]
        self.tail = alone.text[alone.end(self._own[-1]) :] if self._own else self._lead

    def find_stretches(self) -> list[Stretch]:
        """The stretches of the complete rendering that make up the message, up to the end of its last content."""
        whole, alone = self._whole, self._alone
        parts = [(self._start, self._start)]
        next_place = whole.find_next_place(self._start)
        after = self._lead
        for own, place in self._find_places():
            at, begin = parts[-1][1], whole.begin(place)
            before = self._lead if own == self._own[0] else alone.get_text_before(own)
            first, last = (begin, at) if place == next_place else (whole.begin(next_place), whole.end(place - 1))
            head, tail = self._measure_kept(whole.text[at:first], whole.text[last:begin], after, before)
            if at + head < begin - tail:
                parts[-1] = (parts[-1][0], at + head)
                parts.append((begin - tail, begin))
            parts[-1] = (parts[-1][0], whole.end(place))
            next_place, after = place + 1, alone.get_text_after(own)
        return parts[1:] if len(parts) > 1 and parts[0] == (self._start, self._start) else parts

    def _find_places(self) -> list[tuple[int, int]]:
        """The places of the message's contents, in its own rendering and in the complete one, in the order of the
        latter.

        Each occurs as often as in the message alone: a template may repeat it elsewhere.
        """
        left: dict[int, list[int]] = {}
        for own in self._own:
            left.setdefault(self._alone.numbers[own], []).append(own)
        found = []
        for place, number in enumerate(self._whole.numbers):
            if left.get(number) and self._whole.begin(place) >= self._start:
                found.append((left[number].pop(0), place))
        return found

    def _measure_kept(self, head: str, tail: str, after: str, before: str) -> tuple[int, int]:
        """How much of the beginning of `head`, and of the end of `tail`, belongs to the message.

        They are one text if no content of another message is between them; `after` and `before` are what replaces them
        when nothing follows the message.
        """
        if head == after and head == tail:
            return len(head), 0
        kept = self._known.common_prefix(head, after)
        if head != tail:
            return kept, self._known.common_suffix(tail, before)
        end = self._known.common_suffix(head[kept:], before)
        # A marker that the message alone doesn't have begins something else; otherwise it is only worded differently.
        is_more = kept + end >= len(after) and self._known.find(head[kept : len(head) - end])
        return (kept, end) if is_more else (len(head), 0)
