"""Runs a pipeline: makes its loop with the hooks of its options and steps, and says why the run ended."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from ferrule._util.quick_init import quick_init
from ferrule.agent.batch import CallTogether, RunBarrier, ignore_end, run_together, show_progress
from ferrule.agent.hooks import Hooks, ModelRequest, RunState, RunStopped, check_hooks
from ferrule.agent.instrumentation import ListenedRun, listener_factories
from ferrule.agent.loop import AgentLoop
from ferrule.agent.model_checks import check_text_mode, check_tools
from ferrule.agent.options import USE_TOOLS, Then, UseTools
from ferrule.agent.run import EventSink, OutputT, Run, StreamedRun
from ferrule.agent.standard_hooks import CallOnce, ChooseTool, LimitRun, OfferLazily, ParseOutput, ShortenContext, call
from ferrule.agent.tool_search import FEW, NAME, LazyTools, is_large
from ferrule.errors import ModelError, SettingsError, choose_advice
from ferrule.events import RunFinished
from ferrule.execution import Decision, Executor, Policy
from ferrule.tools.registry import BoundRegistry

if TYPE_CHECKING:
    from ferrule.agent.instrumentation import RunListener
    from ferrule.agent.pipeline import HooksSource, Pipeline
    from ferrule.models.hosted import HostedModel
    from ferrule.models.protocol import Model

_LIMIT_RUN = LimitRun()
_SHORTEN_CONTEXT = ShortenContext()
_ONLY_TOOLS = (USE_TOOLS,)
_NO_LISTENER: AbstractContextManager[None] = nullcontext()
_CHOICES = ("auto", "required", "none")


async def run_pipeline(pipeline: Pipeline[OutputT], decisions: Mapping[str, Decision] | None) -> Run[OutputT]:
    """See `Pipeline.run`."""
    run: Run[OutputT] = Run(pipeline.conversation)
    await _run(pipeline, run, RunContext(decisions=decisions))
    return run


async def run_pipelines(
    pipelines: Sequence[Pipeline[OutputT]],
    concurrency: int | None,
    errors: Literal["raise", "keep"],
    progress: bool = False,
) -> list[Run[OutputT]]:
    """See `Pipeline.run_batch`."""
    with show_progress(len(pipelines)) if progress else nullcontext(ignore_end) as on_end:
        return await run_together(pipelines, _run_among, concurrency, errors, on_end)


async def iterate_pipelines(
    pipelines: Sequence[Pipeline[OutputT]], concurrency: int | None, errors: Literal["raise", "keep"], progress: bool
) -> AsyncGenerator[tuple[int, Run[OutputT]], None]:
    """See `Pipeline.iterate_batch`."""
    ended: asyncio.Queue[tuple[int, Run[OutputT]] | None] = asyncio.Queue()
    with show_progress(len(pipelines)) if progress else nullcontext(ignore_end) as show_end:

        def pass_on(index: int, run: Run[Any]) -> None:
            show_end(index, run)
            ended.put_nowait((index, run))

        task = asyncio.create_task(run_together(pipelines, _run_among, concurrency, errors, pass_on))
        task.add_done_callback(lambda _: ended.put_nowait(None))
        try:
            while (one := await ended.get()) is not None:
                yield one
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class StreamContext(AbstractAsyncContextManager[StreamedRun[OutputT]]):
    """What `Pipeline.stream` returns: entering it starts the run, leaving it ends the run."""

    def __init__(self, opened: AbstractAsyncContextManager[StreamedRun[OutputT]]) -> None:
        self._opened = opened

    async def __aenter__(self) -> StreamedRun[OutputT]:
        return await self._opened.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._opened.__aexit__(*error)

    def __aiter__(self) -> NoReturn:
        raise SettingsError(
            "stream() must be entered: `async with pipeline.stream() as run: async for event in run: …`; "
            "without an event loop, `with pipeline.stream_sync() as run: for event in run: …`"
        )


def stream_pipeline(pipeline: Pipeline[OutputT], decisions: Mapping[str, Decision] | None) -> StreamContext[OutputT]:
    """See `Pipeline.stream`."""
    return StreamContext(_stream(pipeline, decisions))


@asynccontextmanager
async def _stream(
    pipeline: Pipeline[OutputT], decisions: Mapping[str, Decision] | None
) -> AsyncIterator[StreamedRun[OutputT]]:
    run: StreamedRun[OutputT] = StreamedRun(pipeline.conversation)
    task = asyncio.create_task(run.work(_run(pipeline, run, RunContext(run.feed, decisions))))
    try:
        yield run
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@quick_init
@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run belongs: who reads its events, the runs that it waits for, the run above a sub-agent."""

    feed: EventSink | None = None
    decisions: Mapping[str, Decision] | None = None
    barrier: RunBarrier | None = None
    parent: RunState | None = None


