"""Tools with a JSON Schema instead of annotations: an MCP server's, or a handwritten one.

For checking a value against a schema see `schema_validator.py`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from ferrule.errors import ArgumentProblem, ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.argument_errors import (
    MAX_PROBLEMS,
    WHOLE,
    describe_value,
    format_path,
    report_missing_field,
    report_unknown_field,
)
from ferrule.tools.docstrings import ParsedDocstring
from ferrule.tools.schema_description import describe_schema
from ferrule.tools.schema_validator import SchemaValidator, TooManySteps
from ferrule.tools.strict_json import decode_arguments, decode_json, encode_json
from ferrule.toolspec import JSONSchema

_MOST_CHOICES = 20
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


class SchemaRules:
    """The rules given by a JSON Schema; its function receives the arguments as keywords.

    A string is decoded if the schema expects a number, a boolean, an object or a list and the string contains one, as
    for tools made from a signature. Defaults in the schema are left to the function.
    """

    docstring = ParsedDocstring()

    def __init__(
        self, schema: JSONSchema, function: Callable[..., Any], subject: str, output_schema: JSONSchema | None = None
    ) -> None:
        self.output_schema = output_schema
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
            raise ToolDefinitionError(f'{subject}: its parameters must be a JSON Schema of "type": "object"')
        self._schema: JSONSchema = {"type": "object", "properties": {}, **schema}
        if not isinstance(self._schema["properties"], Mapping):
            raise ToolDefinitionError(f'{subject}: "properties" must be an object of schemas by name')
        if not callable(function):
            raise ToolDefinitionError(f"{subject}: it needs a function that is called, not {function!r}")
        self._subject = subject
        self._parameters = _read_parameters(function)
        self._accepts_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in self._parameters)
        self._accepted = {one.name for one in self._parameters if one.kind in _NAMED} - {self.scope_parameter}
        refused = [name for name in self._schema["properties"] if not self._accepts(name)]
        if refused:
            raise ToolDefinitionError(
                f"{subject}: its function lacks the parameter {refused[0]!r} of its schema; add it, or **arguments"
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
    def _validator(self) -> SchemaValidator:
        from jsonschema import SchemaError

        try:
            return SchemaValidator(self._schema)
        except SchemaError as error:
            place = format_path(list(error.absolute_path))
            raise ToolDefinitionError(f"{self._subject}: not a JSON Schema at {place}: {error.message}") from None
        except RecursionError:
            raise ToolDefinitionError(f"{self._subject}: its schema is nested too deeply; give a flatter one") from None
        except TooManySteps:
            raise ToolDefinitionError(f"{self._subject}: its schema is too large; give a smaller one") from None

    @property
    def unchecked_rules(self) -> tuple[str, ...]:
        """The rules of the schema that are not enforced, each with its place and the reason."""
        return self._validator.unchecked_rules

    @property
    def schema(self) -> JSONSchema:
        """The schema as given. Raises `ToolDefinitionError` if it is invalid."""
        _ = self._validator
        return self._schema

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `ArgumentsInvalid`."""
        decoded, _ = decode_arguments(arguments if isinstance(arguments, str) else encode_json(arguments))
        errors = self._find_errors(decoded)
        if errors:
            decoded = _repair_types(decoded, errors)
            errors = self._find_errors(decoded)
        problems = list(islice(self._list_problems(decoded, errors), MAX_PROBLEMS))
        if problems:
            raise ArgumentsInvalid(dict.fromkeys(problems))
        return decoded

    def _list_problems(self, decoded: dict[str, Any], errors: list[Any]) -> Iterator[ArgumentProblem]:
        known: set[str] = set()
        for problem in (problem for error in errors for problem in self._describe_error(error)):
            known.add(problem.field)
            yield problem
        names = list(self._schema["properties"]) or sorted(self._accepted)
        yield from (
            report_unknown_field((name,), names) for name in decoded if not self._accepts(name) and name not in known
        )

    def _find_errors(self, decoded: dict[str, Any]) -> list[Any]:
        from referencing.exceptions import Unresolvable

        try:
            found = self._validator.errors(decoded)
        except Unresolvable as error:
            raise ToolDefinitionError(
                f"{self._subject}: its schema refers to {error.ref!r}, which it doesn't contain; put it under $defs"
            ) from None
        except RecursionError:
            raise ToolDefinitionError(f"{self._subject}: its schema refers to itself infinitely; change it") from None
        except TooManySteps:
            words = "checking them against the tool's schema takes too many steps; give fewer or shorter values"
            raise ArgumentsInvalid((ArgumentProblem(WHOLE, "", words),)) from None
        except Exception as error:  # noqa: BLE001 - a reference to something other than a schema fails in any way
            raise ToolDefinitionError(f"{self._subject}: its schema can't be applied: {error}") from None
        return sorted(found, key=lambda error: str(list(error.absolute_path)))

    def _describe_error(self, error: Any) -> Iterator[ArgumentProblem]:
        path = tuple(error.absolute_path)
        if error.validator == "required":
            for name in error.validator_value:
                if name not in error.instance:
                    fields = error.schema.get("properties", {})
                    yield report_missing_field((*path, name), describe_schema(fields.get(name, {}), self._schema))
        elif error.validator == "additionalProperties":
            yield report_unknown_field(path, list(error.schema.get("properties", {})))
        elif error.validator == "unevaluatedProperties" and isinstance(error.instance, dict):
            known = list(error.schema.get("properties", {}))
            for name in error.instance:
                if name not in known:
                    yield report_unknown_field((*path, name), known)
        else:
            expected = self._describe_fields(error) if isinstance(error.instance, dict) else ""
            expected = expected or describe_schema(error.schema, self._schema)
            yield ArgumentProblem(format_path(path), describe_value(error.instance), f"expected {expected}")

    def _describe_fields(self, error: Any) -> str:
        """What a rule on the fields of an object together expects; empty for any other rule."""
        rule = error.validator_value
        if error.validator in ("anyOf", "oneOf") and error.context:
            choices: dict[int, dict[str, None]] = {}
            for inner in error.context:
                words = choices.setdefault(inner.relative_schema_path[0], {})
                words.update(dict.fromkeys(self._describe_lack(inner, error.schema.get("properties", {}))))
            return "one of these: " + "; or ".join(" and ".join(words) for words in [*choices.values()][:_MOST_CHOICES])
        if error.validator == "oneOf":
            named = [", ".join(one["required"]) for one in rule if isinstance(one, Mapping) and one.get("required")]
            return f"only one of these: {'; or '.join(named[:_MOST_CHOICES])}" if len(named) == len(rule) else ""
        if error.validator == "not" and isinstance(rule, Mapping) and set(rule) == {"required"}:
            return f"not all of these: {', '.join(rule['required'])}"
        if error.validator == "dependentRequired":
            lacking = [(one, name) for one in rule if one in error.instance for name in rule[one]]
            return ", ".join(f"{name} beside {one}" for one, name in lacking if name not in error.instance)
        return f"at least {rule} of its fields" if error.validator == "minProperties" else ""

    def _describe_lack(self, error: Any, around: Mapping[str, Any]) -> Iterator[str]:
        """What would satisfy one alternative; `around` are the fields that the schema has outside of it."""
        if error.validator == "required":
            fields = {**around, **error.schema.get("properties", {})}
            for name in error.validator_value:
                if name not in error.instance:
                    yield f"{name} ({describe_schema(fields.get(name, {}), self._schema)})"
            return
        words = describe_schema(error.schema, self._schema)
        path = tuple(error.absolute_path)
        yield f"{format_path(path)} as {words}" if path else words


