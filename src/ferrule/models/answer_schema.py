"""States the schema of an answer in the prompt, where a model can't be constrained to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ferrule.conversation import Conversation, system
from ferrule.models.protocol import ModelSettings

_ANSWER = "Your answer must be JSON and nothing else, and fit this schema:"
_FINAL_ANSWER = "Call tools as you need them. Your final answer must be JSON and nothing else, and fit this schema:"


def state_schema(conversation: Conversation, schema: Mapping[str, Any], with_tools: bool) -> Conversation:
    """Add a JSON Schema of the answer to the system message; `with_tools`: calls may come before the answer."""
    instructions = f"{_FINAL_ANSWER if with_tools else _ANSWER}\n{json.dumps(schema)}"
    first, *rest = conversation.messages or (system(""),)
    if first.role != "system":
        return replace(conversation, messages=(system(instructions), first, *rest))
    return replace(conversation, messages=(system(f"{first.text}\n\n{instructions}".lstrip()), *rest))


def move_schema_to_prompt(
    conversation: Conversation, settings: ModelSettings, with_tools: bool
) -> tuple[Conversation, ModelSettings]:
    """State the schema in `settings` in the prompt instead; `settings` must have one."""
    stated = state_schema(conversation, settings.output_schema or {}, with_tools)
    return stated, settings.model_copy(update={"output_schema": None})
