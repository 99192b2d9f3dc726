"""Asks about calls at the prompt: other output waits meanwhile, and so does the clock of a call that asks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from ferrule.coding.terminal.answers import PromptQuestions
from ferrule.coding.terminal.output import OutputAbovePrompt
from ferrule.execution import ApprovalRequest, Decision
from ferrule.session.terminal.approver import TerminalApprover


class PromptTerminal(Protocol):
    """The terminal as the program has it."""

    def find_width(self) -> int:
        """How many columns it has."""

    def lend(self) -> AbstractAsyncContextManager[None]:
        """Let another program have it until the end of the block."""


class PromptApprover(TerminalApprover):
    """A `TerminalApprover` whose questions the prompt shows.

    `exclude_time` is told how many seconds a running call (None: any of them) has waited for an answer.
    """

    def __init__(
        self,
        questions: PromptQuestions,
        output: OutputAbovePrompt,
        terminal: PromptTerminal,
        exclude_time: Callable[[str | None, float], None],
    ) -> None:
        super().__init__(output=output.front, columns=terminal.find_width)
        self._questions = questions
        self._reserve = output.reserve
        self._lend = terminal.lend
        self._exclude_time = exclude_time

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Ask about one call; the time that this takes isn't that of a call that runs."""
        began = time.monotonic()
        try:
            return await super().decide(request)
        finally:
            if request.is_running or request.agent:
                self._exclude_time(None if request.agent else request.call.id, time.monotonic() - began)

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Let what others print wait until the question is answered."""
        async with super().take_turn():
            with self._reserve():
                yield

    async def ask(self, question: str) -> str | None:
        """Ask at the prompt."""
        return await self._questions.ask(question)

    @asynccontextmanager
    async def lend_terminal(self) -> AsyncIterator[None]:
        """Let the person's editor or pager have the terminal."""
        async with self._lend():
            yield
