"""What a person types in answer to a question, handed from the prompt to the approver that waits for it."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Callable


class PromptAnswers(io.TextIOBase):
    """The input of an approver: `readline` waits, in a thread of its own, until the prompt is given an answer.

    `notify` is called in that thread when a question begins to wait, and when it no longer does.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._is_withdrawn = False

    @property
    def is_waiting(self) -> bool:
        """Whether a question waits for an answer."""
        return self._waiting > 0

    def begin(self) -> None:
        """Allow questions from now on."""
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """Withdraw the open question: its reader gets the end of the input."""
        self._is_withdrawn = True
        if self.is_waiting:
            self._lines.put("")

    def answer(self, text: str) -> None:
        """Answer the open question; an empty text without a line end means that nobody answers."""
        self._lines.put(text)

    def readline(self, _size: int | None = -1, /) -> str:  # type: ignore[override]
        """Return the next answer; empty if the question was withdrawn."""
        with self._lock:
            if self._is_withdrawn:
                return ""
            self._waiting += 1
            self._notify()
            try:
                return self._lines.get()
            finally:
                self._waiting -= 1
                self._notify()
