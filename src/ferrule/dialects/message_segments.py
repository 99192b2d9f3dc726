"""One assistant message as segments: its parts between the markers of its family, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.capabilities import Loss
from ferrule.conversation import MalformedCall, Message, Part, Reasoning, Text, ToolCall
from ferrule.dialects.family import NO_TEXT_BESIDE, TextNotation, WrappedResults
from ferrule.dialects.segments import Content, Control, Segment
from ferrule.dialects.turns import Turns
from ferrule.dialects.written import Markers
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec


class MessageWriter:
    """Writes the messages of one conversation, as `TextNotation.message` puts their parts together.

    `ids` are those of the calls as they were written, by those of the conversation.
    """

    def __init__(
        self, notation: TextNotation, turns: Turns, found: Markers, tools: Sequence[ToolSpec], losses: list[Loss]
    ) -> None:
        self._notation, self._turns, self._found = notation, turns, found
        self._family = notation.family
        self._tools, self._losses = tools, losses
        self.ids: dict[str, str] = {}

    def segments(self, message: Message, opens: str) -> list[Segment]:
        """What the assistant wrote after `opens`, which its prompt wrote already. Raises `DialectError`."""
        return _without([*self._parts(message, opens)], opens)

    def _parts(self, message: Message, opens: str) -> Iterator[Segment]:
        prose = self._family.prose
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        parts = self._complete(message, opens)
        if self._turns.leads:
            yield Control(self._turns.leads, trained=True)
        if self._turns.unthinking and not any(isinstance(part, Reasoning) for part in parts[:1]):
            yield Control(self._turns.unthinking, trained=True)
        markers = prose.preamble if calls else prose.answer
        is_open, is_first = False, True
        for following, part in enumerate(parts, 1):
            piece: list[Segment] = []
            if isinstance(part, Reasoning):
                goes_on = bool(calls) and parts[following : following + 1] == (calls[0],)
                piece, is_open = self._thought(part, goes_on=goes_on)
            elif isinstance(part, Text):
                if calls and NO_TEXT_BESIDE in self._family.losses and part.text:
                    raise DialectError(f"the {self._family.name} notation has no place for text beside calls")
                is_open = bool(part.text) and not markers[1] and not self._turns.tight_calls
                closer = "" if self._turns.end_closes_text and following == len(parts) else markers[1]
                piece = [Control(markers[0], True), Content(part.text, trained=True), Control(closer, True)]
            elif isinstance(part, MalformedCall):
                piece = [Content(part.raw, trained=False)]
            elif calls and part is calls[0]:
                space = prose.before_call if is_open or self._turns.spaced_calls else ""
                piece = [Control(space, True), *self._calls(calls)]
            if piece:
                yield from () if is_first or not prose.between else (Control(prose.between, True),)
                yield from (segment for segment in piece if not isinstance(segment, Control | Content) or segment.text)
                is_first = False

    def _complete(self, message: Message, opens: str) -> tuple[Part, ...]:
        """The parts, with empty reasoning and text where the family marks these always."""
        parts, turns, thinking = message.parts, self._turns, self._family.prose.thinking
        starts_in_thought = thinking is not None and opens.endswith(
            (thinking.open, thinking.open + thinking.after_open)
        )
        if (turns.thinks or starts_in_thought) and not isinstance(parts[0] if parts else None, Reasoning):
            parts = (Reasoning(""), *parts)
        if turns.empty_text and not any(isinstance(part, Text) for part in parts):
            first = next((at for at, part in enumerate(parts) if isinstance(part, ToolCall)), len(parts))
            parts = (*parts[:first], Text(""), *parts[first:])
        return parts

    def _thought(self, part: Reasoning, *, goes_on: bool) -> tuple[list[Segment], bool]:
        thinking = self._family.prose.thinking
        if thinking is None:
            self._losses.append(Loss("reasoning", f"{self._family.name} has no place for it"))
            return [], False
        opened: list[Segment] = [
            Control(thinking.open + thinking.after_open, trained=True),
            Content(part.text, trained=True),
        ]
        if goes_on and not thinking.closes_before_call:
            return opened, True
        closer = thinking.before_close + thinking.close + thinking.after_close
        return [*opened, Control(closer, trained=True)], False

    def _calls(self, calls: Sequence[ToolCall]) -> Iterator[Segment]:
        written = self._notation.calls(calls, self._tools)
        clean = [self._found.harmless_call(call) for call in calls]
        is_clean = all(one is other for one, other in zip(clean, calls, strict=True))
        other = None if is_clean else self._family.syntax.write(clean)
        if is_clean and any(call.source for call in calls):
            written = self._as_the_model_wrote(calls, written)
        self._note_ids(calls, written)
        yield from self._found.segments(written, other, trained=True)

    def _as_the_model_wrote(self, calls: Sequence[ToolCall], written: str) -> str:
        """`written` with each call as a reader saw it, where that says the same with the same markers."""
        parts, at = [], 0
        for call, ours in zip(calls, self._read(written), strict=True):
            start = written.find(ours.source or "", at)
            if start < 0 or not ours.source:
                return written
            parts += [written[at:start], call.source or ours.source]
            at = start + len(ours.source)
        repeated = "".join((*parts, written[at:]))
        said = [(call.name, call.decoded()) for call in self._read(repeated)]
        is_same = said == [(call.name, call.decoded()) for call in calls]
        return repeated if is_same and self._found.in_order(repeated) == self._found.in_order(written) else written

    def _read(self, written: str) -> list[ToolCall]:
        reader = self._notation.reader(self._tools)
        events = reader.feed(written) + reader.close(stopped=True)
        return [event.call for event in events if isinstance(event, CallFinished)]

    def _note_ids(self, calls: Sequence[ToolCall], written: str) -> None:
        """Remember the ids that were written, where results name them: a notation may have its own form of them."""
        writer = self._family.results
        names_ids = isinstance(writer, WrappedResults) and "{id}" in writer.open + writer.close
        if not (names_ids or "{id}" in self._turns.results[0]):
            return
        native = [call.id for call in self._read(written)]
        if len(native) == len(calls):
            self.ids.update(zip((call.id for call in calls), native, strict=True))


def _without(segments: list[Segment], opens: str) -> list[Segment]:
    """The segments of a message without what its prompt wrote."""
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
