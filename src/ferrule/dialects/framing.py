"""Whole conversations as segments, for every family that declares its turns: notation and framing as one dialect.

What the assistant wrote and the token that ends its turn is trained, headers and what only the system writes are not.
Markers are `Control`, everything that somebody wrote is `Content`, whatever it looks like. History stays as it was
written, so that each prompt is a prefix of what follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, MalformedCall, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.family import (
    NO_IDS,
    NO_PARALLEL,
    NO_TEXT_BESIDE,
    Family,
    JsonOffer,
    TextNotation,
    WrappedResults,
    neutralised,
    offered_json,
)
from ferrule.dialects.message_reader import MessageReader
from ferrule.dialects.segments import Content, Control, Layout, SampledIds, Segment
from ferrule.dialects.turns import Turns
from ferrule.dialects.written import Markers
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec


class FramedDialect:
    """The dialect of a family: its notation in its turns, or in those of one of its `other_turns`, by name.

    Raises `DialectError` where it declares none.
    """

    def __init__(self, family: Family, name: str = "") -> None:
        self.name = name or family.name
        turns = family.turns if self.name == family.name else dict(family.other_turns).get(self.name)
        if turns is None:
            raise DialectError(f"how {self.name} frames whole conversations is not declared")
        self.family = family
        self.turns: Turns = turns
        self.notation = TextNotation(family)
        self.markers = self.notation.markers
        self.rewrites_history = False
        self.capabilities = Capabilities(
            tools=family.one_tool[:1] if family.one_tool else None,
            parallel_calls=NO_PARALLEL not in family.losses,
            text_beside_calls=NO_TEXT_BESIDE not in family.losses,
            reasoning=family.prose.thinking is not None,
            ids=NO_IDS not in family.losses,
        )
        self.found = Markers(self.markers)

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """How the model is told of its tools; empty where there are none."""
        return self.notation.offer(tools)

    def call(self, call: ToolCall) -> str:
        """The text of a call. Raises `DialectError` for what can't be expressed."""
        return self.notation.call(call)

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The text of a result; markers in it are made visible as plain text."""
        return self.notation.result(result)

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """All messages as segments. Raises `DialectError` for a call that has no expression here."""
        fitted, losses = adapt(conversation, self.capabilities)
        return _Page(self, tools, losses).layout(fitted.messages)

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> MessageReader:
        """A reader for one assistant message: see `Dialect.reader`."""
        return self.notation.reader(tools, first_call=first_call, opens=opens, spelled_out=spelled_out)


class _Page:
    """One conversation while it is written."""

    def __init__(self, dialect: FramedDialect, tools: Sequence[ToolSpec], losses: list[Loss]) -> None:
        self._dialect, self._tools, self._losses = dialect, tools, losses
        self._family, self._turns, self._found = dialect.family, dialect.turns, dialect.found
        self._segments: list[Segment] = []
        # What stands before the next user's text, where there is no turn for a system prompt.
        self._waiting: list[Segment] = []
        # The token that ended the assistant's turn and is the first of the next header.
        self._shared = ""
        # Ids as they were written, by those of the conversation.
        self._ids: dict[str, str] = {}

    def layout(self, messages: Sequence[Message]) -> Layout:
        """The segments of all messages."""
        groups = [(role, list(group)) for role, group in groupby(messages, key=lambda message: message.role)]
        self._begin(messages[0].text if messages and messages[0].role == "system" else "")
        previous = ""
        turns = [(role, message, group) for role, group in groups for message in group]
        for position, (role, message, group) in enumerate(turns):
            following = turns[position + 1][0] if position + 1 < len(turns) else ""
            if role == "assistant":
                self._assistant(message, previous, following)
            elif role == "tool":
                if message is group[0]:
                    self._results([each.result for each in group])
            elif role == "user":
                self._user(message.text)
            elif position:
                self._system(message.text)
            previous = role
        if self._waiting:
            self._losses.append(Loss("system", "not written: no user message follows it"))
        prompt = (Control("".join(self._header(previous)), ends_run=True),)
        return Layout(tuple(self._segments), prompt, self._turns.all_stops, self._strays, tuple(self._losses))

    @property
    def _strays(self) -> tuple[str, ...]:
        return (*self._turns.strays, *(self._family.prose.result or ()))

    def _header(self, previous: str) -> tuple[str, str]:
        """What opens the assistant's turn, and what of its message the prompt writes."""
        turns = self._turns
        return turns.resumes if turns.resumes and previous == "tool" else (turns.assistant, turns.opens)

    def _open(self, header: str) -> None:
        self._add(header.removeprefix(self._shared))
        self._shared = ""

    def _begin(self, system: str) -> None:
        turns = self._turns
        if turns.begin:
            self._segments.append(Control(turns.begin))
        offer = list(self._offer()) if self._tools else []
        is_apart = turns.offer == "apart"
        told: list[Segment] = [Content(system, recurs=True)] if system else []
        if offer and not is_apart:
            told += [Control("\n\n"), *offer] if system else offer
        if told:
            self._told(told)
        if offer and is_apart:
            self._segments += offer

    def _told(self, told: Sequence[Segment]) -> None:
        if self._turns.system is None:
            self._waiting += [*told, Control("\n\n")]
            return
        self._open(self._turns.system[0])
        self._segments += told
        self._add(self._turns.system[1])

    def _system(self, text: str) -> None:
        self._told([Content(text)])

    def _user(self, text: str) -> None:
        self._open(self._turns.user[0])
        if self._waiting:
            self._losses.append(Loss("system", "written at the start of the user message that follows it"))
        self._segments += [*self._waiting, Content(text)]
        self._add(self._turns.user[1])
        self._waiting = []

    def _offer(self) -> Iterator[Segment]:
        offer = self._family.offer
        if isinstance(offer, JsonOffer):
            yield Control(offer.before)
            yield Content("\n".join(map(offered_json, self._tools)), recurs=True)
            yield Control(offer.after)
            return
        clean = [self._found.harmless_spec(spec) for spec in self._tools]
        is_clean = all(one is other for one, other in zip(clean, self._tools, strict=True))
        other = None if is_clean else offer.write(clean)
        yield from self._found.segments(offer.write(self._tools), other, recurs=True)

    def _results(self, results: Sequence[ToolResult]) -> None:
        groups = [[result] for result in results] if self._turns.each_result else [list(results)]
        for index, group in enumerate(groups, 1):
            opening, closing = self._turns.results
            self._segments_of_wrapper(opening, group[0], index, is_header=True)
            self._segments += self._answers(group)
            self._add(closing)

    def _segments_of_wrapper(self, text: str, result: ToolResult, index: int = 0, *, is_header: bool = False) -> None:
        for at, piece in enumerate(_at_placeholders(text)):
            if at % 2:
                fields = {"{name}": result.name, "{id}": self._id_of(result), "{index}": str(index)}
                self._segments.append(Content(fields[piece]))
            elif is_header and at == 0:
                self._open(piece)
            else:
                self._add(piece)

    def _id_of(self, result: ToolResult) -> str:
        return self._ids.get(result.call_id, result.call_id)

    def _answers(self, results: Sequence[ToolResult]) -> Sequence[Segment]:
        """The results of one turn, harmless: not every tokenizer of a family has tokens for all of its markers."""
        writer = self._family.results
        texts = [self._harmless(result.text) for result in results]
        if not isinstance(writer, WrappedResults):
            named = [
                replace(result, name=self._harmless(result.name), call_id=self._harmless(self._id_of(result)))
                for result in results
            ]
            return [*self._found.segments(writer.write(named, texts))]
        start = len(self._segments)
        self._add(writer.before)
        for number, (result, text) in enumerate(zip(results, texts, strict=True)):
            self._add(writer.between if number else "")
            self._segments_of_wrapper(writer.open, result)
            self._segments.append(Content(text))
            self._segments_of_wrapper(writer.close, result)
        self._add(writer.after)
        written = self._segments[start:]
        del self._segments[start:]
        return written

    def _add(self, text: str) -> None:
        if text:
            self._segments.append(Control(text))

    def _harmless(self, text: str) -> str:
        clean, broken = neutralised(text, self._dialect.markers)
        self._losses += broken
        return clean

    def _assistant(self, message: Message, previous: str, following: str) -> None:
        turns = self._turns
        self._shared = ""
        header, opens = self._header(previous)
        self._segments.append(Control(header + opens, ends_run=True))
        ends_in_calls = bool(message.parts) and isinstance(message.parts[-1], ToolCall | MalformedCall)
        end = turns.calls_end if ends_in_calls and turns.calls_end is not None else turns.end
        if turns.ends_in_header and following and not self._opener(following).startswith(end):
            end = ""
        if message.sampled is not None and message.sampled.dialect == self._dialect.name:
            closer = turns.token_of(end)
            self._segments.append(SampledIds(message.sampled.ids, message.sampled.logprobs, closer))
        else:
            self._segments += _without([*self._parts(message, opens)], opens)
            if end:
                self._segments.append(Control(end, trained=True))
        if turns.ends_in_header:
            self._shared = end
        self._add(turns.after)

    def _opener(self, role: str) -> str:
        turns = self._turns
        if role == "system":
            return turns.system[0] if turns.system else ""
        return {"user": turns.user[0], "tool": turns.results[0]}.get(role, turns.assistant)

    def _parts(self, message: Message, opens: str) -> Iterator[Segment]:
        """What the assistant wrote, part by part, as `TextNotation.message` puts them together."""
        prose = self._family.prose
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        parts = self._complete(message, opens)
        if self._turns.leads:
            yield Control(self._turns.leads, trained=True)
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
                is_open = bool(part.text) and not markers[1]
                piece = [Control(markers[0], True), Content(part.text, trained=True), Control(markers[1], True)]
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
        starts_in_thought = thinking is not None and opens.endswith(thinking.open + thinking.after_open)
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
        written = self._dialect.notation.calls(calls, self._tools)
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
        reader = self._dialect.reader(self._tools)
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
            self._ids.update(zip((call.id for call in calls), native, strict=True))


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


def _at_placeholders(text: str) -> list[str]:
    pieces = [text]
    for name in ("{name}", "{id}", "{index}"):
        pieces = [part for at, piece in enumerate(pieces) for part in (_cut(piece, name) if at % 2 == 0 else [piece])]
    return pieces


def _cut(text: str, name: str) -> list[str]:
    first, *others = text.split(name)
    return [first, *(part for other in others for part in (name, other))]
