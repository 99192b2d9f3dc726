"""The one place that asks a model in an analysis: through a pipeline, and so through the loop of `agent/`.

    key = StageKey("t1", "methodology", attempt)
    methodology = await asker.ask(key, INSTRUCTIONS, question, Methodology, temperature=0.2, timeout=120)

A request is known by its `StageKey`, never by when it was made: recordings, and models that tests answer with, read
the key of the running request from `current_stage`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, cast

from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.pipeline import Pipeline
from ferrule.analysis.events import AnalysisEvent, Notice, StageFinished, StageStarted
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.stages import STAGES, WHOLE, StageKey, current_stage
from ferrule.errors import FerruleError, OutputInvalid, ProviderError, SettingsError
from ferrule.events import NO_USAGE, Usage
from ferrule.tools.registry import find_nearest_names

if TYPE_CHECKING:
    from ferrule.agent.run import Run
    from ferrule.execution import Approver, Journal, Policy
    from ferrule.models.protocol import Model
    from ferrule.tools.registry import ToolLike

Output = TypeVar("Output")

__all__ = ["WHOLE", "AnalysisToolOptions", "Asker", "ModelChoice", "StageKey", "current_stage", "explain_failure"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models of an analysis: one for all, and others by the name of a tool or stage."""

    default: Model
    others: Mapping[str, Model] = field(default_factory=dict)
    owned: tuple[Model, ...] = ()
    """Those that the analysis made, and closes."""

    def choose(self, tool: str, stage: str) -> Model:
        """The model of a stage: its own, that of its tool, or the one for all."""
        kind = stage.rstrip("0123456789").rstrip("_")
        return self.others.get(kind) or self.others.get(tool) or self.default

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(dict.fromkeys(model.name for model in (self.default, *self.others.values())))

    async def aclose(self) -> None:
        """Close the models that the analysis made, even if closing one fails."""
        async with AsyncExitStack() as stack:
            for model in self.owned:
                stack.push_async_callback(model.aclose)


def check_model_names(names: Iterable[str], tools: Iterable[str]) -> None:
    """Raise `SettingsError` for a name that is neither a stage nor a tool."""
    known = (*tools, *STAGES)
    for name in names:
        if name not in known:
            near = find_nearest_names(name, known)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(known)}"
            raise SettingsError(f"models: {name!r} is neither a tool nor a stage; {hint}")


@dataclass(frozen=True, slots=True)
class AnalysisToolOptions:
    """How calls of added tools are answered: the options of `Pipeline.using`."""

    policy: Policy | None = None
    approver: Approver | None = None
    journal: Journal | None = None


class AnswerCutOff(OutputInvalid):
    """The answer ended before it was complete."""


