"""A model that says back what it was told: a pipeline can be tried with it, with no key and no network."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from itertools import takewhile

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation, assistant
from ferrule.events import Event, MessageFinished, TextDelta, Usage
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

_WORDS = re.compile(r"\S+\s*|\s+")


class EchoModel:
    """Says back the text of the last user message, or that of the results where those came last, word by word.

    It calls no tool, whatever is offered to it.
    """

    name = "echo"
    capabilities = Capabilities(reasoning=True, ids=True, user_images=True, image_results=True)

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],  # noqa: ARG002 - it has no use for them
        settings: ModelSettings,  # noqa: ARG002 - nothing is sampled
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`."""
        text = _last_said(conversation)
        for word in _WORDS.findall(text):
            yield TextDelta(word)
        yield MessageFinished(assistant(text), Usage(), "turn")

    async def aclose(self) -> None:
        """Nothing is held."""


def _last_said(conversation: Conversation) -> str:
    backwards = list(reversed(conversation.messages))
    if results := [message.result.text for message in takewhile(lambda m: m.role == "tool", backwards)]:
        return "\n".join(reversed(results))
    return next((message.text for message in backwards if message.role == "user"), "")
