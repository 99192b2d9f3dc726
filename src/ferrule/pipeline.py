"""The loop between a model and its tools: ask, run the calls, give their results back, until the model is done.

    answer = await model("embedded").chat("What is 12 * 34?").using(calculator).run()

There is one loop, `_converse`; chat, rollouts and every front run it. How a message is asked for and how calls are
answered is in `runs/exchange.py`, what else may happen between them in `runs/steps.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from ferrule.background import entered, run_synchronously
from ferrule.conversation import Conversation, Message, system, user
from ferrule.errors import SettingsError
from ferrule.events import Event, RunFinished
from ferrule.execution import Decision
from ferrule.feed import Feed
from ferrule.models.naming import model_named
from ferrule.registry import Item, ToolRegistry
from ferrule.runs.exchange import Exchange, Stop
from ferrule.runs.listening import heard
from ferrule.runs.many import run_together
from ferrule.runs.modes import speaking
from ferrule.runs.output import Output
from ferrule.runs.pickling import reduced
from ferrule.runs.run import Run, StreamedRun
from ferrule.runs.steps import Map, Meeting, Step, Taken, Then, UseTools, called, planned
from ferrule.runs.terms import Limits, Terms

if TYPE_CHECKING:
    from ferrule.models.protocol import Model, ModelSettings

__all__ = ["Pipeline", "Run", "StreamedRun", "model"]


async def _converse(exchange: Exchange, plan: Iterable[Taken]) -> None:
    """The loop. A step that leaves something to answer (results, a question) is taken again after the answer."""
    if not exchange.open_calls:
        await exchange.ask()
    for step in plan:
        while await step(exchange):
            await exchange.ask()


@lru_cache(maxsize=1)
def _no_settings() -> ModelSettings:
    """Settings that nobody made. Checking them needs pydantic, which takes longer to import than all else here."""
    from ferrule.models.protocol import ModelSettings

    return ModelSettings()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A model, a conversation and tools. It never changes: each method gives another one."""

    model: Model
    conversation: Conversation = field(default_factory=Conversation)
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    settings: ModelSettings = field(default_factory=_no_settings)
    terms: Terms = field(default_factory=Terms)
    limits: Limits = field(default_factory=Limits)
    steps: tuple[Step, ...] = ()
    watchers: tuple[Callable[[Run], Any], ...] = ()
    output: Output | None = None
    origin: tuple[str, dict[str, Any]] | None = None
    """The name and options of a model that was given by name: what another process makes it from."""

    def chat(self, message: str | Message | Conversation) -> Pipeline:
        """Add a user's message, or go on from a whole conversation, also one that a pause left."""
        return replace(self, conversation=_with(self.conversation, message))

    def system(self, text: str) -> Pipeline:
        """Add a system message."""
        return replace(self, conversation=self.conversation.add(system(text)))

    def using(self, *tools: Item, **terms: Any) -> Pipeline:
        """Offer tools, whose calls are answered from this step on. `terms` are those of `Terms`.

        Raises `SettingsError` for a term that there isn't, `RegistryError` and `ToolDefinitionError` for the tools.
        """
        merged = replace(self.terms, **_known(Terms, terms, "using"))
        steps = self.steps if UseTools() in self.steps else (*self.steps, UseTools())
        return replace(self, registry=self.registry.add(*tools), terms=merged, steps=steps)

    def with_(self, **settings: Any) -> Pipeline:
        """Other settings of the model, as `ModelSettings` has them. Raises `SettingsError`."""
        from ferrule.models.protocol import ModelSettings

        try:
            given = {name: getattr(self.settings, name) for name in self.settings.model_fields_set}
            merged = ModelSettings.model_validate({**given, **settings})
        except ValueError as error:
            raise SettingsError(f"settings of the model: {error}") from error
        return replace(self, settings=merged)

    def within(self, *, rounds: int | None = None, **limits: Any) -> Pipeline:
        """Stop at a limit: `rounds` of the model, and those of `Limits`. Raises `SettingsError`."""
        terms = self.terms if rounds is None else replace(self.terms, max_rounds=rounds)
        return replace(self, terms=terms, limits=replace(self.limits, **_known(Limits, limits, "within")))

    def then(self, callback: Callable[[Run], Any]) -> Pipeline:
        """Call `callback(run)`, sync or async, when the run has come this far.

        A conversation that it returns takes the place of the run's; if that ends in a question, the model answers it.
        """
        return replace(self, steps=(*self.steps, Then(callback)))

    def map(self, callback: Callable[[list[Run]], Any]) -> Pipeline:
        """Call `callback(runs)` when all runs of `run_many` or `run_batch` have come this far.

        It may return a conversation for each of them, which is treated as that of `then`.
        """
        return replace(self, steps=(*self.steps, Map(callback)))

    def watch(self, callback: Callable[[Run], Any]) -> Pipeline:
        """Call `callback(run)` as soon as a run has ended, however it did."""
        return replace(self, watchers=(*self.watchers, callback))

    def parse_as(self, kind: Any, retries: int = 2) -> Pipeline:
        """Want an answer of this type (a pydantic model, dataclass, TypedDict, `list[int]`, …), as `Run.output`.

        The model is held to its JSON Schema where it can be, else told of it; an answer that doesn't fit is sent back
        with what is wrong, `retries` times, and then is `OutputInvalid`.
        """
        return replace(self, output=Output(kind, retries))

    async def run(self, *, decisions: Mapping[str, Decision] | None = None) -> Run:
        """Run until the model is done or a limit says stop.

        After a pause, `decisions` are answers to the calls that wait, by call id, each bound by `Pending.decide`.
        Raises `ModelError` where the model fails, `ToolRequired`, `OutputInvalid`, and what a callback raises.
        """
        run = Run(self.conversation)
        await _run(self, run, None, decisions)
        return run

    async def run_many(
        self, n: int, *, concurrency: int | None = None, errors: Literal["raise", "keep"] = "raise"
    ) -> list[Run]:
        """`n` runs at once; a seed counts up. See `run_batch`."""
        seed = self.settings.seed
        each = [self if seed is None else self.with_(seed=seed + number) for number in range(n)]
        return await run_together(each, _run_among, concurrency, errors)

    async def run_batch(
        self,
        inputs: Iterable[str | Message | Conversation],
        *,
        concurrency: int | None = None,
        errors: Literal["raise", "keep"] = "raise",
    ) -> list[Run]:
        """A run for each input, at most `concurrency` at once, in the order of the inputs.

        The first error stops all; where errors are to be kept, it is the `error` of its run, whose conversation stands.
        """
        return await run_together([self.chat(one) for one in inputs], _run_among, concurrency, errors)

    @asynccontextmanager
    async def stream(self, *, decisions: Mapping[str, Decision] | None = None) -> AsyncIterator[StreamedRun]:
        """Run in a task of its own; leaving the block cancels what is left, and open calls are answered so."""
        run = StreamedRun(self.conversation)
        task = asyncio.create_task(run.work(_run(self, run, run.feed, decisions)))
        try:
            yield run
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # For programs without an event loop.

    def run_sync(self, **given: Any) -> Run:
        """`run`."""
        return run_synchronously(self.run(**given))

    def run_many_sync(self, n: int, **given: Any) -> list[Run]:
        """`run_many`."""
        return run_synchronously(self.run_many(n, **given))

    def run_batch_sync(self, inputs: Iterable[str | Message | Conversation], **given: Any) -> list[Run]:
        """`run_batch`."""
        return run_synchronously(self.run_batch(inputs, **given))

    def stream_sync(self, **given: Any) -> AbstractContextManager[StreamedRun]:
        """`stream`: `with pipeline.stream_sync() as run: for event in run: …`."""
        return entered(self.stream(**given))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle. Raises `SettingsError`, naming the callback or tool that can't be imported elsewhere."""
        return reduced(self)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _run(
    pipeline: Pipeline,
    run: Run,
    watcher: Feed[Event] | None = None,
    decisions: Mapping[str, Decision] | None = None,
    meeting: Meeting | None = None,
) -> None:
    """One run, from its first question to its end, which `run.stopped` tells."""
    asked, run.mode = speaking(pipeline.model, pipeline.terms.mode)
    run.model = pipeline.model.name
    plan = planned(pipeline.steps, pipeline.output is not None, meeting)
    with heard(run) as listener:
        async with pipeline.registry.open() as registry:
            exchange = Exchange(pipeline, asked, registry, run, watcher, decisions, listener)
            try:
                work, seconds = _converse(exchange, plan), pipeline.limits.seconds
                await (work if seconds is None else _in_time(work, seconds))
                run.stopped = "done"
            except Stop as stop:
                run.stopped = stop.reason
                if stop.reason != "paused":
                    exchange.cancel_open()
            except asyncio.CancelledError:
                run.stopped = "cancelled"
                exchange.cancel_open()
                raise
    for watch in pipeline.watchers:
        await called(watch, run)
    if watcher is not None:
        await watcher.put(RunFinished(run.stopped, run.usage))


