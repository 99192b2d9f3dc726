"""`run_analysis` and `stream_analysis`: a question about data, answered by a plan of tasks.

result = await run_analysis("Which region drives the drop?", data=["sales.csv"], model="openai:gpt-5")
async with stream_analysis("Which region drives the drop?", data=["sales.csv"]) as analysis:
    async for event in analysis: ...
print(analysis.result)
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from ferrule.agent.pipeline import Pipeline
from ferrule.analysis.asking import AnalysisToolOptions, Asker, ModelChoice
from ferrule.analysis.events import AnalysisEvent, Notice
from ferrule.analysis.limits import AnalysisLimits, list_free_models
from ferrule.analysis.plan import Plan
from ferrule.analysis.planning.answers import write_account
from ferrule.analysis.recording import Recording, replay_analysis
from ferrule.analysis.recording.opening import (
    begin_recording,
    choose_settings,
    keep_data,
    list_recorded_files,
    record_models,
    replay_models,
    take_data,
)
from ferrule.analysis.result import AnalysisResult
from ferrule.analysis.running.analysis import CANCELLED, RUNNING, Analysis, ApprovePlan, SharedData
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import FerruleError, SettingsError
from ferrule.models.naming import get_model
from ferrule.models.protocol import Model
from ferrule.tools.registry import ToolLike

if TYPE_CHECKING:
    from ferrule.execution import Approver, Journal, Policy

_WITHOUT_PLANS = ("embedded", "echo")
"""Models that call tools or repeat, and can neither plan nor write code."""
GROQ_MODEL = "groq:openai/gpt-oss-120b"
"""The model where only a key of Groq is given."""


class AnalysisOptions(TypedDict, total=False):
    """What `run_analysis` and `stream_analysis` take besides the question."""

    data: Mapping[str, Path | str] | Sequence[Path | str]
    """Files, by the names of their tables or in a list whose entries may be `NAME=FILE`."""
    model: str | Model | Pipeline[Any] | None
    """The model for everything that `settings.models` names no other for; of `ferrule.model(…)`, its model."""
    groq_api_key: str | None
    """The key for a model of Groq; without `model`, its GPT-OSS 120B is asked."""
    settings: AnalysisSettings | None
    tools: Sequence[ToolLike]
    """Further tools for the plan: functions, toolsets, MCP servers."""
    approve_plan: ApprovePlan | None
    """Is asked about the plan before anything runs: returns it, an edited one, or None to refuse it."""
    continues: AnalysisResult | None
    """An analysis of the same data, whose results this one may use."""
    recording: Recording | None
    """What records the analysis, or replays one."""
    policy: Policy | None
    """Which calls are permitted, of the analyst's own tools and of added ones."""
    approver: Approver | None
    """Who is asked where the policy says so."""
    journal: Journal | None
    """Where calls are recorded."""


async def run_analysis(query: str, **options: Unpack[AnalysisOptions]) -> AnalysisResult:
    """Answer a question; `options` are those of `AnalysisOptions`.

    A limit, a provider that fails, a model that writes nonsense: the result has what was found until then, and
    `stopped` says why it is partial. Raises `SettingsError`, `DataError`, `ModelError` and `RegistryError` for what is
    wrong before the first request.
    """
    async with stream_analysis(query, **options) as analysis:
        return await analysis.wait()


def run_analysis_sync(query: str, **options: Unpack[AnalysisOptions]) -> AnalysisResult:
    """`run_analysis` without an event loop; an interruption stops the analysis.

    Raises `RuntimeError` inside a running event loop: use `await run_analysis(…)` there.
    """
    from ferrule._util.background import run_synchronously

    return run_synchronously(run_analysis(query, **options))


def stream_analysis(query: str, **options: Unpack[AnalysisOptions]) -> AnalysisStream:
    """`run_analysis` as a context manager that yields events; leaving it early cancels the analysis."""
    return AnalysisStream(query, options)


