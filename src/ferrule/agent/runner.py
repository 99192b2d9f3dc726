"""Runs a pipeline: makes its loop with the hooks of its options and steps, and says why the run ended."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from ferrule._util.quick_init import quick_init
from ferrule.agent.batch import CallTogether, RunBarrier, attach, ignore_end, run_together, show_progress
from ferrule.agent.hooks import Hooks, RunState, RunStopped, check_hooks, collect_methods, listener_factories
from ferrule.agent.instrumentation import ListenedRun
from ferrule.agent.loop import AgentLoop
from ferrule.agent.model_checks import check_text_mode, check_tools
from ferrule.agent.options import USE_TOOLS, Then, UseTools
from ferrule.agent.run import EventSink, OutputT, Run, StreamedRun
from ferrule.agent.standard_hooks import (
    CallOnce,
    ChooseTool,
    OfferLazily,
    ParseOutput,
    ShortenContext,
    SystemText,
    call,
)
from ferrule.agent.tool_search import FEW, NAME, LazyTools, is_large
from ferrule.errors import ModelError, SettingsError, choose_advice
from ferrule.events import RunFinished
from ferrule.execution import Decision
from ferrule.tools.registry import BoundRegistry

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunListener
    from ferrule.agent.pipeline import HooksSource, Pipeline
    from ferrule.models.hosted import HostedModel
    from ferrule.models.protocol import Model

_USUAL_HOOKS: tuple[Hooks, ...] = (ShortenContext(),)
_METERED_METHODS = collect_methods(_USUAL_HOOKS)
_USUAL_METHODS = replace(_METERED_METHODS, before_request=())
"""Where tokens can't be counted, a conversation is shortened only after it turned out to be too long."""
_ONLY_TOOLS = (USE_TOOLS,)
_NO_LISTENER: AbstractContextManager[None] = nullcontext()
_log = logging.getLogger("ferrule.agent")
_CHOICES = ("auto", "required", "none")


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
    """What `Pipeline.stream` returns: entering it starts the run in a task of its own, leaving it ends the run."""

    def __init__(self, pipeline: Pipeline[OutputT], decisions: Mapping[str, Decision] | None) -> None:
        self._pipeline, self._decisions = pipeline, decisions

    async def __aenter__(self) -> StreamedRun[OutputT]:
        self._run: StreamedRun[OutputT] = StreamedRun(self._pipeline.conversation)
        work = run_pipeline(self._pipeline, self._run, RunContext(self._run.feed, self._decisions))
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._run.feed.end)
        return self._run

    async def __aexit__(self, *error: Any) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):  # an error is raised in the reader of the events
            await self._task
        self._run.stopped = self._run.stopped or "cancelled"

    def __aiter__(self) -> NoReturn:
        raise SettingsError(
            "stream() must be entered: `async with pipeline.stream() as run: async for event in run: …`; "
            "without an event loop, `with pipeline.stream_sync() as run: for event in run: …`"
        )


@quick_init
@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run belongs: who reads its events, the runs that it waits for, the run above a sub-agent."""

    feed: EventSink | None = None
    decisions: Mapping[str, Decision] | None = None
    barrier: RunBarrier | None = None
    parent: RunState | None = None


async def run_pipeline(pipeline: Pipeline[Any], run: Run[Any], context: RunContext) -> None:
    """Run from the first question to the end; `run.stopped` is the reason why it ended, and an error has the run.

    This is `Pipeline.run`, and what streams, batches and sub-agents do.
    """
    try:
        asked, run.mode = select_mode(pipeline.model, pipeline.options.mode)
        run.model = pipeline.model.name
        bound = pipeline.registry.bound
        if bound is not None and not listener_factories:
            await _converse(pipeline, _make_loop(pipeline, asked, bound, run, context, None), run)
        else:
            async with _open_tools(pipeline, run) as (registry, listener):
                await _converse(pipeline, _make_loop(pipeline, asked, registry, run, context, listener), run)
        if asked is not pipeline.model:
            run.mode = getattr(asked, "mode", run.mode)
    except asyncio.CancelledError as error:
        run.stopped = "cancelled"
        attach(error, run=run)
        raise
    except Exception as error:
        run.stopped, run.error = "error", error
        attach(error, run=run)
        await _call_watchers(pipeline, run, error)
        raise
    if pipeline.watchers:
        await _call_watchers(pipeline, run)
    if context.feed is not None:
        await context.feed.put(RunFinished(run.stopped, run.usage, run.stop_detail))


async def _call_watchers(pipeline: Pipeline[Any], run: Run[Any], first: Exception | None = None) -> None:
    """Call all watchers. The first error is raised after the others were called, or a note on the one given."""
    raised: Exception | None = None
    for watch in pipeline.watchers:
        try:
            await call(watch, run)
        except asyncio.CancelledError as error:
            attach(error, run=run)
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            if first is None:
                first = raised = error
            else:
                first.add_note(f"A callback of watch raised {type(error).__name__}: {error}")
    if raised is not None:
        attach(raised, run=run)
        raise raised


@asynccontextmanager
async def _open_tools(
    pipeline: Pipeline[Any], run: Run[Any]
) -> AsyncIterator[tuple[BoundRegistry, RunListener | None]]:
    """Open the tools of a run that listeners may hear. What the closing raises is a warning: the run has ended."""
    with ListenedRun(run) if listener_factories else _NO_LISTENER as listener:
        try:
            async with pipeline.registry.open() as registry:
                yield registry, listener
        except Exception as error:
            if not run.stopped:
                raise
            message = f"closing the tools of a run failed: {type(error).__name__}: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


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
    if loop.unasked and len(loop.unasked) == loop.state.calls:
        _report_unasked(run, loop.unasked, pipeline.options.approver is None)


def _report_unasked(run: Run[Any], reasons: Sequence[str], is_logged: bool) -> None:
    """Say in a run that all of its calls were denied, since nobody could be asked, and what would allow the first.

    It is logged where the program gave no approver: one that denies for want of a person says so itself.
    """
    which = "its only call was denied" if len(reasons) == 1 else f"all of its {len(reasons)} calls were denied"
    detail = f"{which}: {reasons[0]}" if len(reasons) == 1 else f"{which}; the first: {reasons[0]}"
    run.stop_detail = run.stop_detail or detail
    if is_logged:
        _log.warning("a run of %s: %s", run.model, detail)


async def _run_among(pipeline: Pipeline[Any], run: Run[Any], barrier: RunBarrier) -> None:
    """Run one of many."""
    await run_pipeline(pipeline, run, RunContext(barrier=barrier))


def _make_loop(
    pipeline: Pipeline[Any],
    asked: Model,
    registry: BoundRegistry,
    run: Run[Any],
    context: RunContext,
    listener: RunListener | None,
) -> AgentLoop:
    """Make the loop of a run, with its hooks: those of the pipeline's options first, in the order of its steps."""
    options = pipeline.options
    journal = options.journal if listener is None else listener.wrap_journal(options.journal)
    lazy = None
    if options.lazy is True or len(registry.tools) > FEW:
        lazy = _choose_lazy_tools(registry, options.lazy, options.choice, asked.capabilities.tools)

    callable_tools = registry if lazy is None else lazy.registry
    if options.choice is not None and options.choice not in (*_CHOICES, *callable_tools.names):
        near = ", ".join(callable_tools.find_nearest(options.choice)) or "none"
        raise SettingsError(f"choice={options.choice!r} is neither {', '.join(_CHOICES)} nor a tool; nearest: {near}")
    if not asked.capabilities.tools_optional:
        check_tools(asked, callable_tools.names)
    if options.force and not callable_tools.names:
        raise SettingsError("force=True requires a call, and there are no tools; give using(…) one, or leave it out")
    state = RunState(run, asked, callable_tools, registry.specs, journal, context.feed, pipeline, context.parent)
    hooks = _list_hooks(pipeline, lazy, run, context.barrier, registry.instructions)
    if hooks is not _USUAL_HOOKS:
        methods = collect_methods(hooks)
    else:
        methods = _USUAL_METHODS if state.meter is None else _METERED_METHODS
    return AgentLoop(state, methods, decisions=context.decisions, listener=listener)


