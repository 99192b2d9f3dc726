"""What pydantic found, told in the words of `argument_errors`, and what can be mended without guessing.

pydantic's places hold the branch of a union beside field names; here they become paths into what was given.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails, ValidationError

from ferrule.argument_errors import (
    ArgumentProblem,
    missing_field,
    path_text,
    shown,
    unknown_field,
)
from ferrule.json_text import decode
from ferrule.schema_words import schema_at, wanted_words
from ferrule.toolspec import JSONSchema

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


def _details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _path(location: Path, given: Any) -> tuple[Path, int | None]:
    """The part of a place that leads into what was given, and how long it was when a union's branch came."""
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


def value_at(given: Any, path: Path) -> Any:
    """The value at `path` inside what was given."""
    for part in path:
        given = given[part]
    return given


def decoded_where_wanted(error: ValidationError, given: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments with strings decoded where an object or a list is wanted and the string holds one.

    None where there is nothing of that kind. Models that write JSON by hand encode nested values twice.
    """
    mended: dict[str, Any] | None = None
    for detail in _details(error):
        if detail["type"] not in _WANTS_CONTAINER:
            continue
        path, _ = _path(detail["loc"], given)
        text = value_at(given, path)
        if not path or not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
            continue
        try:
            value = decode(text)
        except ValueError:
            continue
        mended = copy.deepcopy(given) if mended is None else mended
        value_at(mended, path[:-1])[path[-1]] = value
    return mended


def as_problems(error: ValidationError, given: dict[str, Any], schema: JSONSchema) -> list[ArgumentProblem]:
    """A problem for each wrong place, in the order of pydantic's findings, each place once."""
    problems: dict[Path, ArgumentProblem] = {}
    for detail in _details(error):
        path, fork = _path(detail["loc"], given)
        last = detail["loc"][-1] if detail["loc"] else None
        if detail["type"] == "json_invalid":
            problems[path] = ArgumentProblem(path_text(path), "", f"not valid JSON: {detail['ctx']['error']}")
        elif detail["type"] in _MISSING and last is not None and fork == len(path) == len(detail["loc"]) - 1:
            problems[(*path, last)] = missing_field((*path, last), _wanted(schema, (*path, last)))
        elif detail["type"] in _UNKNOWN and fork is None:
            problems[path] = unknown_field(path, _names(schema, path[:-1]))
        elif fork is not None and fork < len(detail["loc"]):
            # One of several possible types: what is wanted is said once, for all of them.
            problems.setdefault(path[:fork], _wrong(schema, path[:fork], given))
        elif detail["type"] in _OWN_WORDS:
            own = str(detail["msg"]).partition(", ")[2]
            problems[path] = ArgumentProblem(path_text(path), shown(value_at(given, path)), own)
        else:
            problems[path] = _wrong(schema, path, given, fallback=detail["msg"])
    return list(problems.values())


def _wrong(schema: JSONSchema, path: Path, given: Any, fallback: str = "") -> ArgumentProblem:
    value = value_at(given, path)
    place = schema_at(schema, path)
    wanted = fallback.removeprefix("Input should be ") if place is None and fallback else _wanted(schema, path)
    cure = ""
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted.startswith("a string"):
        cure = f', in quotes: "{value}"'
    if value is None and _is_optional(schema, path):
        cure = ", or leave it out"
    return ArgumentProblem(path_text(path), shown(value), f"wanted {wanted}{cure}")


def _place(schema: JSONSchema, path: Path) -> Mapping[str, Any] | None:
    """The schema at `path` as it is written, so that "or null" isn't lost."""
    parent = schema_at(schema, path[:-1])
    if parent is not None and path and isinstance(path[-1], str) and path[-1] in parent.get("properties", {}):
        found: Mapping[str, Any] = parent["properties"][path[-1]]
        return found
    return schema_at(schema, path)


def _wanted(schema: JSONSchema, path: Path) -> str:
    place = _place(schema, path)
    return "another value" if place is None else wanted_words(place, schema)


def _is_optional(schema: JSONSchema, path: Path) -> bool:
    parent = schema_at(schema, path[:-1])
    if parent is None or not path or path[-1] not in parent.get("properties", {}):
        return False
    return path[-1] not in parent.get("required", ())


def _names(schema: JSONSchema, path: Path) -> list[str]:
    place = schema_at(schema, path)
    return list(place.get("properties", {})) if place else []


def boolean_problem(given: Any, bound: Any, schema: JSONSchema) -> ArgumentProblem | None:
    """The problem of a `true` or `false` that became a number, None where none did.

    pydantic models are left out: their own rules may turn a boolean into anything.
    """
    path = _boolean_for_number(given, bound)
    return None if path is None else _wrong(schema, path, given, fallback="a number")


def _boolean_for_number(given: Any, bound: Any) -> Path | None:
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
        found = _boolean_for_number(value, result)
        if found is not None:
            return (key, *found)
    return None
