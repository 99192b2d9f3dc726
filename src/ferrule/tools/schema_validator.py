"""Checks a value against somebody else's JSON Schema, at a bounded cost.

jsonschema does the checking (imported at the first use). What a schema can make expensive is replaced here: patterns
are searched without backtracking (`patterns.py`), equal items are found by their text, and every step is counted, so
that an endlessly branching schema is abandoned. References to other documents are never fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from ferrule._util.patterns import Pattern, PatternRefused, compile_pattern
from ferrule.tools.argument_errors import describe_value, format_path

MAX_STEPS = 10_000_000
"""The maximum cost of one check, in steps of about 0.1 µs; like 1 MB of text against a pattern of 100 places."""

MAX_SCHEMA_PLACES = 20_000
"""The maximum number of places in all patterns of one schema; see `patterns.py`."""

_KEYWORD = 150
_PLACE = 50
"""Steps to check one keyword, and to compile one place of a pattern."""

_MAX_DEPTH = 200
"""How deeply checked keywords may be nested. Each takes three or four frames, and the library in which jsonschema keeps
its references doesn't survive a stack overflow."""

_NOT_SCHEMAS = frozenset({"enum", "const", "default", "examples", "example"})
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class TooManySteps(Exception):  # noqa: N818 - it is not a schema error, and is caught by its neighbour
    """Checking a value took too many steps."""


