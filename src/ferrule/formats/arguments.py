"""A call's arguments for providers that take a JSON object and no text."""

from __future__ import annotations

from typing import Any

from ferrule.capabilities import Loss
from ferrule.conversation import ToolCall
from ferrule.json_text import decode

INVALID = "_invalid"
"""The one key of what stands for arguments that are no JSON object; its value is their text."""


def object_of(call: ToolCall) -> tuple[dict[str, Any], Loss | None]:
    """The object that a call's arguments are; what is none goes as `{"_invalid": text}`, which is a loss."""
    try:
        arguments = decode(call.arguments) if call.arguments.strip() else {}
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        return arguments, None
    return {INVALID: call.arguments}, Loss("call", f"the arguments of {call.id!r} are no JSON object, and go as text")
