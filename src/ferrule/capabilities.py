"""What a model or notation can express, and `adapt`, which fits a conversation to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from ferrule.conversation import Audio, Conversation, File, Image, MalformedCall, Message, Part, Text, ToolResult, user
from ferrule.media import frame_text


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model supports. `tools` None: any tool that is offered; otherwise the names that it knows.

    `malformed_calls`: a malformed call can be shown to it unchanged. `settings` are the names of the settings that it
    supports, `native_tools` whether tools are offered to it outside the text, `tools_optional` whether it can be asked
    without all of `tools` on offer, or in another notation than its own. `user_media` are the media types of the
    audio and files that a user can send, or patterns of them (`audio/*`), of at most `largest_file` bytes each.
    """

    tools: tuple[str, ...] | None = None
    system: bool = True
    parallel_calls: bool = True
    text_beside_calls: bool = True
    reasoning: bool = False
    ids: bool = False
    user_images: bool = False
    image_results: bool = False
    malformed_calls: bool = True
    native_tools: bool = True
    tools_optional: bool = True
    settings: frozenset[str] = frozenset()
    user_media: tuple[str, ...] = ()
    largest_file: int = 50_000_000

    def can_send(self, media: Audio | File) -> bool:
        """Whether a user can send this."""
        fits = any(fnmatchcase(media.media_type, pattern) for pattern in self.user_media)
        return fits and len(media.data) <= self.largest_file


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a conversation that could not be expressed, and what replaces it.

    `schema`: a keyword of a JSON Schema that constrained output doesn't enforce.
    """

    kind: Literal[
        "image",
        "audio",
        "file",
        "reasoning",
        "system",
        "marker",
        "id",
        "text",
        "answer",
        "call",
        "status",
        "sampled",
        "extra",
        "end",
        "turns",
        "tool",
        "schema",
    ]
    detail: str


def adapt(conversation: Conversation, capabilities: Capabilities) -> tuple[Conversation, list[Loss]]:
    """Fit a conversation to a model's capabilities, and report what was lost. Later messages never change earlier ones.

    An image in a result, if results can't contain images, is moved to a user message after the last result of its
    group; if users can't send images either, it becomes a note with its hash, as do audio and files that they can't
    send, except that a file of text becomes its text. A malformed call, if it can't be shown
    unchanged, becomes text, and its answer a part of that user message. A result that follows no
    call is left as it is, and reported.
    """
    losses: list[Loss] = []
    messages: list[Message] = []
    moved: list[Text | Image] = []
    malformed: set[str] = set()
    called: set[str] = set()
    for message in conversation.messages:
        if message.role != "tool" and moved:
            messages.append(user(*moved))
            moved = []
        if message.role == "tool":
            if message.result.call_id not in called:
                losses.append(
                    Loss("call", f"the result {message.result.call_id!r} of {message.result.name} follows no call")
                )
            messages += _fit_result(message, capabilities, malformed, moved, losses)
        elif message.role == "user":
            messages.append(_fit_media(message, capabilities, losses))
        elif message.role == "assistant":
            called.update([call.id for call in message.calls])
            messages.append(
                message if capabilities.malformed_calls else _show_malformed_calls(message, malformed, losses)
            )
        else:
            messages.append(message)
    if moved:
        messages.append(user(*moved))
    return Conversation(tuple(messages), conversation.now), losses


def _show_malformed_calls(message: Message, malformed: set[str], losses: list[Loss]) -> Message:
    """The message with its malformed calls as text; their ids are added to `malformed`."""
    found = [part for part in message.parts if isinstance(part, MalformedCall)]
    if not found:
        return message
    malformed.update(part.id for part in found)
    losses.extend(Loss("call", f"{part.id} ({part.kind}) is shown as text") for part in found)
    return message.with_parts(Text(part.raw) if isinstance(part, MalformedCall) else part for part in message.parts)


def _fit_result(
    message: Message, capabilities: Capabilities, malformed: set[str], moved: list[Text | Image], losses: list[Loss]
) -> list[Message]:
    result = message.result
    if result.call_id in malformed:
        moved.extend((Text(f"To the call that could not be read ({result.call_id}):"), *result.content))
        return []
    if capabilities.image_results:
        return [message]
    fitted = _move_images(result, capabilities.user_images, moved, losses)
    return [message if fitted is result else message.with_parts((fitted,))]


def _describe_image(image: Image) -> Text:
    return Text(f"[image {image.hash}, {image.media_type}, not shown: this model reads text only]")


def _fit_media(message: Message, capabilities: Capabilities, losses: list[Loss]) -> Message:
    """The message with text in place of what a user can't send."""
    fitted = [_fit_part(part, capabilities, losses) for part in message.parts]
    if all(one is other for one, other in zip(fitted, message.parts, strict=True)):
        return message
    return message.with_parts(fitted)


def _fit_part(part: Part, capabilities: Capabilities, losses: list[Loss]) -> Part:
    if isinstance(part, Image) and not capabilities.user_images:
        losses.append(Loss("image", part.hash))
        return _describe_image(part)
    if not isinstance(part, Audio | File) or capabilities.can_send(part):
        return part
    if isinstance(part, File) and (text := part.text) is not None:
        return Text(f"\n\n{frame_text(part.name, text)}\n\n")
    kind: Literal["audio", "file"] = "audio" if isinstance(part, Audio) else "file"
    name = f"{part.name}, " if isinstance(part, File) else ""
    why = "this model takes none of its type"
    if len(part.data) > capabilities.largest_file and capabilities.user_media:
        why = f"this model takes at most {capabilities.largest_file / 1e6:.0f} MB"
    losses.append(Loss(kind, f"{name}{part.hash}, {part.media_type}, {len(part.data):,} bytes: {why}"))
    return Text(f"[{kind} {name}{part.hash}, {part.media_type}, not shown: {why}]")


def _move_images(result: ToolResult, users_can: bool, moved: list[Text | Image], losses: list[Loss]) -> ToolResult:
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
            kept.append(_describe_image(part))
            losses.append(Loss("image", part.hash))
    return replace(result, content=tuple(kept))
