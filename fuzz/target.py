"""What a text must not do to a reader, for the fuzzer and for the test that runs its corpus.

An input is two bytes and a text: which family of the notation, how long the pieces are that it is fed in, and what
the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferrule.dialects.catalogue import load_families
from ferrule.dialects.family import Family
from ferrule.dialects.notation import TextNotation
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    Framing,
    ReaderEvent,
    ReasoningDelta,
    TextDelta,
)
from ferrule.toolspec import ToolSpec

CORPUS = Path(__file__).parent / "corpus"
_PROPERTIES = {"text": {"type": "string"}, "count": {"type": "integer"}, "items": {"type": "array"}}
TOOLS = (ToolSpec("f", "Do it.", {"type": "object", "properties": _PROPERTIES}), ToolSpec("g", "", {"type": "object"}))


def notations() -> dict[str, list[Family]]:
    """The families of each notation, by the name of its file."""
    found: dict[str, list[Family]] = {}
    for family in load_families().values():
        found.setdefault(type(family.syntax).__module__.rpartition(".")[2], []).append(family)
    return found


def corpus(notation: str) -> list[bytes]:
    """The inputs that are checked in for a notation: what it writes, and of `found.jsonl` what once broke a promise."""
    names = [family.name for family in notations()[notation]]
    entries: list[dict[str, Any]] = []
    for name in (notation, "found"):
        lines = (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        entries += [entry for entry in map(json.loads, lines) if entry["family"] in names]
    return [bytes((names.index(one["family"]), one["piece"])) + one["text"].encode() for one in entries]


def check(known: Sequence[Family], data: bytes) -> None:
    """Read an input whole and in pieces. Raises `AssertionError` where a promise of the readers is broken."""
    if len(data) < 2:
        return
    notation = TextNotation(known[data[0] % len(known)])
    text = data[2:].decode("utf-8", "ignore")
    size = 1 + data[1] % 16
    opens = notation.family.message.thinking.open if data[1] >= 128 and notation.family.message.thinking else ""
    whole = list(_joined(_read(notation, [text], opens)))
    check_whole(notation, whole, text)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(_joined(_read(notation, pieces, opens))) == whole, "pieces are read otherwise than the whole"


def check_whole(notation: TextNotation, events: Sequence[ReaderEvent], text: str) -> None:
    """What holds of all events of a text. Raises `AssertionError` where one doesn't."""
    _check_spans(events, text)
    _check_calls(events)
    _check_nothing_is_lost(events, text, notation.framing)


def _read(notation: TextNotation, pieces: Sequence[str], opens: str) -> list[ReaderEvent]:
    reader = notation.reader(TOOLS, opens=opens)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close(stopped=True)


def _joined(events: Sequence[ReaderEvent]) -> Iterator[ReaderEvent]:
    last: ReaderEvent | None = None
    for event in events:
        merged = _merged(last, event) if last is not None else None
        if merged is None and last is not None:
            yield last
        last = merged or event
    if last is not None:
        yield last


def _merged(last: ReaderEvent, event: ReaderEvent) -> ReaderEvent | None:
    span = ((last.span or (0, 0))[0], (event.span or (0, 0))[1])
    match last, event:
        case (TextDelta(one), TextDelta(other)):
            return TextDelta(one + other, span)
        case (ReasoningDelta(one), ReasoningDelta(other)):
            return ReasoningDelta(one + other, span)
        case (Framing(one), Framing(other)):
            return Framing(one + other, span)
        case (ArgumentsDelta(index, one), ArgumentsDelta(same, other)) if index == same:
            return ArgumentsDelta(index, one + other, span)
    return None


def _check_spans(events: Sequence[ReaderEvent], text: str) -> None:
    position = 0
    for event in events:
        assert event.span is not None
        assert event.span[0] == position, f"{event} does not begin at {position}"
        position = event.span[1]
        if isinstance(event, TextDelta | ReasoningDelta):
            assert event.text == text[slice(*event.span)]
    assert position == len(text), "some of the text vanished"


def _check_calls(events: Sequence[ReaderEvent]) -> None:
    deltas: dict[int, str] = {}
    ended: list[int] = []
    for event in events:
        if isinstance(event, ArgumentsDelta):
            deltas[event.index] = deltas.get(event.index, "") + event.json_fragment
        elif isinstance(event, CallFinished):
            assert deltas.get(event.index) == event.call.arguments
            assert isinstance(json.loads(event.call.arguments), dict)
        if isinstance(event, CallFinished | CallMalformed):
            ended.append(event.index)
    assert ended == list(range(len(ended))), "calls end out of order"
    assert set(deltas) <= set(ended), "a call was begun and never ended"


def _check_nothing_is_lost(events: Sequence[ReaderEvent], text: str, framing: Sequence[str]) -> None:
    """Outside of calls there is text, reasoning, and framing made of `framing` and white space; a call's source, or
    its raw text, is its part of the input."""
    owned = _owned(events, text)
    lost = bytearray(len(text))
    for event in events:
        start, end = event.span or (0, 0)
        if isinstance(event, TextDelta | ReasoningDelta):
            assert not any(owned[start:end]), f"{event} is a part of a call too"
        elif isinstance(event, ArgumentsDelta):
            assert all(owned[start:end]), f"{event} is a part of no call"
        elif isinstance(event, Framing):
            lost[start:end] = bytes(not mine for mine in owned[start:end])
    for found in re.finditer(b"\x01+", lost):
        run = text[found.start() : found.end()]
        assert _is_made_of(run, framing, is_last=found.end() == len(text)), f"lost as framing: {run!r}"


def _owned(events: Sequence[ReaderEvent], text: str) -> bytearray:
    """For each character whether it is a part of a call."""
    owned = bytearray(len(text))
    last = -1
    for event in events:
        if not isinstance(event, CallFinished | CallMalformed) or event.span is None:
            continue
        raw = event.raw if isinstance(event, CallMalformed) else event.call.source
        end = event.span[1]
        if raw is None:
            # Of the calls of an array that was put right as one, the first has the text.
            assert isinstance(event, CallFinished)
            assert event.repairs
            assert end == last
            continue
        assert raw.strip(), f"{event} has no text"
        start = end - len(raw)
        assert text[max(start, 0) : end] == raw, f"{event} has another text than {text[max(start, 0) : end]!r}"
        assert not any(owned[start:end]), f"{event} has some of another call's text"
        owned[start:end] = b"\x01" * len(raw)
        last = end
    return owned


def _is_made_of(run: str, framing: Sequence[str], *, is_last: bool) -> bool:
    """Whether a text is nothing but `framing` and white space, however the one overlaps the other; where the input ends
    with it, the beginning of a marker may be the last of it."""
    known = [text.strip() for text in framing]
    places, met = [0], {0}
    while places:
        at = places.pop()
        at += len(run[at:]) - len(run[at:].lstrip())
        if at == len(run) or (is_last and any(one.startswith(run[at:]) for one in known)):
            return True
        following = {at + len(one) for one in known if run.startswith(one, at)} - met
        met |= following
        places += following
    return False
