"""One request and its answer: how they become a row, and how the row is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from ferrule.conversation import Conversation, ImageInput, Message, ToolCall, iterate_images
from ferrule.errors import ConversationError
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats.conversation_json import message_from_json, message_to_json
from ferrule.models.recording.events import events_from_json, events_to_json
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.request import Request, compute_digest
from ferrule.models.recording.rows import ExchangeRow, Failure, refuse

NO_FACTS = Facts({})
"""For what is recorded as it is."""
DAMAGE = (ConversationError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading data raises that nobody wrote as it is."""


class Sharing(Protocol):
    """Where values stand that rows name."""

    def share(self, value: Any) -> str:
        """The name of a value."""
        ...


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, as recorded."""

    path: Path
    line: int
    request: Request
    row: ExchangeRow

    def replay(self, conversation: Conversation, facts: Facts = NO_FACTS) -> list[Event]:
        """The events of the answer. Raises the error that was recorded, and `SettingsError` for a damaged row."""
        row = self.row
        if row.failure is not None:
            raise row.failure.restore()
        try:
            answer = read_answer(facts.put_back(row.answer))
            events = events_from_json(facts.put_back(row.events), answer)
            images = tuple(_find_image(image, conversation) for image in row.prompt_images)
            withheld = tuple(ToolCall(**call) for call in facts.put_back(row.withheld))
            finished = MessageFinished(
                answer, Usage(**row.usage), row.stop, tuple(row.prompt_ids), images, tuple(row.confidences), withheld,
                row.detail,
            )  # fmt: skip
        except DAMAGE as error:
            raise refuse(self.path, self.line, error) from error
        return [*events, finished]


def read_answer(data: Any) -> Message:
    """The recorded message of a model. Raises `ConversationError`."""
    message = message_from_json(data)
    if message.role != "assistant":
        raise ConversationError(f"an answer is a message of the assistant, not of the {message.role}")
    return message


def make_row(
    model: str,
    request: Request,
    outcome: Sequence[Event] | Failure,
    sharing: Sharing,
    *,
    facts: Facts = NO_FACTS,
    stage: str = "",
) -> ExchangeRow:
    """The row of an exchange; its events end with a `MessageFinished`.

    With `facts`, ids of tokens are left out: another value has others.
    """
    answered = {"failure": outcome} if isinstance(outcome, Failure) else _describe_answer(outcome, facts)
    return ExchangeRow(
        id=compute_digest([request.key, answered.get("answer"), stage]),
        model=model,
        stage=stage,
        messages=[sharing.share(message) for message in request.messages],
        tools=sharing.share(list(request.tools)) if request.tools else "",
        settings=sharing.share(request.settings) if request.settings else "",
        **answered,
    )


def _describe_answer(events: Sequence[Event], facts: Facts) -> dict[str, Any]:
    finished = events[-1]
    if not isinstance(finished, MessageFinished):
        raise TypeError("an answer ends with MessageFinished")
    answer = facts.hide(message_to_json(finished.message))
    if facts:
        answer.pop("sampled", None)
    return {
        "events": facts.hide_events(events_to_json(events[:-1], finished.message)),
        "answer": answer,
        "usage": {one.name: getattr(finished.usage, one.name) for one in fields(finished.usage)},
        "stop": finished.stop,
        "detail": finished.detail,
        "prompt_ids": [] if facts else list(finished.prompt_ids),
        "prompt_images": [(one.image.hash, one.start, one.length) for one in finished.prompt_images],
        "confidences": list(finished.confidences),
        "withheld": facts.hide([asdict(call) for call in finished.withheld]),
    }


def _find_image(place: tuple[str, int, int], conversation: Conversation) -> ImageInput:
    name, start, length = place
    found = next((image for image in iterate_images(conversation.messages) if image.hash == name), None)
    if found is None:
        raise LookupError(f"the image {name} is not in the conversation")
    return ImageInput(found, start, length)
