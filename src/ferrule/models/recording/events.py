"""The events of an answer as JSON values, and back. Pieces of text that follow each other are one list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import Message, ToolCall
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Event,
    Framing,
    LossesReported,
    ReasoningDelta,
    TextDelta,
)

_SHOWN = 200
"""Characters shown of a row that can't be read."""
_PIECES: dict[type[Any], tuple[str, str]] = {
    TextDelta: ("text", "text"),
    ReasoningDelta: ("reasoning", "text"),
    ArgumentsDelta: ("arguments", "json_fragment"),
}


def events_to_json(events: Sequence[Event], answer: Message) -> list[dict[str, Any]]:
    """The events before the last."""
    rows: list[dict[str, Any]] = []
    for (kind, index), group in groupby(events, _get_group):
        if kind in _PIECES:
            rows.append(_pieces_to_json(kind, index, list(group)))
        else:
            rows += [_event_to_json(event, answer) for event in group]
    return rows


def _get_group(event: Event) -> tuple[type[Any], int | None]:
    return type(event), getattr(event, "index", None)


def _pieces_to_json(kind: type[Any], index: int | None, events: Sequence[Any]) -> dict[str, Any]:
    name, field = _PIECES[kind]
    row: dict[str, Any] = {name: [getattr(event, field) for event in events]}
    if index is not None:
        row["index"] = index
    if any(event.span for event in events):
        row["spans"] = [event.span for event in events]
    return row


def _event_to_json(event: Event, answer: Message) -> dict[str, Any]:
    row: dict[str, Any]
    if isinstance(event, CallStarted):
        row = {"call": event.name, "index": event.index}
        if event.native_id is not None:
            row["native_id"] = event.native_id
    elif isinstance(event, CallFinished):
        row = {"finished": event.index}
        if event.index >= len(answer.calls) or answer.calls[event.index] != event.call:
            call = event.call
            row["call"] = {"id": call.id, "name": call.name, "arguments": call.arguments, "source": call.source}
        if event.repairs:
            row["repairs"] = list(event.repairs)
    elif isinstance(event, CallMalformed):
        row = {"malformed": event.index, "kind": event.kind, "raw": event.raw, "recoverable": event.recoverable}
    elif isinstance(event, Framing):
        row = {"framing": event.marker}
    elif isinstance(event, LossesReported):
        return {"losses": [[loss.kind, loss.detail] for loss in event.losses]}
    else:
        raise TypeError(f"a model can't write a {type(event).__name__}")
    if event.span:
        row["span"] = event.span
    return row


def events_from_json(rows: Iterable[Mapping[str, Any]], answer: Message) -> list[Event]:
    """The events that `events_to_json` wrote. Raises `KeyError`, `TypeError`, `ValueError` or `IndexError`."""
    return [event for row in rows for event in _read_row(row, answer)]


def _read_row(row: Mapping[str, Any], answer: Message) -> Iterator[Event]:
    span = tuple(row["span"]) if "span" in row else None
    if "malformed" in row:
        yield CallMalformed(row["malformed"], row["kind"], row["raw"], row["recoverable"], span)
    elif "finished" in row:
        call = ToolCall(**row["call"]) if "call" in row else answer.calls[row["finished"]]
        if not isinstance(call, ToolCall):
            raise ValueError(f"call {row['finished']} is malformed and can't be finished")
        yield CallFinished(row["finished"], call, span, tuple(row.get("repairs", ())))
    elif "call" in row:
        yield CallStarted(row["index"], row["call"], row.get("native_id"), span)
    elif "framing" in row:
        yield Framing(row["framing"], span)
    elif "losses" in row:
        yield LossesReported(tuple(Loss(kind, detail) for kind, detail in row["losses"]))
    else:
        yield from _read_pieces(row)


def _read_pieces(row: Mapping[str, Any]) -> Iterator[Event]:
    found = next(((kind, name) for kind, (name, _) in _PIECES.items() if name in row), None)
    if found is None or not all(isinstance(piece, str) for piece in row[found[1]]):
        raise ValueError(f"not an event: {dict(row)!r}"[:_SHOWN])
    kind, name = found
    spans = row.get("spans") or [None] * len(row[name])
    for piece, span in zip(row[name], spans, strict=True):
        at = tuple(span) if span else None
        yield ArgumentsDelta(row["index"], piece, at) if kind is ArgumentsDelta else kind(piece, at)