class AnalysisStream:
    """An analysis that runs: `async with stream_analysis(…) as analysis: async for event in analysis: …`.

    `result` is valid at every moment, also after a cancellation.
    """

    def __init__(self, query: str, options: AnalysisOptions) -> None:
        unknown = sorted(set(options) - set(AnalysisOptions.__annotations__))
        if unknown:
            known = ", ".join(AnalysisOptions.__annotations__)
            raise TypeError(f"an analysis has no option {unknown[0]!r}; expected one of {known}")
        self._recording = options.get("recording")
        if self._recording is not None and self._recording.source is not None:
            query = self._recording.source.header.question
        self.result = AnalysisResult(query, stopped=RUNNING)
        self._options = options
        self._events: asyncio.Queue[AnalysisEvent | None] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._analysis: Analysis | None = None

    async def __aenter__(self) -> Self:
        if not self.result.question.strip():
            raise SettingsError("the question is empty")
        self._work = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._work

    async def __aiter__(self) -> AsyncIterator[AnalysisEvent]:
        """The events until the end. Raises what `run_analysis` raises."""
        while (event := await self._events.get()) is not None:
            yield event
        await self._get_work()

    async def wait(self) -> AnalysisResult:
        """Wait for the end; returns the result. Raises what `run_analysis` raises."""
        await asyncio.shield(self._get_work())
        return self.result

    @property
    def error(self) -> FerruleError | None:
        """The error that made the result partial, if one did."""
        return None if self._analysis is None else self._analysis.error

    def check_plan(self, plan: Plan) -> list[str]:
        """What is wrong with a plan, a sentence each, for `approve_plan`: with its tools too, and earlier results."""
        if self._analysis is None:
            raise SettingsError("a plan can be checked once the analysis has made one, from approve_plan")
        return self._analysis.check_plan(plan)

    def _get_work(self) -> asyncio.Task[None]:
        if self._work is None:
            raise SettingsError("stream_analysis() must be entered: `async with stream_analysis(…) as analysis: …`")
        return self._work

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as exits:
                self._analysis = await _open(self.result.question, self._options, self._events.put_nowait, exits)
                self.result = self._analysis.result
                await self._analysis.run()
        except asyncio.CancelledError:
            self._stop(CANCELLED)
            raise
        except Exception as error:
            self._stop(str(error))
            raise
        finally:
            if self._recording is not None:
                self._recording.finish(self.result)
            self._events.put_nowait(None)

    def _stop(self, reason: str) -> None:
        """Say why there is no answer, where the analysis ended before it could say so itself."""
        if self.result.stopped == RUNNING:
            self.result.stopped = reason
            self.result.answer = self.result.answer or write_account(self.result.tasks, reason)


async def _open(
    query: str, options: AnalysisOptions, emit: Callable[[AnalysisEvent], None], exits: AsyncExitStack
) -> Analysis:
    """Open the models and read the data of an analysis, in that order: a wrong model is found at once."""
    recording = options.get("recording") or Recording()
    recording.check()
    settings = choose_settings(recording, options.get("settings"))
    mode = settings.mode_limits
    prices = recording.source.header.prices if recording.source else {}
    limits = AnalysisLimits(mode.calls, settings.max_cost, settings.max_seconds, prices=prices)
    models = replay_models(recording) if recording.source else record_models(recording, open_models(options, settings))
    exits.push_async_callback(models.aclose)
    if recording.source is None:
        limits.check_prices(models.names)
    tools = AnalysisToolOptions(options.get("policy"), options.get("approver"), options.get("journal"))
    folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="ferrule-analysis-")))
    continues = options.get("continues") or await _replay_earlier(recording)
    data = options.get("data") or list_recorded_files(recording)
    changed = begin_recording(recording, query, settings, models, data)
    analysis = Analysis(
        query,
        settings,
        Asker(models, limits, emit, tools),
        await _open_data(recording, data, settings, folder),
        tools=tuple(options.get("tools", ())),
        approve_plan=options.get("approve_plan"),
        continues=continues,
        recording=recording,
    )
    free = list_free_models(models.names, prices) if settings.max_cost is not None else ()
    if free:
        changed = [*changed, f"max_cost limits nothing of what {', '.join(free)} is asked: it costs nothing"]
    for sentence in changed:
        analysis.report(Notice(sentence))
    return analysis