def _ignore(_event: AnalysisEvent) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the models of one analysis: counts, reports, and leaves out the temperature where a model refuses it."""

    models: ModelChoice
    limits: AnalysisLimits
    emit: Callable[[AnalysisEvent], None] = _ignore
    options: AnalysisToolOptions = field(default_factory=AnalysisToolOptions)
    tool: str = ""
    """The tool whose stages this one asks for; empty for those of the whole analysis."""
    _refusing: set[str] = field(default_factory=set, repr=False)
    """The names of models that take no temperature."""
    _asked: set[StageKey] = field(default_factory=set, repr=False)

    def for_tool(self, tool: str) -> Asker:
        """The same asker for the stages of a tool, which may have a model of its own."""
        return replace(self, tool=tool)

    async def ask(
        self,
        key: StageKey,
        instructions: str,
        question: str,
        output: type[Output],
        *,
        temperature: float,
        timeout: float | None = None,
        tools: Iterable[ToolLike] = (),
        hooks: Iterable[Hooks] = (),
    ) -> Output:
        """Ask one question, and return the answer as `output`; `hooks` are those of the loop besides the counting.

        Raises `ModelError` if the model fails, `OutputInvalid` for answers that aren't of the type, also after being
        sent back, `TimeoutError` after `timeout` seconds, `LimitReached` at a limit of the analysis, and `ValueError`
        for a key that was asked before.
        """
        if key in self._asked:
            raise ValueError(f"the key {key} was asked before; count attempt within the task and the stage")
        self._asked.add(key)
        model = self.models.choose(self.tool, key.stage)
        pipeline = self._offer(Pipeline(model).system(instructions).chat(question).parse_as(output), tuple(tools))
        counter = _RequestCounter(key, self.limits)
        started, error = time.monotonic(), None
        self.emit(StageStarted(key, model.name))
        token = current_stage.set(key)
        try:
            return await self._run(pipeline.hook(counter, *hooks), temperature, timeout, key)
        except (FerruleError, TimeoutError) as failure:
            error = str(failure)
            raise
        finally:
            current_stage.reset(token)
            seconds = time.monotonic() - started
            self.emit(StageFinished(key, seconds, counter.usage, counter.calls, error))

    def _offer(self, pipeline: Pipeline[Output], tools: tuple[ToolLike, ...]) -> Pipeline[Output]:
        if not tools:
            return pipeline
        options = self.options
        return pipeline.using(*tools, policy=options.policy, approver=options.approver, journal=options.journal)

    async def _run(
        self, pipeline: Pipeline[Output], temperature: float, timeout: float | None, key: StageKey
    ) -> Output:
        """Run with the temperature, and again without it if the model refuses that."""
        left = self.limits.find_seconds_left(key.stage)
        seconds = left if timeout is None else timeout if left is None else min(timeout, left)
        limited = pipeline if seconds is None else pipeline.within(seconds=max(seconds, 0.0))
        name = pipeline.model.name
        if "temperature" not in pipeline.model.capabilities.settings:
            self._drop_temperature(name, "")
        if name in self._refusing:
            return self._take_output(await limited.run(), key, timeout)
        try:
            run = await limited.with_(temperature=temperature).run()
        except ProviderError as error:
            if error.status != 400 or "temperature" not in str(error).lower():
                raise
            self._drop_temperature(name, f": {error}")
            run = await limited.run()
        except TimeoutError as error:  # of a recorded answer: a run that is too slow stops without one
            raise TimeoutError(_describe_timeout(name, timeout, key)) from error
        return self._take_output(run, key, timeout)

    def _take_output(self, run: Run[Output], key: StageKey, timeout: float | None) -> Output:
        """The answer of a run. Raises what `ask` raises if it stopped before there was one."""
        if run.stopped == "done":
            return cast("Output", run.output)
        if run.stopped == "time":
            self.limits.check(key.stage)
            raise TimeoutError(_describe_timeout(run.model, timeout, key))
        detail = f": {run.stop_detail}" if run.stop_detail else ""
        raise AnswerCutOff(
            f"{run.model} gave no complete answer for {key.stage}: it stopped at {run.stopped}{detail}", run.text
        )

    def _drop_temperature(self, name: str, reason: str) -> None:
        if name not in self._refusing:
            self._refusing.add(name)
            self.emit(Notice(f"{name} takes no temperature, so it is asked without one{reason}"))


def explain_failure(error: Exception, wanted: str = "answer") -> str:
    """Why `Asker.ask` has no answer, for people on one line: what a model is sent about its answer is for models.

    `wanted`: what the model was asked for.
    """
    if isinstance(error, OutputInvalid) and not isinstance(error, AnswerCutOff):
        return f"the model gave no {wanted} in the form asked for"
    return " ".join(str(error).split())


def _describe_timeout(model: str, timeout: float | None, key: StageKey) -> str:
    return f"{model} took longer than {timeout or 0:g} s for {key.stage}"


class _RequestCounter(Hooks):
    """Counts the requests of one question, and stops it at a limit of the analysis."""

    comes_first = True

    def __init__(self, key: StageKey, limits: AnalysisLimits) -> None:
        self._key = key
        self._limits = limits
        self._run: object = None
        self._of_this_run: Usage = NO_USAGE
        self._cost_of_this_run: float | None = 0.0
        self.calls = 0
        self.usage: Usage = NO_USAGE

    async def before_request(self, state: RunState) -> None:  # noqa: ARG002 - as hooks are called
        """Count the request. Raises `LimitReached`."""
        self._limits.count_request(self._key.task, self._key.stage)
        self.calls += 1

    async def after_message(self, state: RunState) -> None:
        """Count its tokens, with those of sub-agents that answered calls since the last one."""
        run = state.run
        if run is not self._run:
            self._run, self._of_this_run, self._cost_of_this_run = run, NO_USAGE, 0.0
        # The difference leaves out what was written to a cache, so the first request is counted as it is.
        new = run.usage if self._of_this_run is NO_USAGE else run.usage - self._of_this_run
        # Recorded answers of an unknown model have no tokens, and cost nothing.
        cost = 0.0 if run.usage == NO_USAGE else run.compute_cost(self._limits.prices)
        spent = None if cost is None else cost - (self._cost_of_this_run or 0.0)
        self._of_this_run, self._cost_of_this_run = run.usage, cost
        self.usage = self.usage + new
        self._limits.count_usage(self._key.task, new, spent)
