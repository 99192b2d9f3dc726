"""What a model is: something that writes one assistant message and says why it stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation
from ferrule.events import Event
from ferrule.toolspec import ToolSpec


class ModelSettings(BaseModel):
    """How a message is sampled."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 takes the most likely token, always."""
    top_k: Annotated[int, Field(gt=0)] | None = None
    """Sample among the k most likely tokens only."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sample among the fewest tokens whose probabilities sum to p."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Makes sampling repeatable; each message of a conversation draws from a generator of its own."""
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    """The most tokens of one message; only sampled ones count."""


class Model(Protocol):
    """Writes messages. It ends at a call's close or at the turn's."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What can be written for it."""
        ...

    def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """Events of one assistant message, the last of them a `MessageFinished`.

        Raises `ModelError` or `DialectError` before anything is generated where a tool can't be offered.
        """
        ...

    async def aclose(self) -> None:
        """Free what the model holds."""
        ...
