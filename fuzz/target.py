"""What a text must not do to a reader, for the fuzzer and for the test that runs its corpus.

An input is two bytes and a text: which family of the notation, how long the pieces are that it is fed in, and what
the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ferrule.dialects.catalogue import families
from ferrule.dialects.family import Family, TextNotation
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
    for family in families().values():
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
    opens = notation.family.prose.thinking.open if data[1] >= 128 and notation.family.prose.thinking else ""
    whole = list(_joined(_read(notation, [text], opens)))
    _check_spans(whole, text)
    _check_calls(whole)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(_joined(_read(notation, pieces, opens))) == whole, "pieces are read otherwise than the whole"


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
