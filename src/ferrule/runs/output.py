"""Answers that must be a type: its schema for the model, and what came back as a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError

from ferrule.conversation import Conversation, system
from ferrule.errors import FerruleError
from ferrule.json_text import decode
from ferrule.validation_report import as_problems

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_WRAPPED = "value"
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class OutputInvalid(FerruleError):  # noqa: N818 - it says what the output is
    """An answer that isn't of the type that was asked for, also when the model had tried again; `text` is the last."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class Output:
    """A type that an answer must have. What is no JSON object stands in one, under `value`, since APIs want objects."""

    def __init__(self, kind: Any, retries: int = 2) -> None:
        self.kind = kind
        self.retries = retries

    def __reduce__(self) -> tuple[type[Output], tuple[Any, int]]:
        return type(self), (self.kind, self.retries)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self.kind)

    @cached_property
    def _own_schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()

    @property
    def _is_wrapped(self) -> bool:
        return self._own_schema.get("type") != "object"

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer: always of an object."""
        if not self._is_wrapped:
            return self._own_schema
        own = dict(self._own_schema)
        definitions = own.pop("$defs", None)
        whole = {
            "type": "object",
            "properties": {_WRAPPED: own},
            "required": [_WRAPPED],
            "additionalProperties": False,
        }
        return whole if definitions is None else {**whole, "$defs": definitions}

    def instructed(self, conversation: Conversation) -> Conversation:
        """The conversation for a model that can't be held to a schema: its system message says what is wanted."""
        told = f"Your answer must be JSON and nothing else, and fit this schema:\n{json.dumps(self.schema)}"
        first, *rest = conversation.messages or (system(""),)
        if first.role != "system":
            return replace(conversation, messages=(system(told), first, *rest))
        return replace(conversation, messages=(system(f"{first.text}\n\n{told}".lstrip()), *rest))

    def parse(self, text: str) -> Any:
        """The value of an answer: JSON as it stands, or the one fenced block in it. Raises `OutputInvalid`."""
        fenced = _FENCED.findall(text)
        try:
            given = decode(fenced[0] if len(fenced) == 1 else text.strip())
        except ValueError as error:
            raise OutputInvalid(f"The answer must be JSON and nothing else: {error}", text) from error
        if self._is_wrapped and isinstance(given, Mapping) and set(given) == {_WRAPPED}:
            given = given[_WRAPPED]
        try:
            return self._adapter.validate_json(json.dumps(given))
        except ValidationError as error:
            problems = "\n".join(f"- {problem}" for problem in as_problems(error, given, self._own_schema))
            raise OutputInvalid(f"The answer is not what was asked for:\n{problems}", text) from error
