"""The types of a schema as JSON Schema's, whatever language they were written in.

Tool documentation says `Boolean`, `long`, `ArrayList`, `String[]`, `List<Integer>`, `Optional[str]`, `float64`. Offers
and readers both use this module, so that they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

_NAMES = {
    "string": "str text char character varchar uuid guid url uri email date datetime date-time time cstring wstring",
    "integer": "int long short byte bigint smallint tinyint biginteger int8 int16 int32 int64 uint uint8 uint16 uint32 "
    "uint64 ulong ushort usize isize i8 i16 i32 i64 u8 u16 u32 u64",
    "number": "float double decimal real numeric num bigdecimal float16 float32 float64 f32 f64",
    "boolean": "bool",
    "object": "dict dictionary map hashmap treemap linkedhashmap mapping record struct json jsonobject defaultdict "
    "ordereddict",
    "array": "list arraylist linkedlist tuple set hashset treeset frozenset vector vec slice sequence iterable "
    "collection deque queue jsonarray ndarray",
    "null": "none nonetype nil void undefined",
}
_STANDARD = {name: kind for kind, names in _NAMES.items() for name in (kind, *names.split())}
_MAX_LENGTH = 200
_ASIDE = re.compile(r",\s*(?:optional|required|default\b.*)$", re.IGNORECASE)
_LIST_OF = re.compile(r"(?:array|list|set|sequence)s?\s+of\s+(.+)", re.IGNORECASE)
_SIZED = re.compile(r"(.+?)\s*\[\d*\]")
_GENERIC = re.compile(r"([\w.\-]+)\s*(?:<(.*)>|\[(.*)\]|\((.*)\))")
_ANYTHING: Mapping[str, Any] = MappingProxyType({})


def standardize_type(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its own type as JSON Schema's; the same object if it already is.

    A type that is more than a name (`List<Integer>`) is expanded to the corresponding keywords, unless the schema has
    these itself. An unknown type is removed: the schema then allows anything. Nested schemas are unchanged.
    """
    given = schema.get("type")
    if given is None and "type" not in schema:
        return schema
    kinds = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    is_standard = bool(kinds) and all(isinstance(one, str) and one in _NAMES for one in kinds)
    if is_standard and len(set(kinds)) == len(kinds):
        return schema
    said = _make_union([_parse_type(kind) if isinstance(kind, str) else _ANYTHING for kind in kinds])
    if isinstance(given, list | tuple) and isinstance(said.get("type"), str):
        said = {**said, "type": [said["type"]]}
    return {**said, **{key: value for key, value in schema.items() if key != "type"}}


@lru_cache(maxsize=1024)
def _parse_type(text: str) -> Mapping[str, Any]:
    """A type as a schema; empty if it is unknown."""
    if len(text) > _MAX_LENGTH:
        return _ANYTHING
    text = _ASIDE.sub("", text.strip()).strip()
    named = _STANDARD.get(text.rpartition(".")[2].lower())
    if named:
        return {"type": named}
    parts = [part for piece in _split(text, "|") for part in re.split(r"\s+or\s+", piece)]
    if len(parts) > 1:
        return _make_union([_parse_type(part) for part in parts])
    if text.endswith("?"):
        return _make_union([_parse_type(text[:-1]), {"type": "null"}])
    listed = _LIST_OF.fullmatch(text)
    if listed:
        items = _parse_type(listed[1]) or _parse_type(listed[1].removesuffix("s"))
        return {"type": "array", "items": items} if items else {"type": "array"}
    sized = _SIZED.fullmatch(text)
    if sized:
        return _make_list([sized[1]])
    generic = _GENERIC.fullmatch(text)
    if generic:
        return _parse_generic(generic[1].rpartition(".")[2].lower(), next(filter(None, generic.groups()[1:]), ""))
    return _ANYTHING


def _parse_generic(name: str, inside: str) -> Mapping[str, Any]:
    """Parse a type with others in brackets: `Map<String, Integer>`, `Union[int, str]`, `varchar(20)`."""
    arguments = [one for one in _split(inside, ",") if one not in ("", "...")]
    if name == "optional":
        return _make_union([*map(_parse_type, arguments), {"type": "null"}])
    if name == "union":
        return _make_union([_parse_type(one) for one in arguments])
    if name in ("annotated", "required", "final"):
        return _parse_type(arguments[0]) if arguments else _ANYTHING
    kind = _STANDARD.get(name)
    if kind == "array":
        return _make_list(arguments)
    if kind == "object":
        values = _parse_type(arguments[-1]) if len(arguments) > 1 else _ANYTHING
        return {"type": kind, "additionalProperties": values} if values else {"type": kind}
    return {"type": kind} if kind else _ANYTHING


def _make_list(items: list[str]) -> Mapping[str, Any]:
    """A list, with the type of its items if they all have the same."""
    kinds = [_parse_type(one) for one in items]
    same = bool(kinds) and bool(kinds[0]) and all(kind == kinds[0] for kind in kinds)
    return {"type": "array", "items": kinds[0]} if same else {"type": "array"}


def _make_union(schemas: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if len(schemas) == 1:
        return schemas[0]
    if not schemas or not all(schemas):
        return _ANYTHING
    if any(set(one) != {"type"} for one in schemas):
        return {"anyOf": schemas}
    kinds = [kind for one in schemas for kind in (one["type"] if isinstance(one["type"], list) else [one["type"]])]
    unique = list(dict.fromkeys(kinds))
    return {"type": unique if len(unique) > 1 else unique[0]}


def _split(text: str, separator: str) -> list[str]:
    """Split a text at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<[(") - (character in ">])")
        if character == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
