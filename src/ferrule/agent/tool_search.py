"""Offers many tools lazily: the model searches for tools, and those it finds are offered from then on.

The offer depends on the conversation alone, so it is the same when that is resumed; tools are only appended to it, so
that the prefix caches of providers and engines stay valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated
from weakref import WeakKeyDictionary

from ferrule._util.bm25 import Bm25, list_best
from ferrule.conversation import Conversation, Message, ToolCall
from ferrule.errors import RegistryError
from ferrule.execution.results import NAME as READ_RESULT
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import BoundRegistry
from ferrule.toolspec import ToolSpec, render_openai_function

NAME = "search_tools"
MANY = 40
"""With more tools than this, `auto` offers them lazily."""
LARGE = 20_000
"""So it does with more than `FEW` tools whose offers have more characters than this."""
FEW = 8
"""Searching among so few costs more than it saves."""
_MOST_FOUND = 20
_RESULT = 20_000
"""The most characters of one result: few enough that the executor doesn't cut it."""

_sizes: WeakKeyDictionary[Tool, int] = WeakKeyDictionary()


def is_large(registry: BoundRegistry) -> bool:
    """Whether these are too many tools to offer all at once, not counting those that are always offered."""
    others = [tool for tool in registry.tools if not tool.always_offered]
    if len(others) > MANY:
        return True
    return len(others) > FEW and sum(map(_measure_offer, others)) > LARGE


class LazyTools:
    """The tools of a run, only some of which are offered. `registry` holds all of them and the search tool."""

    def __init__(self, registry: BoundRegistry, always: str | None = None) -> None:
        if NAME in registry:
            raise RegistryError(f"a tool has the name of the search tool, {NAME!r}: rename it, or pass lazy=False")
        self._all = {spec.name: spec for spec in registry.specs}
        first = [tool.name for tool in registry.tools if tool.always_offered]
        self._first = dict.fromkeys(name for name in (*first, READ_RESULT, always or "") if name in self._all)
        self._search_tool = Tool.from_callable(
            self._search_tools,
            name=NAME,
            description=self._description,
            read_only=True,
            idempotent=True,
            open_world=False,
        )
        self.registry = BoundRegistry((*registry.tools, self._search_tool))
        self._named: dict[str, tuple[str, ...]] = {}

    def select_offers(self, conversation: Conversation) -> tuple[ToolSpec, ...]:
        """Return the offers for the next message: the search tool, those always offered, found, and called unfound."""
        names = dict(self._first)
        for message in conversation.messages:
            names |= dict.fromkeys(self._find_learned_names(message))
        return (self._search_tool.spec, *(self._all[name] for name in names))

    def _find_learned_names(self, message: Message) -> Iterator[str]:
        """Yield the names of the tools that the model learned from a message."""
        if message.role == "assistant":
            called = (call.name for call in message.calls if isinstance(call, ToolCall))
            yield from (name for name in called if name in self._all)
        elif message.role == "tool" and message.result.name == NAME and message.result.status == "ok":
            yield from self._parse_names(message.result.text)

    def _parse_names(self, text: str) -> tuple[str, ...]:
        found = self._named.get(text)
        if found is None:
            found = self._named[text] = tuple(name for name in map(_parse_name, text.splitlines()) if name in self._all)
        return found

    @property
    def _description(self) -> str:
        return (
            f"Find {'more ' if self._first else ''}tools by what they do: {len(self._all) - len(self._first)} can be "
            "used, and those that a search finds can be called from then on. Search before you say that something "
            "can't be done."
        )

    @cached_property
    def _index(self) -> ToolIndex:
        return ToolIndex(tuple(spec for name, spec in self._all.items() if name not in self._first))

    def _search_tools(
        self,
        query: Annotated[str, "Words for what a tool should do, or its name"],
        limit: Annotated[int, "How many to find at most"] = 5,
    ) -> str:
        """Find tools."""
        lines: list[str] = []
        for spec in self._index.search(query, min(max(1, limit), _MOST_FOUND)):
            lines.append(_dump_offer(spec))
            if len(lines) > 1 and sum(map(len, lines)) > _RESULT:
                lines.pop()
                break
        if not lines:
            return f"No tool fits {query!r}. Search again in other words."
        return "\n".join(["These tools can be called now:", *lines])


def _dump_offer(spec: ToolSpec) -> str:
    return json.dumps(render_openai_function(spec), ensure_ascii=False)


def _parse_name(line: str) -> str:
    """Return the name of the tool that a line of a result describes, "" for any other line."""
    if not line.startswith("{"):
        return ""
    try:
        return str(json.loads(line).get("name", ""))
    except ValueError:  # a line that was cut
        return ""


def _measure_offer(tool: Tool) -> int:
    """Count the characters of a tool's offer."""
    if tool not in _sizes:
        _sizes[tool] = len(_dump_offer(tool.spec))
    return _sizes[tool]


_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ed|es|s|e)$")
_NAME_COUNTS = 3
"""A word of the name counts as this many of the description."""
_SATURATION, _LENGTH = 1.2, 0.75
"""BM25's k1 and b, as Robertson and Zaragoza (2009) give them."""


class ToolIndex:
    """Ranks tools by BM25 over names, descriptions and parameters. A query finds the same tools in the same order."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        self._index = Bm25.build([_split_words(_collect_text(spec)) for spec in specs], _SATURATION, _LENGTH)

    def search(self, query: str, limit: int) -> list[ToolSpec]:
        """Return the best matches, at most `limit`; each has at least one word of the query."""
        return [self._specs[place] for place in list_best(self._index.score(_split_words(query)), limit)]


def _collect_text(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    parameters = " ".join(properties) if isinstance(properties, dict) else ""
    return " ".join([*[spec.name] * _NAME_COUNTS, spec.description, parameters])


def _split_words(text: str) -> list[str]:
    words = _WORD.findall(_HUMP.sub(" ", text))
    return [_ENDING.sub("", word.casefold()) for word in words]