async def _run(pipeline: Pipeline[Any], run: Run[Any], context: RunContext) -> None:
    """Run from the first question to the end; `run.stopped` is the reason why it ended, and an error has the run."""
    try:
        await _run_loop(pipeline, run, context)
    except asyncio.CancelledError:
        run.stopped = "cancelled"
        raise
    except Exception as error:
        run.stopped, run.error = "error", error
        with suppress(AttributeError):  # an exception with slots
            error.run = run  # type: ignore[attr-defined]
        try:
            await _call_watchers(pipeline, run)
        except Exception as other:  # noqa: BLE001 - the first error is raised
            error.add_note(f"A callback of watch raised {type(other).__name__}: {other}")
        raise
    await _call_watchers(pipeline, run)
    if context.feed is not None:
        await context.feed.put(RunFinished(run.stopped, run.usage, run.stop_detail))


async def _call_watchers(pipeline: Pipeline[Any], run: Run[Any]) -> None:
    for watch in pipeline.watchers:
        await call(watch, run)


async def _run_loop(pipeline: Pipeline[Any], run: Run[Any], context: RunContext) -> None:
    """Run with the tools opened. What their closing raises is a warning: the run has ended."""
    asked, run.mode = select_mode(pipeline.model, pipeline.options.mode)
    run.model = pipeline.model.name
    with ListenedRun(run) if listener_factories else _NO_LISTENER as listener:
        try:
            async with pipeline.registry.open() as registry:
                await _converse(pipeline, _make_loop(pipeline, asked, registry, run, context, listener), run)
        except Exception as error:
            if not run.stopped:
                raise
            message = f"closing the tools of a run failed: {type(error).__name__}: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
    run.mode = getattr(asked, "mode", run.mode)


async def _converse(pipeline: Pipeline[Any], loop: AgentLoop, run: Run[Any]) -> None:
    """Run the loop; afterwards no call is open, unless it waits for a decision."""
    try:
        work, seconds = loop.converse(), pipeline.limits.seconds
        await (work if seconds is None else _run_in_time(work, seconds))
        run.stopped = "done"
    except RunStopped as stop:
        run.stopped, run.stop_detail = stop.reason, stop.detail
        if stop.reason == "time":
            loop.keep_partial_text()
        if stop.reason != "paused":
            loop.skip_open_calls()
    except (Exception, asyncio.CancelledError):
        loop.skip_open_calls()
        raise


async def run_under(pipeline: Pipeline[Any], run: Run[Any], parent: RunState, feed: EventSink | None) -> None:
    """Run as a sub-agent: what it does counts towards the limits of `parent`."""
    await _run(pipeline, run, RunContext(feed, parent=parent))


async def _run_among(pipeline: Pipeline[Any], run: Run[Any], barrier: RunBarrier) -> None:
    """Run one of many."""
    await _run(pipeline, run, RunContext(barrier=barrier))


def _make_loop(
    pipeline: Pipeline[Any],
    asked: Model,
    registry: BoundRegistry,
    run: Run[Any],
    context: RunContext,
    listener: RunListener | None,
) -> AgentLoop:
    """Make the loop of a run, with its hooks: those of the pipeline's options first, in the order of its steps."""
    options, parent = pipeline.options, context.parent
    journal = options.journal if listener is None else listener.wrap_journal(options.journal)
    lazy = _choose_lazy_tools(registry, options.lazy, options.choice, asked.capabilities.tools)

    def make_executor(tools: BoundRegistry, policy: Policy | None) -> Executor:
        if parent is not None:  # a hook may replace the policy, but not by one that allows more
            policy = (policy or options.policy or _inherit(parent.policy)).narrow(parent.policy)
        return Executor(
            tools,
            policy=policy or options.policy,
            approver=options.approver,
            journal=journal,
            blobs=options.blobs,
            on_ask=options.on_ask,
        )

    hooks: list[Hooks] = [_LIMIT_RUN, _SHORTEN_CONTEXT]
    if lazy is not None:
        hooks.append(OfferLazily(lazy))
    if pipeline.steps != _ONLY_TOOLS or options.force or options.choice or pipeline.output is not None:
        hooks += _make_step_hooks(pipeline, context.barrier)
    if pipeline.hooks:
        added = _make_hooks(pipeline.hooks)
        hooks[1:1] = [one for one in added if _comes_first(one)]
        hooks += [one for one in added if not _comes_first(one)]
    callable_tools = registry if lazy is None else lazy.registry
    if options.choice is not None and options.choice not in (*_CHOICES, *callable_tools.names):
        near = ", ".join(callable_tools.find_nearest(options.choice)) or "none"
        raise SettingsError(f"choice={options.choice!r} is neither {', '.join(_CHOICES)} nor a tool; nearest: {near}")
    if not asked.capabilities.tools_optional:
        check_tools(asked, callable_tools.names)
    if options.force and not callable_tools.names:
        raise SettingsError("force=True requires a call, and there are no tools; give using(…) one, or leave it out")
    request = ModelRequest(run.conversation, registry.specs, pipeline.settings)
    state = RunState(run, asked, callable_tools, request, make_executor, context.feed, pipeline, parent)
    return AgentLoop(state, hooks, decisions=context.decisions, listener=listener)


