"""What the tests of readers share: feeding text in pieces, joining adjacent deltas, and checking spans."""

from collections.abc import Iterable, Sequence

from ferrule.conversation import MalformedCall, Part, Reasoning, Text, ToolCall
from ferrule.dialects.protocol import Reader
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Framing,
    ReaderEvent,
    ReasoningDelta,
    TextDelta,
)


def read(reader: Reader, pieces: Iterable[str], stopped: bool = True) -> list[ReaderEvent]:
    """All events of a text that arrives in pieces, matched by text."""
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.close(stopped)


def joined(events: Sequence[ReaderEvent]) -> list[ReaderEvent]:
    """The events with adjacent pieces of one kind joined: what no chunking may change."""
    result: list[ReaderEvent] = []
    for event in events:
        last = result[-1] if result else None
        if type(event) is type(last) and isinstance(event, TextDelta | ReasoningDelta):
            result[-1] = type(event)(last.text + event.text, (last.span[0], event.span[1]))
        elif isinstance(event, Framing) and isinstance(last, Framing):
            result[-1] = Framing(last.marker + event.marker, (last.span[0], event.span[1]))
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and last.index == event.index:
            text = last.json_fragment + event.json_fragment
            result[-1] = ArgumentsDelta(event.index, text, (last.span[0], event.span[1]))
        else:
            result.append(event)
    return result


def check_spans(events: Sequence[ReaderEvent], text: str) -> None:
    """Spans tile the text, in order, and those of text and framing hold just what the event says."""
    position = 0
    for event in events:
        start, end = event.span
        assert start == position, f"{event} starts at {start}, expected {position}"
        position = end
        if isinstance(event, TextDelta | ReasoningDelta):
            assert text[start:end] == event.text
        elif isinstance(event, Framing):
            assert text[start:end] == event.marker
        elif not isinstance(event, ArgumentsDelta):
            assert isinstance(event, CallStarted | CallFinished | CallMalformed)
            assert start == end
    assert position == len(text)


def parts(events: Sequence[ReaderEvent]) -> list[Part]:
    """The parts of the message that events tell of."""
    found: list[Part] = []
    for event in joined([event for event in events if not isinstance(event, Framing)]):
        if isinstance(event, TextDelta):
            found.append(Text(event.text))
        elif isinstance(event, ReasoningDelta):
            found.append(Reasoning(event.text))
        elif isinstance(event, CallFinished):
            found.append(event.call)
        elif isinstance(event, CallMalformed):
            found.append(MalformedCall(f"call_{event.index + 1}", event.raw, event.kind))
    return found


def calls(events: Sequence[ReaderEvent]) -> list[ToolCall]:
    """The calls that were read whole."""
    return [event.call for event in events if isinstance(event, CallFinished)]
