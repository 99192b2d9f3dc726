"""A model with its tools, ready to be asked: what `ask` and `chat` share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
from ferrule.events import MessageFinished
from ferrule.pipeline import Pipeline, Run

_UNFINISHED = {
    "rounds": "stopped: the model made too many rounds of calls",
    "length": "stopped: the answer is as long as --max-tokens allows",
    "context": "stopped: the conversation is as long as the model can read",
    "error": "stopped: the model lost the thread, and its answer is not whole",
}


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

    @property
    def sampling(self) -> dict[str, float | int]:
        """The settings of the model that were given."""
        given = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(slots=True)
class Session:
    """A conversation under way."""

    pipeline: Pipeline
    screen: Screen
    terms: Terms
    asking: Asking
    runner: asyncio.Runner
    keeper: Keeper
    conversation: Conversation = field(default_factory=Conversation)

    def begin_anew(self) -> None:
        """Another conversation; what was kept of this one stays."""
        self.conversation = Conversation()
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
            decisions = await decisions_on(self.keeper, self.asking) if run.conversation.pending else None
            pipeline = self.pipeline.chat(run.conversation).using(policy=self.asking.policy)
            async with pipeline.stream(decisions=decisions) as streamed:
                async for event in streamed:
                    self.screen.hear(event)
                    if isinstance(event, MessageFinished):
                        self.asking.heard.update(call.id for call in event.message.calls)
        finally:
            if streamed is not None:
                run.conversation, run.usage, run.stopped = streamed.conversation, streamed.usage, streamed.stopped
                run.pending = streamed.pending
        return run


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
    ):
        try:
            check_offer(wishes.model.spoken_to(pipeline), registry)
            check_waiting(keeper, registry, terms)
            asking = Asking(terms.approver, screen, registry, terms.policy)
            pipeline = pipeline.using(registry, approver=asking, journal=terms.journal)
            yield Session(pipeline, screen, terms, asking, runner, keeper, keeper.resumed)
        finally:
            runner.run(pipeline.model.aclose())
