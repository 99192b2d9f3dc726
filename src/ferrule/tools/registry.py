"""The tools on offer: discovered, renamed, selected, and opened for the duration of a run.

A registry is immutable: each method returns another one. `discovery.py` finds tool files; the executor validates and
authorizes calls.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from ferrule.errors import FerruleError, RegistryError, ToolDefinitionError, choose_advice
from ferrule.tools.decorator import Tool
from ferrule.tools.signature import find_enclosing_names
from ferrule.tools.toolset import Toolset, find_method_tools, find_required_arguments
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from ferrule.tools.discovery import DiscoveryProblem
import re

from ferrule.toolspec import render_openai_tool

ToolLike: TypeAlias = "Tool | Toolset | type[Toolset] | ToolSource | ToolRegistry | Callable[..., Any]"
"""What a registry accepts: a Tool, an annotated function, a Toolset (or what creates one), a registry, a source."""


@runtime_checkable
class ToolSource(Protocol):
    """Has tools only while it is open, such as a server in another process; opened for each run.

    If there are several, those that are async context managers are entered concurrently, so that they get ready at the
    same time; the task that enters one is not the one that exits it.
    """

    def open_tools(self, taken: Collection[str]) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """Its tools while it is open, none of them with a name in `taken`. Raises `RegistryError`."""


@dataclass(frozen=True, slots=True, eq=False)
class _ToolsetFactory:
    """A Toolset that is created anew for each run: one object for all its tools, however they are renamed."""

    name: str
    make: Callable[[], Toolset]


@dataclass(frozen=True, slots=True)
class _Offer:
    tool: Tool
    source: _ToolsetFactory | None = None


def find_nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of `names` that are most similar to `name`, the nearest first, ignoring case."""
    by_folded: dict[str, str] = {}
    for known in names:
        by_folded.setdefault(known.casefold(), known)
    # Only needed after a mistake, and slow to import.
    import difflib

    close = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.5)
    return [by_folded[one] for one in close]


