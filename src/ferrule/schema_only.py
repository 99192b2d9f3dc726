"""Tools that come with a JSON Schema instead of annotations: an MCP server's, or one written by hand.

jsonschema checks (imported at the first use); references to other documents are never fetched.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from ferrule.argument_errors import (
    ArgumentProblem,
    ArgumentsInvalid,
    missing_field,
    path_text,
    shown,
    unknown_field,
)
from ferrule.docstrings import Documented
from ferrule.errors import ToolDefinitionError
from ferrule.json_text import decode, decode_arguments, encode
from ferrule.schema_words import wanted_words
from ferrule.toolspec import JSONSchema

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


class SchemaRules:
    """The rules that a JSON Schema states; its function gets the arguments as keywords.

    A string is decoded where the schema wants a number, a boolean, an object or a list and the string holds one,
    as for tools made from a signature. Defaults in the schema are the function's to apply.
    """

    documented = Documented()

    def __init__(self, schema: JSONSchema, function: Callable[..., Any], subject: str) -> None:
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
            raise ToolDefinitionError(f'{subject}: its parameters must be a JSON Schema of "type": "object"')
        self._schema: JSONSchema = {"type": "object", "properties": {}, **schema}
        if not isinstance(self._schema["properties"], Mapping):
            raise ToolDefinitionError(f'{subject}: "properties" must be an object of schemas by name')
        self._subject = subject
        self._parameters = _parameters(function)
        self._accepts_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in self._parameters)
        self._accepted = {one.name for one in self._parameters if one.kind in _NAMED} - {self.scope_parameter}
        refused = [name for name in self._schema["properties"] if not self._accepts(name)]
        if refused:
            raise ToolDefinitionError(
                f"{subject}: its function takes no keyword {refused[0]!r}, which its schema has; add it, or **arguments"
            )

    def _accepts(self, name: str) -> bool:
        return self._accepts_any or name in self._accepted

    @cached_property
    def scope_parameter(self) -> str | None:
        for one in self._parameters:
            written = one.annotation if isinstance(one.annotation, str) else getattr(one.annotation, "__name__", "")
            if written.removesuffix(" | None") == "CallScope":
                return one.name
        return None

    @cached_property
    def _validator(self) -> Any:
        import jsonschema
        from referencing import Registry

        validators: Any = jsonschema.validators
        kind = validators.validator_for(self._schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as error:
            place = path_text(list(error.absolute_path))
            raise ToolDefinitionError(f"{self._subject}: not a JSON Schema at {place}: {error.message}") from None
        # 7.0 counts as an integer in JSON Schema; here it is made one first, for functions that index with it.
        strict = kind.TYPE_CHECKER.redefine(
            "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
        )
        # An empty registry: without it, jsonschema would fetch what `$ref` names.
        return validators.extend(kind, type_checker=strict)(self._schema, registry=Registry())

    @property
    def schema(self) -> JSONSchema:
        """The schema as it was given. Raises `ToolDefinitionError` where it is none."""
        _ = self._validator
        return self._schema

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `ArgumentsInvalid`."""
        decoded, _ = decode_arguments(arguments if isinstance(arguments, str) else encode(arguments))
        errors = self._errors(decoded)
        if errors:
            decoded = _mended(decoded, errors)
            errors = self._errors(decoded)
        problems = [problem for error in errors for problem in self._problems(error)]
        known = {problem.field for problem in problems}
        names = list(self._schema["properties"]) or sorted(self._accepted)
        problems += [unknown_field((name,), names) for name in decoded if not self._accepts(name) and name not in known]
        if problems:
            raise ArgumentsInvalid(dict.fromkeys(problems))
        return decoded

    def _errors(self, decoded: dict[str, Any]) -> list[Any]:
        from referencing.exceptions import Unresolvable

        try:
            return sorted(self._validator.iter_errors(decoded), key=lambda error: str(list(error.absolute_path)))
        except Unresolvable as error:
            raise ToolDefinitionError(
                f"{self._subject}: its schema refers to {error.ref!r}, which it doesn't hold; put it under $defs"
            ) from None
        except RecursionError:
            raise ToolDefinitionError(f"{self._subject}: its schema refers to itself without end; mend it") from None

    def _problems(self, error: Any) -> Iterator[ArgumentProblem]:
        path = tuple(error.absolute_path)
        if error.validator == "required":
            for name in error.validator_value:
                if name not in error.instance:
                    fields = error.schema.get("properties", {})
                    yield missing_field((*path, name), wanted_words(fields.get(name, {}), self._schema))
        elif error.validator in ("additionalProperties", "unevaluatedProperties") and isinstance(error.instance, dict):
            known = list(error.schema.get("properties", {}))
            for name in error.instance:
                if name not in known:
                    yield unknown_field((*path, name), known)
        else:
            wanted = wanted_words(error.schema, self._schema)
            yield ArgumentProblem(path_text(path), shown(error.instance), f"wanted {wanted}")


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin that tells nothing of itself takes what it takes
        return [inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD)]


def _leaves(error: Any) -> Iterator[Any]:
    if error.context:
        for inner in error.context:
            yield from _leaves(inner)
    else:
        yield error


def _mended(decoded: dict[str, Any], errors: list[Any]) -> dict[str, Any]:
    """The arguments with each value of the wrong type replaced where it plainly holds one of the right type."""
    mended = copy.deepcopy(decoded)
    for error in (leaf for outer in errors for leaf in _leaves(outer)):
        path = list(error.absolute_path)
        if error.validator != "type" or not path:
            continue
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        value = _converted(error.instance, kinds)
        if value is not None:
            here: Any = mended
            for part in path[:-1]:
                here = here[part]
            here[path[-1]] = value
    return mended


def _converted(value: Any, kinds: list[str]) -> Any:
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return int(value)
    if not isinstance(value, str):
        return None
    try:
        decoded = decode(value.strip().lower() if "boolean" in kinds else value)
    except ValueError:
        return None
    if isinstance(decoded, float) and decoded.is_integer() and "number" not in kinds:
        decoded = int(decoded)
    for kind in kinds:
        wanted = _KINDS.get(kind)
        if wanted and isinstance(decoded, wanted) and (kind == "boolean" or not isinstance(decoded, bool)):
            return decoded
    return None
