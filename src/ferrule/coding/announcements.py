"""Tells the model before its next turn what happened meanwhile: a file changed, a background job ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ferrule.agent.hooks import Hooks, RunState

__all__ = ["AnnouncementHook", "AnnouncementSource", "NoticeHook", "is_announcement"]

_OPENS = "[Not from the user, but from the program:]"


class AnnouncementSource(Protocol):
    """Something that has news for the model."""

    def take_announcements(self) -> list[str]:
        """The news since the last call, each a text of its own. May read files; called in a thread."""


class AnnouncementHook(Hooks):
    """Adds the news of all sources to the conversation, as one user message, before each request."""

    comes_first = True

    def __init__(self, *sources: AnnouncementSource) -> None:
        self._sources = sources

    async def before_request(self, state: RunState) -> None:
        """See `Hooks`."""
        news = [text for each in self._sources for text in await asyncio.to_thread(each.take_announcements)]
        if news:
            state.say(f"{_OPENS}\n" + "\n\n".join(news))


class NoticeHook(Hooks):
    """Tells the person what the model is told, before the model is asked: not after its next call."""

    def __init__(self, take_notices: Callable[[], list[str]], notify: Callable[[str], None]) -> None:
        self._take_notices = take_notices
        self._notify = notify

    async def before_request(self, state: RunState) -> None:  # noqa: ARG002 - see `Hooks`
        """See `Hooks`. The news themselves were added by `AnnouncementHook`, which comes first."""
        for notice in self._take_notices():
            self._notify(notice)


def is_announcement(text: str) -> bool:
    """Whether a message of the role `user` is such news."""
    return text.startswith(_OPENS)
