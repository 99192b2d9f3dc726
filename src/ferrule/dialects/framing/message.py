"""One assistant message as segments: its parts, in order, between the markers of its family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

from ferrule.capabilities import Loss
from ferrule.conversation import MalformedCall, Message, Part, Reasoning, Text, ToolCall
from ferrule.dialects.family import Family
from ferrule.dialects.framing.markers import StructuralMarkers
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.message_writer import write_parts
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.segments import Content, Control, Segment, TextSegment
from ferrule.dialects.wording import WrappedResults
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec

Segments: TypeAlias = tuple[TextSegment, ...]


class PartsWriter:
    """Writes the parts of messages as segments, the same for all conversations of a dialect.

    A conversation is laid out again at each turn, so whatever depends on the parts alone is cached.
    """

    def __init__(self, notation: TextNotation, turns: Turns, found: StructuralMarkers) -> None:
        self._notation, self._turns, self._found = notation, turns, found
        writer = notation.family.results
        is_named = isinstance(writer, WrappedResults) and "{id}" in writer.open + writer.close
        self._names_ids = is_named or "{id}" in turns.results[0]
        self._is_lasting = notation.family.select_for_tools is None and notation.is_always_readable
        self._kept = lru_cache(maxsize=1024)(self._write)
        self._around_text = cache(self._write_around_text)

    def write(
        self, parts: tuple[Part, ...], opens: str, tools: Sequence[ToolSpec]
    ) -> tuple[Segments, Mapping[str, str]]:
        """(the segments after `opens`, a mapping from call ids to the ids as written). Raises `DialectError`."""
        if len(parts) == 1 and isinstance(text := parts[0], Text) and text.text:
            before, after = self._around_text(opens)
            return (*before, Content(text.text, trained=True), *after), {}
        return self._kept(parts, opens) if self._is_lasting else self._write(parts, opens, tools)

    def _write_around_text(self, opens: str) -> tuple[Segments, Segments]:
        """The segments before and after the text of a message without other parts: always the same."""
        text = Text("text")
        segments, _ = self._write((text,), opens)
        at = segments.index(Content(text.text, trained=True))
        return segments[:at], segments[at + 1 :]

    def _write(
        self, parts: tuple[Part, ...], opens: str, tools: Sequence[ToolSpec] = ()
    ) -> tuple[Segments, Mapping[str, str]]:
        ids: dict[str, str] = {}

        def write_calls(calls: Sequence[ToolCall]) -> Segments:
            segments, written = self.write_calls(calls, tools)
            ids.update(written)
            return segments

        written = write_parts(self._notation.family, parts, write_calls, self._turns, opens)
        return tuple(_strip_opening([*written], opens)), ids

    def write_calls(self, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> tuple[Segments, Mapping[str, str]]:
        """Like `write`, for a run of calls."""
        written, syntax = self._notation.write_calls(calls, tools)
        clean = [self._found.neutralise_call(call) for call in calls]
        is_clean = all(one is other for one, other in zip(clean, calls, strict=True))
        other = None if is_clean else syntax.write(clean)
        if is_clean and any(call.source for call in calls):
            written = self.repeat_sources(calls, written, tools)
        return tuple(self._found.split(written, other, trained=True)), self._map_ids(calls, written, tools)

    def repeat_sources(self, calls: Sequence[ToolCall], written: str, tools: Sequence[ToolSpec] = ()) -> str:
        """`written` with the original source of each call, if that is equivalent and has the same markers."""
        parts, at = [], 0
        for call, ours in zip(calls, self._read(written, tools), strict=True):
            start = written.find(ours.source or "", at)
            if start < 0 or not ours.source:
                return written
            parts += [written[at:start], call.source or ours.source]
            at = start + len(ours.source)
        repeated = "".join((*parts, written[at:]))
        said = [(call.name, call.decode()) for call in self._read(repeated, tools)]
        is_same = said == [(call.name, call.decode()) for call in calls]
        return (
            repeated if is_same and self._found.list_markers(repeated) == self._found.list_markers(written) else written
        )

    def _read(self, written: str, tools: Sequence[ToolSpec]) -> list[ToolCall]:
        reader = self._notation.reader(tools)
        events = reader.feed(written) + reader.close(stopped=True)
        return [event.call for event in events if isinstance(event, CallFinished)]

    def _map_ids(self, calls: Sequence[ToolCall], written: str, tools: Sequence[ToolSpec]) -> Mapping[str, str]:
        """The ids as written, for notations with their own form of them, so that results can refer to these."""
        if not self._names_ids:
            return {}
        native = [call.id for call in self._read(written, tools)]
        return dict(zip((call.id for call in calls), native, strict=True)) if len(native) == len(calls) else {}


class MessageWriter:
    """Writes the messages of one conversation.

    `name` is the dialect's, for losses. `ids` maps the conversation's call ids to those that were written.
    """

    def __init__(
        self,
        name: str,
        family: Family,
        turns: Turns,
        writer: PartsWriter,
        tools: Sequence[ToolSpec],
        losses: list[Loss],
    ) -> None:
        self._name, self._family, self._turns, self._writer = name, family, turns, writer
        self._tools, self._losses = tools, losses
        self.ids: dict[str, str] = {}
        # Whether reasoning is still open, after a call inside it.
        self.thinks = False

    def write(self, message: Message, opens: str) -> Sequence[Segment]:
        """The segments after `opens`, which the prompt already wrote. Raises `DialectError`."""
        if self._turns.inline:
            return [*self._write_inline(message)]
        parts = message.parts
        if self._family.message.thinking is None or not self._turns.reasons:
            parts = tuple(part for part in parts if not isinstance(part, Reasoning))
            unwritten = len(message.parts) - len(parts)
            self._losses += [Loss("reasoning", f"{self._name} has no place for it")] * unwritten
        segments, ids = self._writer.write(parts, opens, self._tools)
        self.ids |= ids
        return segments

    def follow_sampled(self, message: Message) -> None:
        """Note whether reasoning is open after a message that is written by its sampled ids."""
        if self._turns.inline:
            for _ in self._write_inline(message):
                pass

    def _write_calls(self, calls: Sequence[ToolCall]) -> Sequence[TextSegment]:
        segments, ids = self._writer.write_calls(calls, self._tools)
        self.ids |= ids
        return segments

    def _write_inline(self, message: Message) -> Iterator[Segment]:
        """Write each part in its place. Reasoning continues after a call that directly follows it, up to the next
        text."""
        thinking = self._family.message.thinking
        assert thinking is not None, "families with inline turns mark reasoning"
        for at, part in enumerate(message.parts, 1):
            is_call = isinstance(part, ToolCall | MalformedCall)
            if isinstance(part, Reasoning):
                yield from () if self.thinks else (Control(thinking.open, trained=True),)
                yield Content(part.text, trained=True)
            if not is_call and (self.thinks or isinstance(part, Reasoning)):
                follows = message.parts[at] if at < len(message.parts) else None
                self.thinks = isinstance(part, Reasoning) and isinstance(follows, ToolCall | MalformedCall)
                yield from () if self.thinks else (Control(thinking.close, trained=True),)
            if isinstance(part, Text) and part.text:
                yield Content(part.text, trained=True)
            elif isinstance(part, MalformedCall):
                yield Content(part.raw)
            elif isinstance(part, ToolCall):
                yield from self._write_calls((part,))


def _strip_opening(segments: list[TextSegment], opens: str) -> Sequence[TextSegment]:
    """Remove from a message's segments what its prompt already wrote."""
    for at, segment in enumerate(segments):
        if not opens or not isinstance(segment, Control):
            break
        if segment.text.startswith(opens):
            left = segment.text.removeprefix(opens)
            return [*([Control(left, trained=True)] if left else ()), *segments[at + 1 :]]
        if not opens.startswith(segment.text):
            break
        opens = opens.removeprefix(segment.text)
    return segments
