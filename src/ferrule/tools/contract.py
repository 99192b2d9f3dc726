"""Compares tools with an earlier release of them: is every call that was valid still valid?

What may be added: tools, optional parameters, further values and types. What breaks a contract: a tool or parameter
that is gone, a parameter that is required now, and any value that was accepted and isn't any more. A change that can't
be compared counts as one that breaks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ferrule.errors import SettingsError
from ferrule.tools.registry import find_nearest_names
from ferrule.toolspec import JSONSchema, ToolSpec

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_COMPARED_WHOLE = (
    "pattern", "format", "multipleOf", "uniqueItems", "allOf", "not", "if", "then", "else", "contains", "minContains",
    "maxContains", "propertyNames", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_ANYTHING: Mapping[str, Any] = {}


def read_contract(text: str | bytes, name: str) -> list[ToolSpec]:
    """Read tools as `ferrule tools --json` prints them, or in the shape of OpenAI, Anthropic or MCP.

    `name` is that of the file, for errors. Raises `SettingsError` for anything else.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{name}: not JSON: {error}") from error
    if isinstance(data, Mapping):
        data = data.get("tools")
    if not isinstance(data, list):
        raise SettingsError(f"{name}: not a list of tools; write it by: ferrule tools --json > {name}")
    return [_read_tool(one, f"{name}: tool {number}") for number, one in enumerate(data, 1)]


def _read_tool(data: Any, place: str) -> ToolSpec:
    if isinstance(data, Mapping) and isinstance(data.get("function"), Mapping):
        data = data["function"]
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise SettingsError(f"{place}: has no name")
    given = [data[key] for key in ("parameters", "input_schema", "inputSchema") if key in data]
    if not given or not isinstance(given[0], Mapping):
        raise SettingsError(f"{place} ({data['name']}): has no parameters, a JSON Schema")
    return ToolSpec(data["name"], str(data.get("description") or ""), given[0])


def find_broken_contracts(old: Iterable[ToolSpec], new: Iterable[ToolSpec]) -> list[str]:
    """Find what breaks the contracts of `old` tools in `new` ones, a line each."""
    offered = {one.name: one for one in new}
    broken: list[str] = []
    for tool in old:
        current = offered.get(tool.name)
        if current is None:
            near = find_nearest_names(tool.name, offered)
            broken.append(f"the tool {tool.name} is gone{f'; renamed to {near[0]}?' if near else ''}")
            continue
        comparison = _Comparison(tool.parameters, current.parameters)
        broken += [f"{tool.name}: {reason}" for reason in comparison.compare(tool.parameters, current.parameters, ())]
    return broken


class _Comparison:
    """Finds values that one schema accepts and another doesn't. `$ref`s are resolved in the schemas' roots."""

    def __init__(self, old: JSONSchema, new: JSONSchema) -> None:
        self._old = old
        self._new = new
        self._seen: set[tuple[int, int]] = set()

    def compare(self, old: Any, new: Any, path: Sequence[str]) -> Iterator[str]:
        """Say what `new` refuses of what `old` accepts."""
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        if old is False or new is True or (id(old), id(new)) in self._seen:
            return
        if new is False:
            yield f"{_name(path)} is gone"
            return
        # A schema that refers to itself is compared once; both roots live as long as this, so ids are not reused.
        self._seen.add((id(old), id(new)))
        old = _ANYTHING if old is True else old
        olds, news = _list_options(old), _list_options(new)
        if len(olds) == len(news) == 1:
            if olds[0] is old and news[0] is new:
                yield from self._compare_one(old, new, path)
            else:  # the only option may be a reference or have options itself
                yield from self.compare(olds[0], news[0], path)
            return
        for option in olds:
            if not any(self._accepts(option, other, path) for other in news):
                yield f"{_name(path)} no longer accepts {_describe(_resolve(option, self._old))}"

    def _accepts(self, old: Any, new: Any, path: Sequence[str]) -> bool:
        before = set(self._seen)
        accepted = next(self.compare(old, new, path), None) is None
        self._seen = before
        return accepted

    def _compare_one(self, old: Mapping[str, Any], new: Mapping[str, Any], path: Sequence[str]) -> Iterator[str]:
        name, before = _name(path), _list_values(old)
        if before is not None:
            refused = [one for one in before if self._accepts_value(old, self._old, one)]
            refused = [one for one in refused if not self._accepts_value(new, self._new, one)]
            if refused:
                yield f"{name} no longer accepts {_write(refused)}"
            return
        if lost := _list_types(old) - _list_types(new) - ({"integer"} if "number" in _list_types(new) else set()):
            yield f"{name} no longer accepts {', '.join(sorted(lost))}"
        if (allowed := _list_values(new)) is not None:
            yield f"{name} accepts only {_write(allowed)}"
        yield from _compare_limits(old, new, name)
        yield from self._compare_fields(old, new, path)
        if "items" in new:
            yield from self.compare(old.get("items", True), new["items"], (*path, "[]"))

    @staticmethod
    def _accepts_value(schema: Mapping[str, Any], root: JSONSchema, value: Any) -> bool:
        from ferrule.tools.schema_validator import SchemaValidator

        definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return not SchemaValidator({**definitions, **schema}).errors(value)

    def _compare_fields(self, old: Mapping[str, Any], new: Mapping[str, Any], path: Sequence[str]) -> Iterator[str]:
        had, has = old.get("properties", {}), new.get("properties", {})
        for field in new.get("required", ()):
            if field not in old.get("required", ()):
                yield f"{_name((*path, field))} is required now"
        for field, schema in had.items():
            if field in has:
                yield from self.compare(schema, has[field], (*path, field))
            else:
                near = find_nearest_names(field, set(has) - set(had))
                yield f"{_name((*path, field))} is gone{f'; renamed to {near[0]}?' if near else ''}"
        rest, before = new.get("additionalProperties", True), old.get("additionalProperties", True)
        if rest is False and before is not False and "object" in _list_types(old):
            yield f"{_name(path)} no longer accepts other fields"
        elif rest not in (True, False):
            yield from self.compare(before, rest, (*path, "*"))


def _compare_limits(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Iterator[str]:
    for key in _LOWER:
        if key in new and (key not in old or new[key] > old[key]):
            yield f"{name} has {key} {new[key]}{f', before {old[key]}' if key in old else ''}"
    for key in _UPPER:
        if key in new and (key not in old or new[key] < old[key]):
            yield f"{name} has {key} {new[key]}{f', before {old[key]}' if key in old else ''}"
    for key in _COMPARED_WHOLE:
        if key in new and new[key] != old.get(key):
            yield f"{name} has another {key}: {_write([new[key]])}"


def _resolve(schema: Any, root: JSONSchema) -> Any:
    """Follow the `$ref`s of a schema; one that leads nowhere accepts nothing that can be compared."""
    for _ in range(100):
        if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
            return schema
        found: Any = root
        for part in schema["$ref"].removeprefix("#").strip("/").split("/"):
            if part:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        schema = False if found is None else found
    return False


def _list_options(schema: Mapping[str, Any]) -> list[Any]:
    return list(schema.get("anyOf") or schema.get("oneOf") or [schema])


def _list_types(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("type")
    types = set(_TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    return types | {"integer"} if "number" in types else types


def _list_values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None


def _name(path: Sequence[str]) -> str:
    return ".".join(path).replace(".[]", "[]") or "the call"


def _write(values: Sequence[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _describe(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    values = _list_values(schema)
    return _write(values) if values is not None else str(schema.get("type", "some values"))
