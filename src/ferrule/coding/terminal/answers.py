"""Questions of the program, shown just above the prompt as a whole, and answered there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class PromptQuestions:
    """The open question, if there is one. It belongs to the event loop of the prompt.

    `begin` is called just before a question is shown, so that what was typed by then isn't taken for its answer, and
    `end` with the question and its answer (None if it was withdrawn).
    """

    def __init__(self, begin: Callable[[], None], end: Callable[[str, str | None], None]) -> None:
        self._begin = begin
        self._end = end
        self._answer: asyncio.Future[str | None] | None = None
        self._is_withdrawn = False
        self.text = ""
        """The open question; empty if there is none."""

    @property
    def is_waiting(self) -> bool:
        """Whether a question waits for an answer."""
        return self._answer is not None

    def begin(self) -> None:
        """Allow questions from now on."""
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """Withdraw the open question, and allow no others."""
        self._is_withdrawn = True
        self.answer(None)

    def answer(self, text: str | None) -> None:
        """Answer the open question; None means that nobody answers."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)

    async def ask(self, question: str) -> str | None:
        """Show a question until it is answered; None if nobody answers."""
        if self._is_withdrawn:
            return None
        self._begin()
        self.text, self._answer = question, asyncio.get_running_loop().create_future()
        answer = None
        try:
            answer = await self._answer
            return answer
        finally:
            self.text, self._answer = "", None
            self._end(question, answer)
