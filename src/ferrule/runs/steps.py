"""What happens after the model's first message: the tools' turn and callbacks, in the order in which they were added.

That tools are one callback among others, and stand where they were added, is the fifth seed's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.conversation import Conversation
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.runs.exchange import Exchange
    from ferrule.runs.run import Run

Taken: TypeAlias = "Callable[[Exchange], Awaitable[bool]]"
"""A step as the loop takes it: True where there is something new for the model to answer; then it is taken again."""


@dataclass(frozen=True, slots=True)
class UseTools:
    """From here on calls are answered."""


@dataclass(frozen=True, slots=True)
class Then:
    """A callback on the run; a conversation that it gives takes the place of the run's."""

    callback: Callable[[Run], Any]


@dataclass(frozen=True, slots=True)
class Map:
    """A callback on all runs of `run_many` or `run_batch`, once each of them has come this far."""

    callback: Callable[[list[Run]], Any]


Step: TypeAlias = UseTools | Then | Map


def planned(steps: Iterable[Step], wants_output: bool, meeting: Meeting | None = None) -> list[Taken]:
    """The steps as the loop takes them. Calls are answered again after a callback; at the end always."""
    plan: list[Taken] = []
    answered: list[Taken] = []
    for step in steps:
        if isinstance(step, UseTools):
            answered = [answer_calls]
        elif isinstance(step, Then):
            plan.append(_Once(step.callback))
        else:
            plan.append(_Together(step.callback, meeting or Meeting(1)))
        plan += answered
    if not answered:
        plan.append(answer_calls)
    if wants_output:
        plan.append(give_output)
    return plan


async def answer_calls(exchange: Exchange) -> bool:
    """Answer the open calls; True where there were any, or where one is still to be made."""
    if exchange.open_calls:
        await exchange.answer()
        return True
    return exchange.lacks_call()


async def give_output(exchange: Exchange) -> bool:
    """Read the answer as the type that is wanted; True where the model must try again."""
    return await answer_calls(exchange) or exchange.lacks_output()


async def called(callback: Callable[[Any], Any], given: Any) -> Any:
    """What a callback returns, awaited where it is async."""
    found = callback(given)
    return await found if inspect.isawaitable(found) else found


class _Once:
    """Calls a callback the first time that it is taken."""

    def __init__(self, callback: Callable[[Run], Any]) -> None:
        self._callback = callback
        self._is_done = False

    async def __call__(self, exchange: Exchange) -> bool:
        if self._is_done:
            return False
        self._is_done = True
        asks = replaced(exchange.run, await called(self._callback, exchange.run), self._callback)
        exchange.replaced()
        return asks


def replaced(run: Run, found: Any, callback: Callable[..., Any]) -> bool:
    """Put what a callback gave in the place of the run's conversation; whether the model has to answer it.

    Raises `SettingsError` for what is no conversation, `ConversationError` for one that can't be.
    """
    if found is None or found is run:
        return _asks(run.conversation)
    if not isinstance(found, Conversation):
        name = getattr(callback, "__qualname__", repr(callback))
        raise SettingsError(f"the callback {name} must return a Conversation or None, not {type(found).__name__}")
    found.check()
    run.conversation = found
    return _asks(found)


def _asks(conversation: Conversation) -> bool:
    return bool(conversation.messages) and conversation.messages[-1].role in ("user", "tool")


class Meeting:
    """Where runs wait for each other. A run that has ended is waited for no longer, and is there all the same."""

    def __init__(self, size: int, slots: asyncio.Semaphore | None = None) -> None:
        self.runs: list[Run] = []
        self._size = size
        self._gone = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._callback: Callable[[list[Run]], Any] | None = None
        self._slots = slots

    async def reach(self, callback: Callable[[list[Run]], Any]) -> None:
        """Wait until all have come here and the callback was called with all runs."""
        here: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(here)
        self._callback = callback
        if self._slots is not None:
            self._slots.release()  # others must be able to come here
        try:
            await self._begin()
            await here
        finally:
            if self._slots is not None:
                await self._slots.acquire()

    async def leave(self) -> None:
        """One run is over."""
        self._gone += 1
        await self._begin()

    async def _begin(self) -> None:
        if not self._waiting or len(self._waiting) + self._gone < self._size or self._callback is None:
            return
        waiting, self._waiting = self._waiting, []
        callback, self._callback = self._callback, None
        try:
            self._replace(await called(callback, list(self.runs)), callback)
        except BaseException as error:
            for one in waiting:
                if not one.done():
                    one.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _replace(self, found: Any, callback: Callable[..., Any]) -> None:
        if found is None:
            return
        if not isinstance(found, Sequence) or len(found) != len(self.runs):
            raise SettingsError(f"a callback of map must return a conversation for each of the {len(self.runs)} runs")
        for run, one in zip(self.runs, found, strict=True):
            replaced(run, one, callback)


class _Together:
    """Waits for the other runs, the first time that it is taken."""

    def __init__(self, callback: Callable[[list[Run]], Any], meeting: Meeting) -> None:
        self._callback = callback
        self._meeting = meeting
        self._is_done = False

    async def __call__(self, exchange: Exchange) -> bool:
        if self._is_done:
            return False
        self._is_done = True
        await self._meeting.reach(self._callback)
        exchange.replaced()
        return _asks(exchange.run.conversation)
