"""Compares tools with an earlier release of them: is every call that was valid still valid, and means the same?

What may be added: tools, optional parameters, further values and types, fields of results. What breaks a contract: a
tool or parameter that is gone, a parameter that is required now, a value that was accepted and isn't any more, another
default, a result that the output schema of before doesn't describe, an annotation that a policy may rely on and that
doesn't hold any more, an approval that wasn't needed. A change that can't be compared counts as one that breaks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from ferrule.errors import SettingsError
from ferrule.tools.registry import find_nearest_names
from ferrule.toolspec import Annotations, Approval, JSONSchema

if TYPE_CHECKING:
    from ferrule.tools.decorator import Tool

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_COMPARED_WHOLE = (
    "pattern", "format", "multipleOf", "uniqueItems", "allOf", "not", "if", "then", "else", "contains", "minContains",
    "maxContains", "propertyNames", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_ANYTHING: Mapping[str, Any] = {}
_HINTS = (
    ("read_only", "readOnlyHint", True), ("destructive", "destructiveHint", False),
    ("idempotent", "idempotentHint", True), ("open_world", "openWorldHint", False),
)  # fmt: skip
"""Each annotation, MCP's name for it, and the value that a caller may rely on."""
_WRITE_IT = "write it by: ferrule tools --json"


@dataclass(frozen=True, slots=True)
class ToolContract:
    """What callers of a tool can rely on."""

    name: str
    parameters: JSONSchema
    output_schema: JSONSchema | None = None
    annotations: Annotations = field(default_factory=Annotations)
    approval: Approval | Literal["by policy", "unknown"] = "unknown"

    @classmethod
    def of(cls, tool: Tool) -> ToolContract:
        """The contract of a tool."""
        spec = tool.spec
        return cls(spec.name, spec.parameters, tool.output_schema, spec.annotations, spec.approval or "by policy")


def read_contract(text: str | bytes, name: str) -> list[ToolContract]:
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
        raise SettingsError(f"{name}: not a list of tools; {_WRITE_IT} > {name}")
    if not data:
        raise SettingsError(f"{name}: has no tools, so there is nothing to compare; {_WRITE_IT} FILE|FOLDER > {name}")
    contracts = [_read_tool(one, f"{name}: tool {number}") for number, one in enumerate(data, 1)]
    names = [one.name for one in contracts]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise SettingsError(f"{name}: has the tool {twice} twice; {_WRITE_IT} > {name}")
    return contracts


def _read_tool(data: Any, place: str) -> ToolContract:
    if isinstance(data, Mapping) and isinstance(data.get("function"), Mapping):
        data = data["function"]
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise SettingsError(f"{place}: has no name")
    given = [data[key] for key in ("parameters", "input_schema", "inputSchema") if key in data]
    if not given or not isinstance(given[0], Mapping):
        raise SettingsError(f"{place} ({data['name']}): has no parameters, a JSON Schema")
    place = f"{place} ({data['name']})"
    _check_schema(given[0], f"{place}: its parameters")
    if given[0].get("type", "object") != "object":
        raise SettingsError(f"{place}: its parameters are not an object")
    output = next((data[key] for key in ("output_schema", "outputSchema") if data.get(key) is not None), None)
    if output is not None:
        _check_schema(output, f"{place}: its output schema")
    annotations = _read_annotations(data.get("annotations"), place)
    return ToolContract(data["name"], given[0], output, annotations, _read_approval(data, place))


def _read_approval(data: Mapping[str, Any], place: str) -> Literal["always", "never", "by policy", "unknown"]:
    found = data.get("approval", "unknown")
    if found is None:
        return "by policy"
    if found not in ("always", "never", "unknown"):
        raise SettingsError(f"{place}: its approval is {found!r}; expected always, never or null")
    return cast('Literal["always", "never", "unknown"]', found)