def _read_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature accepts whatever it accepts
        return [inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD)]


def _iterate_leaves(error: Any) -> Iterator[Any]:
    if error.context:
        for inner in error.context:
            yield from _iterate_leaves(inner)
    else:
        yield error


def _repair_types(decoded: dict[str, Any], errors: list[Any]) -> dict[str, Any]:
    """The arguments with each value of the wrong type replaced if it clearly contains one of the right type."""
    mended = copy.deepcopy(decoded)
    for error in (leaf for outer in errors for leaf in _iterate_leaves(outer)):
        path = list(error.absolute_path)
        if error.validator != "type" or not path:
            continue
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        value = _convert(error.instance, kinds)
        if value is not None:
            here: Any = mended
            for part in path[:-1]:
                here = here[part]
            here[path[-1]] = value
    return mended


def _convert(value: Any, kinds: list[str]) -> Any:
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return int(value)
    if not isinstance(value, str):
        return None
    try:
        decoded = decode_json(value.strip().lower() if "boolean" in kinds else value)
    except ValueError:
        return None
    if isinstance(decoded, float) and decoded.is_integer() and "number" not in kinds:
        decoded = int(decoded)
    for kind in kinds:
        expected = _KINDS.get(kind)
        if expected and isinstance(decoded, expected) and (kind == "boolean" or not isinstance(decoded, bool)):
            return decoded
    return None
