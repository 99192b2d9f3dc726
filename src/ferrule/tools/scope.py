"""What a running tool may see and do: the reserved parameter that the executor passes.

    @tool
    async def index(folder: str, scope: CallScope) -> str: ...

It is on the lowest floor because a tool's signature names it; only the executor creates one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.blobs import BlobStore
from ferrule.conversation import Conversation, Image, ToolCall, iterate_images
from ferrule.errors import ToolFailed
from ferrule.events import ToolProgress
from ferrule.tools.intent import Intent


def _ignore_progress(_event: ToolProgress) -> None:
    """Ignore progress without a listener."""


def _forget_output(_text: str) -> None:
    """Forget what only an executor can keep."""


async def _deny(_intent: Intent) -> None:
    raise ToolFailed("denied: this call asks for more permissions, and only an executor can give them")


# Not frozen, although never changed: there is one for each message, and that would take three times as long.
@dataclass(slots=True)
class CallScope:
    """The surroundings of one call.

    `deadline` is in seconds by `clock`, None for no limit; the clock is `time.monotonic`, except that it stands still
    while `authorize` asks a person. `workspace` is the folder in which a policy
    may allow access to paths without asking, None if there is none. `run_state` belongs to the run that made the call;
    a tool that runs another agent passes its scope to `run_sub_agent`, which needs it.
    """

    call: ToolCall | None = None
    conversation: Conversation = field(default_factory=Conversation)
    deadline: float | None = None
    blobs: BlobStore = field(default_factory=BlobStore)
    emit: Callable[[ToolProgress], None] = _ignore_progress
    workspace: Path | None = None
    run_state: object | None = None
    authorizer: Callable[[Intent], Awaitable[None]] = _deny
    clock: Callable[[], float] = time.monotonic
    keeper: Callable[[str], None] = _forget_output

    def report_progress(self, text: str, fraction: float | None = None) -> None:
        """Report how far this call is; `fraction` lies between 0 and 1. May be called from any thread."""
        self.emit(ToolProgress(self.call.id if self.call else "", text, fraction))

    async def authorize(self, intent: Intent) -> None:
        """Ask for permission to do more than the intent of this call said, before doing it.

        The policy judges `intent` with the tool and arguments of the call, and a person is asked if it says so; the
        time that this takes doesn't count towards the call's timeout. Raises `ToolFailed` with the reason if it is
        denied: also where nobody can be asked, and in a scope that no executor made.
        """
        await self.authorizer(intent)

    def keep_output(self, text: str) -> None:
        """Keep a text, such as the output so far, for the result of this call if it is stopped before it returns one.

        For a tool that is cancelled: it calls this before it passes on the `CancelledError`. An empty text is ignored.
        """
        if text:
            self.keeper(text)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, never negative; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - self.clock())

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the conversation and of its results, in order."""
        return tuple(iterate_images(self.conversation.messages))


def limit_seconds(timeout: float, scope: CallScope) -> float:
    """Limit the timeout of a call so that it ends before the caller's deadline, and its output isn't lost.

    A quarter of the time, at most a second, is left for ending the code and for handing over what it printed.
    """
    left = scope.seconds_left
    return timeout if left is None else max(0.05, min(timeout, left - min(1.0, left / 4)))
