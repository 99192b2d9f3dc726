"""Resolved parameters as a pydantic model: their JSON Schema, and the validation of arguments.

pydantic validates. Added here are rules that it lacks: strict JSON, objects that were encoded twice, no boolean where a
number is expected. Annotations that pydantic refuses or overlooks are rewritten first, without loss:

- `typing.TypedDict` below Python 3.12 becomes the same type of `typing_extensions`, at any depth;
- `Annotated[T, "text"]` becomes `Annotated[T, Field(description="text")]`, inside these as well;
- a standard dataclass with such a field is validated through a copy and converted back.

Importing this module loads pydantic, so `arguments.py` imports it at the first offer or call.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, to_jsonable_python

from ferrule.conversation import Image, Text, ToolOutput
from ferrule.errors import ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.pydantic_errors import decode_nested_json, find_boolean_problem, list_problems
from ferrule.tools.signature import MISSING, Parameter
from ferrule.tools.strict_json import decode_arguments, encode_json
from ferrule.toolspec import JSONSchema

CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)
"""How arguments are validated; pydantic applies it to dataclasses and TypedDicts, but not to models with their own."""

_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
_TYPED_DICT: Any = typing_extensions.TypedDict
_SCHEMA_ERRORS = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError)
_KEY_ORDER = ("type", "description", "properties", "items", "required", "additionalProperties")


def make_output_schema(returned: Any, names: Mapping[str, Any]) -> JSONSchema | None:
    """The JSON Schema of a return type, of type object: any other type is put under `result`, as in MCP's own SDKs.

    None for text and nothing, which need no schema, for what may have images, and for types without a schema.
    """
    if returned in (str, None, type(None), Any, ToolOutput) or _may_have_parts(returned):
        return None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(AnnotationConverter(names).convert(returned))
        schema: dict[str, Any] = compact_schema(adapter.json_schema(mode="serialization"))
    except _SCHEMA_ERRORS:
        return None
    if schema.get("type") == "object":
        return schema
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}


def _may_have_parts(returned: Any) -> bool:
    """Whether a value of this type may be, or be a list of, texts and images."""
    if returned in (Text, Image, ToolOutput, list, tuple):
        return True
    arguments = get_args(returned)
    return any(map(_may_have_parts, arguments)) or (get_origin(returned) in (list, tuple) and Any in arguments)


class ArgumentModel:
    """The arguments of one tool. `names` resolves names in nested types; raises `ToolDefinitionError`."""

    def __init__(self, parameters: Sequence[Parameter], names: Mapping[str, Any], subject: str) -> None:
        self._subject = subject
        converter = AnnotationConverter(names)
        self._parameters: dict[str, Parameter] = {}
        for one in parameters:
            try:
                converted = converter.convert(one.annotation)
            except _SCHEMA_ERRORS as error:
                raise self._refuse(one.name, error) from error
            self._parameters[one.name] = Parameter(one.name, _add_default(converted, one.default), one.default)
        try:
            self._adapter = _build_adapter(self._parameters.values())
            self.schema = self._make_schema()
        except _SCHEMA_ERRORS as error:
            self._refuse_culprit()
            raise ToolDefinitionError(f"{subject} has no JSON Schema: {error}") from error

    def _refuse_culprit(self) -> None:
        for name, parameter in self._parameters.items():
            try:
                _build_adapter([parameter]).json_schema()
            except _SCHEMA_ERRORS as error:
                raise self._refuse(name, error) from error

    def _refuse(self, name: str, error: Exception) -> ToolDefinitionError:
        reason = str(getattr(error, "message", error)).partition("\n")[0]
        return ToolDefinitionError(
            f"{self._subject}: the type of {name!r} has no JSON Schema ({reason}); "
            "use plain types, a dataclass, a TypedDict or a pydantic model"
        )

    def _make_schema(self) -> JSONSchema:
        schema = compact_schema(self._adapter.json_schema())
        properties = schema.setdefault("properties", {})
        for name, parameter in self._parameters.items():
            # A field offered under an alias has its own texts.
            if name in properties and not isinstance(parameter.default, FieldInfo):
                _note_default(properties[name], parameter.default)
        top = ("type", "properties", "required", "additionalProperties", "$defs")
        return {key: schema[key] for key in top if key in schema}

    @cached_property
    def _validate(self) -> Any:
        return self._adapter.validator.validate_json

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Validated keyword arguments; missing ones are left to the function's own defaults."""
        decoded, text = decode_arguments(arguments if isinstance(arguments, str) else encode_json(arguments))
        try:
            bound: dict[str, Any] = self._validate(text)
        except ValidationError as error:
            repaired = decode_nested_json(error, decoded)
            if repaired is None:
                raise ArgumentsInvalid(list_problems(error, decoded, self.schema)) from None
            return self.bind(repaired)
        # JSON's true is a Python int; the search costs nothing if the text has none.
        if "true" in text or "false" in text:
            problem = find_boolean_problem(decoded, bound, self.schema)
            if problem is not None:
                raise ArgumentsInvalid((problem,))
        return bound


def _build_adapter(parameters: typing.Iterable[Parameter]) -> TypeAdapter[dict[str, Any]]:
    """Build a TypedDict, not a model: any name can be a field, and missing ones stay out."""
    fields = {
        one.name: one.annotation if _is_required(one) else typing_extensions.NotRequired[one.annotation]
        for one in parameters
    }
    # Called through Any: the fields are only known at run time, which no type checker can follow.
    arguments = _TYPED_DICT("Arguments", fields)
    arguments.__pydantic_config__ = CONFIG
    return TypeAdapter(arguments)


