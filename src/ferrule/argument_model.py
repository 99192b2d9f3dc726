"""Resolved parameters as a pydantic model: their JSON Schema, and the reading of a model's arguments.

pydantic does the checking. Here stand the rules that it does not have: strict JSON, objects that were encoded
twice, no boolean where a number is wanted.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Union

import typing_extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, to_jsonable_python

from ferrule.argument_errors import ArgumentsInvalid
from ferrule.errors import ToolDefinitionError
from ferrule.json_text import decode_arguments, encode
from ferrule.plain_types import CONFIG, Plainer
from ferrule.signature import MISSING, Parameter
from ferrule.toolspec import JSONSchema
from ferrule.validation_report import as_problems, boolean_problem, decoded_where_wanted

_TYPED_DICT: Any = typing_extensions.TypedDict
_UNFIT = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError)
_FIRST = ("type", "description", "properties", "items", "required", "additionalProperties")


class ArgumentModel:
    """The arguments of one tool. `names` resolves what its nested types name; raises `ToolDefinitionError`."""

    def __init__(self, parameters: Sequence[Parameter], names: Mapping[str, Any], subject: str) -> None:
        self._subject = subject
        plainer = Plainer(names)
        self._parameters: dict[str, Parameter] = {}
        for one in parameters:
            try:
                converted = plainer.convert(one.annotation)
            except _UNFIT as error:
                raise self._unfit(one.name, error) from error
            self._parameters[one.name] = Parameter(one.name, _annotation(converted, one.default), one.default)
        try:
            self._adapter = _built(self._parameters.values())
            self.schema = self._compact()
        except _UNFIT as error:
            self._name_culprit()
            raise ToolDefinitionError(f"{subject} has no JSON Schema: {error}") from error

    def _name_culprit(self) -> None:
        for name, parameter in self._parameters.items():
            try:
                _built([parameter]).json_schema()
            except _UNFIT as error:
                raise self._unfit(name, error) from error

    def _unfit(self, name: str, error: Exception) -> ToolDefinitionError:
        reason = str(getattr(error, "message", error)).partition("\n")[0]
        return ToolDefinitionError(
            f"{self._subject}: the type of {name!r} has no JSON Schema ({reason}); "
            "use plain types, a dataclass, a TypedDict or a pydantic model"
        )

    def _compact(self) -> JSONSchema:
        schema = compact_schema(self._adapter.json_schema())
        properties = schema.setdefault("properties", {})
        for name, parameter in self._parameters.items():
            # A field that is offered under an alias carries its own texts.
            if name in properties and not isinstance(parameter.default, FieldInfo):
                _note_default(properties[name], parameter.default)
        top = ("type", "properties", "required", "additionalProperties", "$defs")
        return {key: schema[key] for key in top if key in schema}

    @cached_property
    def _validate(self) -> Any:
        return self._adapter.validator.validate_json

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments that fit; what wasn't given is left to the function's own defaults."""
        decoded, text = decode_arguments(arguments if isinstance(arguments, str) else encode(arguments))
        try:
            bound: dict[str, Any] = self._validate(text)
        except ValidationError as error:
            repaired = decoded_where_wanted(error, decoded)
            if repaired is None:
                raise ArgumentsInvalid(as_problems(error, decoded, self.schema)) from None
            return self.bind(repaired)
        # JSON's true is a Python int; the search costs nothing where the text has none.
        if "true" in text or "false" in text:
            problem = boolean_problem(decoded, bound, self.schema)
            if problem is not None:
                raise ArgumentsInvalid((problem,))
        return bound


def _built(parameters: typing.Iterable[Parameter]) -> TypeAdapter[dict[str, Any]]:
    """A TypedDict, not a model: any name can be a field, and what wasn't given stays out."""
    fields = {
        one.name: one.annotation if _is_required(one) else typing_extensions.NotRequired[one.annotation]
        for one in parameters
    }
    # Called through Any: the fields are only known now, which no checker can follow.
    arguments = _TYPED_DICT("Arguments", fields)
    arguments.__pydantic_config__ = CONFIG
    return TypeAdapter(arguments)


def _annotation(hint: Any, default: Any) -> Any:
    """The type with what its default says of it: `= Field(...)`, or None where the type has no place for it."""
    if isinstance(default, FieldInfo):
        return Annotated[hint, default]
    if default is not None or _takes_none(hint):
        return hint
    if typing.get_origin(hint) is Annotated:
        inner, *extras = typing.get_args(hint)
        return Annotated[(_annotation(inner, None), *extras)]
    return Union[hint, None]  # noqa: UP007 - `|` fails for types that are strings


def _takes_none(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        return _takes_none(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (Union, types.UnionType):
        return any(_takes_none(one) for one in typing.get_args(hint))
    return hint in (None, types.NoneType, Any, object)


def _is_required(parameter: Parameter) -> bool:
    if isinstance(parameter.default, FieldInfo):
        return parameter.default.is_required()
    if parameter.default is not MISSING:
        return False
    extras = getattr(parameter.annotation, "__metadata__", ())
    return all(extra.is_required() for extra in extras if isinstance(extra, FieldInfo))


def _note_default(field: dict[str, Any], default: Any) -> None:
    if default is MISSING or default is None:
        return
    try:
        shown = to_jsonable_python(default)
        json.dumps(shown, allow_nan=False)
        field.setdefault("default", shown)
    except ValueError:  # a default that JSON can't show is still the function's own
        return


def compact_schema(schema: Any) -> Any:
    """The schema without pydantic's `title` and `default: null`, `type` first; a property *named* title stays."""
    if isinstance(schema, list):
        return [compact_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    compact: dict[str, Any] = {}
    ordered = [key for key in _FIRST if key in schema] + [key for key in schema if key not in _FIRST]
    for key in ordered:
        value = schema[key]
        if key == "title" or (key == "default" and value is None):
            continue
        if key in ("properties", "$defs", "patternProperties"):
            compact[key] = {name: compact_schema(one) for name, one in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            compact[key] = value
        else:
            compact[key] = compact_schema(value)
    return compact