class _Check:
    """One check: its remaining steps, and the patterns that it has compiled; `allowed` are those that it may search."""

    def __init__(self, allowed: frozenset[str] | None, skips_unevaluated: bool, most_steps: int) -> None:
        self.skips_unevaluated = skips_unevaluated
        self._allowed = allowed
        self._left = most_steps
        self._level = 0
        self._patterns: dict[str, Pattern] = {}
        self._keys: dict[int, frozenset[str]] = {}

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooManySteps

    def descend(self) -> None:
        """Enter a keyword inside the one being checked, until `ascend`. Raises `RecursionError`."""
        self._level += 1
        if self._level > _MAX_DEPTH:
            raise RecursionError

    def ascend(self) -> None:
        self._level -= 1

    def matches(self, pattern: str, text: str) -> bool | None:
        """Whether a text matches a pattern, or None if the pattern isn't searched."""
        known = self._patterns.get(pattern)
        if known is None:
            if self._allowed is not None and pattern not in self._allowed:
                return None
            known = self._patterns[pattern] = compile_pattern(pattern)
            self.spend(known.places * _PLACE)
        self.spend(_KEYWORD + len(text) * known.places // 10)
        return known.matches(text)

    def keys(self, values: Any) -> frozenset[str]:
        """The keys by which the values of a schema's `enum` are compared; see `_make_key`."""
        if id(values) not in self._keys:
            self._keys[id(values)] = frozenset(map(_make_key, values))
        return self._keys[id(values)]


_check: ContextVar[_Check] = ContextVar("_check")


class SchemaValidator:
    """Checks values against one schema, or against a `part` of it, whose references are those of the schema.

    `unchecked_rules` lists the rules of the schema that aren't enforced, and why. Raises jsonschema's `SchemaError` for
    an invalid JSON Schema, `RecursionError` if it is nested too deeply and `TooManySteps` if it is too large to be
    checked.
    """

    def __init__(self, schema: Mapping[str, Any], part: Mapping[str, Any] | None = None) -> None:
        import jsonschema
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        validators: Any = jsonschema.validators
        kind = validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        # The cost is linear in the schema; one with 10,000 nested schemas is still checked.
        for error in _collect_errors(_make_bounded(kind)(kind.META_SCHEMA), schema, _Check(None, False, 5 * MAX_STEPS)):
            raise SchemaError.create_from(error)
        self._allowed, unchecked = _examine_patterns(schema)
        # jsonschema itself searches the patterns to find properties that no other keyword has seen; they may be
        # anywhere, since a reference may lead anywhere.
        self._skips_unevaluated = '"patternProperties"' in json.dumps(schema, default=str)
        if self._skips_unevaluated and _has_keyword(schema, "unevaluatedProperties"):
            unchecked.append("unevaluatedProperties: it isn't checked beside patternProperties")
        self.unchecked_rules = tuple(unchecked)
        # An empty registry: without it, jsonschema would fetch what `$ref` names.
        resolver = _make_resolver(kind, schema)
        checked = schema if part is None else part
        self._validator = _make_bounded(kind)(checked, registry=Registry(), _resolver=resolver)

    def errors(self, value: Any) -> list[Any]:
        """jsonschema's errors. Raises `TooManySteps`, `RecursionError` and jsonschema's errors for references."""
        return _collect_errors(self._validator, value, _Check(self._allowed, self._skips_unevaluated, MAX_STEPS))


def make_validator(
    schema: Mapping[str, Any], part: Mapping[str, Any] | None = None
) -> tuple[SchemaValidator | None, str]:
    """Make the validator of a schema, or of a part of it, or say why there is none."""
    from jsonschema import SchemaError

    try:
        return SchemaValidator(schema, part), ""
    except SchemaError as error:
        return None, f"not a JSON Schema at {format_path(list(error.absolute_path))}: {error.message}"
    except RecursionError:
        return None, "it is nested too deeply"
    except TooManySteps:
        return None, "it is too large"


def _collect_errors(validator: Any, value: Any, check: _Check) -> list[Any]:
    token = _check.set(check)
    try:
        return list(validator.iter_errors(value))
    finally:
        _check.reset(token)


def _make_resolver(kind: Any, schema: Mapping[str, Any]) -> Any:
    """Resolves the references in a schema, crawled once: otherwise each reference to an anchor would crawl all of
    it."""
    import jsonschema
    from referencing import Specification
    from referencing.jsonschema import specification_with

    # Without a known specification, use the same default as its validator.
    specification: Any = specification_with(kind.ID_OF(kind.META_SCHEMA), default=Specification.OPAQUE)
    resource = specification.create_resource(schema)
    validators: Any = jsonschema.validators
    registry = validators.SPECIFICATIONS.with_resource(resource.id() or "", resource).crawl()
    return registry.resolver(resource.id() or "")


@cache
def _make_bounded(kind: Any) -> Any:
    """A validator class like jsonschema's, with its keywords counted, and the expensive ones replaced."""
    import jsonschema

    validators: Any = jsonschema.validators
    words = {
        word: _count_steps(_REPLACED.get(word, check), word in _REPLACED) for word, check in kind.VALIDATORS.items()
    }
    if "unevaluatedProperties" in words:
        words["unevaluatedProperties"] = _allow_skipping(words["unevaluatedProperties"])
    # 7.0 counts as an integer in JSON Schema; here it is converted first, for functions that index with it.
    checker = kind.TYPE_CHECKER.redefine_many({"integer": _is_integer, "boolean": _is_boolean})
    bounded: Any = validators.extend(kind, validators=words, type_checker=checker)
    bounded.evolve = _evolve
    return bounded


def _evolve(self: Any, **changes: Any) -> Any:
    """The validator with another schema: of the same class, even if that names another in its `$schema`."""
    resolver = changes.get("_resolver", self._resolver)
    return type(self)(changes.get("schema", self.schema), registry=self._registry, _resolver=resolver)


def _is_integer(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_boolean(_checker: Any, value: Any) -> bool:
    # Called at each step of following references for `unevaluatedProperties`, which checks no keyword.
    _check.get().spend(_KEYWORD)
    return isinstance(value, bool)


def _count_steps(check: Keyword, counts_itself: bool) -> Keyword:
    def check_counted(validator: Any, word: Any, value: Any, schema: Any) -> Iterator[Any]:
        current = _check.get()
        lengths = (0 if counts_itself else _measure(word)) + (0 if isinstance(value, str) else _measure(value))
        current.spend(_KEYWORD + lengths)
        try:
            current.descend()
            for error in check(validator, word, value, schema) or ():
                # It quotes the value and the schema, however large they are.
                current.spend(_KEYWORD + len(error.message))
                yield error
        finally:
            current.ascend()

    return check_counted


def _allow_skipping(check: Keyword) -> Keyword:
    def check_unless_skipped(validator: Any, word: Any, value: Any, schema: Any) -> Iterator[Any]:
        if not _check.get().skips_unevaluated:
            yield from check(validator, word, value, schema) or ()

    return check_unless_skipped


def _measure(value: Any) -> int:
    return len(value) if isinstance(value, str) else 10 * len(value) if isinstance(value, list | dict) else 0


def _make_key(value: Any) -> str:
    """A text that is the same for equal JSON values only: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return json.dumps(value)
    text = json.dumps(_normalize_numbers(value), sort_keys=True)
    _check.get().spend(len(text))
    return text


def _normalize_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {name: _normalize_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_numbers(inner) for inner in value]
    return value


def _check_unique_items(validator: Any, required: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if required and validator.is_type(value, "array") and len(set(map(_make_key, value))) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _check_enum(_validator: Any, allowed: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if _make_key(value) not in _check.get().keys(allowed):
        yield ValidationError(f"{value!r} is not one of {allowed!r}")


def _check_const(_validator: Any, allowed: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if _make_key(value) != _make_key(allowed):
        yield ValidationError(f"{allowed!r} was expected")


def _check_pattern(validator: Any, pattern: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and _check.get().matches(pattern, value) is False:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    for pattern, inner in patterns.items():
        for name, field in value.items():
            if _check.get().matches(pattern, name):
                yield from validator.descend(field, inner, path=name, schema_path=pattern)


def _check_additional_properties(validator: Any, additional: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not validator.is_type(value, "object"):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, field in value.items():
        # A pattern that isn't searched may match any name.
        if name in properties or any(_check.get().matches(pattern, name) is not False for pattern in patterns):
            continue
        if validator.is_type(additional, "object"):
            yield from validator.descend(field, additional, path=name)
        elif not additional:
            yield ValidationError("additional properties are not allowed", path=(name,), instance=field)


_REPLACED: Mapping[str, Keyword] = {
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional_properties,
    "uniqueItems": _check_unique_items,
    "enum": _check_enum,
    "const": _check_const,
}


def _iterate_schemas(schema: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A schema and those nested in it, each with its place."""
    if isinstance(schema, list | tuple):
        for number, inner in enumerate(schema):
            yield from _iterate_schemas(inner, f"{place}[{number}]")
    elif isinstance(schema, Mapping):
        yield place, schema
        for word, inner in schema.items():
            if word in _BY_NAME and isinstance(inner, Mapping):
                for name, field in inner.items():
                    yield from _iterate_schemas(
                        field, f"{place}.{name}" if word == "properties" else f"{place}.{word}.{name}"
                    )
            elif word not in _NOT_SCHEMAS:
                yield from _iterate_schemas(inner, place if word == "items" else f"{place}.{word}")


def _has_keyword(schema: Mapping[str, Any], word: str) -> bool:
    return any(word in inner for _, inner in _iterate_schemas(schema, ""))


def _examine_patterns(schema: Mapping[str, Any]) -> tuple[frozenset[str], list[str]]:
    """The patterns of a schema that can be searched, and the others with the reasons."""
    reasons: dict[str, str] = {}
    unchecked = []
    places = 0
    for place, inner in _iterate_schemas(schema, ""):
        one, many = inner.get("pattern"), inner.get("patternProperties")
        found = [("pattern", one)] if isinstance(one, str) else []
        found += [("patternProperties", name) for name in many] if isinstance(many, Mapping) else []
        for word, pattern in found:
            if pattern not in reasons:
                reasons[pattern], more = _find_refusal(pattern, MAX_SCHEMA_PLACES - places)
                places += more
            if reasons[pattern]:
                where = f"{place}.{word}".removeprefix(".")
                unchecked.append(f"{where}: {describe_value(pattern)} isn't checked: {reasons[pattern]}")
    return frozenset(pattern for pattern, reason in reasons.items() if not reason), unchecked


def _find_refusal(pattern: str, left: int) -> tuple[str, int]:
    """Why a pattern isn't searched, "" if it is, and its number of places."""
    if left <= 0:
        return "the schema's patterns are too large together", 0
    try:
        places = compile_pattern(pattern).places
    except PatternRefused as refusal:
        return str(refusal), 0
    return "", places