def _add_default(hint: Any, default: Any) -> Any:
    """The type with what its default says about it: `= Field(...)`, or None if the type doesn't allow it."""
    if isinstance(default, FieldInfo):
        return Annotated[hint, default]
    if default is not None or _takes_none(hint):
        return hint
    if typing.get_origin(hint) is Annotated:
        inner, *extras = typing.get_args(hint)
        return Annotated[(_add_default(inner, None), *extras)]
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
    except ValueError:  # a default that JSON can't express still belongs to the function
        return


def compact_schema(schema: Any) -> Any:
    """The schema without pydantic's `title` and `default: null`, `type` first; a property *named* title is kept."""
    if isinstance(schema, list):
        return [compact_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    compact: dict[str, Any] = {}
    ordered = [key for key in _KEY_ORDER if key in schema] + [key for key in schema if key not in _KEY_ORDER]
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


class AnnotationConverter:
    """Rewrites annotations; one serves all parameters of a function, so that equal types stay equal."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = dict(names)
        self._done: dict[Any, Any] = {}

    def convert(self, hint: Any) -> Any:
        """The annotation for pydantic; the same object if nothing had to change."""
        if typing_extensions.is_typeddict(hint):
            return self._convert_typed_dict(hint)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and "__pydantic_validator__" not in vars(hint):
            return self._convert_dataclass(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            inner, *extras = arguments
            fields = [Field(description=extra) if isinstance(extra, str) else extra for extra in extras]
            return Annotated[(self.convert(inner), *fields)]
        if not arguments or origin is typing.Literal:
            return hint
        converted = tuple(self.convert(argument) for argument in arguments)
        if all(new is old for new, old in zip(converted, arguments, strict=True)):
            return hint
        if origin in (Union, types.UnionType):
            return Union[converted]  # noqa: UP007 - the members are only known at run time
        if isinstance(hint, types.GenericAlias):
            return types.GenericAlias(origin, converted)
        return hint.copy_with(converted) if hasattr(hint, "copy_with") else hint

    def _convert_typed_dict(self, original: Any) -> Any:
        if original in self._done:
            return self._done[original]
        copy = self._done[original] = typing_extensions.TypedDict(original.__name__, {})  # type: ignore[operator]
        hints = get_type_hints(original, localns=self._names, include_extras=True)
        required = {name for name in hints if _is_required_key(name, hints[name], original)}
        # Filled in afterwards, since a TypedDict may refer to itself.
        copy.__annotations__ = {name: self.convert(_strip_qualifiers(hint)) for name, hint in hints.items()}
        copy.__required_keys__ = frozenset(required)
        copy.__optional_keys__ = frozenset(hints.keys() - required)
        copy.__module__, copy.__doc__ = original.__module__, original.__doc__
        copy.__pydantic_config__ = getattr(original, "__pydantic_config__", CONFIG)
        return copy

    def _convert_dataclass(self, original: type[Any]) -> Any:
        if original in self._done:
            return self._done[original]
        self._done[original] = original
        hints = get_type_hints(original, localns=self._names, include_extras=True)
        fields = [one for one in dataclasses.fields(original) if one.init]
        converted = {one.name: self.convert(hints[one.name]) for one in fields}
        # Pydantic would offer the fields that __init__ doesn't take.
        takes_all = len(fields) == len(dataclasses.fields(original))
        is_plain = (
            takes_all and all(converted[one.name] is hints[one.name] for one in fields) and _is_resolvable(original)
        )
        # A copy would lack parameters that only __init__ takes.
        takes_more = any(isinstance(hint, dataclasses.InitVar) for hint in hints.values())
        return original if is_plain or takes_more else self._copy_dataclass(original, fields, converted)

    def _copy_dataclass(
        self, original: type[Any], fields: list[dataclasses.Field[Any]], hints: Mapping[str, Any]
    ) -> Any:
        copied = [(one.name, hints[one.name], _copy_default(one)) for one in fields]
        copy = dataclasses.make_dataclass(original.__name__, copied, kw_only=True)
        copy.__module__, copy.__doc__ = original.__module__, original.__doc__

        def restore(value: Any) -> Any:
            return original(**{one.name: getattr(value, one.name) for one in fields})

        self._done[original] = Annotated[copy, AfterValidator(restore)]
        return self._done[original]


def _is_resolvable(original: type[Any]) -> bool:
    """Whether its module alone resolves its annotations: pydantic doesn't see the function around a class."""
    try:
        get_type_hints(original)
    except NameError:
        return False
    return True


def _copy_default(one: dataclasses.Field[Any]) -> Any:
    return dataclasses.field(default=one.default, default_factory=one.default_factory, metadata=one.metadata)


def _strip_qualifiers(hint: Any) -> Any:
    while get_origin(hint) in (*_REQUIRED, *_NOT_REQUIRED, typing_extensions.ReadOnly):
        hint = get_args(hint)[0]
    return hint


def _is_required_key(name: str, hint: Any, original: Any) -> bool:
    """What the field itself says; otherwise what its class says.

    If annotations are strings, `__required_keys__` doesn't see `NotRequired` in them, but the hint does.
    """
    while (origin := get_origin(hint)) is not None:
        if origin in _REQUIRED or origin in _NOT_REQUIRED:
            return origin in _REQUIRED
        if origin not in (Annotated, typing_extensions.ReadOnly):
            break
        hint = get_args(hint)[0]
    return name in original.__required_keys__
