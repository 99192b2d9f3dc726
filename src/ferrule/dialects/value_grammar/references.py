"""The references of a schema: what `$ref` names in the same document, and which of them lead back to themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from ferrule.toolspec import JSONSchema


class References:
    """The references within one schema document."""

    def __init__(self, document: JSONSchema) -> None:
        self._document = document
        self._targets: dict[str, Any] = {}
        self._recursive: dict[str, bool] = {}
        self._inside: dict[str, frozenset[str]] = {}

    def find(self, reference: str) -> Any:
        """What a reference names. Raises `LookupError` if it isn't in this document."""
        if reference not in self._targets:
            self._targets[reference] = self._resolve(reference)
        return self._targets[reference]

    def is_recursive(self, reference: str) -> bool:
        """Whether what a reference names contains it again, directly or through others."""
        if reference not in self._recursive:
            reached: set[str] = set()
            waiting = [reference]
            while waiting:
                for found in self._list_references(waiting.pop()):
                    if found not in reached:
                        reached.add(found)
                        waiting.append(found)
            self._recursive[reference] = reference in reached
        return self._recursive[reference]

    @cached_property
    def recursive_count(self) -> int:
        """How many references of the document lead back to themselves."""
        return sum(map(self.is_recursive, set(_iterate_references(self._document))))

    def _list_references(self, reference: str) -> frozenset[str]:
        """The references inside what this one names."""
        if reference not in self._inside:
            try:
                self._inside[reference] = frozenset(_iterate_references(self.find(reference)))
            except LookupError:
                self._inside[reference] = frozenset()
        return self._inside[reference]

    def _resolve(self, reference: str) -> Any:
        base, _, fragment = reference.partition("#")
        if base and base != self._document.get("$id"):
            raise LookupError(reference)
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors[fragment]
        found: Any = self._document
        for part in fragment.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                if not name.isdigit():
                    raise LookupError(reference)
                found = found[int(name)]
            elif isinstance(found, Mapping):
                found = found[name]
            else:
                raise LookupError(reference)
        return found

    @cached_property
    def _anchors(self) -> dict[str, Any]:
        return {one["$anchor"]: one for one in _iterate_mappings(self._document) if isinstance(one.get("$anchor"), str)}


def _iterate_mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)


def _iterate_references(value: Any) -> Iterator[str]:
    """Every `$ref` in a schema; also one that is data, which does no harm."""
    return (one["$ref"] for one in _iterate_mappings(value) if isinstance(one.get("$ref"), str))
