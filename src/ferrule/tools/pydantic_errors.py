"""Converts pydantic's validation errors to problems of arguments, with the repairs that need no guessing.

A location in pydantic's errors mixes field names with branches of unions; here it becomes a path in the arguments.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ferrule.errors import ArgumentProblem
from ferrule.tools.argument_errors import (
    MAX_PROBLEMS,
    describe_value,
    format_path,
    report_missing_field,
    report_unknown_field,
)
from ferrule.tools.schema_description import describe_schema, find_schema
from ferrule.tools.strict_json import decode_json
from ferrule.toolspec import JSONSchema

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, ValidationError

Path = tuple[str | int, ...]

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
_WANTS_CONTAINER = (
    "dict_type",
    "mapping_type",
    "list_type",
    "tuple_type",
    "set_type",
    "frozen_set_type",
    "iterable_type",
    "dataclass_type",
    "model_type",
    "model_attributes_type",
)
_OWN_WORDS = ("value_error", "assertion_error")


def _list_details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _resolve_location(location: Path, given: Any) -> tuple[Path, int | None]:
    """The part of a location that is a path in the arguments, and its length at the first branch of a union."""
    path: list[str | int] = []
    fork: int | None = None
    for part in location:
        inside = (isinstance(given, dict) and part in given) or (
            isinstance(given, list) and isinstance(part, int) and part < len(given)
        )
        if inside:
            given = given[part]
            path.append(part)
        elif fork is None:
            fork = len(path)
    return tuple(path), fork


def get_value(given: Any, path: Path) -> Any:
    """The value at `path` inside what was given."""
    for part in path:
        given = given[part]
    return given


def decode_nested_json(error: ValidationError, given: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments with strings decoded if an object or a list is expected and the string contains one.

    None if there is nothing to decode. Models that write JSON by hand encode nested values twice.
    """
    mended: dict[str, Any] | None = None
    for detail in _list_details(error):
        if detail["type"] not in _WANTS_CONTAINER:
            continue
        path, _ = _resolve_location(detail["loc"], given)
        text = get_value(given, path)
        if not path or not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
            continue
        try:
            value = decode_json(text)
        except ValueError:
            continue
        mended = copy.deepcopy(given) if mended is None else mended
        get_value(mended, path[:-1])[path[-1]] = value
    return mended


def list_problems(error: ValidationError, given: dict[str, Any], schema: JSONSchema) -> list[ArgumentProblem]:
    """A problem for each wrong place, in pydantic's order, each place once, at most `MAX_PROBLEMS`."""
    problems: dict[Path, ArgumentProblem] = {}
    for detail in _list_details(error):
        if len(problems) == MAX_PROBLEMS:
            break
        path, fork = _resolve_location(detail["loc"], given)
        last = detail["loc"][-1] if detail["loc"] else None
        if detail["type"] == "json_invalid":
            problems[path] = ArgumentProblem(format_path(path), "", f"not valid JSON: {detail['ctx']['error']}")
        elif detail["type"] in _MISSING and last is not None and fork == len(path) == len(detail["loc"]) - 1:
            problems[(*path, last)] = report_missing_field((*path, last), _describe_expected(schema, (*path, last)))
        elif detail["type"] in _UNKNOWN and fork is None:
            problems[path] = report_unknown_field(path, _list_names(schema, path[:-1]))
        elif fork is not None and fork < len(detail["loc"]):
            # One of several possible types: what is expected is said once, for all of them.
            problems.setdefault(path[:fork], _report_mismatch(schema, path[:fork], given))
        elif detail["type"] in _OWN_WORDS:
            own = str(detail["msg"]).partition(", ")[2]
            problems[path] = ArgumentProblem(format_path(path), describe_value(get_value(given, path)), own)
        else:
            problems[path] = _report_mismatch(schema, path, given, fallback=detail["msg"])
    return list(problems.values())


def _report_mismatch(schema: JSONSchema, path: Path, given: Any, fallback: str = "") -> ArgumentProblem:
    value = get_value(given, path)
    place = find_schema(schema, path)
    expected = (
        fallback.removeprefix("Input should be ") if place is None and fallback else _describe_expected(schema, path)
    )
    cure = ""
    if isinstance(value, int | float) and not isinstance(value, bool) and expected.startswith("a string"):
        cure = f', in quotes: "{value}"'
    if value is None and _is_optional(schema, path):
        cure = ", or leave it out"
    return ArgumentProblem(format_path(path), describe_value(value), f"expected {expected}{cure}")


def _find_property_schema(schema: JSONSchema, path: Path) -> Mapping[str, Any] | None:
    """The schema at `path` as written, so that "or null" isn't lost."""
    parent = find_schema(schema, path[:-1])
    if parent is not None and path and isinstance(path[-1], str) and path[-1] in parent.get("properties", {}):
        found: Mapping[str, Any] = parent["properties"][path[-1]]
        return found
    return find_schema(schema, path)


def _describe_expected(schema: JSONSchema, path: Path) -> str:
    place = _find_property_schema(schema, path)
    return "another value" if place is None else describe_schema(place, schema)


def _is_optional(schema: JSONSchema, path: Path) -> bool:
    parent = find_schema(schema, path[:-1])
    if parent is None or not path or path[-1] not in parent.get("properties", {}):
        return False
    return path[-1] not in parent.get("required", ())


def _list_names(schema: JSONSchema, path: Path) -> list[str]:
    place = find_schema(schema, path)
    return list(place.get("properties", {})) if place else []


def find_boolean_problem(given: Any, bound: Any, schema: JSONSchema) -> ArgumentProblem | None:
    """The problem of a `true` or `false` that became a number; None if there is none.

    pydantic models are excluded: their own rules may convert a boolean to anything.
    """
    path = _find_boolean_as_number(given, bound)
    return None if path is None else _report_mismatch(schema, path, given, fallback="a number")


def _find_boolean_as_number(given: Any, bound: Any) -> Path | None:
    if isinstance(given, bool):
        return () if isinstance(bound, int | float) and not isinstance(bound, bool) else None
    pairs: list[tuple[str | int, Any, Any]] = []
    if isinstance(given, dict) and isinstance(bound, dict):
        pairs = [(key, value, bound.get(key)) for key, value in given.items()]
    elif isinstance(given, dict) and dataclasses.is_dataclass(bound):
        pairs = [(key, value, getattr(bound, key, None)) for key, value in given.items()]
    elif isinstance(given, list) and isinstance(bound, list | tuple):
        pairs = [(index, *both) for index, both in enumerate(zip(given, bound, strict=False))]
    for key, value, result in pairs:
        found = _find_boolean_as_number(value, result)
        if found is not None:
            return (key, *found)
    return None
