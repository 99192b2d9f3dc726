"""Typed output: a type's schema for the model, and the answer parsed as that type."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ferrule.agent.json_answers import read_answer
from ferrule.errors import ArgumentProblem, OutputInvalid, SettingsError, ToolDefinitionError
from ferrule.tools.argument_errors import WHOLE
from ferrule.tools.pydantic_errors import list_problems

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from ferrule.tools.schema_only import SchemaRules

_WRAPPED = "value"
_SHOWN = 80


class OutputType:
    """The type of an answer. APIs expect objects, so any other type is wrapped in one, under `value`."""

    is_plain = False
    """Whether the answer is text, without a schema."""

    def __init__(self, kind: Any, retries: int = 2) -> None:
        self.kind = kind
        self.retries = retries

    def __reduce__(self) -> tuple[type[OutputType], tuple[Any, int]]:
        return type(self), (self.kind, self.retries)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        from ferrule.tools.json_schema import AnnotationConverter

        return TypeAdapter(AnnotationConverter({}).convert(self.kind))

    def check(self) -> None:
        """Raise `SettingsError` if there is no JSON Schema of the type."""
        from pydantic.errors import PydanticUserError

        try:
            _ = self.schema
        except (PydanticUserError, TypeError, NameError) as error:
            reason = str(getattr(error, "message", error)).partition("\n")[0]
            raise SettingsError(
                f"parse_as can't use {self.kind!r} ({reason}); give a type: a pydantic model, a dataclass, a TypedDict "
                "or one such as list[int]"
            ) from error

    @cached_property
    def _own_schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()

    @property
    def _is_wrapped(self) -> bool:
        return self._own_schema.get("type") != "object"

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer, which is always an object."""
        if not self._is_wrapped:
            return self._own_schema
        own = dict(self._own_schema)
        definitions: dict[str, Any] = {name: own.pop(name) for name in ("$defs", "definitions") if name in own}
        whole = {
            "type": "object",
            "properties": {_WRAPPED: own},
            "required": [_WRAPPED],
            "additionalProperties": False,
        }
        return {**whole, **definitions}

    def parse(self, text: str) -> Any:
        """Parse an answer: JSON by itself, or the last document in a text. Raises `OutputInvalid`."""
        try:
            given = read_answer(text, may_be_list=self._is_wrapped)
        except ValueError as error:
            raise OutputInvalid(f"The answer must be JSON and nothing else: {error}", text) from error
        if self._is_wrapped and isinstance(given, Mapping) and set(given) == {_WRAPPED}:
            given = given[_WRAPPED]
        return self._validate(given, text)

    def _validate(self, given: Any, text: str) -> Any:
        """Make the value of decoded JSON. Raises `OutputInvalid`."""
        from pydantic_core import ValidationError

        try:
            return self._adapter.validate_json(json.dumps(given))
        except ValidationError as error:
            raise _report_problems(list_problems(error, given, self._own_schema), text, self._own_schema) from error


class TextOutput(OutputType):
    """An answer as the model wrote it."""

    is_plain = True

    def parse(self, text: str) -> str:
        """The text itself."""
        return text


class SchemaOutput(OutputType):
    """An answer that fits a JSON Schema, as plain JSON data."""

    @cached_property
    def _rules(self) -> SchemaRules:
        from ferrule.tools.schema_only import SchemaRules

        return SchemaRules(self.schema, dict, "the schema of the answer")

    def check(self) -> None:
        """Raise `SettingsError` for what is not a JSON Schema."""
        try:
            _ = self._rules.schema
        except ToolDefinitionError as error:
            raise SettingsError(str(error)) from error

    @cached_property
    def _own_schema(self) -> dict[str, Any]:
        own = dict(self.kind)
        return {"type": "object", **own} if "properties" in own else own

    def _validate(self, given: Any, text: str) -> Any:
        from ferrule.errors import ArgumentsInvalid

        value = {_WRAPPED: given} if self._is_wrapped else given
        if not isinstance(value, dict):
            raise OutputInvalid(f"The answer must be a JSON object, not {json.dumps(given)[:_SHOWN]}", text)
        try:
            bound = self._rules.bind(value)
        except ArgumentsInvalid as error:
            raise _report_problems(error.problems, text, self._own_schema) from error
        return bound[_WRAPPED] if self._is_wrapped else bound


def make_output(kind: Any, retries: int) -> OutputType:
    """Make the output for a type, or for a JSON Schema given as a mapping. Raises `SettingsError`."""
    if isinstance(kind, str):
        raise SettingsError(f"parse_as can't use the text {kind!r}; give the type itself, without quotes")
    if kind is None or isinstance(kind, int | float | list | tuple | set):
        raise SettingsError(f"parse_as takes a type, such as list[int] or a pydantic model, not {kind!r}")
    if inspect.isroutine(kind):
        raise SettingsError(f"parse_as can't use the function {kind.__qualname__}; give a type")
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise SettingsError(f"retries must be a whole number, 0 or more, not {retries!r}")
    if kind is str:
        return TextOutput(kind, retries)
    output = SchemaOutput(kind, retries) if isinstance(kind, Mapping) else OutputType(kind, retries)
    output.check()
    return output


def _report_problems(problems: Iterable[ArgumentProblem], text: str, schema: Mapping[str, Any]) -> OutputInvalid:
    # The problems of a call's arguments and of an answer are found alike; only the whole is called differently.
    is_field = WHOLE in schema.get("properties", {})
    named = (replace(one, field="answer") if one.field == WHOLE and not is_field else one for one in problems)
    listed = "\n".join(f"- {problem}" for problem in named)
    return OutputInvalid(f"The answer is not what was asked for:\n{listed}", text)