def _inherit(policy: Policy) -> Policy:
    """A policy that adds nothing to the one that it is narrowed to."""
    return Policy(profile="all", trusted=policy.trusted)


def _choose_lazy_tools(
    registry: BoundRegistry, lazy: bool | Literal["auto"], choice: str | None, only: tuple[str, ...] | None
) -> LazyTools | None:
    """Return the tools to offer lazily, or None if all are offered at once.

    `choice` names a tool that must be called, `only` the tools that the model supports. Raises `RegistryError`.
    """
    if lazy is True:
        return LazyTools(registry, choice)
    if not lazy or len(registry) <= FEW or only is not None or not is_large(registry) or NAME in registry:
        return None
    return LazyTools(registry, choice)


def _make_hooks(sources: Iterable[HooksSource]) -> list[Hooks]:
    made = [one() if callable(one) else one for one in sources]
    for one in made:
        check_hooks(type(one))
    return made


def _comes_first(hooks: Hooks) -> bool:
    """Hooks needn't derive from `Hooks`."""
    return bool(getattr(hooks, "comes_first", False))


def _make_step_hooks(pipeline: Pipeline[Any], barrier: RunBarrier | None) -> Iterator[Hooks]:
    """Make the hooks of the steps: steps after `using` wait until calls are answered. Typed output comes last."""
    options, waits = pipeline.options, False
    for step in pipeline.steps:
        if isinstance(step, UseTools):
            waits = True
            if options.force or options.choice:
                yield ChooseTool(options, pipeline.limits.rounds)
        elif isinstance(step, Then):
            yield CallOnce(step.callback, waits)
        else:
            yield CallTogether(step.callback, waits, barrier or RunBarrier(1))
    if pipeline.output is not None:
        yield ParseOutput(pipeline.output)


async def _run_in_time(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Await `work`, at most `seconds`. Raises `RunStopped`."""
    try:
        async with asyncio.timeout(seconds) as time:
            return await work
    except TimeoutError:
        if not time.expired():
            raise
        raise RunStopped("time") from None


DEFAULT_NOTATION = "hermes"
"""The notation for models without a tool API: JSON between two tags, which most models have seen."""


def select_mode(model: Model, mode: str) -> tuple[Model, str]:
    """Return the model that a pipeline asks, and its mode: `auto` becomes `api` or the name of a notation.

    Raises `ModelError` for a mode that the model can't use, `DialectError` for an unknown notation.
    """
    has_tools = model.capabilities.native_tools
    if mode == "api" and not has_tools:
        other = choose_advice(
            "mode='auto', or a notation such as 'native'", "--mode auto, or a notation of `ferrule dialects`"
        )
        raise ModelError(f"{model.name} has no tools of its own: use {other}")
    if mode == "auto" and has_tools and getattr(model, "may_refuse_tools", False):
        from ferrule.models.native_or_text import NativeOrTextModel

        return NativeOrTextModel(cast("HostedModel", model), DEFAULT_NOTATION), "api"
    if mode == "api" or (mode == "auto" and has_tools):
        return model, "api"
    from ferrule.dialects.catalogue import get_notation
    from ferrule.models.text_mode import TextModeModel

    name = DEFAULT_NOTATION if mode == "auto" else mode
    check_text_mode(model, name)
    return TextModeModel(model, get_notation(name)), name