async def _replay_earlier(recording: Recording) -> AnalysisResult | None:
    """The result of the recorded analysis that this one goes on from, if it does."""
    if recording.earlier is None:
        return None
    return await run_analysis("", recording=replay_analysis(recording.earlier.path))


async def _open_data(
    recording: Recording,
    data: Mapping[str, Path | str] | Sequence[Path | str],
    settings: AnalysisSettings,
    folder: Path,
) -> SharedData:
    """Read the files, or take what is recorded of them. Raises `DataError` and `SettingsError`."""
    if recording.is_replay:
        return SharedData(*take_data(recording))
    shared = await read_data(data, settings, folder)
    if shared.tables:
        keep_data(recording, shared.tables, shared.text, shared.profiles)
    return shared


def check_can_plan(model: str, advice: str) -> None:
    """Raise `SettingsError`, with advice, for the name of a model that is no use here."""
    if model in _WITHOUT_PLANS:
        raise SettingsError(f"the {model} model can't plan an analysis or write code; {advice}")


def open_models(options: AnalysisOptions, settings: AnalysisSettings) -> ModelChoice:
    """The models that are asked. Raises `SettingsError` and `ModelError` for one that can't be used."""
    given, key = options.get("model"), options.get("groq_api_key")
    if key is not None and isinstance(given, str) and not given.startswith("groq:"):
        raise SettingsError(f"groq_api_key is for models of Groq, and model is {given!r}: leave one of them out")
    if isinstance(given, str):
        check_can_plan(given, "choose another, such as 'openai:gpt-5'")
    owned: list[Model] = []

    def make(one: Any) -> Model:
        if not isinstance(one, str):
            return _take_model(one)
        made = get_model(one, **({} if key is None or not one.startswith("groq:") else {"api_key": key}))
        owned.append(made)
        return made

    default = make(GROQ_MODEL if given is None else given)
    others = {name: make(one) for name, one in settings.models.items()}
    return ModelChoice(default, others, tuple(owned))


def _take_model(given: Any) -> Model:
    """The model of a pipeline that `ferrule.model(…)` made, or a Model object itself."""
    if isinstance(given, Pipeline):
        _check_pipeline(given)
        given = given.model
    if isinstance(given, type) or not hasattr(given, "stream"):
        raise SettingsError(f"a model is a name such as 'openai:gpt-5' or a Model object, not {given!r}")
    checked: Model = given
    check_can_plan(checked.name, "choose another, such as 'openai:gpt-5'")
    return checked


def _check_pipeline(given: Pipeline[Any]) -> None:
    """Raise `SettingsError` for what a pipeline has besides its model, which an analysis wouldn't use."""
    plain = Pipeline(given.model)
    parts = {
        "a conversation": bool(given.conversation.messages),
        "tools": bool(len(given.registry) or given.options != plain.options),
        "settings of its model": given.settings != plain.settings,
        "limits": given.limits != plain.limits,
        "steps or hooks": bool(given.steps or given.hooks or given.watchers or given.output),
    }
    if found := [name for name, is_there in parts.items() if is_there]:
        raise SettingsError(
            f"an analysis uses the model of a pipeline alone, and this one has {' and '.join(found)}: "
            "give model=ferrule.model(…) as it is, and tools= and settings= to the analysis"
        )


async def read_data(
    data: Mapping[str, Path | str] | Sequence[Path | str], settings: AnalysisSettings, folder: Path
) -> SharedData:
    """Read the files, in a sandbox; nothing without any. Raises `DataError`."""
    if not data:
        return SharedData()
    from ferrule.analysis.data import describe_tables, make_sources, read_tables

    tables = await read_tables(make_sources(data), folder, memory=settings.python_memory << 20)
    profiles = {table.name: describe_tables([table], settings.share) for table in tables}
    return SharedData(tuple(tables), describe_tables(tables, settings.share), profiles)
