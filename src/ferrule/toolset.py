"""An object whose methods are tools that share its state."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from ferrule.errors import ToolDefinitionError
from ferrule.tool import Tool


class Toolset:
    """Base of objects with tools: methods marked `@tool`, sync or async, that share what `self` holds.

    Given to a registry as a class or factory, it is made anew for each run, and its `open` and `close` methods
    (plain or async, where it has them) are called around that run. Given as an instance, it is shared on purpose, and
    whoever made it opens and closes it.
    """

    shares_state: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in vars(cls).items():
            if isinstance(value, staticmethod | classmethod) and isinstance(value.__func__, Tool):
                raise ToolDefinitionError(f"{cls.__name__}.{name}: write @tool above @{type(value).__name__}")

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Its tools, bound to this instance, in the order in which they are written; a base's come first."""
        return tuple(tool.__get__(self) for tool in method_tools(type(self)))


def method_tools(toolset: type[Toolset]) -> tuple[Tool, ...]:
    """The tools of a Toolset class, not yet bound to an object. A method overridden without `@tool` is none."""
    names = dict.fromkeys(name for base in reversed(toolset.__mro__) for name in vars(base))
    found = (inspect.getattr_static(toolset, name) for name in names)
    return tuple(one for one in found if isinstance(one, Tool))


def needed_arguments(toolset: type[Toolset]) -> list[str]:
    """The arguments without which a Toolset class can't be made."""
    empty = inspect.Parameter.empty
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(toolset).parameters.values()
    return [one.name for one in parameters if one.default is empty and one.kind not in variadic]
