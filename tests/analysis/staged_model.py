"""A model that answers by the stage of an analysis that asks it, so that a test doesn't depend on who asks first."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ferrule.analysis.asking import StageKey, current_stage
from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation, Message, ToolCall, assistant
from ferrule.events import CallFinished, CallStarted, Event, MessageFinished, TextDelta, Usage
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec


@dataclass(frozen=True)
class SeenRequest:
    """A request that was answered."""

    key: StageKey
    conversation: Conversation
    settings: ModelSettings
    tools: Sequence[ToolSpec]

    @property
    def question(self) -> str:
        return next(message.text for message in reversed(self.conversation.messages) if message.role == "user")

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.conversation.messages if message.role != "tool")


class StagedModel:
    """Answers by the first of `t1/code/1`, `t1/code` and `code` that it has.

    An answer is a text, a pydantic model or JSON data, a `ToolCall` or a `Message`, an exception to raise, or a
    function of the `SeenRequest` that returns one. A list holds the answers of successive requests of that name, the
    last one of them for all that follow.
    """

    def __init__(
        self,
        answers: Mapping[str, Any],
        *,
        name: str = "staged",
        usage: Usage | None = None,
        delays: Mapping[str, float] | None = None,
        settings: frozenset[str] = frozenset({"temperature", "output_schema"}),
    ) -> None:
        self.name = name
        self.capabilities = Capabilities(ids=True, settings=settings)
        self.answers = dict(answers)
        self.usage = usage or Usage(100, 0, 10)
        self.delays = dict(delays or {})
        self.seen: list[SeenRequest] = []
        self.closed = False
        self._counts: Counter[str] = Counter()

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        key = current_stage.get()
        assert key is not None, "the model was asked outside of an analysis"
        request = SeenRequest(key, conversation, settings, tools)
        self.seen.append(request)
        name = next((one for one in list_names(key) if one in self.answers), None)
        assert name is not None, f"no answer for {key}"
        await asyncio.sleep(next((self.delays[one] for one in list_names(key) if one in self.delays), 0))
        message = make_message(self._choose_answer(name), request)
        for part in message.parts:
            if isinstance(part, ToolCall):
                yield CallStarted(0, part.name, part.id)
                yield CallFinished(0, part)
        yield TextDelta(message.text)
        yield MessageFinished(message, self.usage, "calls" if message.calls else "turn")

    def _choose_answer(self, name: str) -> Any:
        answers = self.answers[name]
        if not isinstance(answers, list):
            return answers
        number = self._counts[name]
        self._counts[name] += 1
        return answers[min(number, len(answers) - 1)]

    def list_stages(self) -> list[str]:
        """The keys that were asked, in the order in which they were."""
        return [str(request.key) for request in self.seen]

    def find(self, name: str) -> SeenRequest:
        """The first request of this name."""
        return next(request for request in self.seen if name in list_names(request.key))

    async def aclose(self) -> None:
        self.closed = True


def list_names(key: StageKey) -> list[str]:
    return [str(key), f"{key.task}/{key.stage}", key.stage]


def make_message(answer: Any, request: SeenRequest) -> Message:
    if callable(answer):
        answer = answer(request)
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Message):
        return answer
    if isinstance(answer, str | ToolCall):
        return assistant(answer)
    if isinstance(answer, BaseModel):
        return assistant(answer.model_dump_json())
    return assistant(json.dumps(answer))
