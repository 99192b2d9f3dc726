"""A run of a pipeline: its conversation, its cost, why it stopped, and its events as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol

from ferrule._util.background import run_synchronously
from ferrule._util.foreign_names import make_getattr
from ferrule._util.quick_init import quick_init
from ferrule._util.terminal_text import escape_line
from ferrule.capabilities import Capabilities, Loss
from ferrule.conversation import Conversation, Message
from ferrule.events import NO_USAGE, Event, MessageFinished, ToolProgress, Usage
from ferrule.execution import Pending
from ferrule.models.prices import PriceSource, find_price
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ferrule.tokens.render import Rollout, Trace

    OutputT = TypeVar("OutputT", covariant=True, default=Any)  # noqa: PLC0105 - the name that readers see
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


@quick_init
@dataclass(frozen=True, slots=True)
class OfferRecord:
    """Tools that were offered once the conversation had `at` messages."""

    at: int
    tools: tuple[ToolSpec, ...]


class EventFeed:
    """A bounded queue of events from a task and from threads, for one reader.

    `put` waits while `limit` events are unread; new progress of a call replaces its unread progress.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._waiting: deque[Event] = deque()
        # Progress reported by threads, which the event loop's thread moves to `_waiting`.
        self._from_threads: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._loop = asyncio.get_running_loop()
        self._error: BaseException | None = None
        self._is_over = False

    async def put(self, item: Event) -> None:
        """Add an event, waiting for room."""
        await self._has_room.wait()
        self.add(item)

    def add(self, item: Event) -> None:
        """Add an event at once, beyond the limit if necessary. Only in the event loop's thread."""
        if self._from_threads:
            self._take_from_threads()
        self._append(item)

    def _append(self, item: Event) -> None:
        self._waiting.append(item)
        if len(self._waiting) >= self._limit:
            self._has_room.clear()
        self._changed.set()

    def put_soon(self, item: Event) -> None:
        """Add progress from any thread, without waiting: it comes before whatever is added later."""
        self._from_threads.append(item)
        self._loop.call_soon_threadsafe(self._take_from_threads)

    def end(self, work: asyncio.Task[None]) -> None:
        """End the feed: what put events is done. Its error is raised in the reader, after the events before it."""
        if not work.cancelled():
            self._error = work.exception()
        self._take_from_threads()
        self._is_over = True
        self._changed.set()

    async def read(self) -> AsyncIterator[Event]:
        """Yield the events as they come, until the end."""
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


class EventSink(Protocol):
    """What takes the events of a run: the feed of a stream, or the progress of the call that a sub-agent answers."""

    async def put(self, item: Event) -> None:
        """Take an event; it may wait until there is room for it."""

    def add(self, item: Event) -> None:
        """Take an event at once. Only in the event loop's thread."""

    def put_soon(self, item: Event) -> None:
        """Take progress from any thread, without waiting."""


@dataclass(frozen=True, slots=True)
class SubRun:
    """The run of a sub-agent: the call that it answers, the name of its tool, and the run itself."""

    call_id: str
    name: str
    run: Run[Any]


@dataclass(frozen=True, slots=True)
class Compaction:
    """Messages that were left out of a conversation which had outgrown its model, and what stands for them."""

    dropped: tuple[Message, ...]
    summary: str
    """Empty if they were dropped without one."""


