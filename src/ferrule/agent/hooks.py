"""The hooks of the loop, by which the options of a pipeline, and fronts, steer a run.

The loop (`loop.py`) asks the model, answers its calls and asks again. Everything else in a run is a hook: those of a
pipeline's options are in `standard_hooks.py`, others are added by `Pipeline.hook`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from ferrule.conversation import Conversation, MalformedCall, ToolCall, tool_message, user
from ferrule.errors import SettingsError
from ferrule.events import NO_USAGE, Event, LossesReported, Usage
from ferrule.execution import Executor, Policy
from ferrule.execution.error_results import make_not_run_result
from ferrule.execution.journal import Journal
from ferrule.models.prices import find_price
from ferrule.tools.registry import BoundRegistry, ToolRegistry

if TYPE_CHECKING:
    from ferrule.agent.options import RunLimits, RunOptions
    from ferrule.agent.run import EventSink, Run
    from ferrule.capabilities import Loss
    from ferrule.conversation import StopReason, ToolResult
    from ferrule.events import MessageFinished
    from ferrule.models.protocol import Model, ModelSettings
    from ferrule.tokens.truncation import ContextMeter
    from ferrule.tools.decorator import Tool
    from ferrule.toolspec import ToolSpec


_SKIPPED = "a message was added instead"


class Hooks(Protocol):
    """Callbacks in each round of the loop. Hooks run in the order in which they were added.

    A subclass overrides the methods that it needs; an exception from one of them ends the run.
    """

    comes_first: bool = False
    """Whether it runs before the hooks of the pipeline itself, as one that shortens the conversation should."""
    only_incomplete: bool = False
    """Whether `after_message` is called only for messages that the model itself didn't end."""

    async def before_request(self, state: RunState) -> None:  # noqa: ARG002
        """The model is about to be asked. Changes to `state.request` apply to this request and aren't recorded."""
        return

    async def after_message(self, state: RunState) -> None:  # noqa: ARG002
        """The model wrote a message, whose calls are not yet answered; `state.stop_reason` is why it ended.

        If a hook adds a question (by `state.say` or `state.conversation`), the model is asked again before later
        hooks see the message. After an incomplete message, the run stops unless a hook asks again.
        """
        return

    async def after_results(self, state: RunState) -> None:  # noqa: ARG002
        """Calls were answered, and the model is about to be asked again: the place to change tools or policy."""
        return


_METHODS = ("before_request", "after_message", "after_results")


@lru_cache(maxsize=256)
def list_own_methods(kind: type) -> tuple[bool, ...]:
    """Which of the three methods a class of hooks overrides: most override one, and calling the others takes time."""
    return tuple(getattr(kind, name, None) not in (None, getattr(Hooks, name)) for name in _METHODS)


@dataclass(frozen=True, slots=True)
class HookMethods:
    """The methods of some hooks, in order, without those that would do nothing."""

    before_request: tuple[Callable[[RunState], Awaitable[None]], ...]
    after_message: tuple[Callable[[RunState], Awaitable[None]], ...]
    after_results: tuple[Callable[[RunState], Awaitable[None]], ...]
    after_incomplete: tuple[Callable[[RunState], Awaitable[None]], ...]
    """The methods `after_message` for a message that the model itself didn't end."""


def collect_methods(hooks: Sequence[Hooks]) -> HookMethods:
    """Collect the methods that hooks override."""
    owned = [(one, list_own_methods(type(one))) for one in hooks]
    before, after, after_results = (
        [(one, getattr(one, name)) for one, own in owned if own[at]] for at, name in enumerate(_METHODS)
    )
    return HookMethods(
        tuple(method for _, method in before),
        tuple(method for one, method in after if not getattr(one, "only_incomplete", False)),
        tuple(method for _, method in after_results),
        tuple(method for _, method in after),
    )


def check_hooks(kind: type) -> None:
    """Raise `SettingsError` for a class that has none of the methods of `Hooks`, or one that isn't async."""
    if not any(list_own_methods(kind)):
        raise SettingsError(f"{kind.__qualname__} can't be used as hooks: it defines none of {', '.join(_METHODS)}")
    for name in _METHODS:
        method = getattr(kind, name, None)
        if inspect.isfunction(method) and not inspect.iscoroutinefunction(method):
            raise SettingsError(f"{kind.__qualname__}.{name} must be async: `async def {name}(self, state)`")


