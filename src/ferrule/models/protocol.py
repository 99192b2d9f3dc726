"""What a model is: it writes one assistant message and says why it stopped. And what steers a local model's calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation, Message
from ferrule.dialects.grammar import Grammar
from ferrule.errors import ModelError
from ferrule.events import Event
from ferrule.toolspec import ToolSpec


class ModelSettings(BaseModel):
    """How a message is sampled."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 always takes the most likely token."""
    top_k: Annotated[int, Field(gt=0)] | None = None
    """Sample only among the k most likely tokens."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sample only among the fewest tokens whose probabilities sum to p."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Makes sampling repeatable; each message of a conversation has its own random generator."""
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    """The maximum number of sampled tokens of one message."""
    stop: tuple[str, ...] = ()
    """Texts that end a message."""
    choice: str | None = None
    """`auto`, `required` (at least one call), `none`, or the name of the tool that must be called."""
    parallel_calls: bool | None = None
    """Whether one message may contain several calls; None leaves it to the model."""
    effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """How much the model should think first."""
    output_schema: dict[str, Any] | None = None
    """A JSON Schema for the answer's text. A model that can't be constrained to it while tools are on offer is sent it
    in the prompt."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Parameters passed to the provider unchanged."""

    def select_given(self, *names: str) -> dict[str, Any]:
        """The settings among these that were set explicitly, by name."""
        found = {name: getattr(self, name) for name in names if name in self.model_fields_set}
        return {name: value for name, value in found.items() if value not in (None, (), {})}


BASIC_SETTINGS = frozenset({"temperature", "top_k", "top_p", "seed", "max_tokens"})
"""The settings that every model honours that samples by itself."""


def refuse_unknown_settings(settings: ModelSettings, honoured: frozenset[str], name: str) -> None:
    """Raise `ModelError`, naming the settings that were set and that this model doesn't support."""
    if unknown := sorted(set(settings.select_given(*settings.model_fields_set)) - honoured):
        known = ", ".join(sorted(honoured))
        raise ModelError(f"{name} doesn't support {', '.join(unknown)}; leave that out (it supports {known})")


def refuse_unoffered_choice(settings: ModelSettings, tools: Sequence[ToolSpec], name: str) -> None:
    """Raise `ModelError` if `choice` requires a call, but no tool, or not that one, is offered."""
    choice = settings.choice
    if choice in (None, "auto", "none"):
        return
    if not tools:
        raise ModelError(f"{name} was given choice={choice!r}, but no tools are offered; pass some to using(…)")
    if choice != "required" and choice not in {spec.name for spec in tools}:
        known = ", ".join(spec.name for spec in tools)
        raise ModelError(f"{name} was given choice={choice!r}, but only these tools are offered: {known}")


class Model(Protocol):
    """Writes messages. It stops at the end of a call or of the turn."""

    @property
    def name(self) -> str:
        """The name shown to people."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the model supports."""
        ...

    def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """Events of one assistant message, the last of them a `MessageFinished`.

        Raises `ModelError` or `DialectError` before anything is generated if a tool can't be offered.
        """
        ...

    async def aclose(self) -> None:
        """Release the model's resources."""
        ...


@runtime_checkable
class CallGuide(Protocol):
    """Steers the calls of a small local model, which learns late what a few rules tell at once."""

    @property
    def holds_calls(self) -> bool:
        """Whether events are kept back from a message's first call on, until it was reviewed."""
        ...

    def constrain(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Grammar | None:
        """What the next message can be, for an engine that can keep to it; None: any text."""
        ...

    def review(self, message: Message, confidences: Sequence[float], conversation: Conversation) -> Message | None:
        """The text that stands for a message with calls, and begins as it does before them; None for it as it is.

        `confidences` are those in its calls, from 0 to 1.
        """
        ...
