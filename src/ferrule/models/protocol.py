"""What a model is: something that writes one assistant message and says why it stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation
from ferrule.errors import ModelError
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
    stop: tuple[str, ...] = ()
    """Texts that end a message."""
    choice: str | None = None
    """`auto`, `required` (some call), `none`, or the name of the tool that must be called."""
    parallel_calls: bool | None = None
    """Whether one message may hold several calls; None leaves it to the model."""
    effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """How much the model should think first."""
    output_schema: dict[str, Any] | None = None
    """A JSON Schema that the text of the answer must fit, where the model can be held to one."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Parameters that go to the provider as they stand."""

    def select_given(self, *names: str) -> dict[str, Any]:
        """Those of these settings that somebody made, by their names."""
        found = {name: getattr(self, name) for name in names if name in self.model_fields_set}
        return {name: value for name, value in found.items() if value not in (None, (), {})}


BASIC_SETTINGS = frozenset({"temperature", "top_k", "top_p", "seed", "max_tokens"})
"""What every model that samples by itself honours."""


def refuse_unknown_settings(settings: ModelSettings, honoured: frozenset[str], name: str) -> None:
    """Raise `ModelError`, naming the settings that were given and that this model can't honour."""
    if unknown := sorted(set(settings.select_given(*settings.model_fields_set)) - honoured):
        known = ", ".join(sorted(honoured))
        raise ModelError(f"{name} can't honour {', '.join(unknown)}; leave that out (it knows {known})")


def refuse_unoffered_choice(settings: ModelSettings, tools: Sequence[ToolSpec], name: str) -> None:
    """Raise `ModelError` where `choice` asks for a call and no tool, or not that one, is offered."""
    choice = settings.choice
    if choice in (None, "auto", "none"):
        return
    if not tools:
        raise ModelError(f"{name} was given choice={choice!r} and no tools: no tool is offered; give using(…) some")
    if choice != "required" and choice not in {spec.name for spec in tools}:
        known = ", ".join(spec.name for spec in tools)
        raise ModelError(f"{name} was given choice={choice!r}, and no such tool is offered; there are {known}")


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
