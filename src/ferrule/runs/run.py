"""What a run of a pipeline has come to: its conversation, what it cost, why it stopped, its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ferrule.background import run_synchronously
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.events import NO_USAGE, Event, Usage
from ferrule.execution import Pending
from ferrule.feed import Feed
from ferrule.models.prices import price_of


@dataclass(slots=True)
class Run:
    """A conversation under way, valid at every moment: also after a limit, a break or a cancellation."""

    conversation: Conversation
    usage: Usage = NO_USAGE
    stopped: str = ""
    """Why it stopped: `done`, `paused`, `cancelled`, `error`, or the limit that was reached: `rounds`, `calls`,
    `tokens`, `cost`, `time`, `length` (of one message), `context`."""
    model: str = ""
    """The name of the model that was asked."""
    mode: str = "api"
    """How calls were written: `api`, or the notation in which they stood in the text."""
    pending: tuple[Pending, ...] = ()
    """The calls that wait, after a pause; `Pipeline.run(decisions=…)` goes on with them."""
    output: Any = None
    """The answer as the type that `parse_as` named."""
    losses: tuple[Loss, ...] = ()
    """What could not be carried to the model, or of its answers into the conversation; each once."""
    error: Exception | None = None
    """What went wrong, for a run among many whose errors are kept."""

    @property
    def cost(self) -> float | None:
        """What it cost in US dollars, None where the model's price isn't known. Raises `SettingsError`."""
        price = price_of(self.model)
        return None if price is None else price.of(self.usage)

    def take_losses(self, reported: Iterable[Loss]) -> tuple[Loss, ...]:
        """Keep those that are new, and return them."""
        known = set(self.losses)
        new = tuple(loss for loss in dict.fromkeys(reported) if loss not in known)
        self.losses += new
        return new

    @property
    def text(self) -> str:
        """The last answer: the text of the last assistant message."""
        for message in reversed(self.conversation.messages):
            if message.role == "assistant":
                return message.text
        return ""


@dataclass(slots=True)
class StreamedRun(Run):
    """A run whose events can be watched: `async for event in run`."""

    feed: Feed[Event] = field(default_factory=Feed)

    async def work(self, loop: Awaitable[None]) -> None:
        """Run the loop, and hand its end, or its error, to whoever watches."""
        try:
            await loop
        except Exception as error:  # noqa: BLE001 - it is raised again where the events are read
            self.feed.fail(error)
        finally:
            self.feed.end()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.feed.events()

    def __iter__(self) -> Iterator[Event]:
        """The events of `stream_sync`."""
        events = self.feed.events()

        async def following() -> Event | None:
            return await anext(events, None)

        while (event := run_synchronously(following())) is not None:
            yield event
