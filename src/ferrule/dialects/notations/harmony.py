"""Messages that name their channel and recipient, as gpt-oss writes them.

`<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`, with the recipient after the channel or
before it. One turn contains several such messages: `analysis` is reasoning, as is what the assistant addresses to
itself; a message to a tool is a call on any channel, and the rest is text. A message of another role is a result that
the model made up. Text outside messages is text, as is anything in a header besides its keywords.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import skip_blank
from ferrule.dialects.notations.json_object import read_arguments
from ferrule.dialects.notations.tag_arguments import TagArguments
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import JSON_ARGUMENTS, repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.events import ReasoningDelta, TextDelta

_LONGEST_HEADER = 300
_ROLE = re.compile(r"^<\|start\|>\s*(?!to=)([^\s<]+)")
_RECIPIENT = re.compile(r"\bto=(\S+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_WORDS = ("assistant", "analysis", "commentary", "final", "to=assistant", "to=user", "to=all", "json", "xml")


def _match_prefixes(*words: str) -> str:
    """A pattern of these words and their beginnings."""
    found = {word[:length] for word in words for length in range(1, len(word) + 1)}
    return "|".join(sorted(found, key=len, reverse=True))


# A header's keywords count only in their place: anywhere else, they are the model's text.
_OVER = r"(?![^\s<])"
_ROLE_WORD, _CHANNEL_WORD = r"<\|start\|>\s*assistant", r"<\|channel\|>\s*(?:analysis|commentary|final)"
_WHOLE = (
    rf"(?:{_ROLE_WORD}|{_CHANNEL_WORD}|<\|constrain\|>\s*(?:json|xml)|(?<![^\s>])to=(?:assistant|user|all)){_OVER}"
    r"|(?<![^\s>])(?:json|xml)(?=\s*<\|message\|>)|<\|(?:start|channel|constrain|message)\|>"
)
_CUT = (
    rf"<\|start\|>\s*(?:{_match_prefixes('assistant')})\Z"
    rf"|<\|channel\|>\s*(?:{_match_prefixes('analysis', 'commentary', 'final')})\Z"
    rf"|<\|constrain\|>\s*(?:{_match_prefixes('json', 'xml')})\Z"
    rf"|(?:{_ROLE_WORD}|{_CHANNEL_WORD})\s+(?:{_match_prefixes('to=assistant', 'to=user', 'to=all')})\Z"
)
# White space is scanned only from its beginning: starting at each of its characters would take quadratic time.
_SPACE_BEFORE = r"(?:(?<!\s)\s*+|(?<=\s)(?=\S))"
_FRAMING = re.compile(rf"{_SPACE_BEFORE}(?:{_WHOLE})\s*+")
_CUT_FRAMING = re.compile(rf"{_SPACE_BEFORE}(?:{_CUT}|{_WHOLE})\s*+")


@dataclass(frozen=True, slots=True)
class Harmony:
    """The notation of gpt-oss. `header` is what calls are written under, `{name}` in it their tool; `tags` is how their
    arguments are written if not in JSON, and in that case a call without any ends as other messages do."""

    header: str = field(default="<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>", compare=False)
    tags: TagArguments | None = None
    start: str = "<|start|>"
    channel: str = "<|channel|>"
    constrain: str = "<|constrain|>"
    message: str = "<|message|>"
    call: str = "<|call|>"
    ends: tuple[str, ...] = ("<|end|>", "<|return|>")

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a message, or its header."""
        return (self.start, self.channel)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.call, *self.ends)

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.openers, self.constrain, self.message, *self.closers)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The keywords of a header."""
        return _WORDS

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in its own message."""
        return f"{self.start}assistant".join(self._write_call(call) for call in calls)

    def _write_call(self, call: ToolCall) -> str:
        arguments = self.tags.write(call) if self.tags else validate_arguments(call)
        return f"{self.header.replace('{name}', call.name)}{arguments}{self.call if arguments else self.ends[0]}"

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `PlainTextSyntax`; none for arguments in JSON."""
        return self.tags.value_ends if self.tags else ()

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a message whose header begins with its recipient, the prompt having ended with the role."""
        if not (yield from stream.is_ahead(" to=")):
            return False
        stream.begin_trial()
        yield from self._read_message(stream, calls, "")
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a message."""
        yield from self._read_message(stream, calls, opener)

    def _read_message(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        if opener:
            stream.begin_trial(with_opener=True)
        header, is_whole = yield from self._read_header(stream, opener)
        recipient = _find_last(_RECIPIENT, header)
        is_thought = _find_last(_CHANNEL, header) == "analysis"
        if not is_whole:
            if recipient and opener:
                stream.keep_trial()
            if recipient or not opener:
                raise NotACall("unexpected_text")
            is_cut_off = stream.ended and stream.at == len(stream.text)
            stream.split_trial(_CUT_FRAMING if is_cut_off else _FRAMING)
        elif _find_last(_ROLE, header) not in ("", "assistant"):
            stream.keep_trial()
            yield from self._read_forged_result(stream, calls)
        elif recipient == "assistant" and not is_thought:
            yield from self._read_own_message(stream, calls)
        elif recipient not in ("", "assistant", "all", "user"):
            stream.keep_trial()
            yield from self._read_call(stream, calls, recipient.removeprefix("functions."))
        else:
            stream.split_trial(_FRAMING, ReasoningDelta if is_thought else TextDelta)
            stops = stream.make_stops(*self.openers, *self.closers)
            yield from stream.scan(stops, stream.take_reasoning if is_thought else stream.take_text)

    def _read_header(self, stream: InputStream, opener: str) -> Reading[tuple[str, bool]]:
        """Read a header; returns it, and whether text follows. Raises `EndOfText` if a call is cut off."""
        pieces = [opener]
        stops = stream.make_stops(self.channel, self.constrain, self.message, self.start, *self.closers)
        length = 0

        def keep(end: int) -> None:
            nonlocal length
            length += end - stream.at
            if length > _LONGEST_HEADER:
                if opener:
                    stream.keep_trial()
                raise NotACall("unexpected_text")
            pieces.append(stream.take_framing(end))

        while True:
            marker = yield from stream.scan(stops, keep)
            if not marker and _RECIPIENT.search("".join(pieces)):
                if opener:
                    stream.keep_trial()
                raise EndOfText
            if marker not in (self.channel, self.constrain, self.message):
                return "".join(pieces), False
            # A space, since a recipient may directly precede a marker.
            pieces += (" ", stream.take_framing(stream.marker_end))
            if marker == self.message:
                return "".join(pieces), True

    def _read_own_message(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read what the assistant addresses to itself: reasoning, or a call without a tool's name."""
        header = stream.raw.tell() if stream.raw else 0
        marker = yield from stream.scan(stream.make_stops(*self.openers, *self.closers), stream.take_framing)
        if marker != self.call:
            stream.split_trial(_FRAMING, ReasoningDelta, header)
            return
        stream.take_framing(stream.marker_end)
        stream.keep_trial()
        calls.begin(stream).fail("no_name")

    def _read_forged_result(self, stream: InputStream, calls: Calls) -> Reading[None]:
        call = calls.begin(stream)
        marker = yield from stream.scan(stream.make_stops(self.start, *self.closers), stream.take_framing)
        if marker in self.closers:
            stream.take_framing(stream.marker_end)
        call.fail("forged_result")

    def _read_call(self, stream: InputStream, calls: Calls, name: str) -> Reading[None]:
        call = calls.begin(stream)
        call.set_name(name)
        start = stream.raw.tell() if stream.raw else 0
        stops = stream.make_stops(*self.openers, *self.closers)
        try:
            character = yield from (skip_blank(stream) if self.tags else stream.skip_space())
            if (yield from stream.take_marker(self.call)):
                call.finish()
                return
            yield from self._read_arguments(stream, calls, call, character)
            rest: list[str] = []
            marker = yield from stream.scan(stops, lambda end: rest.append(stream.take_framing(end)))
            if "".join(rest).strip() and (marker or not self.call.startswith("".join(rest).strip())):
                raise NotACall(INVALID)
            if marker in self.closers:
                stream.take_framing(stream.marker_end)
            call.finish()
        except NotACall as fault:
            yield from repair_call(stream, calls, fault, start, stops, self.call, reread_arguments)

    def _read_arguments(self, stream: InputStream, calls: Calls, call: CallBuilder, character: str) -> Reading[None]:
        if self.tags is not None and not (calls.repair and character == "{"):
            yield from self.tags.read(stream, call, *self.openers, *self.closers)
            return
        if self.tags is not None:
            call.note_repair(JSON_ARGUMENTS)
        yield from read_arguments(stream, call, character)


def _find_last(pattern: re.Pattern[str], header: str) -> str:
    """The last match of a pattern in a header; empty if there is none."""
    found = pattern.findall(header)
    return str(found[-1]) if found else ""
