"""The Hermes dialect, framed as ChatML: what Qwen 2.5 and Qwen 3 write.

    <|im_start|>user\\nWeather in Paris?<|im_end|>\\n<|im_start|>assistant\\n<tool_call>
    {"name": "weather", "arguments": {"city": "Paris"}}
    </tool_call><|im_end|>\\n<|im_start|>user\\n<tool_response>\\n21 °C\\n</tool_response><|im_end|>\\n

All that the assistant wrote is trained, `<|im_end|>` included; its header and the newline after the turn are not.
History stands as it was sampled, so `rewrites_history` is False. Qwen 3's own template leaves the reasoning of earlier
turns out, which changes ids that were written before; that way of writing is not offered here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.calls import Calls
from ferrule.dialects.family import neutralised, offered_json
from ferrule.dialects.hermes_wording import HERMES, QWEN25, HermesWording
from ferrule.dialects.message_reader import MessageReader, Prose, Thinking
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.segments import Content, Control, Layout, SampledIds, Segment
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_OFFERS_KEPT = 16


class _Controls:
    """The control segments of a wording, made once: most of a layout is these."""

    def __init__(self, wording: HermesWording) -> None:
        self.header = {role: Control(f"{wording.turn_start}{role}\n") for role in ("system", "user")}
        self.header["assistant"] = Control(f"{wording.turn_start}assistant\n", ends_run=True)
        self.results_header = Control(f"{wording.turn_start}{wording.result_role}")
        self.turn_end = Control(f"{wording.ends[0]}\n")
        self.message_end = Control(wording.ends[0], trained=True)
        self.newline = Control("\n")
        self.result_start = Control(f"\n{wording.result[0]}\n")
        self.result_end = Control(f"\n{wording.result[1]}")
        self.call_start = Control(f"{wording.call[0]}\n", trained=True)
        self.next_call_start = Control(f"\n{wording.call[0]}\n", trained=True)
        self.call_end = Control(f"\n{wording.call[1]}", trained=True)
        self.think_start = Control(f"{wording.reasoning[0]}\n", trained=True)
        self.think_end = Control(f"\n{wording.reasoning[1]}\n\n", trained=True)


class Hermes:
    """The dialect, in the words of one member of the family."""

    rewrites_history = False

    def __init__(self, wording: HermesWording = HERMES) -> None:
        self.wording = wording
        self.name = wording.name
        self.markers = wording.markers
        self.capabilities = Capabilities(reasoning=True)
        self._offers: dict[tuple[int, ...], tuple[tuple[ToolSpec, ...], str]] = {}
        self._controls = _Controls(wording)
        turn_markers = (wording.turn_start, *wording.ends)
        self._syntax = JsonObject(*wording.call, before=turn_markers)
        self._prose = Prose(Thinking(*wording.reasoning), turn_markers, wording.result, before_call="\n")

    def offer(self, tools: Sequence[ToolSpec]) -> str:
        """The tools block of the system turn: one line of JSON a tool, in the shape of OpenAI's API."""
        if not tools:
            return ""
        return self.wording.tools_before + self._offered(tools) + self.wording.tools_after

    def _offered(self, tools: Sequence[ToolSpec]) -> str:
        # A ToolSpec is frozen, so the same objects have the same JSON; they are kept, so their ids stay theirs.
        key = tuple(map(id, tools))
        known = self._offers.get(key)
        if known is None:
            if len(self._offers) >= _OFFERS_KEPT:
                self._offers.clear()
            known = (tuple(tools), "".join(f"\n{offered_json(spec)}" for spec in tools))
            self._offers[key] = known
        return known[1]

    def call(self, call: ToolCall) -> str:
        """The call between its markers. Raises `DialectError` where its arguments are not JSON."""
        opening, closing = self.wording.call
        return f"{opening}\n{self._call_object(call)}\n{closing}"

    def _call_object(self, call: ToolCall) -> str:
        """The JSON of a call: as the model wrote it where that is known and still says the same."""
        try:
            arguments = call.decoded()
        except (ValueError, RecursionError) as error:
            raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not JSON: {error}") from error
        if call.source is not None:
            written = self._object_in(call.source)
            if written is not None and _says(written, call.name, arguments):
                return written
        return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments.strip() or "{}"}}}'

    def _object_in(self, source: str) -> str | None:
        opening, closing = (f"{self.wording.call[0]}\n", f"\n{self.wording.call[1]}")
        if len(source) < len(opening + closing) or not source.startswith(opening) or not source.endswith(closing):
            return None
        return source[len(opening) : -len(closing)]

    def result(self, result: ToolResult) -> tuple[str, list[Loss]]:
        """The result between its markers; markers inside of its text are made visible as plain text."""
        text, losses = neutralised(result.text, self.wording.markers)
        opening, closing = self.wording.result
        return f"{opening}\n{text}\n{closing}", losses

    def layout(self, conversation: Conversation, tools: Sequence[ToolSpec] = ()) -> Layout:
        """All messages as segments; the results of one group share a turn."""
        fitted, losses = adapt(conversation, self.capabilities)
        messages = fitted.messages
        first_is_system = bool(messages) and messages[0].role == "system"
        segments: list[Segment] = [*self._system(messages[0].text if first_is_system else None, tools)]
        last = len(messages) - 1
        for position, message in enumerate(messages):
            if message.role == "assistant":
                segments.extend(self._assistant(message))
            elif message.role == "tool":
                if position == 0 or messages[position - 1].role != "tool":
                    segments.append(self._controls.results_header)
                segments.extend(self._result(message.result, losses))
                if position == last or messages[position + 1].role != "tool":
                    segments.append(self._controls.turn_end)
            elif position or message.role == "user":
                header = self._controls.header[message.role]
                segments.extend((header, Content(message.text), self._controls.turn_end))
        strays = (self.wording.turn_start, *self.wording.result)
        return Layout(tuple(segments), (self._controls.header["assistant"],), self.wording.ends, strays, tuple(losses))

    def _system(self, text: str | None, tools: Sequence[ToolSpec]) -> Iterator[Segment]:
        text = self.wording.system if text is None else text
        if not text and not tools:
            return
        yield self._controls.header["system"]
        yield Content(text, recurs=True)
        if tools:
            separator = "\n\n" if text else ""
            yield Control(separator + self.wording.tools_before)
            yield Content(self._offered(tools), recurs=True)
            yield Control(self.wording.tools_after)
        yield self._controls.turn_end

    def _result(self, result: ToolResult, losses: list[Loss]) -> Iterator[Segment]:
        # Not every tokenizer of the family has tokens for these two, so a text that holds them could end the result.
        text, neutral = neutralised(result.text, self.wording.result)
        losses.extend(neutral)
        yield self._controls.result_start
        yield Content(text)
        yield self._controls.result_end

    def _assistant(self, message: Message) -> Iterator[Segment]:
        yield self._controls.header["assistant"]
        if message.sampled is not None and message.sampled.dialect == self.name:
            yield SampledIds(message.sampled.ids, message.sampled.logprobs, closer=self.wording.ends[0])
        else:
            yield from self._parts(message)
            yield self._controls.message_end
        yield self._controls.newline

    def _parts(self, message: Message) -> Iterator[Segment]:
        controls = self._controls
        follows = False
        for part in message.parts:
            if isinstance(part, Reasoning):
                yield controls.think_start
                yield Content(part.text, trained=True)
                yield controls.think_end
                follows = False
            elif isinstance(part, Text):
                yield Content(part.text, trained=True)
                follows = follows or bool(part.text)
            elif isinstance(part, ToolCall):
                yield controls.next_call_start if follows else controls.call_start
                yield Content(self._call_object(part), trained=True)
                yield controls.call_end
                follows = True
            elif isinstance(part, MalformedCall):
                yield Content(part.raw, trained=False)
                follows = True

    def reader(
        self,
        tools: Sequence[ToolSpec] = (),
        *,
        first_call: int = 1,
        opens: str = "",
        spelled_out: Collection[str] = (),
    ) -> MessageReader:
        """A reader for one assistant message, up to the end of its turn."""
        calls = Calls(tools, first_call)
        return MessageReader(self._syntax, self._prose, calls, opens=opens, spelled_out=spelled_out)


def qwen25() -> Hermes:
    """The dialect with the system message that Qwen 2.5 writes where a conversation has none."""
    return Hermes(QWEN25)


def _says(written: str, name: str, arguments: object) -> bool:
    try:
        decoded = json.loads(written)
    except (ValueError, RecursionError):
        return False
    if not isinstance(decoded, dict) or decoded.get("name") != name:
        return False
    return bool(decoded.get("arguments", {}) == arguments)
