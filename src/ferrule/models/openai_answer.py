"""What both of OpenAI's APIs have in common: an answer that is read piece by piece, and how its end is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ferrule.events import Event, MessageFinished


class Listener(Protocol):
    """What an API says by a chunk, beside its content."""

    ended: bool
    """Whether the answer has come to its end."""

    def hears(self, chunk: Any) -> bool:
        """Whether a chunk says something, or only that the request was taken. Raises `AnswerFailed`."""
        ...


class Answer(Protocol):
    """An answer that is being read, by either API."""

    ended: str | None
    """Why it ended, in the API's words; None while it hasn't."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it came yet."""
        ...

    def feed(self, chunk: Any) -> list[Event]:
        """What a chunk adds."""
        ...

    def close(self) -> list[Event]:
        """What is left when no more comes. Where it was cut off, a call that isn't whole is malformed."""
        ...

    def finished(self) -> MessageFinished:
        """The whole message, with what must go back to the provider beside its parts."""
        ...


def fields_of(sent: Any) -> Mapping[str, Any]:
    """What a piece of decoded JSON holds by name: nothing, where it is no object."""
    return sent if isinstance(sent, dict) else {}


class AnswerFailed(Exception):  # noqa: N818 - it carries what the provider said and is caught by the connection
    """An event said that the answer failed; `code` is the provider's word for why."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code or ""