async def _run_among(pipeline: Pipeline, run: Run, meeting: Meeting) -> None:
    """One run among many."""
    await _run(pipeline, run, meeting=meeting)


async def _in_time(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Wait for it that long. Raises `Stop`."""
    try:
        async with asyncio.timeout(seconds) as time:
            return await work
    except TimeoutError:
        if not time.expired():
            raise
        raise Stop("time") from None


def _with(conversation: Conversation, message: str | Message | Conversation) -> Conversation:
    if isinstance(message, Conversation):
        return message
    return conversation.add(user(message) if isinstance(message, str) else message)


def _known(kind: type, given: dict[str, Any], method: str) -> dict[str, Any]:
    names = [one.name for one in fields(kind)]
    unknown = set(given) - set(names)
    if unknown:
        raise SettingsError(f"{method}() knows no {min(unknown)!r}; it takes {', '.join(names)}")
    return given


def model(name: str | Model, *, fallback: str | Model | None = None, **options: Any) -> Pipeline:
    """A pipeline on a model: by its name (`openai:gpt-5`, `embedded`, `local:<folder>`, …), or a `Model` object.

    Where it fails, `fallback` is asked. `options` (`api_key`, `base_url`, …) are for a model given by name. Raises
    `ModelError` for what can't be had.
    """
    first = model_named(name, **options) if isinstance(name, str) else name
    if fallback is None:
        return Pipeline(first, origin=(name, options) if isinstance(name, str) else None)
    from ferrule.models.fallback import FallbackModel

    return Pipeline(FallbackModel(first, model_named(fallback) if isinstance(fallback, str) else fallback))
