"""The hooks of the loop: where the options of a pipeline, and a front, steer a run.

The loop (`loop.py`) asks the model, answers its calls and asks again. Everything else that happens in a run is a hook:
those of a pipeline's own options are in `standard_hooks.py`, others are added by `Pipeline.hook`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ferrule.conversation import Conversation, MalformedCall, ToolCall, user
from ferrule.events import Event, LossesReported
from ferrule.execution import Executor, Policy
from ferrule.tools.registry import BoundRegistry

if TYPE_CHECKING:
    from ferrule.agent.run import EventFeed, Run
    from ferrule.capabilities import Loss
    from ferrule.conversation import StopReason
    from ferrule.models.protocol import Model, ModelSettings
    from ferrule.tools.decorator import Tool
    from ferrule.toolspec import ToolSpec


class Hooks(Protocol):
    """What may happen in each round of the loop. Hooks run in the order in which they were added.

    A class that derives from this one writes the methods that it needs; what they raise ends the run.
    """

    async def before_request(self, state: RunState) -> None:  # noqa: ARG002
        """The model is about to be asked. Changes of `state.request` hold for this request and aren't recorded."""
        return

    async def after_message(self, state: RunState) -> None:  # noqa: ARG002
        """The model wrote a message, whose calls are not answered yet; `state.stop_reason` is why it ended.

        A hook that adds a question (`state.say`, or by `state.conversation`) has the model asked again, before the
        hooks after it see the message. Where the message is not whole, and no hook asks again, the run stops.
        """
        return

    async def after_results(self, state: RunState) -> None:  # noqa: ARG002
        """Calls were answered, and the model is about to be asked again; the place to change tools or policy."""
        return


class RunStopped(Exception):  # noqa: N818 - an end that was reached, not an error
    """The run ends here; `reason` becomes `Run.stopped`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class ModelRequest:
    """What the model is asked: the conversation that it is shown, the tools that it is offered, its settings."""

    conversation: Conversation
    offered: Sequence[ToolSpec]
    settings: ModelSettings


class RunState:
    """A run while it goes on, as its hooks see it. `conversation` is valid after each step, whatever ends the run."""

    __slots__ = (
        "_make_executor", "asks_again", "calls", "executor", "feed", "model", "offered",
        "open_calls", "registry", "request", "rounds", "run", "stop_reason",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        model: Model,
        registry: BoundRegistry,
        request: ModelRequest,
        make_executor: Callable[[BoundRegistry, Policy | None], Executor],
        feed: EventFeed | None,
    ) -> None:
        self.run = run
        self.model = model
        self.registry = registry
        """The tools that can be called."""
        self.request = request
        """The request that is about to be made, or was made last."""
        self.offered = request.offered
        """What is offered where no hook changes it."""
        self.rounds = 0
        """How often the model was asked."""
        self.calls = 0
        """How many calls were answered by running them, or refusing to."""
        self.open_calls: tuple[ToolCall | MalformedCall, ...] = run.conversation.pending
        """The calls without an answer: kept, since the loop asks for them in every round."""
        self.stop_reason: StopReason = "turn"
        """Why the last message ended; `turn` and `calls` are those of a whole message."""
        self.asks_again = False
        """Whether the model has something new to answer."""
        self.executor = make_executor(registry, None)
        self.feed = feed
        self._make_executor = make_executor

    @property
    def conversation(self) -> Conversation:
        """The recorded conversation. Setting one that ends in a question or a result has the model asked again."""
        return self.run.conversation

    @conversation.setter
    def conversation(self, conversation: Conversation) -> None:
        self.run.conversation = self.request.conversation = conversation
        self.open_calls = conversation.pending
        self.asks_again = bool(conversation.messages) and conversation.messages[-1].role in ("user", "tool")

    @property
    def is_whole(self) -> bool:
        """Whether the model ended its last message itself."""
        return self.stop_reason in ("turn", "calls")

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that can be called. Those that a hook sets are all offered from the next request on."""
        return self.registry.tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self.use_registry(BoundRegistry(tools))
        self.offered = self.registry.specs

    @property
    def policy(self) -> Policy:
        """The policy of the next calls, with the rules that "always" answers added."""
        return self.executor.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self.executor = self._make_executor(self.registry, policy)

    def use_registry(self, registry: BoundRegistry) -> None:
        """Answer the next calls with these tools, without changing what is offered."""
        self.registry = registry
        self.executor = self._make_executor(registry, self.executor.policy)

    def change_settings(self, **changes: Any) -> None:
        """Change settings of the model for this request."""
        self.request.settings = self.request.settings.model_copy(update=changes)

    def say(self, text: str) -> None:
        """Add a user's message, which the model is asked to answer."""
        self.conversation = self.run.conversation.add(user(text))

    def stop(self, reason: str) -> NoReturn:
        """End the run; `reason` becomes `Run.stopped`. Open calls are answered as cancelled."""
        raise RunStopped(reason)

    async def report_losses(self, losses: Iterable[Loss]) -> None:
        """Add losses to the run, and tell the new ones to the reader of its events."""
        new = self.run.add_losses(losses)
        if new:
            await self.put(LossesReported(new))

    async def put(self, event: Event) -> None:
        """Tell an event to the reader of the run's events, if there is one."""
        if self.feed is not None:
            await self.feed.put(event)
