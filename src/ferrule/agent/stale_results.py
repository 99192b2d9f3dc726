"""Results with a limited life: a price or a status that was read long ago must not be taken for today's.

pipeline.hook(ExpireResults(300, "get_*", "search"))
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ferrule.agent.hooks import Hooks
from ferrule.conversation import Conversation, Message, Text, ToolResult
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState

_MOST_KNOWN = 10_000


class ExpireResults(Hooks):
    """Shows results that are older than `seconds` as out of date, so that the model calls the tool again.

    `tools` are names or patterns, by default all tools. The conversation keeps the results as they were. A result whose
    age isn't known, such as one of a resumed conversation, is out of date. One object may serve many runs and turns.
    Raises `SettingsError` for seconds that aren't above 0.
    """

    def __init__(self, seconds: float, *tools: str, clock: Callable[[], float] = time.monotonic) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise SettingsError(f"ExpireResults needs seconds above 0, not {seconds!r}")
        self._seconds = seconds
        self._tools = tools or ("*",)
        self._clock = clock
        self._arrived: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def after_results(self, state: RunState) -> None:
        """Note when results arrived: those after the model's last message are new."""
        now = self._clock()
        for message in reversed(state.conversation.messages):
            if message.role != "tool":
                return
            self._arrived[_identify(message.result)] = now
            if len(self._arrived) > _MOST_KNOWN:
                self._arrived.popitem(last=False)

    async def before_request(self, state: RunState) -> None:
        """Replace what is out of date in this request."""
        conversation = state.request.conversation
        last = max((at for at, one in enumerate(conversation.messages) if one.role == "assistant"), default=0)
        earliest = self._clock() - self._seconds
        shown = [
            self._expire(message, earliest) if at < last and message.role == "tool" else message
            for at, message in enumerate(conversation.messages)
        ]
        state.request.conversation = Conversation(tuple(shown), conversation.now)

    def _expire(self, message: Message, earliest: float) -> Message:
        result = message.result
        if result.is_error or not any(fnmatchcase(result.name, pattern) for pattern in self._tools):
            return message
        if self._arrived.get(_identify(result), -1.0) > earliest:
            return message
        note = f"[This result is out of date and no longer shown: call {result.name} again if it matters.]"
        return replace(message, parts=(replace(result, content=(Text(note),), data=None),))


def _identify(result: ToolResult) -> tuple[str, str, str]:
    # Ids repeat from conversation to conversation.
    return result.call_id, result.name, result.text[:1000]
