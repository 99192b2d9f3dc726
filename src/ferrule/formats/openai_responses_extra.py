"""What a message keeps of the Responses API's items for the way back, in `Message.extra["openai_responses"]`.

What a model thought goes back as it came, encrypted: these items are kept with their places, and hold as long as the
rest of the message is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ferrule.conversation import Message, Reasoning, Text
from ferrule.formats.openai import joined_reasoning

EXTRA = "openai_responses"

Item: TypeAlias = dict[str, Any]


def can_go_back(item: Mapping[str, Any]) -> bool:
    """Whether an item of reasoning says what was thought. Nothing is stored, so that an id alone names nothing."""
    return bool(item.get("encrypted_content") or item.get("content"))


def kept(reasoning: Sequence[tuple[int, Item]], phases: dict[int, str], message: Message) -> dict[str, Any]:
    """What a message's `extra` holds for the way back: items of reasoning with how many other parts come before each,
    the phases of texts by their place among those parts, and what the message must still be for them to hold."""
    if not reasoning and not phases:
        return {}
    items = [{"before": before, "item": item} for before, item in reasoning]
    return {"reasoning": items, "phases": {str(at): phase for at, phase in phases.items()}, "of": shape(message)}


def shape(message: Message) -> list[str]:
    """What a message is made of, in as far as items of reasoning depend on it."""
    others = ["text" if isinstance(part, Text) else "call" for part in message.parts if not isinstance(part, Reasoning)]
    return [joined_reasoning(message), *others]
