"""An object whose methods are tools that share its state."""

from __future__ import annotations

import inspect
from abc import ABC
from dataclasses import replace
from typing import Any, ClassVar, Generic

from ferrule.errors import ToolDefinitionError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.docstrings import read_first_paragraph
from ferrule.toolspec import ToolGroup


class Toolset:
    """Base of objects with tools: methods marked `@tool`, sync or async, that share the state of `self`.

    Where no method is marked, each public one is a tool, except `open` and `close`.

    Given to a registry as a class or factory, it is created anew for each run, and its `open` and `close` methods
    (plain or async, if it has them) are called around that run. Given as an instance, it is shared on purpose, and its
    creator opens and closes it.

    A notation that groups the tools of one owner uses the class attributes `name` and `description` if they are texts,
    otherwise the class's own name and its docstring's first paragraph.
    """

    shares_state: ClassVar[bool] = True
    _ferrule_group: ClassVar[ToolGroup]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in vars(cls).items():
            if isinstance(value, staticmethod | classmethod) and isinstance(value.__func__, Tool):
                raise ToolDefinitionError(f"{cls.__name__}.{name}: write @tool above @{type(value).__name__}")
        cls._ferrule_group = _make_group(cls)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Its tools, bound to this instance, in the order of definition; a base's come first."""
        return tuple(tool.__get__(self) for tool in _find_marked(type(self)))


def find_method_tools(toolset: type[Toolset]) -> tuple[Tool, ...]:
    """The tools of a Toolset class, not yet bound to an object. A method overridden without `@tool` is not one."""
    return tuple(replace(one, group=toolset._ferrule_group) for one in _find_marked(toolset))


def _find_marked(toolset: type[Toolset]) -> tuple[Tool, ...]:
    names = dict.fromkeys(name for base in reversed(toolset.__mro__) for name in vars(base))
    found = (inspect.getattr_static(toolset, name) for name in names)
    return tuple(one for one in found if isinstance(one, Tool)) or _make_public_tools(toolset)


def _make_public_tools(toolset: type[Toolset]) -> tuple[Tool, ...]:
    """Make the public methods of a class without a marked one tools, as the seed's tool classes are written.

    Raises `ToolDefinitionError` for a method that can't be one.
    """
    own = [base for base in reversed(toolset.__mro__) if base not in (Toolset, object, ABC, Generic)]
    names = dict.fromkeys(name for base in own for name in vars(base) if not name.startswith("_"))
    methods = {name: inspect.getattr_static(toolset, name) for name in names if name not in ("open", "close")}
    try:
        return tuple(tool(one) for one in methods.values() if inspect.isfunction(one) or isinstance(one, staticmethod))
    except ToolDefinitionError as error:
        raise ToolDefinitionError(
            f"{error}. No method of {toolset.__name__} is marked @tool, so each public one is a tool: mark those that "
            "are, or begin the names of the others with '_'"
        ) from error


def find_required_arguments(toolset: type[Toolset]) -> list[str]:
    """The arguments without which a Toolset class can't be created."""
    empty = inspect.Parameter.empty
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(toolset).parameters.values()
    return [one.name for one in parameters if one.default is empty and one.kind not in variadic]


def _make_group(toolset: type[Toolset]) -> ToolGroup:
    """How a notation groups the tools of a Toolset. A `name` that is not a text (a property, a tool) is ignored."""
    name, described = getattr(toolset, "name", None), getattr(toolset, "description", None)
    if not isinstance(described, str):
        described = "" if _is_written_by_dataclass(toolset) else read_first_paragraph(toolset.__doc__)
    return ToolGroup(name if isinstance(name, str) and name else toolset.__name__, described)


def _is_written_by_dataclass(toolset: type[Toolset]) -> bool:
    """Whether the docstring is the signature that `dataclass` generates if there is none."""
    return (toolset.__doc__ or "").startswith(f"{toolset.__name__}(")