class RunStopped(Exception):  # noqa: N818 - an end that was reached, not an error
    """The run ends here; `reason` becomes `Run.stopped`, and `detail` `Run.stop_detail`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(slots=True)
class ModelRequest:
    """A request to the model: the conversation that it is shown, the tools that it is offered, its settings."""

    conversation: Conversation
    offered: Sequence[ToolSpec]
    settings: ModelSettings


class RunListener(Protocol):
    """Listens to one run. Its methods must not raise; the run waits while they work."""

    def on_request(self, model: Model, request: ModelRequest) -> None:
        """The model is asked for a message."""

    def on_message(self, message: MessageFinished | None) -> None:
        """The model wrote a message; None where its events ended without one."""

    def on_failure(self, error: BaseException) -> None:
        """The model raised `error` instead of writing a message."""

    def wrap_journal(self, journal: Journal | None) -> Journal | None:
        """Return the journal that records the run's calls: `journal`, or one that forwards to it."""

    def on_result(self, result: ToolResult) -> None:
        """A call has its result."""

    def on_end(self, error: BaseException | None) -> None:
        """The run is over; `error` is what it raises."""


listener_factories: dict[str, Callable[[Run], RunListener]] = {}
"""By name, the functions that make a listener for each run: see `instrumentation.py`."""


class _HasOptions(Protocol):
    """A pipeline, as far as it is needed here."""

    @property
    def options(self) -> RunOptions: ...
    @property
    def limits(self) -> RunLimits: ...
    @property
    def settings(self) -> ModelSettings: ...


