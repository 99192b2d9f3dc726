"""The loop between a model and its tools: ask, run the calls, give their results back, until the model is done.

    answer = await model("embedded").chat("What is 12 * 34?").using(calculator).run()

There is one loop, `_converse`; chat, rollouts and every front run it. What a call goes through is `execution/`'s
business, how a message is written `models/`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ferrule.background import run_synchronously
from ferrule.blobs import BlobStore
from ferrule.conversation import Conversation, ToolResult, system, tool_message, user
from ferrule.errors import ModelError, SettingsError
from ferrule.events import Event, MessageFinished, ResultReady, RunFinished, ToolProgress, Usage
from ferrule.execution import Approver, Executor, Journal, Pending, Policy, cancelled_result
from ferrule.feed import Feed
from ferrule.models.protocol import Model, ModelSettings
from ferrule.registry import Item, ToolRegistry
from ferrule.scope import CallScope
from ferrule.toolspec import ToolSpec

Watcher: TypeAlias = Feed[Event]


@dataclass(slots=True)
class Run:
    """A conversation under way, valid at every moment: also after a limit, a break or a cancellation."""

    conversation: Conversation
    usage: Usage = field(default_factory=Usage)
    stopped: str = ""
    """Why it stopped: `done`, `paused`, or the limit: `rounds`, `length`, `context`, `cancelled`, `error`."""

    @property
    def text(self) -> str:
        """The last answer: the text of the last assistant message."""
        said = [message.text for message in self.conversation.messages if message.role == "assistant"]
        return said[-1] if said else ""


@dataclass(frozen=True, slots=True)
class _Terms:
    """On what terms calls are run."""

    policy: Policy | None = None
    approver: Approver | None = None
    journal: Journal | None = None
    blobs: BlobStore | None = None
    on_ask: Literal["deny", "pause"] = "deny"
    max_rounds: int = 16


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A model, a conversation and tools. It never changes: each method gives another one."""

    model: Model
    conversation: Conversation = field(default_factory=Conversation)
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    settings: ModelSettings = field(default_factory=ModelSettings)
    terms: _Terms = field(default_factory=_Terms)

    def chat(self, message: str | Conversation) -> Pipeline:
        """Add a user's message, or go on from a whole conversation."""
        if isinstance(message, Conversation):
            return replace(self, conversation=message)
        return replace(self, conversation=self.conversation.add(user(message)))

    def system(self, text: str) -> Pipeline:
        """Add a system message."""
        return replace(self, conversation=self.conversation.add(system(text)))

    def using(self, *tools: Item, **terms: Any) -> Pipeline:
        """Offer tools. `terms` are policy, approver, journal, blobs, on_ask and max_rounds (of the model)."""
        unknown = set(terms) - set(_Terms.__dataclass_fields__)
        if unknown:
            raise SettingsError(f"using() knows no {min(unknown)!r}; it takes {', '.join(_Terms.__dataclass_fields__)}")
        return replace(self, registry=self.registry.add(*tools), terms=replace(self.terms, **terms))

    def with_(self, **settings: Any) -> Pipeline:
        """Other settings of the model: temperature, top_k, top_p, seed, max_tokens. Raises `SettingsError`."""
        try:
            merged = ModelSettings.model_validate({**self.settings.model_dump(), **settings})
        except ValueError as error:
            raise SettingsError(f"settings of the model: {error}") from error
        return replace(self, settings=merged)

    async def run(self) -> Run:
        """Run until the model is done or a limit says stop."""
        run = Run(self.conversation)
        await _converse(self, run, None)
        return run

    def run_sync(self) -> Run:
        """`run`, for programs without an event loop."""
        return run_synchronously(self.run())

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[StreamedRun]:
        """Run in a task of its own; leaving the block cancels what is left, and open calls are answered so."""
        run = StreamedRun(self.conversation)
        task = asyncio.create_task(run.work(_converse(self, run, run.feed)))
        try:
            yield run
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


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


async def _converse(pipeline: Pipeline, run: Run, watcher: Watcher | None) -> None:
    """The loop. It ends with a conversation in which every call is answered, but for those that wait for a decision."""
    terms = pipeline.terms
    async with pipeline.registry.open() as registry:
        executor = Executor(
            registry,
            policy=terms.policy,
            approver=terms.approver,
            journal=terms.journal,
            blobs=terms.blobs,
            on_ask=terms.on_ask,
        )
        offered = registry.specs
        try:
            for _ in range(terms.max_rounds):
                stop = await _ask(pipeline, run, offered, watcher)
                if stop != "calls":
                    run.stopped = "done" if stop == "turn" else stop
                    break
                if not await _answer(executor, run, watcher):
                    run.stopped = "paused"
                    break
            else:
                run.stopped = "rounds"
        except asyncio.CancelledError:
            run.stopped = "cancelled"
            open_calls = run.conversation.pending
            run.conversation = run.conversation.add(*(tool_message(cancelled_result(call)) for call in open_calls))
            raise
    if watcher is not None:
        await watcher.put(RunFinished(run.stopped, run.usage))


async def _ask(pipeline: Pipeline, run: Run, offered: Sequence[ToolSpec], watcher: Watcher | None) -> str:
    """Have the model write one message; returns why it stopped."""
    stop = "error"
    events = pipeline.model.stream(run.conversation, offered, pipeline.settings)
    try:  # and not aclosing, whose way in and out costs as much as asking
        async for event in events:
            if isinstance(event, MessageFinished):
                stop = event.stop
                run.usage = run.usage + event.usage
                # A turn that the model ended at once is a message too: its ids were sampled.
                if event.message.parts or event.message.sampled:
                    run.conversation = run.conversation.add(event.message)
            if watcher is not None:
                await watcher.put(event)
    finally:
        await events.aclose()
    return stop


async def _answer(executor: Executor, run: Run, watcher: Watcher | None) -> bool:
    """Answer the open calls, in their order; returns whether none waits for a decision."""
    calls = run.conversation.pending
    ready: dict[str, ToolResult] = {}

    def on_result(result: ToolResult) -> None:
        ready[result.call_id] = result
        if watcher is not None:
            watcher.add(ResultReady(result))

    emit: Callable[[ToolProgress], None] = _unheard if watcher is None else watcher.put_soon
    scope = CallScope(conversation=run.conversation, blobs=executor.blobs, emit=emit)
    try:
        answers = await executor.run_all(calls, scope, on_result=on_result)
    except asyncio.CancelledError:
        told = [ready.get(call.id) or cancelled_result(call) for call in calls]
        run.conversation = run.conversation.add(*map(tool_message, told))
        raise
    results = [answer for answer in answers if not isinstance(answer, Pending)]
    run.conversation = run.conversation.add(*map(tool_message, results))
    return len(results) == len(answers)


def _unheard(_progress: ToolProgress) -> None:
    """Nobody watches."""


def model(name: str | Model) -> Pipeline:
    """A pipeline on a model: `embedded`, `local:<folder>`, or a `Model` object. Raises `ModelError` for other names."""
    if not isinstance(name, str):
        return Pipeline(name)
    from ferrule.models.embedded import embedded_model, local_model

    if name == "embedded":
        return Pipeline(embedded_model())
    if name.startswith("local:"):
        return Pipeline(local_model(Path(name.removeprefix("local:"))))
    raise ModelError(f"there is no model {name!r}; there are 'embedded' and 'local:<folder>'")