@dataclass(slots=True)
class Run(Generic[OutputT]):
    """A conversation in progress, valid at every moment, also after a limit, a `break` or a cancellation."""

    conversation: Conversation
    usage: Usage = NO_USAGE
    """The tokens of all rounds, with those of sub-agents."""
    stopped: str = ""
    """Why it stopped: `done`, `paused`, `cancelled`, `error`, or the limit that was reached: `rounds`, `calls`,
    `tokens`, `cost`, `time`, `length` (of one message), `context`; or the reason that a hook gave."""
    stop_detail: str = ""
    """A sentence of the hook that stopped it, such as a guardrail, or, if all calls were denied since nobody could be
    asked, how to allow them; empty otherwise."""
    model: str = ""
    """The name of the model that was asked."""
    mode: str = "api"
    """How calls were written: `api`, or the notation in which they stood in the text."""
    pending: tuple[Pending, ...] = ()
    """The calls that wait for a decision after a pause; `Pipeline.run(decisions=…)` continues with them."""
    output: OutputT | None = None
    """The answer as the type given to `parse_as`; None if the run stopped before it."""
    offers: tuple[OfferRecord, ...] = ()
    """The tools offered to the model, and when: one entry for each change."""
    losses: tuple[Loss, ...] = ()
    """What was lost in writing for the model, or in recording its answers; each listed once."""
    error: Exception | None = None
    """The error that ended it; `error.run` is this run, also where the error is raised."""
    sub_runs: tuple[SubRun, ...] = ()
    """The runs of sub-agents that answered calls of this one, in the order in which they began."""
    compactions: tuple[Compaction, ...] = ()
    """What was left out because the context was full, and its summary."""
    _request: tuple[Conversation, Sequence[ToolSpec], Capabilities] | None = field(
        default=None, repr=False, compare=False
    )
    """What was shown and offered with the last request, and what the model takes."""
    _rollout: Rollout | None = field(default=None, repr=False, compare=False)
    _requests: list[Usage] = field(default_factory=list, repr=False, compare=False)
    """The usage of each request: what a long one costs depends on its own length."""

    @property
    def cost(self) -> float | None:
        """The cost in US dollars, with that of sub-agents; None if a price isn't known. Raises `SettingsError`."""
        return self.compute_cost()

    def compute_cost(self, prices: PriceSource | None = None) -> float | None:
        """The cost in US dollars by these prices first (see `find_price`), None if none of them is the model's."""
        price, own, nested = find_price(self.model, prices), self.usage, 0.0
        if price is None:
            return None
        for one in self.sub_runs:
            if not one.run._requests and one.run.usage == NO_USAGE:
                continue  # its model wasn't asked
            cost = one.run.compute_cost(prices)
            if cost is None:
                return None
            own, nested = own - one.run.usage, nested + cost
        is_complete = sum(self._requests, NO_USAGE) == own
        return price.compute_cost(*(self._requests if is_complete else (own,))) + nested

    def record_request(
        self, conversation: Conversation, offered: Sequence[ToolSpec], capabilities: Capabilities
    ) -> None:
        """Record what is shown and offered to the model with the next request."""
        self._request = (conversation, offered, capabilities)
        if self.offers and self.offers[-1].tools is offered:
            return
        tools = tuple(offered)
        if not self.offers or self.offers[-1].tools != tools:
            self.offers += (OfferRecord(len(self.conversation.messages), tools),)

    def add_usage(self, usage: Usage) -> None:
        """Count the tokens of one more request."""
        if usage is not NO_USAGE:
            self.usage = self.usage + usage
        self._requests.append(usage)

    @property
    def last_request(self) -> tuple[Conversation, int] | None:
        """The last request that was answered, as it was shown to the model, and how many tokens its provider counted
        in it; None if there is none."""
        if self._request is None or not self._requests or not self._requests[-1].prompt_tokens:
            return None
        return self._request[0], self._requests[-1].prompt_tokens

    def __str__(self) -> str:
        """The conversation for people to read, and why the run stopped unless the model was done."""
        return "\n".join(filter(None, (str(self.conversation), self._describe_stop())))

    def _repr_html_(self) -> str:
        from ferrule.transcript import escape_html

        note = self._describe_stop()
        return self.conversation._repr_html_() + (f"<p><i>{escape_html(note)}</i></p>" if note else "")

    def _repr_markdown_(self) -> str:
        note = self._describe_stop()
        return self.conversation._repr_markdown_() + (f"\n\n({note.strip('()')})" if note else "")

    def _describe_stop(self) -> str:
        if self.stopped in ("", "done") and not self.stop_detail:
            return ""
        return f"({escape_line(': '.join(filter(None, (self.stopped, self.stop_detail))))})"

    @property
    def sent(self) -> Conversation:
        """The last request as the model was sent it: with what hooks added and, in text mode, with the prompt that
        describes the tools, and with calls and results as text. Before the first request, the conversation.
        """
        if self._request is None:
            return self.conversation
        conversation, offered, capabilities = self._request
        if self.mode == "api":
            return conversation
        from ferrule.dialects.catalogue import get_notation
        from ferrule.dialects.text_protocol import encode_conversation

        return encode_conversation(get_notation(self.mode), conversation, offered, sends=capabilities)[0]

    def add_losses(self, reported: Iterable[Loss]) -> tuple[Loss, ...]:
        """Add losses; returns those that are new to the run."""
        known = set(self.losses)
        new = tuple(loss for loss in dict.fromkeys(reported) if loss not in known)
        self.losses += new
        return new

    def record_generation(self, finished: MessageFinished) -> None:
        """Record the ids that a local model was given and sampled, for `traces`."""
        sampled = finished.message.sampled
        if sampled is not None and finished.prompt_ids:
            if self._rollout is None:
                from ferrule.tokens.render import Rollout

                self._rollout = Rollout()
            self._rollout.add(finished.prompt_ids, sampled, finished.prompt_images)

    def traces(self) -> tuple[Trace, ...]:
        """Return what a local model sampled in this run, for training: with exactly the ids that its engine saw.

        This is one trace as long as each prompt extends what came before it; a prompt that doesn't begins another.
        Each sampled id is trained in exactly one of them. Empty for models that give no ids.
        """
        return () if self._rollout is None else self._rollout.traces()

    @property
    def text(self) -> str:
        """The last answer: the text of the last assistant message."""
        for message in reversed(self.conversation.messages):
            if message.role == "assistant":
                return message.text
        return ""

    if not TYPE_CHECKING:
        __getattr__ = make_getattr(
            {
                **dict.fromkeys(("content", "answer", "response", "output_text", "message", "choices"), "run.text"),
                **dict.fromkeys(("final_output", "data", "parsed"), "run.output after parse_as(…), or run.text"),
                **dict.fromkeys(("messages", "all_messages", "history", "steps"), "run.conversation.messages"),
                **dict.fromkeys(("stop_reason", "finish_reason"), "run.stopped"),
                "tool_calls": "message.calls, of the messages of run.conversation",
            }
        )


@dataclass(slots=True)
class StreamedRun(Run[OutputT]):
    """A run whose events can be read: `async for event in run`."""

    feed: EventFeed = field(default_factory=EventFeed)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.feed.read()

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events of `stream_sync`."""
        events = self.feed.read()

        async def read_next() -> Event | None:
            return await anext(events, None)

        while (event := run_synchronously(read_next())) is not None:
            yield event
