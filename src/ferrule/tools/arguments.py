"""From a function's signature to a tool's schema, and from a call's arguments to valid keyword arguments.

The signature is checked here, at once. The work with pydantic is in `json_schema.py`, imported at the first offer or
call; tools with a JSON Schema of their own are in `schema_only.py`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, Protocol

from ferrule.errors import ArgumentProblem, ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.docstrings import ParsedDocstring, read_docstring
from ferrule.tools.scope import CallScope
from ferrule.tools.signature import (
    Parameter,
    find_enclosing_names,
    read_parameters,
    read_signature,
    resolve_annotations,
    select_type_names,
)
from ferrule.toolspec import JSONSchema

if TYPE_CHECKING:
    from ferrule.tools.json_schema import ArgumentModel

__all__ = ["ArgumentProblem", "ArgumentRules", "ArgumentsInvalid", "SignatureRules"]


class ArgumentRules(Protocol):
    """What a tool's arguments must be, from whatever source."""

    @property
    def scope_parameter(self) -> str | None:
        """The name of the parameter for the `CallScope`; None if there is none."""

    @property
    def schema(self) -> JSONSchema:
        """The JSON Schema offered to models. Raises `ToolDefinitionError`."""

    @property
    def docstring(self) -> ParsedDocstring:
        """The function's parsed docstring."""

    @property
    def unchecked_rules(self) -> tuple[str, ...]:
        """The rules of the schema that are not enforced, each with its place and the reason."""

    @property
    def output_schema(self) -> JSONSchema | None:
        """The JSON Schema of what the tool returns, of type object; None for text, images and what has no schema."""

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `ArgumentsInvalid`."""


class SignatureRules:
    """The rules given by a function's signature.

    The signature is checked on creation; types are resolved then too, or at the first use if a name is defined later in
    its module.
    """

    unchecked_rules: tuple[str, ...] = ()

    def __init__(self, function: Callable[..., Any], subject: str, skip_first: bool = False) -> None:
        self._function = function
        self._subject = subject
        self._parameters = read_parameters(function, subject, skip_first)
        names = find_enclosing_names(function)
        try:
            self._known_hints: dict[str, Any] | None = resolve_annotations(function, self._parameters, names, subject)
        except ToolDefinitionError as error:
            if not isinstance(error.__cause__, NameError):
                raise
            self._known_hints = None
        self._names = select_type_names(names)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        if self._known_hints is not None:
            return self._known_hints
        return resolve_annotations(self._function, self._parameters, self._names, self._subject)

    @cached_property
    def scope_parameter(self) -> str | None:
        found = [one.name for one in self._parameters if _is_scope(self._hints[one.name])]
        if len(found) > 1:
            raise ToolDefinitionError(f"{self._subject}: {found[0]!r} and {found[1]!r} both take the scope; keep one")
        return found[0] if found else None

    @cached_property
    def docstring(self) -> ParsedDocstring:
        return read_docstring(self._function.__doc__, [one.name for one in self._parameters])

    @cached_property
    def _model(self) -> ArgumentModel:
        from ferrule.tools.json_schema import ArgumentModel

        filled_in = [
            Parameter(one.name, self._hints[one.name], one.default)
            for one in self._parameters
            if one.name != self.scope_parameter
        ]
        return ArgumentModel(filled_in, self._names, self._subject)

    @cached_property
    def schema(self) -> JSONSchema:
        schema = self._model.schema
        texts = self.docstring.parameters
        described = {
            name: {"description": texts[name], **field} if name in texts else field
            for name, field in schema["properties"].items()
        }
        return {**schema, "properties": described}

    @cached_property
    def output_schema(self) -> JSONSchema | None:
        from ferrule.tools.json_schema import make_output_schema

        returned = read_signature(self._function, self._subject).return_annotation
        if returned is inspect.Signature.empty:
            return None
        try:
            parameter = Parameter("return", returned, None)
            hint = resolve_annotations(self._function, (parameter,), self._names, self._subject)["return"]
        except ToolDefinitionError:
            return None
        return make_output_schema(hint, self._names)

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        return self._model.bind(arguments)


def _is_scope(hint: Any) -> bool:
    """Whether a parameter is for the `CallScope`: its annotation is that class, possibly optional."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return CallScope in typing.get_args(hint)
    return hint is CallScope