class _ToolCollection:
    """What both kinds of registry have in common."""

    tools: tuple[Tool, ...]
    _by_name: dict[str, Tool]

    @property
    def names(self) -> tuple[str, ...]:
        """The names on offer, in order."""
        return tuple(tool.name for tool in self.tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as data. Raises `ToolDefinitionError` for a type without a schema."""
        return tuple(map(attrgetter("spec"), self.tools))

    def get(self, name: str) -> Tool | None:
        """The tool with that name; None if there is none."""
        return self._by_name.get(name)

    def find_nearest(self, name: str) -> list[str]:
        """Up to three names on offer that are most similar to `name`, the nearest first."""
        return find_nearest_names(name, self.names)

    def schemas(self, shape: Literal["openai", "anthropic"]) -> list[dict[str, Any]]:
        """The offers in the shape of a provider's API. Raises `RegistryError` for a name that it refuses."""
        return [_render_offer(spec, shape) for spec in self.specs]

    def __len__(self) -> int:
        return len(self.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __contains__(self, item: object) -> bool:
        return item in self._by_name if isinstance(item, str) else item in self.tools


class BoundRegistry(_ToolCollection):
    """A registry during a run: every tool can be called, every Toolset exists.

    `instructions` are those of the servers that some of the tools are from.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in self.tools}
        self.instructions = "\n\n".join(dict.fromkeys([tool.instructions for tool in self.tools if tool.instructions]))


class ToolRegistry(_ToolCollection):
    """Tools on offer. `problems` are discovered files that couldn't be used.

    Raises `RegistryError` if two tools have the same name, or an item can't be offered, and `ToolDefinitionError` for a
    function that can't be a tool.
    """

    def __init__(self, items: Iterable[ToolLike | _Offer] = (), problems: Sequence[DiscoveryProblem] = ()) -> None:
        items = tuple(items) if isinstance(items, list | tuple) else _list_items(items)
        self._sources = tuple(dict.fromkeys(source for item in items for source in _collect_sources(item)))
        inherited = [problem for item in items if isinstance(item, ToolRegistry) for problem in item.problems]
        self._offers = tuple(offer for item in items for offer in _collect_offers(item))
        self.problems: tuple[DiscoveryProblem, ...] = (*inherited, *problems)
        self.tools = tuple(offer.tool for offer in self._offers)
        self._by_name = _index_by_name(self.tools)
        opens = bool(self._sources) or any(offer.source is not None for offer in self._offers)
        self.bound: BoundRegistry | None = None if opens else BoundRegistry(self.tools)
        """What `open` gives, if there is nothing to open: all runs share it."""

    @classmethod
    def discover(cls, folder: str | Path) -> ToolRegistry:
        """The tools of every `*_tool.py` in `folder` and below, with the origin `project`; `problems` are unusable
        files.

        See `discovery.discover_tools` for what a file offers. Raises `RegistryError` for a folder that doesn't exist,
        or a name that is used twice.
        """
        from ferrule.tools.discovery import DiscoveryProblem, discover_tools

        found: list[ToolRegistry] = []
        problems: list[DiscoveryProblem] = []
        for entry in discover_tools(folder):
            if isinstance(entry, DiscoveryProblem):
                problems.append(entry)
                continue
            path, item = entry
            try:
                found.append(cls.from_discovered(item))
            except FerruleError as error:
                problems.append(DiscoveryProblem(path, f"{type(error).__name__}: {error}"))
        return cls(found, problems)

    @classmethod
    def from_discovered(cls, item: ToolLike) -> ToolRegistry:
        """What a discovered file offers, with the origin `project`.

        Raises `RegistryError` and `ToolDefinitionError`, also for a type without a schema: later, it would make the
        tools of all files unusable.
        """
        registry = cls([item]).with_origin("project")
        _ = registry.specs  # where such a type is detected
        return registry

    @classmethod
    def from_file(cls, path: str | Path) -> ToolRegistry:
        """The tools of one Python file, with the origin `code`: whoever names a file trusts what it declares.

        Raises `RegistryError` for a file that can't be imported or offers no tool, and `ToolDefinitionError`, also for
        a type without a schema: later, it wouldn't be known in which file it is.
        """
        from ferrule.tools.discovery import load_tool_file

        path = Path(path)
        try:
            registry = cls(load_tool_file(path))
            _ = registry.specs  # where such a type is detected
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"{path}: {error}") from error
        return registry

    def add(self, *items: ToolLike) -> ToolRegistry:
        """This registry and more tools."""
        return ToolRegistry((self, *items))

    def __or__(self, other: ToolRegistry) -> ToolRegistry:
        if not isinstance(other, ToolRegistry):
            return NotImplemented
        return ToolRegistry((self, other))

    def only(self, *patterns: str) -> ToolRegistry:
        """The tools whose name matches one of the patterns (`read_*`), in this registry's order.

        Raises `RegistryError` for a pattern that matches nothing, naming the nearest.
        """
        chosen = self._match(patterns)
        return self._replace_offers(offer for offer in self._offers if offer.tool.name in chosen)

    def without(self, *patterns: str) -> ToolRegistry:
        """The tools whose name matches none of the patterns; raises like `only`."""
        dropped = self._match(patterns)
        return self._replace_offers(offer for offer in self._offers if offer.tool.name not in dropped)

    def prefixed(self, prefix: str) -> ToolRegistry:
        """Every tool with `prefix` before its name. Raises `ToolDefinitionError` for a name that can't be."""
        if not isinstance(prefix, str):
            raise RegistryError(f"prefixed takes a text, such as prefixed('gh_'), not {prefix!r}")
        return self._replace_offers(
            replace(one, tool=one.tool.with_name(prefix + one.tool.name)) for one in self._offers
        )

    def renamed(self, names: dict[str, str]) -> ToolRegistry:
        """Tools under other names, old to new. Raises `RegistryError` for one that isn't on offer."""
        if not isinstance(names, Mapping):
            raise RegistryError(f"renamed takes a dict of names, old to new, not {names!r}")
        for old in names:
            self._require_known(old)
        return self._replace_offers(
            replace(one, tool=one.tool.with_name(names.get(one.tool.name, one.tool.name))) for one in self._offers
        )

    def with_origin(self, origin: str) -> ToolRegistry:
        """The same tools with another origin: `project`, `plugin` or `mcp:<server>`."""
        return self._replace_offers(replace(one, tool=one.tool.with_origin(origin)) for one in self._offers)

    def open(self) -> AbstractAsyncContextManager[BoundRegistry]:
        """The tools for one run: Toolset classes and factories are created, opened, and closed at its end.

        Those without a tool on offer aren't created. The tools of sources come last. Raises `RegistryError` if creating
        or opening one fails.
        """
        return self._open_all() if self.bound is None else nullcontext(self.bound)

    @asynccontextmanager
    async def _open_all(self) -> AsyncIterator[BoundRegistry]:
        made: dict[_ToolsetFactory, Toolset] = {}
        async with AsyncExitStack() as stack:
            for offer in self._offers:
                if offer.source is not None and offer.source not in made:
                    made[offer.source] = await _open_toolset(offer.source, stack)
            tools = [
                one.tool if one.source is None else one.tool.with_instance(made[one.source]) for one in self._offers
            ]
            if len(self._sources) > 1:
                await _enter_together(self._sources, stack)
            for source in self._sources:
                tools += await stack.enter_async_context(source.open_tools({tool.name for tool in tools}))
            yield BoundRegistry(tools)

    def _match(self, patterns: Sequence[str]) -> set[str]:
        if not patterns:
            raise RegistryError("a selection needs at least one name or pattern")
        wrong = next((one for one in patterns if not isinstance(one, str)), None)
        if wrong is not None:
            raise RegistryError(f"a selection takes names and patterns as texts, such as only('read_*'), not {wrong!r}")
        matching: set[str] = set()
        for pattern in patterns:
            found = {name for name in self.names if fnmatchcase(name, pattern)}
            if not found:
                self._require_known(pattern)
            matching |= found
        return matching

    def _require_known(self, name: str) -> None:
        if name not in self:
            near = self.find_nearest(name.replace("*", ""))
            cure = f"the nearest: {', '.join(near)}" if near else f"on offer: {', '.join(self.names) or 'nothing'}"
            raise RegistryError(f"no tool matches {name!r}; {cure}")

    def _replace_offers(self, offers: Iterable[_Offer]) -> ToolRegistry:
        if self._sources:
            raise RegistryError(f"the tools of {self._sources[0]!r} are known only once it is open; select from others")
        return ToolRegistry([*offers], self.problems)

    def __repr__(self) -> str:
        return f"<ToolRegistry of {', '.join([*self.names, *map(repr, self._sources)]) or 'nothing'}>"


def _list_items(items: Any) -> tuple[Any, ...]:
    """The items of a registry. Raises `RegistryError` for a single one, which may have parts itself."""
    is_one = isinstance(items, Tool | Toolset | ToolRegistry | str | Mapping) or callable(items)
    if is_one or not isinstance(items, Iterable):
        raise RegistryError(f"a ToolRegistry takes a list of tools, as in ToolRegistry([f]), not {items!r}")
    return tuple(items)


def _index_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    seen: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in seen:
            raise RegistryError(
                f"two tools are named {tool.name!r}: one from {seen[tool.name].location}, one from {tool.location}; "
                + choose_advice("use prefixed or renamed on one of them", "offer one of them, or rename it in its file")
            )
        seen[tool.name] = tool
    return seen


def _collect_sources(item: Any) -> tuple[ToolSource, ...]:
    if isinstance(item, ToolRegistry):
        return item._sources
    return (item,) if _is_source(item) else ()


def _is_source(item: Any) -> bool:
    return not isinstance(item, Tool | Toolset | type) and isinstance(item, ToolSource)


def _collect_offers(item: Any) -> list[_Offer]:
    if _is_source(item):
        return []
    if isinstance(item, ToolRegistry):
        return list(item._offers)
    if isinstance(item, _Offer):
        return [item]
    if isinstance(item, Tool):
        if item.unbound:
            owner = str(item.__dict__["__qualname__"]).rpartition(".")[0]
            raise RegistryError(f"{item.name!r} is a method; pass {owner} itself, an instance, or a tool of one")
        return [_Offer(item)]
    if isinstance(item, Toolset):
        return [_Offer(tool) for tool in _require_tools(item.tools, type(item))]
    toolset = _find_toolset_class(item)
    if toolset is not None:
        source = _ToolsetFactory(toolset.__name__, item)
        return [_Offer(tool, source) for tool in _require_tools(find_method_tools(toolset), toolset)]
    if not callable(item):
        if isinstance(item, list | tuple | set):
            raise RegistryError(f"a {type(item).__name__} is not a tool; unpack it, as in using(*tools)")
        raise RegistryError(f"{item!r} is not a tool; expected a Tool, an annotated function, a Toolset or a registry")
    return [_Offer(_make_function_tool(item))]


def _make_function_tool(function: Any) -> Tool:
    tool = Tool.from_callable(function)
    if tool.unbound:
        raise RegistryError(
            f"{tool.name!r} is a method without its object; pass that of an object, as in using(object.{tool.name})"
        )
    return tool


async def _open_toolset(source: _ToolsetFactory, stack: AsyncExitStack) -> Toolset:
    try:
        made: Any = source.make()
        toolset: Toolset = await made if inspect.isawaitable(made) else made
        await _call_lifecycle(toolset, "open")
    except Exception as error:
        raise RegistryError(f"the Toolset {source.name} can't be opened: {type(error).__name__}: {error}") from error
    stack.push_async_callback(_call_lifecycle, toolset, "close")
    return toolset


async def _enter_together(sources: Iterable[ToolSource], stack: AsyncExitStack) -> None:
    """Begin to open sources concurrently, if they are async context managers: each may take seconds to be ready."""
    from asyncio import TaskGroup  # not needed by programs without a loop

    async def hold(source: AbstractAsyncContextManager[object]) -> None:
        await source.__aenter__()
        stack.push_async_exit(source)

    try:
        async with TaskGroup() as tasks:
            for source in sources:
                if isinstance(source, AbstractAsyncContextManager):
                    tasks.create_task(hold(source))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors


async def _call_lifecycle(toolset: Toolset, name: Literal["open", "close"]) -> None:
    method = getattr(toolset, name, None)
    # A file Toolset may well offer a tool called open, which is for the model.
    if callable(method) and not isinstance(method, Tool):
        outcome = method()
        if inspect.isawaitable(outcome):
            await outcome


def _check_makeable(toolset: type[Toolset]) -> None:
    if inspect.isabstract(toolset):
        raise RegistryError(f"the Toolset {toolset.__name__} is abstract; pass a concrete class")
    needed = find_required_arguments(toolset)
    if needed:
        raise RegistryError(
            f"the Toolset {toolset.__name__} can't be created without {', '.join(needed)}; pass an instance to share, "
            f"or functools.partial({toolset.__name__}, {needed[0]}=...) to create one for each run"
        )


def _require_tools(tools: tuple[Tool, ...], toolset: type[Toolset]) -> tuple[Tool, ...]:
    if not tools:
        raise RegistryError(f"the Toolset {toolset.__name__} has no method marked @tool, and no public one")
    return tools


def _find_toolset_class(item: Any) -> type[Toolset] | None:
    """The Toolset class that calling `item` returns; None if it returns something else.

    A class, a `functools.partial` of one, or a function (plain or async) without parameters whose return type is one.
    """
    if isinstance(item, partial):
        return item.func if isinstance(item.func, type) and issubclass(item.func, Toolset) else None
    if isinstance(item, type):
        if not issubclass(item, Toolset):
            raise RegistryError(
                f"{item.__name__!r} is a class but not a Toolset; inherit Toolset, or pass its functions"
            )
        _check_makeable(item)
        return item
    if not inspect.isroutine(item):
        return None
    try:
        returned = typing.get_type_hints(item, localns=find_enclosing_names(item)).get("return")
    except (NameError, TypeError):
        return None
    return returned if isinstance(returned, type) and issubclass(returned, Toolset) else None


_PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _render_offer(spec: ToolSpec, shape: Literal["openai", "anthropic"]) -> dict[str, Any]:
    """A tool in the shape of OpenAI's Chat Completions or Anthropic's Messages.

    Raises `RegistryError` for a name with a dot, which both refuse, and for an unknown shape.
    """
    if not _PROVIDER_NAME.fullmatch(spec.name):
        raise RegistryError(f"{spec.name!r} contains a '.', which {shape} refuses in a name; rename it")
    if shape == "openai":
        return render_openai_tool(spec)
    if shape == "anthropic":
        return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}
    raise RegistryError(f"unknown shape {shape!r}; expected openai or anthropic")
