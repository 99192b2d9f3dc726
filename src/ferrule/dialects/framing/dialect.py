"""Whole conversations as segments, for every family with declared turns: notation and framing as one dialect.

The assistant's output and the token that ends its turn are trained; headers and what only the system writes are not.
Markers are `Control`, everything else is `Content`, whatever it looks like. History is never rewritten, so that each
prompt is a prefix of what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import takewhile

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, Image, MalformedCall, Message, Part, Text, ToolCall, ToolResult
from ferrule.dialects.family import NO_IDS, NO_PARALLEL, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.markers import StructuralMarkers
from ferrule.dialects.framing.message import MessageWriter, PartsWriter
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.notation import TextNotation, neutralise
from ferrule.dialects.notations.positional import MarkedResults
from ferrule.dialects.reader.message import MessageReader
from ferrule.dialects.segments import Content, Control, ImageSlot, Layout, SampledIds, Segment, mask_segments
from ferrule.dialects.wording import JsonOffer, WrappedResults, encode_offer
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_OFFERS_KEPT = 16
_TOKEN_NAME = re.compile(r"<[|｜][^<>\s]*?[|｜]>|\[\|[^\[\]\s]*?\|\]")
# Most of a layout consists of these few markers.
_control = lru_cache(maxsize=1024)(Control)


class FramedDialect:
    """The dialect of a family: its notation in its turns, or in one of its `other_turns`, selected by `name`.

    Raises `DialectError` if the family declares no turns.
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
            reasoning=family.message.thinking is not None and turns.reasons,
            ids=NO_IDS not in family.losses,
            user_images=turns.image is not None,
            image_results=turns.image is not None and turns.inline,
        )
        self.stops = turns.all_stops
        placeholder = (turns.image.placeholder,) if turns.image and turns.image.placeholder else ()
        self.forbidden_tokens = (*turns.forbidden_tokens, *(family.message.result or ()), *placeholder)
        self._offers: dict[tuple[int, ...], tuple[tuple[ToolSpec, ...], Sequence[Segment]]] = {}
        self.found = StructuralMarkers(self.markers)
        self.writer = PartsWriter(self.notation, turns, self.found)

    @cached_property
    def control_tokens(self) -> tuple[str, ...]:
        """The markers that a tokenizer must have as control tokens: those around turns and those named like one.
        Others (`<think>`, `<tool_call>`, markers of results) are ordinary text in some tokenizers of a family."""
        named = _TOKEN_NAME.findall(f"{self.turns} {self.family.syntax.markers}")
        return tuple(dict.fromkeys((*self.stops, *self.turns.forbidden_tokens, *named)))

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """The text that offers tools to the model; empty if there are none."""
        return self.notation.offer(tools)

    def get_offer_segments(self, tools: Sequence[ToolSpec]) -> Sequence[Segment]:
        """The offer of tools. It is cached: each turn of a conversation offers the same objects again."""
        # A ToolSpec is frozen, so the same objects have the same offer; keeping them alive keeps their ids unique.
        key = tuple(map(id, tools))
        found = self._offers.get(key)
        if found is None:
            if len(self._offers) >= _OFFERS_KEPT:
                self._offers.clear()
            found = self._offers[key] = tuple(tools), tuple(self._write_offer(tools))
        return found[1]

    def _write_offer(self, tools: Sequence[ToolSpec]) -> Iterator[Segment]:
        offer = self.family.offer
        if isinstance(offer, JsonOffer):
            yield Control(offer.before)
            yield Content("\n".join(map(encode_offer, tools)), recurs=True)
            yield Control(offer.after)
            return
        clean = [self.found.neutralise_spec(spec) for spec in tools]
        is_clean = all(one is other for one, other in zip(clean, tools, strict=True))
        other = None if is_clean else offer.write(clean)
        yield from self.found.split(offer.write(tools), other, recurs=True)

    def call(self, call: ToolCall) -> str:
        """The text of a call: the model's own if it is equivalent. Raises `DialectError`."""
        written = self.notation.call(call)
        if call.source is None:
            return written
        return self.writer.repeat_sources((call,), written)

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The text of a result; markers in it are turned into visible plain text."""
        return self.notation.result(result)

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """All messages as segments. Raises `DialectError` for a call that can't be expressed."""
        fitted, losses = adapt(conversation, self.capabilities)
        return _LayoutWriter(self, tools, losses).layout(fitted.messages)

    def grammar(self, tools: Sequence[ToolSpec], choice: str | None, *, opens: str = "") -> Grammar | None:
        """What a message can be: see `Dialect.grammar`."""
        from ferrule.dialects.message_grammar import make_message_grammar  # only needed where output is constrained

        return make_message_grammar(self.notation.family, tools, choice, opens=opens, turns=self.turns)

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


