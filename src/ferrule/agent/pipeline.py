"""A pipeline: a model, a conversation and tools, run by the loop (`runner.py`, `loop.py`).

answer = await model("embedded").chat("What is 12 * 34?").using(calculator).run()

What runs it is imported when something is run: a program that only defines tools and pipelines doesn't wait for it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, TypeAlias, TypeVar, Unpack, overload

from ferrule._util.async_closing import AsyncClosing
from ferrule._util.foreign_names import make_getattr
from ferrule.agent.options import USE_TOOLS, Map, RunLimits, RunOptions, Step, Then, check_callbacks, refuse_options
from ferrule.conversation import Conversation, Message, ToolCall, system, user
from ferrule.errors import ConversationError, SettingsError
from ferrule.models.naming import find_model, get_model
from ferrule.tools.registry import ToolLike, ToolRegistry

if TYPE_CHECKING:
    from ferrule.agent.hooks import Hooks, RunState
    from ferrule.agent.output import OutputType
    from ferrule.agent.run import OutputT, Run, StreamedRun
    from ferrule.blobs import BlobStore
    from ferrule.execution import Approver, Decision, Journal, Policy
    from ferrule.execution.approver import Decide
    from ferrule.models.protocol import Model, ModelSettings
    from ferrule.tools.decorator import Tool, ToolSettings
else:
    OutputT = TypeVar("OutputT")

Parsed = TypeVar("Parsed")
HooksSource: TypeAlias = "Hooks | Callable[[], Hooks]"
Asked: TypeAlias = str | Message | Conversation | Mapping[str, Any] | Sequence[Message | Mapping[str, Any]]

_KEEP: Any = ...
"""The default of an option that isn't given: its value is kept."""


@cache
def _get_runner() -> ModuleType:
    """Import what runs a pipeline, once: in each run, the import statement alone would cost as much as four hooks."""
    from ferrule.agent import runner

    return runner


@cache
def _get_default_settings() -> ModelSettings:
    """The unchanged settings, made once: they need pydantic, which takes longer to import than everything else here."""
    from ferrule.models.protocol import ModelSettings

    return ModelSettings()


