"""What a tool's JSON Schema says about one argument, and the JSON that a plain text represents under it.

All notations that write values without quotes share this order. A string stays as it is; then, as far as the schema
allows: null, an integer, a number, true or false, an object or a list (as JSON, or else as a Python literal, or as JSON
that was escaped twice). Anything else stays a string, for validation to report. NaN and Infinity are not JSON and stay
strings.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ferrule.tools.schema_types import standardize_type

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_EVERY = frozenset({"null", "integer", "number", "boolean", "object", "array"})
_LITERALS = {"null": "null", "none": "null", "true": "true", "false": "false"}
_UNIONS = ("anyOf", "oneOf")
_TYPED = frozenset({"type", "enum", "const", "properties"})
_DEEPEST = 16
LONGEST_SCALAR = 4_000
"""Python refuses to parse integers with more digits than about this."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """One argument. `types` are the JSON types that its schema allows; empty if nothing is known about it."""

    types: frozenset[str] = frozenset()
    choices: tuple[Any, ...] = ()

    @property
    def is_string(self) -> bool:
        """Whether it can only be a string: then its text needn't be complete to be understood."""
        return self.types == {"string"}

    def to_json(self, text: str) -> str:
        """The JSON that `text` represents."""
        if self.is_string or ("string" in self.types and text in self.choices):
            return _quote(text)
        stripped = text.strip()
        wanted = self.types or _EVERY
        found = _convert_scalar(stripped, wanted) or _convert_structure(stripped, wanted)
        return found or _quote(text)


class ToolParameters:
    """The parameters of one tool."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._known: dict[str, ParameterType] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its properties, in the schema's order."""
        properties = self.schema.get("properties")
        return tuple(properties) if isinstance(properties, Mapping) else ()

    @property
    def has_more(self) -> bool:
        """Whether the schema allows other parameters than its properties."""
        return self.schema.get("additionalProperties", False) is not False or "patternProperties" in self.schema

    def get(self, key: str) -> ParameterType:
        """What is known about the parameter `key`."""
        if key not in self._known:
            properties = self.schema.get("properties")
            found = properties.get(key) if isinstance(properties, Mapping) else None
            if found is None:
                found = self.schema.get("additionalProperties")
            self._known[key] = read_parameter_type(found, self.schema)
        return self._known[key]

    def accepts(self, arguments: Any) -> bool:
        """Whether arguments fit the schema at any depth: types, choices and required keys."""
        return _Fitting(self.schema).fits(arguments, self.schema)