class _LayoutWriter:
    """Writes one conversation."""

    def __init__(self, dialect: FramedDialect, tools: Sequence[ToolSpec], losses: list[Loss]) -> None:
        self._dialect, self._tools, self._losses = dialect, tools, losses
        self._family, self._turns, self._found = dialect.family, dialect.turns, dialect.found
        self._segments: list[Segment] = []
        # What goes before the next user message's text, if the family has no system turn.
        self._waiting: list[Segment] = []
        self._follows_system = False
        # The token that ended the assistant's turn and also begins the next header.
        self._shared = ""
        self._messages = MessageWriter(dialect.name, dialect.family, dialect.turns, dialect.writer, tools, losses)

    def layout(self, messages: Sequence[Message]) -> Layout:
        """The segments of all messages."""
        self._begin(messages[:1])
        previous = ""
        for position, message in enumerate(messages):
            role = message.role
            if role == "assistant":
                self._write_assistant(message, previous)
            elif role == "tool":
                if previous != "tool":
                    self._write_results([*takewhile(_is_result, messages[position:])])
            elif role == "user":
                self._write_user(message)
            elif position:
                self._write_system(message.text)
            previous = role
        if self._waiting:
            self._losses.append(Loss("system", "not written: no user message follows it"))
        header, opened = self._choose_header(previous)
        prompt = (_control(header + opened, ends_run=True),)
        thinking = self._family.message.thinking
        opens = thinking.open if thinking and self._messages.thinks and previous == "tool" else ""
        dialect = self._dialect
        return Layout(
            tuple(self._segments),
            prompt,
            dialect.stops,
            dialect.forbidden_tokens,
            tuple(self._losses),
            opens,
            dialect.control_tokens,
        )

    def _choose_header(self, previous: str) -> tuple[str, str]:
        """The header that opens the assistant's turn, and the part of its message that the prompt writes."""
        turns = self._turns
        header, opens = turns.resumes if turns.resumes and previous == "tool" else (turns.assistant, turns.opens)
        return (turns.asks if self._tools else "") + header, opens

    def _open_assistant(self, header: str) -> None:
        if header:
            self._add(header.removeprefix(self._shared))
            self._shared = ""

    def _begin(self, first: Sequence[Message]) -> None:
        """Write what comes before the first turn. Placeholders for a missing part are written only once another role
        speaks, so that an empty conversation begins like one with a system prompt."""
        turns = self._turns
        system = first[0].text if first and first[0].role == "system" else turns.default_system
        is_begun = bool(first) and first[0].role != "assistant"
        self._add(turns.begin)
        offer = self._dialect.get_offer_segments(self._tools) if self._tools else ()
        if turns.offer == "before system":
            self._write_offer_turn(offer, is_begun=is_begun)
        content: list[Segment] = [Content(system, recurs=True)] if system else []
        if offer and turns.offer == "in system":
            content += [_control("\n\n"), *offer] if system else offer
        if content:
            self._add_system(content)
        elif is_begun:
            self._add(turns.no_system)
        if turns.offer == "after system":
            self._write_offer_turn(offer, is_begun=is_begun)

    def _write_offer_turn(self, offer: Sequence[Segment], *, is_begun: bool) -> None:
        """Write the tools in a turn of their own."""
        if offer:
            self._add(self._turns.tools[0])
            self._segments += offer
            self._add(self._turns.tools[1])
        elif is_begun:
            self._add(self._turns.no_tools)

    def _add_system(self, content: Sequence[Segment]) -> None:
        if self._turns.system is None:
            self._waiting += [*content, Control("\n\n")]
            return
        self._open_assistant(self._turns.system[0])
        self._segments += content
        self._add(self._turns.system[1])
        self._follows_system = True

    def _write_system(self, text: str) -> None:
        self._add_system([Content(text)])

    def _write_user(self, message: Message) -> None:
        after_system = self._turns.after_system
        self._open_assistant(after_system if after_system is not None and self._follows_system else self._turns.user[0])
        self._follows_system = False
        if self._waiting:
            self._losses.append(Loss("system", "written at the start of the user message that follows it"))
        self._segments += self._waiting
        if self._turns.image is not None and any(isinstance(part, Image) for part in message.parts):
            self._add_parts(message.parts)
        else:
            self._segments.append(Content(message.text))
        self._add(self._turns.user[1])
        self._waiting = []

    def _add_parts(self, parts: Sequence[Part]) -> None:
        """Add a user's text and images in order."""
        markers = self._turns.image or ImageMarkers()
        for part in parts:
            if isinstance(part, Image):
                self._add(markers.before)
                self._segments.append(ImageSlot(part, markers.placeholder))
                self._add(markers.after)
            elif isinstance(part, Text):
                self._segments.append(Content(part.text))

    def _write_results(self, messages: Sequence[Message]) -> None:
        if self._turns.inline:
            for message in messages:
                self._write_inline_result(message)
            return
        results = [message.result for message in messages]
        groups = [[result] for result in results] if self._turns.each_result else [list(results)]
        for index, group in enumerate(groups, 1):
            opening, closing = self._turns.results
            self._add_wrapper(opening, group[0], index, is_header=True)
            start = len(self._segments)
            self._add_results(group)
            if self._shared and len(self._segments) > start and isinstance(first := self._segments[start], Control):
                self._segments[start] = Control(first.text.removeprefix(self._shared))
            self._shared = ""
            self._add(closing)

    def _write_inline_result(self, message: Message) -> None:
        """Write a result as it was in a dataset row, if it came from one: with the white space before it, and the
        markers of images that the row doesn't contain."""
        writer = self._family.results
        assert isinstance(writer, MarkedResults), "families with inline results mark them"
        kept = message.extra.get(self._dialect.name, {})
        before, marked = kept.get("before", ""), kept.get("images", 0)
        self._segments += [Content(before)] if before else []
        texts, has_images = [], False
        for at, part in enumerate(message.result.content):
            has_images = has_images or isinstance(part, Image) or at < marked
            if isinstance(part, Image):
                self._segments.append(ImageSlot(part))
            elif at < marked:
                self._add(writer.image)
            else:
                texts.append(self._neutralise(part.text))
        if texts or not has_images:
            self._segments += [Control(writer.open), Content("\n".join(texts)), Control(writer.close)]

    def _add_wrapper(self, text: str, result: ToolResult, index: int = 0, *, is_header: bool = False) -> None:
        if "{" not in text and not is_header:
            self._add(text)
            return
        for at, piece in enumerate(_split_at_placeholders(text)):
            if at % 2:
                fields = {"{name}": result.name, "{id}": self._get_written_id(result), "{index}": str(index)}
                self._segments.append(Content(fields[piece]))
            elif is_header and at == 0:
                self._open_assistant(piece)
            else:
                self._add(piece)

    def _get_written_id(self, result: ToolResult) -> str:
        return self._messages.ids.get(result.call_id, result.call_id)

    def _add_results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of one turn, as plain text: not every tokenizer of a family has tokens for their markers."""
        writer = self._family.results
        texts = [self._neutralise(result.text) for result in results]
        if not isinstance(writer, WrappedResults):
            named = [
                replace(
                    result, name=self._neutralise(result.name), call_id=self._neutralise(self._get_written_id(result))
                )
                for result in results
            ]
            self._segments += self._found.split(writer.write(named, texts))
            return
        self._add(writer.before)
        for number, (result, text) in enumerate(zip(results, texts, strict=True)):
            self._add(writer.between if number else "")
            self._add_wrapper(writer.open, result)
            self._segments.append(Content(writer.quote(text)))
            self._add_wrapper(writer.close, result)
        self._add(writer.after)

    def _add(self, text: str) -> None:
        if text:
            self._segments.append(_control(text))

    def _neutralise(self, text: str) -> str:
        clean, broken = neutralise(text, self._dialect.markers)
        self._losses += broken
        return clean

    def _write_assistant(self, message: Message, previous: str) -> None:
        turns = self._turns
        self._shared, self._follows_system = "", False
        if previous != "tool":
            self._messages.thinks = False
        header, opens = self._choose_header(previous)
        self._segments.append(_control(header + opens, ends_run=True))
        ends_in_calls = bool(message.parts) and isinstance(message.parts[-1], ToolCall | MalformedCall)
        end = turns.calls_end if ends_in_calls and turns.calls_end is not None else turns.end
        if message.sampled is not None and message.sampled.dialect == self._dialect.name:
            closer = turns.get_last_token(end)
            self._segments.append(
                SampledIds(message.sampled.ids, message.sampled.logprobs, closer, message.sampled.sampling_logprobs)
            )
            self._messages.follow_sampled(message)
        else:
            written = [*self._messages.write(message, opens), *([_control(end, trained=True)] if end else [])]
            self._segments += written if message.is_trained else mask_segments(written)
        after = turns.after if end.endswith(turns.end) else ""
        self._shared = "" if after else end
        self._add(after)


def _is_result(message: Message) -> bool:
    return message.role == "tool"


@cache
def _split_at_placeholders(text: str) -> list[str]:
    """Split a text at its placeholders, which are the items with odd indices."""
    pieces = [text]
    for name in ("{name}", "{id}", "{index}"):
        pieces = [
            part for at, piece in enumerate(pieces) for part in (_split_at(piece, name) if at % 2 == 0 else [piece])
        ]
    return pieces


def _split_at(text: str, name: str) -> list[str]:
    first, *others = text.split(name)
    return [first, *(part for other in others for part in (name, other))]
