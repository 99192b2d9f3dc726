"""Writes the parts of an assistant's message in their order, between the markers of its family.

This is the only place that knows how reasoning, text and calls follow each other: a notation joins the segments into a
text, a framing passes them on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from ferrule.conversation import MalformedCall, Part, Reasoning, Text, ToolCall
from ferrule.dialects.family import NO_PARALLEL, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import PLAIN_TURNS, Turns
from ferrule.dialects.segments import Content, Control, TextSegment
from ferrule.errors import DialectError

_LIMITS = frozenset({NO_PARALLEL, NO_TEXT_BESIDE})


def write_parts(
    family: Family,
    parts: tuple[Part, ...],
    write_calls: Callable[[Sequence[ToolCall]], Iterable[TextSegment]],
    turns: Turns = PLAIN_TURNS,
    opens: str = "",
) -> Iterator[TextSegment]:
    """The parts as segments, none of them empty; consecutive calls are passed to `write_calls` together.

    `opens` is the part of the message that the prompt already wrote. Reasoning is left out if the family has no place
    for it, which the caller must report. Raises `DialectError` for text or calls that can't be written.
    """
    _check_places(family, parts)
    if turns.leads:
        yield Control(turns.leads, trained=True)
    parts = _add_empty_parts(family, parts, turns, opens)
    if turns.unthinking and not isinstance(parts[0] if parts else None, Reasoning):
        yield Control(turns.unthinking, trained=True)
    is_first = True
    for piece in _write_pieces(family, parts, write_calls, turns):
        if family.message.between and not is_first:
            yield Control(family.message.between, trained=True)
        for segment in piece:
            if segment.text:
                yield segment
        is_first = False


def _check_places(family: Family, parts: Sequence[Part]) -> None:
    if family.losses.isdisjoint(_LIMITS):
        return
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if len(calls) > 1 and NO_PARALLEL in family.losses:
        raise DialectError(f"the {family.name} notation allows one call per message, got {len(calls)}")
    if calls and NO_TEXT_BESIDE in family.losses and any(isinstance(p, Text) and p.text for p in parts):
        raise DialectError(f"the {family.name} notation does not allow text in a message with calls")


def _add_empty_parts(family: Family, parts: tuple[Part, ...], turns: Turns, opens: str) -> tuple[Part, ...]:
    """The parts, with empty reasoning and text added if the family always marks these."""
    thinking = family.message.thinking
    starts_in_thought = thinking is not None and opens.endswith((thinking.open, thinking.open + thinking.after_open))
    if (turns.thinks or starts_in_thought) and not isinstance(parts[0] if parts else None, Reasoning):
        parts = (Reasoning(""), *parts)
    if turns.empty_text and not any(isinstance(part, Text) for part in parts):
        first = next((at for at, part in enumerate(parts) if isinstance(part, ToolCall)), len(parts))
        parts = (*parts[:first], Text(""), *parts[first:])
    return parts


def _write_pieces(
    family: Family,
    parts: tuple[Part, ...],
    write_calls: Callable[[Sequence[ToolCall]], Iterable[TextSegment]],
    turns: Turns,
) -> Iterator[list[TextSegment]]:
    """Write the parts, yielding the segments of each part or run of calls."""
    markers = family.message
    before, after = markers.preamble if any(map(_is_call, parts)) else markers.answer
    # Whether the next call follows text directly, and not a marker.
    is_beside_text = False
    following = 0
    for is_calls, run in groupby(parts, _is_call):
        if is_calls:
            calls = [part for part in run if isinstance(part, ToolCall)]
            following += len(calls)
            space = markers.before_call if is_beside_text or turns.spaced_calls else ""
            yield [Control(space, trained=True), *write_calls(calls)]
            continue
        for part in run:
            following += 1
            if isinstance(part, Reasoning) and markers.thinking is not None:
                is_followed_by_call = isinstance(parts[following] if following < len(parts) else None, ToolCall)
                is_beside_text = is_followed_by_call and not markers.thinking.closes_before_call
                yield _write_reasoning(family, part, is_open=is_beside_text)
            elif isinstance(part, Text):
                is_beside_text = bool(part.text) and not after and not turns.tight_calls
                closer = "" if turns.end_closes_text and following == len(parts) else after
                yield [Control(before, True), Content(part.text, trained=True), Control(closer, True)]
            elif isinstance(part, MalformedCall):
                is_beside_text = not turns.tight_calls
                yield [Content(part.raw)]


def _is_call(part: Part) -> bool:
    return isinstance(part, ToolCall)


def _write_reasoning(family: Family, part: Reasoning, *, is_open: bool) -> list[TextSegment]:
    thinking = family.message.thinking
    assert thinking is not None, "reasoning is only written where the family marks it"
    opened: list[TextSegment] = [
        Control(thinking.open + thinking.after_open, trained=True),
        Content(part.text, trained=True),
    ]
    if is_open:
        return opened
    return [*opened, Control(thinking.before_close + thinking.close + thinking.after_close, trained=True)]