@dataclass(frozen=True, slots=True)
class Pipeline(AsyncClosing, Generic[OutputT]):
    """A model, a conversation and tools. It is immutable: each method returns a new one."""

    model: Model
    conversation: Conversation = field(default_factory=Conversation)
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    settings: ModelSettings = field(default_factory=_get_default_settings)
    options: RunOptions = field(default_factory=RunOptions)
    limits: RunLimits = field(default_factory=RunLimits)
    steps: tuple[Step, ...] = ()
    hooks: tuple[HooksSource, ...] = ()
    watchers: tuple[Callable[[Run[Any]], Any], ...] = ()
    output: OutputType | None = None
    origin: tuple[str, dict[str, Any]] | None = field(default=None, repr=False)
    """The name and options of a model given by name, so that another process can create it; may contain a key."""

    def chat(self, message: Asked) -> Pipeline[OutputT]:
        """Add a user message, or continue a whole conversation, also one left by a pause.

        A conversation may be a list of messages, and a message a dict of OpenAI's shape, `{"role": …, "content": …}`.
        The pipeline's own system messages take the place of those of the conversation. Raises `ConversationError` for
        a conversation that doesn't continue the pipeline's other messages, and for a message while calls are open.
        """
        return replace(self, conversation=_add_to(self.conversation, message))

    def system(self, text: str | Callable[[RunState], str | Awaitable[str]]) -> Pipeline[OutputT]:
        """Add a system message, or a function of the run's state, sync or async, that is asked before each request.

        What a function returns is shown to the model, and isn't recorded in the conversation.
        """
        if callable(text):
            from ferrule.agent.standard_hooks import SystemText

            check_callbacks("system", (text,), "run's state")
            return replace(self, hooks=(*self.hooks, SystemText(text)))
        return replace(self, conversation=self.conversation.add(system(text)))

    def using(  # noqa: PLR0913 - each option by its name, so that mypy finds a wrong one
        self,
        *tools: ToolLike,
        policy: Policy | None = _KEEP,
        approver: Approver | Decide | None = _KEEP,
        journal: Journal | None = _KEEP,
        blobs: BlobStore | None = _KEEP,
        workspace: Path | str | None = _KEEP,
        on_ask: Literal["deny", "pause"] = _KEEP,
        mode: str = _KEEP,
        force: bool = _KEEP,
        choice: str | None = _KEEP,
        lazy: bool | Literal["auto"] = _KEEP,
        **unknown: Never,
    ) -> Pipeline[OutputT]:
        """Offer tools and answer their calls from this step on. The options are those of `RunOptions`.

        Raises `RegistryError` and `ToolDefinitionError` for tools that can't be offered, and what `RunOptions` raises.
        """
        if unknown:
            refuse_options("using", unknown, [one.name for one in fields(self.options)])
        options = _replace_given(
            self.options, policy=policy, approver=approver, journal=journal, blobs=blobs, workspace=workspace,
            on_ask=on_ask, mode=mode, force=force, choice=choice, lazy=lazy,
        )  # fmt: skip
        steps = self.steps if USE_TOOLS in self.steps else (*self.steps, USE_TOOLS)
        return replace(self, registry=self.registry.add(*tools), options=options, steps=steps)

    def with_(  # noqa: PLR0913 - see `using`
        self,
        *,
        temperature: float = _KEEP,
        top_k: int | None = _KEEP,
        top_p: float | None = _KEEP,
        seed: int | None = _KEEP,
        max_tokens: int | None = _KEEP,
        stop: str | Sequence[str] = _KEEP,
        choice: str | None = _KEEP,
        parallel_calls: bool | None = _KEEP,
        effort: Literal["none", "minimal", "low", "medium", "high"] | None = _KEEP,
        output_schema: dict[str, Any] | None = _KEEP,
        extra: dict[str, Any] = _KEEP,
        **unknown: Never,
    ) -> Pipeline[OutputT]:
        """Change settings of the model (see `ModelSettings`). Raises `SettingsError` for an invalid value."""
        from pydantic import ValidationError

        from ferrule._util.invalid_fields import describe_invalid_fields
        from ferrule.models.protocol import ModelSettings

        if unknown:
            refuse_options("with_", unknown, ModelSettings.model_fields)
        changes = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "max_tokens": max_tokens,
            "stop": (stop,) if isinstance(stop, str) else stop, "choice": choice, "parallel_calls": parallel_calls,
            "effort": effort, "output_schema": output_schema, "extra": extra,
        }  # fmt: skip
        before = {name: getattr(self.settings, name) for name in self.settings.model_fields_set}
        given = {name: value for name, value in changes.items() if value is not _KEEP}
        try:
            merged = ModelSettings.model_validate({**before, **given})
        except ValidationError as error:
            raise SettingsError(f"with_(…): {describe_invalid_fields(error)}") from error
        return replace(self, settings=merged)

    def within(
        self,
        *,
        rounds: int | None = _KEEP,
        calls: int | None = _KEEP,
        tokens: int | None = _KEEP,
        cost: float | None = _KEEP,
        seconds: float | None = _KEEP,
        **unknown: Never,
    ) -> Pipeline[OutputT]:
        """Set limits of the run (see `RunLimits`); None removes one. Raises `SettingsError` for one that can't be."""
        if unknown:
            refuse_options("within", unknown, [one.name for one in fields(self.limits)])
        limits = _replace_given(self.limits, rounds=rounds, calls=calls, tokens=tokens, cost=cost, seconds=seconds)
        return replace(self, limits=limits)

    def then(self, *callbacks: Callable[[Run[Any]], Any]) -> Pipeline[OutputT]:
        """Call `callback(run)`, sync or async, when the run reaches this step; several are as many steps.

        A conversation that it returns replaces the run's; if that ends in a question, the model answers it. Raises
        `SettingsError` for what can't be called with a run.
        """
        check_callbacks("then", callbacks, "run")
        return replace(self, steps=(*self.steps, *map(Then, callbacks)))

    def map(self, *callbacks: Callable[[list[Run[Any]]], Any]) -> Pipeline[OutputT]:
        """Call `callback(runs)` when all runs of `run_many` or `run_batch` have reached this step.

        With `run` or `stream`, the list has the one run. It may return a list with a conversation, or None, for each of
        them, treated as in `then`. Raises `SettingsError` for what can't be called with a list.
        """
        check_callbacks("map", callbacks, "list of runs")
        return replace(self, steps=(*self.steps, *map(Map, callbacks)))

    def hook(self, *hooks: HooksSource) -> Pipeline[OutputT]:
        """Add hooks that steer the loop; they run after those of the pipeline itself.

        A class, or a function that makes hooks, is called for each run; an object is shared by all runs. Raises
        `SettingsError` for what has no method of `Hooks`, such as a class that misspells one.
        """
        from ferrule.agent.hooks import check_hooks

        for one in hooks:
            if isinstance(one, type) or not inspect.isroutine(one):
                check_hooks(one if isinstance(one, type) else type(one))
            elif any(needed.default is needed.empty for needed in inspect.signature(one).parameters.values()):
                raise SettingsError(
                    f"{one.__qualname__} can't be used as hooks: give a class or an object with the async method "
                    "before_request, after_message or after_results, or a function without parameters that makes one"
                )
        return replace(self, hooks=(*self.hooks, *hooks))

    def watch(self, *callbacks: Callable[[Run[Any]], Any]) -> Pipeline[OutputT]:
        """Call `callback(run)` as soon as a run ends, also by an error, but not if it is cancelled.

        What it raises is raised to the caller of the run, after the other callbacks were called; the exception has the
        run as `run`. Raises `SettingsError` for what can't be called with a run.
        """
        check_callbacks("watch", callbacks, "run")
        return replace(self, watchers=(*self.watchers, *callbacks))

    @overload
    def parse_as(self, kind: type[Parsed], retries: int = 2) -> Pipeline[Parsed]: ...
    @overload
    def parse_as(self, kind: Any, retries: int = 2) -> Pipeline[Any]: ...
    def parse_as(self, kind: Any, retries: int = 2) -> Pipeline[Any]:
        """Require an answer of this type (a pydantic model, dataclass, TypedDict, `list[int]`, …), as `Run.output`.

        A JSON Schema, given as a dict, makes the output plain JSON data.

        The model is constrained to its JSON Schema where it supports that, else the prompt states it. An answer that
        doesn't fit is sent back with what is wrong, `retries` times; then `OutputInvalid` is raised. Raises
        `SettingsError` for a type without a JSON Schema.
        """
        from ferrule.agent.output import make_output

        return replace(self, output=make_output(kind, retries))

    def as_tool(
        self, name: str, description: str, *, handoff: bool = False, **settings: Unpack[ToolSettings]
    ) -> Tool[..., Any]:
        """Make this pipeline a tool of another one: a model that calls it with a `task` gets its answer.

        With `handoff`, it takes over the conversation instead: it sees what user and assistant said, and its answer is
        that of the run. It runs under the limits, policy, journal and trace of the run that calls it, as a part of it:
        see `ferrule.agent.sub_agents`. `settings` are those of `@tool`, such as `timeout`. Raises
        `ToolDefinitionError`.
        """
        from ferrule.agent.sub_agents import AgentTool
        from ferrule.tools.decorator import Tool

        return Tool.from_callable(AgentTool(self, name, handoff), name=name, description=description, **settings)

    async def run(self, *, decisions: Mapping[str, Decision] | None = None) -> Run[OutputT]:
        """Run until the model is done or a limit is reached.

        After a pause, `decisions` maps the ids of the waiting calls to decisions, each made by `Pending.decide`.
        Raises `ModelError` if the model fails, `ToolRequired`, `OutputInvalid`, and what a callback raises; the
        exception, or the `CancelledError` of a cancellation, has the run, with the conversation so far, as `run`.
        """
        runner = _get_runner()
        run: Run[OutputT] = runner.Run(self.conversation)
        await runner.run_pipeline(self, run, runner.RunContext(decisions=decisions))
        return run

    async def run_many(
        self, n: int, *, concurrency: int | None = None, errors: Literal["raise", "keep"] = "raise"
    ) -> list[Run[OutputT]]:
        """Run `n` times concurrently; a seed is increased by one for each run. See `run_batch`."""
        if not isinstance(n, int) or n < 0:
            raise SettingsError(f"run_many takes a number of runs, 0 or more, not {n!r}")
        seed = self.settings.seed
        each = [self if seed is None else self.with_(seed=seed + number) for number in range(n)]
        runs: list[Run[OutputT]] = await _get_runner().run_pipelines(each, concurrency, errors)
        return runs

    async def run_batch(
        self,
        inputs: Iterable[str | Message | Conversation],
        *,
        concurrency: int | None = None,
        errors: Literal["raise", "keep"] = "raise",
        progress: bool = False,
    ) -> list[Run[OutputT]]:
        """Run once for each input, at most `concurrency` at a time; the runs are in the order of the inputs.

        The first error stops them all, and has all runs as `runs`; with `errors="keep"` it is stored as `Run.error` of
        its run. `progress` shows a bar on stderr. Raises `TypeError` for a single question.
        """
        each = _add_each(self, inputs)
        runs: list[Run[OutputT]] = await _get_runner().run_pipelines(each, concurrency, errors, progress)
        return runs

    def iterate_batch(
        self,
        inputs: Iterable[str | Message | Conversation],
        *,
        concurrency: int | None = None,
        errors: Literal["raise", "keep"] = "raise",
        progress: bool = False,
    ) -> AsyncGenerator[tuple[int, Run[OutputT]], None]:
        """`run_batch`, yielding each run as soon as it ends, with the index of its input.

        Leaving the loop early cancels the others, at once if the generator is closed (`contextlib.aclosing`).
        """
        each = _add_each(self, inputs)
        runs: AsyncGenerator[tuple[int, Run[OutputT]], None]
        runs = _get_runner().iterate_pipelines(each, concurrency, errors, progress)
        return runs

    def stream(
        self, *, decisions: Mapping[str, Decision] | None = None
    ) -> AbstractAsyncContextManager[StreamedRun[OutputT]]:
        """Run in a task of its own; leaving the block cancels it and answers open calls as cancelled."""
        run: AbstractAsyncContextManager[StreamedRun[OutputT]] = _get_runner().StreamContext(self, decisions)
        return run

    # For programs without an event loop.

    def run_sync(self, *, decisions: Mapping[str, Decision] | None = None) -> Run[OutputT]:
        """`run`."""
        from ferrule._util.background import run_synchronously

        return run_synchronously(self.run(decisions=decisions))

    def run_many_sync(
        self, n: int, *, concurrency: int | None = None, errors: Literal["raise", "keep"] = "raise"
    ) -> list[Run[OutputT]]:
        """`run_many`."""
        from ferrule._util.background import run_synchronously

        return run_synchronously(self.run_many(n, concurrency=concurrency, errors=errors))

    def run_batch_sync(
        self,
        inputs: Iterable[str | Message | Conversation],
        *,
        concurrency: int | None = None,
        errors: Literal["raise", "keep"] = "raise",
        progress: bool = False,
    ) -> list[Run[OutputT]]:
        """`run_batch`."""
        from ferrule._util.background import run_synchronously

        return run_synchronously(self.run_batch(inputs, concurrency=concurrency, errors=errors, progress=progress))

    def iterate_batch_sync(
        self,
        inputs: Iterable[str | Message | Conversation],
        *,
        concurrency: int | None = None,
        errors: Literal["raise", "keep"] = "raise",
        progress: bool = False,
    ) -> Iterator[tuple[int, Run[OutputT]]]:
        """`iterate_batch`; leaving the loop early cancels the other runs."""
        from ferrule._util.background import run_synchronously

        runs = self.iterate_batch(inputs, concurrency=concurrency, errors=errors, progress=progress)

        async def read_next() -> tuple[int, Run[OutputT]] | None:
            return await anext(runs, None)

        try:
            while (one := run_synchronously(read_next())) is not None:
                yield one
        finally:
            run_synchronously(runs.aclose())

    def stream_sync(
        self, *, decisions: Mapping[str, Decision] | None = None
    ) -> AbstractContextManager[StreamedRun[OutputT]]:
        """`stream`: `with pipeline.stream_sync() as run: for event in run: …`."""
        from ferrule._util.background import enter_synchronously

        return enter_synchronously(self.stream(decisions=decisions))

    if not TYPE_CHECKING:
        __getattr__ = make_getattr(
            {
                **dict.fromkeys(
                    ("invoke", "run_until_done", "generate", "complete", "predict", "ask", "prompt", "send"),
                    "chat(…).run_sync(), or await chat(…).run()",
                ),
                **dict.fromkeys(("ainvoke", "arun", "run_async", "generate_async"), "await chat(…).run()"),
                **dict.fromkeys(("astream", "stream_events", "run_stream"), "async with chat(…).stream() as run"),
                **dict.fromkeys(("batch", "abatch"), "run_batch([…])"),
                **dict.fromkeys(("bind_tools", "with_tools", "add_tools", "add_tool", "tool", "tools"), "using(f, g)"),
                **dict.fromkeys(("with_structured_output", "with_output_type", "output_type"), "parse_as(type)"),
                **dict.fromkeys(("with_config", "bind", "with_settings"), "with_(temperature=…), or within(rounds=…)"),
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle. Raises `SettingsError`, naming the callback, tool or option that can't be pickled."""
        from ferrule.agent.pickling import check_picklable, rebuild

        check_picklable(self)
        kept = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("model", "origin")}
        return rebuild, (type(self), self.origin, None if self.origin else self.model, kept)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()


def _add_to(conversation: Conversation, message: Asked) -> Conversation:
    """Add a message to a conversation. Raises `TypeError` for what is neither text, message nor conversation."""
    if isinstance(message, Mapping):
        (message,) = _read_messages([message])
    elif isinstance(message, list | tuple):
        message = Conversation(_read_messages(message), conversation.now)
    if isinstance(message, Conversation):
        return _continue_conversation(conversation, message)
    if not isinstance(message, str | Message):
        held = isinstance(getattr(message, "conversation", None), Conversation)  # a Run, or one loaded from a store
        advice = "; give its .conversation" if held else ""
        raise TypeError(f"chat() takes a text, a Message or a Conversation, not {type(message).__name__}{advice}")
    if conversation.pending and (isinstance(message, str) or message.role != "tool"):
        waiting = ", ".join(
            f"{call.id} ({call.name})" if isinstance(call, ToolCall) else call.id for call in conversation.pending
        )
        raise ConversationError(
            f"a message can't be added while calls are open: {waiting}; run the conversation first, with decisions on "
            "the calls that wait for one (Decision.deny for those not to be run)"
        )
    return conversation.add(user(message) if isinstance(message, str) else message)


def _read_messages(given: Sequence[Any]) -> tuple[Message, ...]:
    """Messages, with dicts of OpenAI's shape read. Raises `TypeError` for anything else, and `ConversationError`."""
    from ferrule.formats.openai_reading import load

    wrong = next((one for one in given if not isinstance(one, Message | Mapping)), None)
    if wrong is not None:
        raise TypeError(f"chat() takes a list of Messages or of dicts with role and content, not of {wrong!r}")
    read = iter(load([one for one in given if isinstance(one, Mapping)]).messages)
    return tuple([one if isinstance(one, Message) else next(read) for one in given])


def _continue_conversation(own: Conversation, given: Conversation) -> Conversation:
    """The given conversation, with the system messages of the pipeline. Raises `ConversationError`."""
    if not own.messages:
        return given
    rules = tuple(message for message in own.messages if message.role == "system")
    asked = tuple(message for message in own.messages if message.role != "system")
    head = next((at for at, one in enumerate(given.messages) if one.role != "system"), len(given.messages))
    rest = given.messages[head:]
    if asked and rest[: len(asked)] != asked:
        raise ConversationError(
            f"the pipeline has {len(asked)} message{'s' if len(asked) > 1 else ''} already, and the conversation "
            "doesn't begin with them; give chat() the conversation first, or use a pipeline without messages"
        )
    return given if not rules else replace(given, messages=(*rules, *rest))


def _add_each(pipeline: Pipeline[OutputT], inputs: Iterable[Any]) -> list[Pipeline[OutputT]]:
    """Ask each question. Raises `TypeError` for a single one: a text would be taken for its characters."""
    if isinstance(inputs, str | bytes | Message | Conversation | Mapping) or not isinstance(inputs, Iterable):
        raise TypeError(f"a batch takes a list of questions, not one {type(inputs).__name__}; for one, chat(…).run()")
    return [pipeline.chat(one) for one in inputs]


Options = TypeVar("Options", RunOptions, RunLimits)


def _replace_given(options: Options, **changes: Any) -> Options:
    """Change the options that were given."""
    return replace(options, **{name: value for name, value in changes.items() if value is not _KEEP})


def model(
    name: str | Model, *, fallback: str | Model | Sequence[str | Model] | None = None, **options: Any
) -> Pipeline[None]:
    """Start a pipeline with a model: a name (`openai:gpt-5`, `embedded`, `local:<folder>`, …) or a `Model` object.

    If it fails, `fallback` is asked, or each of several in turn. `options` (`api_key`, `base_url`, …) configure a model
    given by name. Raises `ModelError` for a model that can't be used, and `SettingsError`.
    """
    first = get_model(name, **options) if isinstance(name, str) else find_model(name, **options)
    others = () if fallback is None else fallback if isinstance(fallback, list | tuple) else (fallback,)
    if not others:
        return Pipeline(first, origin=(name, options) if isinstance(name, str) else None)
    from ferrule.models.fallback import FallbackModel

    return Pipeline(FallbackModel(first, *[find_model(one) for one in others]))
