"""Models without a network, for tests and experiments: one plays a script, one echoes its input."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import takewhile

from ferrule.capabilities import Capabilities, adapt
from ferrule.conversation import Conversation, Message, Text, ToolCall, assistant
from ferrule.errors import ModelError
from ferrule.events import CallFinished, CallStarted, Event, LossesReported, MessageFinished, TextDelta, Usage
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec


class ScriptedModel:
    """Returns one message after another, whatever it is asked, and records the conversations that it received.

    A script consists of texts, `ToolCall`s, lists of both, and whole assistant messages. The idea of a scripted model
    that can assert it was used up comes from openai-agents.
    """

    name = "scripted"
    capabilities = Capabilities(reasoning=True, ids=True, user_images=True, image_results=True, user_media=("*",))

    def __init__(self, *script: str | ToolCall | Message | Sequence[str | ToolCall]) -> None:
        # Prepared in advance, so that measurements with this model measure the code around models.
        self._script = [tuple(_make_events(_make_message(entry))) for entry in script]
        self.seen: list[Conversation] = []

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],  # noqa: ARG002 - a script ignores the offers
        settings: ModelSettings,  # noqa: ARG002 - and the settings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `ModelError` at the end of the script."""
        if len(self.seen) == len(self._script):
            raise ModelError(f"the script has ended after {len(self._script)} messages, and the model was called again")
        events = self._script[len(self.seen)]
        self.seen.append(conversation)
        for event in events:
            yield event

    def assert_used_up(self) -> None:
        """Raise `AssertionError` unless every message of the script was used."""
        assert len(self.seen) == len(self._script), f"{len(self.seen)} of {len(self._script)} messages were used"

    async def aclose(self) -> None:
        """Do nothing: there are no resources."""


def _make_message(entry: str | ToolCall | Message | Sequence[str | ToolCall]) -> Message:
    if isinstance(entry, Message):
        return entry
    if isinstance(entry, str | ToolCall):
        return assistant(entry)
    return assistant(*entry)


def _make_events(message: Message) -> Iterable[Event]:
    index = 0
    for part in message.parts:
        if isinstance(part, Text):
            yield TextDelta(part.text)
        elif isinstance(part, ToolCall):
            yield CallStarted(index, part.name, part.id)
            yield CallFinished(index, part)
            index += 1
    yield MessageFinished(message, Usage(), "calls" if message.calls else "turn")


_WORDS = re.compile(r"\S+\s*|\s+")
_MEDIA = ("image", "audio", "file")


class EchoModel:
    """Repeats the text of the last user message, or of the results if those came last, word by word.

    It calls no tool, whatever is offered. Images, audio and files are not repeated, and are reported as losses.
    """

    name = "echo"
    capabilities = Capabilities(reasoning=True, ids=True)

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],  # noqa: ARG002 - it has no use for them
        settings: ModelSettings,  # noqa: ARG002 - nothing is sampled
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`."""
        losses = tuple(loss for loss in adapt(conversation, self.capabilities)[1] if loss.kind in _MEDIA)
        if losses:
            yield LossesReported(losses)
        text = _find_last_text(conversation)
        for word in _WORDS.findall(text):
            yield TextDelta(word)
        yield MessageFinished(assistant(text), Usage(), "turn")

    async def aclose(self) -> None:
        """Do nothing: there are no resources."""


def _find_last_text(conversation: Conversation) -> str:
    backwards = list(reversed(conversation.messages))
    if results := [message.result.text for message in takewhile(lambda m: m.role == "tool", backwards)]:
        return "\n".join(reversed(results))
    return next((message.text for message in backwards if message.role == "user"), "")
