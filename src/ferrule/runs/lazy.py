"""Many tools, offered when they are needed: the model searches for them, and what it finds is offered from then on.

What is offered follows from the conversation alone, so it is the same where that is resumed; it only grows, at its end,
so that what a provider or an engine has cached of it stays of use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal
from weakref import WeakKeyDictionary

from ferrule.conversation import Conversation, Message, ToolCall
from ferrule.errors import RegistryError
from ferrule.execution.read_result import NAME as READ_RESULT
from ferrule.registry import BoundRegistry
from ferrule.runs.tool_index import ToolIndex
from ferrule.tool import Tool
from ferrule.toolspec import ToolSpec

NAME = "search_tools"
MANY = 40
"""More tools than this are many."""
LARGE = 20_000
"""So are more than `FEW` whose offers have more characters than this."""
FEW = 8
"""To search among so few costs more than it saves."""
_MOST_FOUND = 20
_RESULT = 20_000
"""Characters of one result, at most: less than the executor would cut."""

_sizes: WeakKeyDictionary[Tool, int] = WeakKeyDictionary()


def is_large(registry: BoundRegistry) -> bool:
    """Whether these are too many tools to be offered all at once."""
    number = len(registry)
    if number > MANY:
        return True
    return number > FEW and sum(map(_size, registry.tools)) > LARGE


class LazyTools:
    """The tools of a run of which some are offered. `registry` holds them all, and the one that finds them."""

    def __init__(self, registry: BoundRegistry, always: str | None = None) -> None:
        if NAME in registry:
            raise RegistryError(f"a tool is named {NAME!r} as the one that finds tools: rename it, or give lazy=False")
        self._all = {spec.name: spec for spec in registry.specs}
        self._search = Tool.from_callable(
            self._found, name=NAME, description=self._description, read_only=True, idempotent=True, open_world=False
        )
        self.registry = BoundRegistry((*registry.tools, self._search))
        self._first = [name for name in (READ_RESULT, always or "") if name in self._all]
        self._named: dict[str, tuple[str, ...]] = {}

    def offered(self, conversation: Conversation) -> tuple[ToolSpec, ...]:
        """What is offered for the next message: the search, what it found, and what was called without it."""
        names = dict.fromkeys(self._first)
        for message in conversation.messages:
            names |= dict.fromkeys(self._told_by(message))
        return (self._search.spec, *(self._all[name] for name in names))

    def _told_by(self, message: Message) -> Iterator[str]:
        """The tools that the model knows of by a message."""
        if message.role == "assistant":
            called = (call.name for call in message.calls if isinstance(call, ToolCall))
            yield from (name for name in called if name in self._all)
        elif message.role == "tool" and message.result.name == NAME and message.result.status == "ok":
            yield from self._names_in(message.result.text)

    def _names_in(self, text: str) -> tuple[str, ...]:
        found = self._named.get(text)
        if found is None:
            found = self._named[text] = tuple(name for name in map(_name_in, text.splitlines()) if name in self._all)
        return found

    @property
    def _description(self) -> str:
        return (
            f"Find tools by what they do: {len(self._all)} can be used, and those that a search finds can be called "
            "from then on. Search before you say that something can't be done."
        )

    @cached_property
    def _index(self) -> ToolIndex:
        return ToolIndex(tuple(self._all.values()))

    def _found(
        self,
        query: Annotated[str, "Words for what a tool should do, or its name"],
        limit: Annotated[int, "How many to find at most"] = 5,
    ) -> str:
        """Find tools."""
        lines: list[str] = []
        for spec in self._index.search(query, min(max(1, limit), _MOST_FOUND)):
            lines.append(_written(spec))
            if len(lines) > 1 and sum(map(len, lines)) > _RESULT:
                lines.pop()
                break
        if not lines:
            return f"No tool fits {query!r}. Search again in other words."
        return "\n".join(["These tools can be called now:", *lines])


def lazily(
    registry: BoundRegistry, lazy: bool | Literal["auto"], choice: str | None, only: tuple[str, ...] | None
) -> LazyTools | None:
    """The tools offered lazily, None where all are offered.

    `choice` names a tool that must be called, `only` the tools that the model can use at all. Raises `RegistryError`.
    """
    if lazy is True:
        return LazyTools(registry, choice)
    if not lazy or only is not None or not is_large(registry) or NAME in registry:
        return None
    return LazyTools(registry, choice)


def _written(spec: ToolSpec) -> str:
    offer = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return json.dumps(offer, ensure_ascii=False)


def _name_in(line: str) -> str:
    """The name of the tool that a line of a result describes; empty for another line."""
    if not line.startswith("{"):
        return ""
    try:
        return str(json.loads(line).get("name", ""))
    except ValueError:  # a line that was cut
        return ""


def _size(tool: Tool) -> int:
    """Characters of a tool's offer."""
    if tool not in _sizes:
        _sizes[tool] = len(_written(tool.spec))
    return _sizes[tool]