class RunState:
    """A run in progress, as its hooks see it. `conversation` is valid after each step, whatever ends the run."""

    __slots__ = (
        "_journal", "asks_again", "calls", "depth", "executor", "feed", "handed_over", "limits", "memory",
        "meter", "model", "nested_calls", "nested_rounds", "offered", "open_calls", "options", "parent", "registry",
        "request", "rounds", "run", "settings", "stop_reason",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        model: Model,
        registry: BoundRegistry,
        offered: Sequence[ToolSpec],
        journal: Journal | None,
        feed: EventSink | None,
        pipeline: _HasOptions,
        parent: RunState | None = None,
    ) -> None:
        self.run = run
        self.model = model
        self.meter = cast("ContextMeter", model) if hasattr(model, "count_tokens") else None
        """The model itself, if it can count the tokens of a conversation."""
        self.registry = registry
        """The tools that can be called."""
        self.request: ModelRequest
        """The next request, or the last one made; there is one once hooks are called."""
        self.offered = offered
        """The tools offered unless a hook changes them."""
        self.rounds = 0
        """How often the model was asked."""
        self.calls = 0
        """How many calls were answered by running them, or refusing to."""
        self.open_calls: tuple[ToolCall | MalformedCall, ...] = run.conversation.pending
        """The unanswered calls: stored, since the loop needs them in every round."""
        self.stop_reason: StopReason = "turn"
        """Why the last message ended; `turn` and `calls` are those of a whole message."""
        self.asks_again = False
        """Whether the model has something new to answer."""
        self.feed = feed
        self.options = pipeline.options
        self.settings = pipeline.settings
        """The model's settings unless a hook changes them for a request."""
        self.limits = pipeline.limits
        self.parent = parent
        """The run whose call this one answers, as a sub-agent; None for a run of its own."""
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.nested_rounds = 0
        self.nested_calls = 0
        """What sub-agents did: it counts towards this run's limits."""
        self.handed_over: Run | None = None
        """The finished run of the agent that took over the conversation; its answer becomes this run's."""
        self.memory: dict[object, Any] = {}
        """What hooks keep for this run: an object that is shared by all runs must not keep it in itself."""
        self._journal = journal
        self.executor = self._make_executor(registry, None)

    @property
    def conversation(self) -> Conversation:
        """The recorded conversation. If one is set that ends in a question or a result, the model is asked again."""
        return self.run.conversation

    @conversation.setter
    def conversation(self, conversation: Conversation) -> None:
        if not isinstance(conversation, Conversation):
            raise SettingsError(f"state.conversation must be a Conversation, not {type(conversation).__name__}")
        self.run.conversation = conversation
        self.request.conversation = conversation
        self.open_calls = conversation.pending
        self.asks_again = bool(conversation.messages) and conversation.messages[-1].role in ("user", "tool")

    @property
    def is_complete(self) -> bool:
        """Whether the last message is complete: the model itself ended it."""
        return self.stop_reason in ("turn", "calls")

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that can be called. If a hook sets them, to `Tool`s or functions, all are offered from the next
        request on.

        Raises `RegistryError` for two of one name, and `ToolDefinitionError` for a function that can't be a tool.
        """
        return self.registry.tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self.use_registry(BoundRegistry(ToolRegistry(tools)))
        self.offered = self.registry.specs

    @property
    def policy(self) -> Policy:
        """The policy of the next calls, with the rules that "always" answers added."""
        return self.executor.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self.executor = self._make_executor(self.registry, policy)

    def use_registry(self, registry: BoundRegistry) -> None:
        """Answer later calls with these tools, without changing what is offered."""
        self.registry = registry
        self.executor = self._make_executor(registry, self.executor.policy)

    def _make_executor(self, registry: BoundRegistry, policy: Policy | None) -> Executor:
        options = self.options
        policy = policy or options.policy
        if self.parent is not None:  # a hook may replace the policy, but not by one that allows more
            above = self.parent.policy
            policy = (policy or Policy(profile="all", trusted=above.trusted)).narrow(above)
        return Executor(
            registry,
            policy=policy,
            approver=options.approver,
            journal=self._journal,
            blobs=options.blobs,
            on_ask=options.on_ask,
        )

    def change_settings(self, **changes: Any) -> None:
        """Change settings of the model for this request."""
        self.request.settings = self.request.settings.model_copy(update=changes)

    def say(self, text: str) -> None:
        """Add a user message, which the model is asked to answer. Open calls are answered first, as not run."""
        skipped = [tool_message(make_not_run_result(call, _SKIPPED)) for call in self.open_calls]
        self.conversation = self.run.conversation.add(*skipped, user(text))

    def stop(self, reason: str, detail: str = "") -> NoReturn:
        """End the run; `reason` becomes `Run.stopped`, `detail` `Run.stop_detail`. Open calls are cancelled."""
        raise RunStopped(reason, detail)

    def count_nested(self, *, rounds: int = 0, calls: int = 0, usage: Usage = NO_USAGE) -> None:
        """Count what a sub-agent did for this run and those above it."""
        self.nested_rounds += rounds
        self.nested_calls += calls
        if usage is not NO_USAGE:
            self.run.usage = self.run.usage + usage
        if self.parent is not None:
            self.parent.count_nested(rounds=rounds, calls=calls, usage=usage)

    def check_limits(self) -> None:
        """Raise `RunStopped` for a limit that is reached, of this run or of one above it.

        Raises `SettingsError` for a limit on a cost that isn't known.
        """
        limits, run = self.limits, self.run
        if not self.rounds and (limits.cost is not None or self.parent is not None):
            self.check_price()
        if limits.rounds is not None and self.rounds + self.nested_rounds >= limits.rounds:
            raise RunStopped("rounds")
        if limits.tokens is not None and run.usage.prompt_tokens + run.usage.sampled_tokens >= limits.tokens:
            raise RunStopped("tokens")
        if limits.cost is not None and (run.cost or 0.0) >= limits.cost:
            raise RunStopped("cost")
        if self.parent is not None:
            self.parent.check_limits()

    def check_price(self) -> None:
        """Raise `SettingsError` if the cost is limited, here or above, and the price of the model isn't known."""
        limited: RunState | None = self
        while limited is not None and limited.limits.cost is None:
            limited = limited.parent
        name = self.run.model
        if limited is not None and find_price(name) is None:
            raise SettingsError(
                f"within(cost=…) can't be kept: the price of {name} isn't known; set it with "
                f"configure_prices({{{name!r}: {{'input': 1.0, 'output': 4.0}}}}) of ferrule.models.prices, in dollars "
                "for a million tokens, or limit the tokens"
            )

    def find_call_limit(self) -> tuple[int, int] | None:
        """Return how many more calls may run, and the limit that says so; None if there is no limit."""
        above = None if self.parent is None else self.parent.find_call_limit()
        limit = self.limits.calls
        if limit is None:
            return above
        own = (max(0, limit - self.calls - self.nested_calls), limit)
        return own if above is None else min(own, above)

    async def report_losses(self, losses: Iterable[Loss]) -> None:
        """Add losses to the run, and pass the new ones to the reader of its events."""
        new = self.run.add_losses(losses)
        if new:
            await self.put(LossesReported(new))

    async def put(self, event: Event) -> None:
        """Pass an event to the reader of the run's events, if there is one."""
        if self.feed is not None:
            await self.feed.put(event)
