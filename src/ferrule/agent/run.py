"""A run of a pipeline: its conversation, what it cost, why it stopped, and its events as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from ferrule._util.background import run_synchronously
from ferrule._util.quick_init import quick_init
from ferrule.capabilities import Loss
from ferrule.conversation import Conversation
from ferrule.events import NO_USAGE, Event, MessageFinished, ToolProgress, Usage
from ferrule.execution import Pending
from ferrule.models.prices import price_of
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ferrule.tokens.render import Trace
    from ferrule.tokens.rollout import Rollout

    OutputT = TypeVar("OutputT", covariant=True, default=Any)  # noqa: PLC0105 - the name that readers see
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


@quick_init
@dataclass(frozen=True, slots=True)
class OfferRecord:
    """Tools that were offered from the moment on when the conversation had `at` messages."""

    at: int
    tools: tuple[ToolSpec, ...]


class EventFeed:
    """A bounded queue of events, from a task and from threads to one reader.

    `put` waits while `limit` of them are unread; new progress of a call replaces its unread progress.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._waiting: deque[Event] = deque()
        # Progress that threads told, for the event loop's thread to put in its place.
        self._from_threads: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._loop = asyncio.get_running_loop()
        self._error: BaseException | None = None
        self._is_over = False

    async def put(self, item: Event) -> None:
        """Add an event; waits for room."""
        await self._has_room.wait()
        self.add(item)

    def add(self, item: Event) -> None:
        """Add an event at once, over the limit if need be. Only in the event loop's thread."""
        self._take_from_threads()
        self._append(item)

    def _append(self, item: Event) -> None:
        self._waiting.append(item)
        if len(self._waiting) >= self._limit:
            self._has_room.clear()
        self._changed.set()

    def put_soon(self, item: Event) -> None:
        """Add progress from any thread, never waiting: it comes before whatever is added after it."""
        self._from_threads.append(item)
        self._loop.call_soon_threadsafe(self._take_from_threads)

    def fail(self, error: BaseException) -> None:
        """Raise `error` to the reader, after the events that came before it."""
        self._error = error

    def end(self) -> None:
        """No more events come."""
        self._take_from_threads()
        self._is_over = True
        self._changed.set()

    async def events(self) -> AsyncIterator[Event]:
        """The events as they come, until the end."""
        while True:
            while self._waiting:
                item = self._waiting.popleft()
                self._has_room.set()
                yield item
            if self._is_over:
                if self._error is not None:
                    raise self._error
                return
            self._changed.clear()
            await self._changed.wait()

    def _take_from_threads(self) -> None:
        while self._from_threads:
            item = self._from_threads.popleft()
            last = self._waiting[-1] if self._waiting else None
            if isinstance(last, ToolProgress) and isinstance(item, ToolProgress) and last.call_id == item.call_id:
                self._waiting[-1] = item
            elif not self._is_over:
                self._append(item)


@dataclass(slots=True)
class Run(Generic[OutputT]):
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
    output: OutputT | None = None
    """The answer as the type that `parse_as` named; None where the run stopped before it."""
    offers: tuple[OfferRecord, ...] = ()
    """What was offered to the model, and when: one entry for each change."""
    losses: tuple[Loss, ...] = ()
    """What could not be written for the model, or of its answers into the conversation; each once."""
    error: Exception | None = None
    """What went wrong, for a run among many whose errors are kept."""
    _rollout: Rollout | None = field(default=None, repr=False, compare=False)

    @property
    def cost(self) -> float | None:
        """What it cost in US dollars, None where the model's price isn't known. Raises `SettingsError`."""
        price = price_of(self.model)
        return None if price is None else price.of(self.usage)

    def add_losses(self, reported: Iterable[Loss]) -> tuple[Loss, ...]:
        """Add the losses that are new to the run, and return them."""
        known = set(self.losses)
        new = tuple(loss for loss in dict.fromkeys(reported) if loss not in known)
        self.losses += new
        return new

    def record_generation(self, finished: MessageFinished) -> None:
        """Keep the ids that a local model was given and sampled, for `traces`."""
        sampled = finished.message.sampled
        if sampled is not None and finished.prompt_ids:
            if self._rollout is None:
                from ferrule.tokens.rollout import Rollout

                self._rollout = Rollout()
            self._rollout.add(finished.prompt_ids, sampled)

    def traces(self) -> tuple[Trace, ...]:
        """What this run sampled from a local model, as training sees it: the very ids that its engine had.

        One trace, as long as each prompt extended what came before it; another wherever it didn't. Each sampled id is
        trained in exactly one of them. Empty for a model that samples no ids here.
        """
        return () if self._rollout is None else self._rollout.traces()

    @property
    def text(self) -> str:
        """The last answer: the text of the last assistant message."""
        for message in reversed(self.conversation.messages):
            if message.role == "assistant":
                return message.text
        return ""


@dataclass(slots=True)
class StreamedRun(Run[OutputT]):
    """A run whose events can be watched: `async for event in run`."""

    feed: EventFeed = field(default_factory=EventFeed)

    async def work(self, loop: Awaitable[None]) -> None:
        """Run the loop, and pass its end, or its error, to the reader of the events."""
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

        async def read_next() -> Event | None:
            return await anext(events, None)

        while (event := run_synchronously(read_next())) is not None:
            yield event