class _Fitting:
    """Whether values fit parts of one schema. Results are cached: alternatives check the same value again, twice as
    often with each level."""

    __slots__ = ("_known", "_root")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        # Together with the schema, which keeps its id unique.
        self._known: dict[tuple[int, int], tuple[bool, Any]] = {}

    def fits(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Whether a JSON value fits the schema at any depth: its types, choices and required keys."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return True
        key = (id(value), id(schema))
        if key not in self._known:
            found = any(self._fits_part(value, part, depth) for part in list_alternatives(schema, self._root))
            self._known[key] = found, schema
        return self._known[key][0]

    def _fits_part(self, value: Any, part: Mapping[str, Any], depth: int) -> bool:
        types = read_parameter_type(part, self._root).types
        kind = name_type(value)
        if types and kind not in types and not (kind == "integer" and "number" in types):
            return False
        if isinstance(part.get("enum"), list) and value not in part["enum"]:
            return False
        if isinstance(value, list):
            return all(self.fits(item, part.get("items"), depth + 1) for item in value)
        if not isinstance(value, dict):
            return True
        properties = part.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = part.get("required")
        # Draft 3 has a boolean here, and each property says whether it is required.
        if isinstance(required, list) and any(key not in value for key in required):
            return False
        if part.get("additionalProperties") is False and set(value) - set(properties):
            return False
        return all(self.fits(item, properties.get(key), depth + 1) for key, item in value.items())


def read_parameter_type(schema: Any, root: Mapping[str, Any]) -> ParameterType:
    """What a schema allows, with references and alternatives followed."""
    types: set[str] = set()
    choices: list[Any] = []
    for part in list_alternatives(schema, root):
        named = part.get("type")
        values = part.get("enum", [part["const"]] if "const" in part else [])
        values = values if isinstance(values, list) else []
        choices += values
        if named is None:
            types |= {name_type(value) for value in values} or ({"object"} if "properties" in part else {"any"})
        types.update(named if isinstance(named, list) else [named] if named else [])
    return ParameterType() if "any" in types else ParameterType(frozenset(types), tuple(choices))


def find_subschema(schema: Any, key: str | None, root: Mapping[str, Any] | None) -> Any:
    """The schema of a property, or of a list's items if `key` is None; None if there is none."""
    for part in list_alternatives(schema, root or {}):
        properties = part.get("properties")
        if key is None:
            found = part.get("items")
        elif isinstance(properties, Mapping) and key in properties:
            found = properties[key]
        else:
            found = part.get("additionalProperties")
        if found is not None:
            return found
    return None


def list_alternatives(schema: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema. Each reference is followed once: again it adds nothing, or loops."""
    return list(_follow(schema, root, set(), 0))


def _follow(schema: Any, root: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    schema = standardize_type(schema)
    if schema.get("nullable") is True:
        # OpenAPI writes it next to a reference, too.
        yield {"type": "null"}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference not in seen:
            seen.add(reference)
            yield from _follow(resolve_reference(reference, root), root, seen, depth + 1)
        return
    if "type" in schema or not any(_as_list(schema.get(word)) for word in (*_UNIONS, "allOf")):
        yield schema
        return
    unions = [branch for word in _UNIONS for branch in _as_list(schema.get(word))]
    found = [part for branch in unions for part in _follow(branch, root, seen, depth + 1)]
    bounds = [part for branch in _as_list(schema.get("allOf")) for part in _follow(branch, root, seen, depth + 1)]
    # In `allOf`, a schema without a type (a length, a description) does not allow every type.
    found += [part for part in bounds if not _TYPED.isdisjoint(part)]
    yield from found or bounds


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    """The target of a local reference (`#/$defs/Place`); None if there is none."""
    if reference != "#" and not reference.startswith("#/"):
        # A reference to another document, or to an anchor.
        return None
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def name_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null"


def _convert_scalar(text: str, types: frozenset[str]) -> str | None:
    literal = _LITERALS.get(text.lower())
    if literal is not None and literal != text and "string" in types:
        # `None` may be a name; only `null` can be nothing else.
        return None
    if literal == "null":
        return literal if "null" in types else None
    if literal is not None:
        return literal if "boolean" in types else None
    if "integer" in types and len(text) <= LONGEST_SCALAR and _WHOLE.fullmatch(text):
        return text
    if types & {"number", "integer"} and _NUMBER.fullmatch(text):
        value = float(text) if len(text) < 400 else float("inf")
        if "number" in types and value - value == 0:
            return text
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
    return None


def _convert_structure(text: str, types: frozenset[str]) -> str | None:
    if not text or text[0] not in "{[(" or not types & {"object", "array"}:
        return None
    is_json = True
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        is_json = False
        value = _parse_python(text)
        if value is None and "string" not in types:
            value = _decode_escaped(text)
    wanted = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
    if wanted not in types:
        return None
    return text if is_json else json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parse_python(text: str) -> Any:
    """A Python literal as JSON values; None if it is not one, or holds something that JSON can't."""
    try:
        value = ast.literal_eval(text)
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _decode_escaped(text: str) -> Any:
    """The value of JSON that was escaped twice, as if for a string; None if it is something else."""
    try:
        value = json.loads(json.loads(f'"{text}"'), parse_constant=_refuse)
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