def _check_schema(schema: Any, place: str) -> None:
    from ferrule.tools.schema_validator import make_validator

    try:
        _, problem = make_validator(schema)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{place}: not a JSON Schema: {error}") from error
    if problem:
        raise SettingsError(f"{place}: {problem}")


def _read_annotations(data: Any, place: str) -> Annotations:
    if data is None:
        return Annotations()
    if not isinstance(data, Mapping):
        raise SettingsError(f"{place}: its annotations are not an object")
    found = {name: data.get(name, data.get(mcp_name)) for name, mcp_name, _ in _HINTS}
    wrong = next((name for name, value in found.items() if not (value is None or isinstance(value, bool))), None)
    if wrong is not None:
        raise SettingsError(f"{place}: its annotation {wrong} is not true, false or null")
    return Annotations(**found)


def find_broken_contracts(old: Iterable[ToolContract], new: Iterable[ToolContract]) -> list[str]:
    """Find what breaks the contracts of `old` tools in `new` ones, a line each."""
    offered = {one.name: one for one in new}
    broken: list[str] = []
    for tool in old:
        current = offered.get(tool.name)
        if current is None:
            near = find_nearest_names(tool.name, offered)
            broken.append(f"the tool {tool.name} is gone{f'; renamed to {near[0]}?' if near else ''}")
            continue
        broken += [f"{tool.name}: {reason}" for reason in _compare_tools(tool, current)]
    return broken


def _compare_tools(old: ToolContract, new: ToolContract) -> Iterator[str]:
    yield from _Comparison(old.parameters, new.parameters).compare(old.parameters, new.parameters, ())
    if old.output_schema is not None and new.output_schema is None:
        yield "its output schema is gone"
    elif old.output_schema is not None:
        # What is returned now must be what callers were told to expect.
        comparison = _Comparison(new.output_schema, old.output_schema, of_results=True)
        yield from comparison.compare(new.output_schema, old.output_schema, ("result",))
    for name, _, relied in _HINTS:
        before, now = getattr(old.annotations, name), getattr(new.annotations, name)
        if before is relied and now is not relied:
            yield f"its annotation {name} is {_write([now])}, before {_write([before])}: policies may rely on it"
    if new.approval == "always" and old.approval in ("never", "by policy"):
        yield "each call must be approved now"
    elif old.approval == "never" and new.approval != "never":
        yield "its calls may have to be approved now"


