"""What a model or notation can express, and the one place where a conversation is fitted to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ferrule.conversation import Conversation, Image, Message, Text, ToolResult, user


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be written for a model. `tools` None: any tool that is offered; otherwise the names it knows."""

    tools: tuple[str, ...] | None = None
    system: bool = True
    parallel_calls: bool = True
    text_beside_calls: bool = True
    reasoning: bool = False
    ids: bool = False
    user_images: bool = False
    image_results: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of a conversation that could not be carried, and what stands in its place."""

    kind: Literal["image", "reasoning", "system", "marker", "id", "text"]
    detail: str


def adapt(conversation: Conversation, capabilities: Capabilities) -> tuple[Conversation, list[Loss]]:
    """Fit a conversation to what can be written, and say what was lost.

    An image in a result goes, where results can't hold one, into a user message after the last result of its
    group; where users can't hold one either, it becomes a note with its hash.
    """
    losses: list[Loss] = []
    messages: list[Message] = []
    moved: list[Text | Image] = []
    for message in conversation.messages:
        if message.role != "tool" and moved:
            messages.append(user(*moved))
            moved = []
        if message.role == "tool" and not capabilities.image_results:
            fitted = _without_images(message.result, capabilities.user_images, moved, losses)
            messages.append(message if fitted is message.result else message.with_parts((fitted,)))
        elif message.role == "user" and not capabilities.user_images:
            messages.append(_noted(message, losses))
        else:
            messages.append(message)
    if moved:
        messages.append(user(*moved))
    return replace(conversation, messages=tuple(messages)), losses


def _note(image: Image) -> Text:
    return Text(f"[image {image.hash}, {image.media_type}, not shown: this model reads text only]")


def _noted(message: Message, losses: list[Loss]) -> Message:
    if not any(isinstance(part, Image) for part in message.parts):
        return message
    losses.extend(Loss("image", part.hash) for part in message.parts if isinstance(part, Image))
    return message.with_parts(_note(part) if isinstance(part, Image) else part for part in message.parts)


def _without_images(result: ToolResult, users_can: bool, moved: list[Text | Image], losses: list[Loss]) -> ToolResult:
    images = [part for part in result.content if isinstance(part, Image)]
    if not images:
        return result
    kept = []
    for part in result.content:
        if not isinstance(part, Image):
            kept.append(part)
        elif users_can:
            kept.append(Text(f"[image {part.hash} follows]"))
            moved.extend((Text(f"Image {part.hash}, from the result of {result.name}:"), part))
        else:
            kept.append(_note(part))
            losses.append(Loss("image", part.hash))
    return replace(result, content=tuple(kept))
