"""A model with its tools, ready to be asked: what `ask` and `chat` share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.capabilities import Loss
from ferrule.cli.asking import Asking
from ferrule.cli.guard import complain
from ferrule.cli.keeping import Keeper, Keeping, opened_keeper
from ferrule.cli.model_choice import ModelChoice
from ferrule.cli.offer import check_offer, offered
from ferrule.cli.permission import Terms, opened_terms
from ferrule.cli.screen import JsonScreen, PeopleScreen, Screen
from ferrule.cli.waiting import check_waiting, decisions_on, last_message
from ferrule.conversation import Conversation
from ferrule.errors import SettingsError
from ferrule.events import Event, LossesReported, MessageFinished
from ferrule.pipeline import Pipeline, Run
from ferrule.registry import ToolRegistry

if TYPE_CHECKING:
    from ferrule.cli.mcp_session import Servers

_UNFINISHED = {
    "rounds": "stopped: the model made too many rounds of calls",
    "length": "stopped: the answer is as long as --max-tokens allows",
    "context": "stopped: the conversation is as long as the model can read",
    "error": "stopped: the model lost the thread, and its answer is not whole",
}


@dataclass(frozen=True, slots=True)
class ServerWishes:
    """The MCP servers that are wanted: their commands or addresses, how long each may take to be ready, in seconds, and
    whether what they say of their tools is believed."""

    servers: Sequence[str] = ()
    timeout: float = 30.0
    trust: bool = False


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the options of `ask` and `chat` say."""

    model: ModelChoice
    tools: list[Path]
    as_json: bool
    temperature: float | None
    seed: int | None
    max_tokens: int | None
    yes: bool
    policy: Path | None
    journal: Path | None
    keeping: Keeping = field(default_factory=Keeping)
    plugins: bool = False
    mcp: ServerWishes = field(default_factory=ServerWishes)

    @property
    def sampling(self) -> dict[str, float | int]:
        """The settings of the model that were given."""
        given = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(slots=True)
class Session:
    """A conversation under way. `registry` holds the command's own tools, to which those of `servers` come."""

    pipeline: Pipeline
    registry: ToolRegistry
    servers: Servers | None
    screen: Screen
    terms: Terms
    asking: Asking
    runner: asyncio.Runner
    keeper: Keeper
    conversation: Conversation = field(default_factory=Conversation)
    told: set[Loss] = field(default_factory=set)
    """What could not be carried to the model, as far as it was shown."""

    def begin_anew(self) -> None:
        """Another conversation; what was kept of this one stays."""
        self.conversation = Conversation()
        self.told.clear()
        self.keeper.begin_anew()

    def answer(self, question: str) -> bool:
        """Ask, and show what happens; returns whether the answer is whole.

        Ctrl-C stops the answer and raises `KeyboardInterrupt`; what a model or engine raises comes out as it is. A
        question to which nothing was done or said is then taken back; calls that were begun stay, each with its answer.
        """
        if not question.strip():
            raise SettingsError("the question is empty")
        if self.conversation.pending and not self.go_on():
            return False
        self.asking.heard.clear()
        return self._run(self.pipeline.chat(self.conversation).chat(question).conversation)

    def go_on(self) -> bool:
        """Answer the calls in which a resumed conversation ends, after asking about those that wait; see `answer`.

        Where Ctrl-C stops the asking, the calls go on waiting, and what was decided holds.
        """
        message = last_message(self.conversation)
        self.screen.hear(message)
        self.asking.heard.update(call.id for call in message.message.calls)
        return self._run(self.conversation)

    def _run(self, begun: Conversation) -> bool:
        """Have the pipeline go on from `begun`, and keep what comes of it."""
        run, before = Run(begun), self.conversation
        if self.terms.answers is not None:
            self.terms.answers.begin()
        try:
            run = self.runner.run(self._watched(run))
        except KeyboardInterrupt:
            run.stopped = "cancelled"
            raise
        finally:
            if self.terms.answers is not None:
                self.terms.answers.withdraw()
            self.conversation = run.conversation if len(run.conversation) > len(begun) else before
            self.screen.finish(run)
            self.keeper.keep(self.conversation, run.pending)
        self.terms.tell_of_denials()
        if run.stopped in _UNFINISHED:
            complain(_UNFINISHED[run.stopped])
        return run.stopped == "done"

    async def _watched(self, run: Run) -> Run:
        """Run, and keep `run` up to date with what is heard, so that it stands when this is cancelled.

        A Ctrl-C that comes after asyncio has made the task and before it minds signals leaves the task to the loop's
        next run, which is another question's: what was cancelled doesn't begin there.
        """
        if run.stopped == "cancelled":
            return run
        streamed = None
        try:
            # What the servers offer may have changed since the last question.
            self.asking.registry = registry = await _with_servers(self.registry, self.servers)
            decisions = await decisions_on(self.keeper, self.asking) if run.conversation.pending else None
            pipeline = self.pipeline.chat(run.conversation).using(registry, policy=self.asking.policy)
            async with pipeline.stream(decisions=decisions) as streamed:
                async for event in streamed:
                    self._hear(event)
        finally:
            if streamed is not None:
                run.conversation, run.usage, run.stopped = streamed.conversation, streamed.usage, streamed.stopped
                run.pending = streamed.pending
        return run

    def _hear(self, event: Event) -> None:
        """Show an event; of losses those that no earlier answer told."""
        if isinstance(event, LossesReported):
            new = tuple(loss for loss in event.losses if loss not in self.told)
            self.told.update(new)
            if new:
                self.screen.hear(LossesReported(new))
            return
        self.screen.hear(event)
        if isinstance(event, MessageFinished):
            self.asking.heard.update(call.id for call in event.message.calls)


async def _with_servers(registry: ToolRegistry, servers: Servers | None) -> ToolRegistry:
    return registry if servers is None else await servers.beside(registry)


def _opened_servers(wishes: ServerWishes, runner: asyncio.Runner) -> AbstractContextManager[Servers | None]:
    if not wishes.servers:
        if wishes.trust:
            raise SettingsError("--trust is for the servers of --mcp; there are none")
        return nullcontext()
    from ferrule.cli.mcp_session import opened_servers

    return opened_servers(wishes.servers, wishes.timeout, runner)


@contextmanager
def opened_session(wishes: Wishes) -> Iterator[Session]:
    """A session on these wishes, closed at the end. Raises `FerruleError` and `OSError` for what can't be used."""
    registry = offered(wishes.tools, wishes.plugins)
    pipeline = wishes.model.pipeline().with_(**wishes.sampling)
    screen: Screen = JsonScreen() if wishes.as_json else PeopleScreen()
    with (
        asyncio.Runner() as runner,
        opened_terms(wishes.yes, wishes.policy, wishes.journal) as terms,
        opened_keeper(wishes.keeping) as keeper,
        _opened_servers(wishes.mcp, runner) as servers,
    ):
        try:
            offered_now = runner.run(_with_servers(registry, servers))
            check_offer(wishes.model.spoken_to(pipeline), offered_now)
            check_waiting(keeper, offered_now, terms)
            trusted = servers.origins if servers is not None and wishes.mcp.trust else ()
            asking = Asking(terms.approver, screen, offered_now, terms.trusting(*trusted).policy)
            pipeline = pipeline.using(approver=asking, journal=terms.journal)
            yield Session(pipeline, registry, servers, screen, terms, asking, runner, keeper, keeper.resumed)
        finally:
            runner.run(pipeline.model.aclose())