def _choose_lazy_tools(
    registry: BoundRegistry, lazy: bool | Literal["auto"], choice: str | None, only: tuple[str, ...] | None
) -> LazyTools | None:
    """Return the tools to offer lazily, of more than a few; None if all are offered at once.

    `choice` names a tool that must be called, `only` the tools that the model supports. Raises `RegistryError`.
    """
    if lazy is True:
        return LazyTools(registry, choice)
    if not lazy or only is not None or not is_large(registry) or NAME in registry:
        return None
    return LazyTools(registry, choice)


def _list_hooks(
    pipeline: Pipeline[Any], lazy: LazyTools | None, run: Run[Any], barrier: RunBarrier | None, instructions: str
) -> Sequence[Hooks]:
    """The hooks of a run: those of the pipeline's options and steps, then those that were added."""
    options = pipeline.options
    has_steps = pipeline.steps != _ONLY_TOOLS or options.force or options.choice or pipeline.output is not None
    if not has_steps and lazy is None and not pipeline.hooks and not instructions:
        return _USUAL_HOOKS
    hooks = [*_USUAL_HOOKS]
    if lazy is not None:
        hooks.append(OfferLazily(lazy))
    if instructions:
        hooks.append(SystemText(lambda _state: instructions))
    if has_steps:
        hooks += _make_step_hooks(pipeline, run, barrier)
    added = _make_hooks(pipeline.hooks)
    first = [one for one in added if _comes_first(one)]
    return [*first, *hooks, *(one for one in added if not _comes_first(one))]


def _make_hooks(sources: Iterable[HooksSource]) -> list[Hooks]:
    made = [one() if callable(one) else one for one in sources]
    for one in made:
        check_hooks(type(one))
    return made


def _comes_first(hooks: Hooks) -> bool:
    """Hooks needn't derive from `Hooks`."""
    return bool(getattr(hooks, "comes_first", False))


def _make_step_hooks(pipeline: Pipeline[Any], run: Run[Any], barrier: RunBarrier | None) -> Iterator[Hooks]:
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
            yield CallTogether(step.callback, waits, barrier or RunBarrier([run]))
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
    if model.capabilities.native_tools:
        if mode == "auto" and getattr(model, "may_refuse_tools", False):
            from ferrule.models.native_or_text import NativeOrTextModel

            return NativeOrTextModel(cast("HostedModel", model), DEFAULT_NOTATION), "api"
        if mode in ("auto", "api"):
            return model, "api"
    elif mode == "api":
        other = choose_advice(
            "mode='auto', or a notation such as 'native'", "--mode auto, or a notation of `ferrule dialects`"
        )
        raise ModelError(f"{model.name} has no tools of its own: use {other}")
    from ferrule.dialects.catalogue import get_notation
    from ferrule.models.text_mode import TextModeModel

    name = DEFAULT_NOTATION if mode == "auto" else mode
    check_text_mode(model, name)
    return TextModeModel(model, get_notation(name)), name
