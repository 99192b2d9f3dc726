"""Tools for any model that writes text: offered in the system message, called and answered in text.

    TextModeModel(model, get_notation("hermes"))

`mode="hermes"`, or the name of another notation, puts this between a pipeline and its model.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation, Message
from ferrule.dialects.family import NO_PARALLEL
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.reader.message import MessageParts, MessageReader
from ferrule.dialects.text_protocol import encode_conversation, keep_source
from ferrule.errors import DialectError
from ferrule.events import (
    ArgumentsDelta,
    CallFinished,
    CallMalformed,
    CallStarted,
    Event,
    LossesReported,
    MessageFinished,
    ReasoningDelta,
    TextDelta,
)
from ferrule.models.answer_schema import move_schema_to_prompt
from ferrule.models.protocol import Model, ModelSettings
from ferrule.toolspec import ToolSpec

_NOT_IN_TEXT = frozenset({"choice", "parallel_calls"})


class TextModeModel:
    """A model whose tool calls are read from its text, in a notation. It owns the inner model and closes it."""

    def __init__(self, model: Model, notation: TextNotation) -> None:
        self.model = model
        self.notation = notation
        self.name = f"{model.name} in {notation.name}"
        one_tool = notation.family.one_tool
        self.capabilities: Capabilities = replace(
            model.capabilities,
            tools=(one_tool[0],) if one_tool else None,
            parallel_calls=NO_PARALLEL not in notation.family.losses,
            ids=False,
            image_results=False,
            malformed_calls=True,
            native_tools=True,
            settings=model.capabilities.settings - _NOT_IN_TEXT,
        )

    def lower(self, conversation: Conversation, tools: Sequence[ToolSpec]) -> tuple[Conversation, list[Loss]]:
        """The conversation as the inner model is sent it, in text alone, and what was lost. Raises `DialectError`."""
        return encode_conversation(self.notation, conversation, tools, sends=self.capabilities)

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `DialectError` for a conversation that the notation can't express."""
        lowered, asked, losses = self._make_request(conversation, tools, settings)
        if losses:
            yield LossesReported(tuple(losses))
        writing = _TextModeMessage(self.notation, conversation.next_call_number, tools)
        async with aclosing(self.model.stream(lowered, (), asked)) as events:
            async for event in events:
                if isinstance(event, MessageFinished):
                    for read in writing.close(stopped=event.stop == "turn"):
                        yield read
                    yield writing.finish(event)
                else:
                    for read in writing.read(event):
                        yield read

    def _make_request(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> tuple[Conversation, ModelSettings, list[Loss]]:
        """What the inner model is asked, and what was lost."""
        if tools and settings.output_schema is not None:  # a text that is constrained to the schema holds no calls
            conversation, settings = move_schema_to_prompt(conversation, settings, with_tools=True)
        lowered, losses = self.lower(conversation, tools)
        return lowered, self._add_stop(settings), losses

    def _add_stop(self, settings: ModelSettings) -> ModelSettings:
        """The settings; a model with stop texts also stops where it would begin a result of its own."""
        if self.notation.family.message.result is None or "stop" not in self.model.capabilities.settings:
            return settings
        return settings.model_copy(update={"stop": (*settings.stop, self.notation.family.message.result[0])})

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()


class _TextModeMessage:
    """A message being received: its text, and the parts that the notation's reader makes of it."""

    def __init__(self, notation: TextNotation, first_call: int, tools: Sequence[ToolSpec]) -> None:
        self._notation = notation
        self._tools = tools
        self._reader: MessageReader = notation.reader(tools, first_call=first_call)
        self._pieces: list[str] = []
        self._has_unwritten = False
        self.parts = MessageParts(first_call)

    def read(self, event: Event) -> Sequence[Event]:
        """The events for one of the inner model."""
        if isinstance(event, TextDelta):
            return self._feed(event.text)
        if isinstance(event, CallFinished | CallMalformed):
            return self._add_parsed(event)
        if isinstance(event, CallStarted | ArgumentsDelta):
            return ()
        if isinstance(event, ReasoningDelta):
            self.parts.add((event,))
        return (event,)

    def _feed(self, text: str) -> Sequence[Event]:
        self._pieces.append(text)
        events = self._reader.feed(text)
        self.parts.add(events)
        return events

    def _add_parsed(self, event: CallFinished | CallMalformed) -> Sequence[Event]:
        """Add a call that the server parsed from the text although it was offered no tools: it was written as asked,
        so it is put back into the text. One that was cut off, or that the notation can't express, is malformed."""
        if isinstance(event, CallMalformed):
            return self._add_malformed(event.kind, event.raw)
        try:
            written = self._notation.call(event.call, self._tools)
        except DialectError:
            return self._add_malformed("invalid_call", f"{event.call.name}({event.call.arguments})")
        is_inside_line = self._pieces and not self._pieces[-1].endswith("\n")
        return self._feed(f"\n{written}" if is_inside_line else written)

    def _add_malformed(self, kind: str, raw: str) -> Sequence[Event]:
        self._has_unwritten = True
        found = CallMalformed(self.parts.calls, kind, raw)
        self.parts.add((found,))
        return (found,)

    def close(self, *, stopped: bool) -> Sequence[Event]:
        events = self._reader.close(stopped)
        self.parts.add(events)
        return events

    def finish(self, end: MessageFinished) -> MessageFinished:
        """The end of the message; if it has calls, its text is kept for writing the message again."""
        message = Message("assistant", tuple(self.parts.parts), None, end.message.extra)
        if not self.parts.calls:
            return replace(end, message=message, stop="turn" if end.stop == "calls" else end.stop)
        if not self._has_unwritten:
            message = keep_source(self._notation, "".join(self._pieces), message)
        # If the answer broke off inside a call, the message can't be answered.
        broke = end.stop == "error" and message.is_cut_off
        return MessageFinished(message, end.usage, end.stop if broke else "calls")