class _Comparison:
    """Finds values that one schema accepts and another doesn't. `$ref`s are resolved in the schemas' roots.

    With `of_results`, `old` describes what is returned now and `new` what was promised: the words are those of a caller
    who gets a value the other way round, and fields may be added.
    """

    def __init__(self, old: JSONSchema | None, new: JSONSchema | None, *, of_results: bool = False) -> None:
        self._old = old or _ANYTHING
        self._new = new or _ANYTHING
        self._of_results = of_results
        self._lost = "may also be" if of_results else "no longer accepts"
        self._seen: set[tuple[int, int]] = set()

    def compare(self, old: Any, new: Any, path: Sequence[str]) -> Iterator[str]:
        """Say what `new` refuses of what `old` accepts."""
        old, new = _resolve(old, self._old), _resolve(new, self._new)
        if old is False or new is True or (id(old), id(new)) in self._seen:
            return
        if new is False:
            yield f"{_name(path)} is {'new' if self._of_results else 'gone'}"
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
                yield f"{_name(path)} {self._lost} {_describe(_resolve(option, self._old))}"

    def _accepts(self, old: Any, new: Any, path: Sequence[str]) -> bool:
        before = set(self._seen)
        accepted = next(self.compare(old, new, path), None) is None
        self._seen = before
        return accepted

    def _compare_one(self, old: Mapping[str, Any], new: Mapping[str, Any], path: Sequence[str]) -> Iterator[str]:
        name, before = _name(path), _list_values(old)
        if before is not None:
            accepted = make_check(old, self._old, if_unknown=True)
            accepts = make_check(new, self._new, if_unknown=False)
            if refused := [one for one in before if accepted(one) and not accepts(one)]:
                yield f"{name} {self._lost} {_write(refused)}"
            return
        if lost := _list_types(old) - _list_types(new) - ({"integer"} if "number" in _list_types(new) else set()):
            yield f"{name} {self._lost} {', '.join(sorted(lost))}"
        if (allowed := _list_values(new)) is not None:
            yield f"{name} {'may be other than' if self._of_results else 'accepts only'} {_write(allowed)}"
        yield from self._compare_limits(old, new, name)
        yield from self._compare_fields(old, new, path)
        if "items" in new:
            yield from self.compare(old.get("items", True), new["items"], (*path, "[]"))

    def _compare_fields(self, old: Mapping[str, Any], new: Mapping[str, Any], path: Sequence[str]) -> Iterator[str]:
        had, has = old.get("properties", {}), new.get("properties", {})
        for key in new.get("required", ()):
            if key not in old.get("required", ()):
                yield f"{_name((*path, key))} {'may be missing' if self._of_results else 'is required now'}"
        for key, schema in had.items():
            if key in has:
                yield from self.compare(schema, has[key], (*path, key))
                yield from self._compare_defaults(schema, has[key], (*path, key))
            elif not self._of_results:
                near = find_nearest_names(key, set(has) - set(had))
                yield f"{_name((*path, key))} is gone{f'; renamed to {near[0]}?' if near else ''}"
        if self._of_results:
            gone = [key for key in has if key not in had and key not in new.get("required", ())]
            yield from (f"{_name((*path, key))} is gone" for key in gone)
            return
        rest, before = new.get("additionalProperties", True), old.get("additionalProperties", True)
        if rest is False and before is not False and "object" in _list_types(old):
            yield f"{_name(path)} no longer accepts other fields"
        elif rest not in (True, False):
            yield from self.compare(before, rest, (*path, "*"))

    def _compare_defaults(self, old: Any, new: Any, path: Sequence[str]) -> Iterator[str]:
        """A caller who leaves a parameter out relies on its default."""
        if self._of_results or not isinstance(old, Mapping) or "default" not in old or not isinstance(new, Mapping):
            return
        if "default" not in new:
            yield f"{_name(path)} has no default, before {_write([old['default']])}"
        elif not _is_same(old["default"], new["default"]):
            yield f"{_name(path)} has the default {_write([new['default']])}, before {_write([old['default']])}"

    def _compare_limits(self, old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Iterator[str]:
        """`new` has the stricter limits; of results, they were promised before."""
        for key in (*_LOWER, *_UPPER):
            if key in new and (key not in old or (new[key] > old[key] if key in _LOWER else new[key] < old[key])):
                if self._of_results:
                    yield f"{name} has {f'{key} {old[key]}' if key in old else f'no {key}'}, before {new[key]}"
                else:
                    yield f"{name} has {key} {new[key]}{f', before {old[key]}' if key in old else ''}"
        for key in _COMPARED_WHOLE:
            if key in new and new[key] != old.get(key):
                given = old.get(key) if self._of_results else new[key]
                yield f"{name} has another {key}: {_write([given])}"


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


def make_check(schema: Mapping[str, Any], root: JSONSchema, *, if_unknown: bool) -> Callable[[Any], bool]:
    """Make a function that tells whether a part of a schema accepts a value; `if_unknown` where that can't be found."""
    from ferrule.tools.schema_validator import SchemaValidator

    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    validator = SchemaValidator({**definitions, **schema})

    def accepts(value: Any) -> bool:
        try:
            return not validator.errors(value)
        except Exception:  # noqa: BLE001 - a reference to nothing, or without an end, fails in any way
            return if_unknown

    return accepts


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


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; Python's 1, 1.0 and True are, and the last is none to JSON."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _name(path: Sequence[str]) -> str:
    return ".".join(path).replace(".[]", "[]") or "the call"


def _write(values: Sequence[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _describe(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    values = _list_values(schema)
    return _write(values) if values is not None else str(schema.get("type", "some values"))
