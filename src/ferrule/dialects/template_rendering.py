"""One conversation, rendered with sentinels: the whole, its beginnings, and where each assistant's words lie in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation
from ferrule.dialects.template_cuts import Cut, Markers, end_of_message, spellings
from ferrule.dialects.template_messages import Kind, Slot, Slots, messages_of, tools_of
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.dialects.template_engine import TemplateEngine
    from ferrule.dialects.template_probe import Learned


@dataclass(frozen=True, slots=True)
class Span:
    """An assistant's words in a rendering: `header` to `start` is what opens them, `end` is after the turn's marker.

    `opened` is what a generation prompt would have written besides the header; `closer` the marker at the end.
    """

    message: int
    header: int
    start: int
    end: int
    opened: str
    closer: str


class Rendering:
    """A conversation with sentinels in place of its content."""

    def __init__(
        self,
        engine: TemplateEngine,
        learned: Learned,
        known: Markers,
        variables: Mapping[str, Any],
        conversation: Conversation,
        tools: Sequence[ToolSpec],
        salt: str,
    ) -> None:
        self._engine, self.learned, self._known, self._variables = engine, learned, known, variables
        self.conversation = conversation
        self._offered = tools
        self._slots = Slots(salt)
        self._tools = tools_of(tools, self._slots.put)
        self._messages = messages_of(conversation, learned.shape, self._slots.put)
        self._kept: dict[tuple[int, bool], str] = {}
        self.whole = Cut.of(self._beginning(len(self._messages), False), self._slots)

    def _beginning(self, length: int, prompt: bool) -> str:
        """The first messages, with or without the generation prompt."""
        text = self._kept.get((length, prompt))
        if text is None:
            messages = self._messages[:length]
            text = self._engine.render(messages, self._tools, self.conversation.now, prompt, self._variables)
            if prompt and not self.learned.has_prompt and text == self._beginning(length, False):
                text += self.learned.opening
            self._kept[length, prompt] = text
        return text

    def prompt(self) -> tuple[int, str]:
        """What opens the assistant's next turn, and where in the whole rendering it stands.

        Some templates end a conversation with a marker that is not there when they are asked for the prompt.
        """
        text, messages = self.whole.text, self.conversation.messages
        asked = self._beginning(len(self._messages), True)
        if asked.startswith(text):
            return len(text), asked[len(text) :]
        if messages and messages[-1].role == "assistant":
            return len(text), self.learned.opening
        common = self._known.common(asked, text)
        if common < self.whole.starts[-2]:
            raise DialectError("the chat template writes the conversation otherwise when it is asked for a prompt")
        return common, asked[common:]

    def spans(self) -> list[Span]:
        """The words of each assistant message, in order. Raises `DialectError` where a header can't be told."""
        found: list[Span] = []
        for number, message in enumerate(self.conversation.messages):
            if message.role == "assistant":
                span = self._span(number)
                if found and span.start < found[-1].end:
                    raise DialectError(f"the chat template writes message {number} before the one that precedes it")
                found.append(span)
        return found

    def _span(self, number: int) -> Span:
        whole = self.whole
        asked = self._asked(number)
        before = Cut.of(asked, self._slots)
        # Compared from the last content on that both have: what lies further back may be rewritten by now.
        shared = next((n for n in reversed(before.numbers) if whole.after(n) >= 0), None)
        header, base = (0, 0) if shared is None else (whole.after(shared), before.after(shared))
        common = self._known.common(asked[base:], whole.text[header:])
        start = header + common
        opening = self._known.found(self.learned.opening)
        if (
            opening
            and opening[0] in self._known.found(asked[base:])
            and opening[0] not in self._known.found(whole.text[header:start])
        ):
            raise DialectError(f"where the header of message {number} ends can't be told from this chat template")
        own = self._beginning(number + 1, False)
        after = Cut.of(own, self._slots)
        last = whole.last_of(number)
        if last is not None and after.after(last) >= 0 and whole.after(last) >= start:
            anchor, tail = whole.after(last), own[after.after(last) :]
        else:
            anchor = start
            tail = own[(0 if shared is None else max(after.after(shared), 0)) + common :]
        gap = whole.text[anchor : whole.next_slot(anchor)]
        length, closer = end_of_message(gap, tail, self.learned.ends, self._known)
        return Span(number, header, start, anchor + length, asked[base + common :], closer)

    def _asked(self, number: int) -> str:
        """The conversation up to a message, with the prompt for it; some templates refuse to render no message."""
        try:
            return self._beginning(number, True)
        except DialectError:
            if number:
                raise
        first = self.whole.last_of(0)
        at = self.whole.text.find(self.learned.opening)
        limit = self.whole.after(first) if first is not None else len(self.whole.text)
        return self.whole.text[: at + len(self.learned.opening)] if 0 <= at < limit else ""

    def looked_into(self) -> list[Slot]:
        """The contents that alone make the template write something else."""
        return [slot for number, slot in enumerate(self._slots.slots) if not self._stands(number)]

    def _stands(self, number: int) -> bool:
        counter = iter(range(len(self._slots.slots)))
        salt = self._slots.salt

        def fill(text: str, kind: Kind, message: int) -> str:  # noqa: ARG001 - a `Fill`
            if not text.strip():
                return text
            at = next(counter)
            return text if at == number else f"{salt}{at:06d}z"

        tools = tools_of(self._offered, fill)
        messages = messages_of(self.conversation, self.learned.shape, fill)
        try:
            text = self._engine.render(messages, tools, self.conversation.now, False, self._variables)
        except DialectError:
            return False
        token = f"{salt}{number:06d}z"
        return any(self.whole.text.replace(token, way) == text for way in spellings(self._slots.slots[number].text))
