"""A function becomes a Tool: what a model is offered, how its arguments are read, and how it wants to be run.

Running it is the executor's business, offering many together the registry's. `toolset.py` holds objects whose
methods are tools.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, TypedDict, Unpack, overload

from ferrule.errors import ToolDefinitionError
from ferrule.schema import ArgumentRules, SignatureRules
from ferrule.schema_only import SchemaRules
from ferrule.signature import signature_of
from ferrule.toolspec import Annotations, Approval, JSONSchema, ToolGroup, ToolSpec

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""What a tool may be called: the names that every provider and every text notation can write."""


class ToolSettings(TypedDict, total=False):
    """What can be said of a tool beside its name and parameters.

    `read_only`, `destructive`, `idempotent` and `open_world` are MCP's hints; `annotations` gives all four at once.
    `timeout` is in seconds. `isolate="process"` runs each call in a process that can be killed. A `serial` tool
    runs alone. `retries` counts further attempts after one that failed, made for idempotent tools only.
    `intent` tells a policy what a call would do, from its arguments.
    """

    annotations: Annotations
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    origin: str
    approval: Approval | None
    timeout: float | None
    isolate: Literal["process"] | None
    serial: bool
    retries: int
    intent: Callable[..., Any] | None


class ToolOptions(ToolSettings, total=False):
    """Settings, and what a function says itself otherwise: its name, and its docstring's first paragraph."""

    name: str
    description: str


_HINTS = ("read_only", "destructive", "idempotent", "open_world")


@dataclass(frozen=True, eq=False, repr=False)
class Tool:
    """A tool. Calling it calls its function, without any check: `get_weather("Paris")`.

    Made by `@tool`, `Tool.from_callable` or `Tool.from_schema`. `unbound` is true for a method whose object is
    not known yet; `barrier` is one object for all tools of a Toolset instance, None elsewhere, and `group` tells of it.
    """

    function: Callable[..., Any]
    name: str
    rules: ArgumentRules
    explicit_description: str | None = None
    annotations: Annotations = field(default_factory=Annotations)
    origin: str = "code"
    approval: Approval | None = None
    timeout: float | None = None
    isolate: Literal["process"] | None = None
    serial: bool = False
    retries: int = 0
    intent: Callable[..., Any] | None = None
    barrier: object | None = None
    unbound: bool = False
    group: ToolGroup | None = None

    def __post_init__(self) -> None:
        subject = f"the tool {self.name!r}"
        if not NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"{subject}: a name is 1 to 64 letters, digits, '_', '-' or '.', and starts with a letter or '_'; "
                "give name="
            )
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout < float("inf")):
            raise ToolDefinitionError(f"{subject}: timeout must be seconds above 0, not {self.timeout!r}")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ToolDefinitionError(f"{subject}: retries must be an integer of at least 0, not {self.retries!r}")
        if self.isolate not in (None, "process"):
            raise ToolDefinitionError(f"{subject}: isolate must be None or 'process', not {self.isolate!r}")
        if self.approval not in (None, "always", "never"):
            raise ToolDefinitionError(f"{subject}: approval must be 'always' or 'never', not {self.approval!r}")
        # So that help(), doctest and pickle find what they look for.
        for attribute in ("__module__", "__qualname__", "__doc__"):
            self.__dict__[attribute] = getattr(self.function, attribute, None)
        self.__dict__["__wrapped__"] = self.function

    @classmethod
    def from_callable(cls, function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> Tool:
        """A tool of an annotated function, bound method, `functools.partial` or callable object.

        Raises `ToolDefinitionError` at once for a signature that can't be offered; types are turned into a schema
        at the first offer.
        """
        return _made(function, options)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: JSONSchema,
        function: Callable[..., Any],
        **settings: Unpack[ToolSettings],
    ) -> Tool:
        """A tool of a JSON Schema and a callable that gets the checked arguments as keywords.

        Raises `ToolDefinitionError` where the schema isn't one of an object, or the function can't take its fields.
        """
        rules = SchemaRules(parameters, function, f"the tool {name!r}")
        return cls(function, name, rules, description, **_settings(settings, f"the tool {name!r}"))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object | None, owner: type | None = None) -> Tool:
        if instance is None or not self.unbound:
            return self
        return self.bound_to(instance)

    def bound_to(self, instance: object) -> Tool:
        """The tool of a method, with the object that it works on."""
        method = self.function.__get__(instance, type(instance))
        barrier, group = _barrier_of(instance), _group_of(instance)
        return replace(self, function=method, barrier=barrier, unbound=False, group=group)

    @property
    def description(self) -> str:
        """What a model is told of it: what was given, or the first paragraph of the docstring."""
        if self.explicit_description is not None:
            return self.explicit_description
        return self.rules.documented.description

    @property
    def parameters(self) -> JSONSchema:
        """The JSON Schema of its arguments. Raises `ToolDefinitionError` for a type that has none."""
        return self.rules.schema

    @cached_property
    def scope_parameter(self) -> str | None:
        """The parameter that takes the `CallScope`; no model sees it."""
        return self.rules.scope_parameter

    @cached_property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        function = self.function
        while isinstance(function, partial):
            function = function.func
        call = getattr(type(function), "__call__", None)  # noqa: B004 - its kind is asked for, not whether it is there
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)

    @cached_property
    def spec(self) -> ToolSpec:
        """What is offered, as data."""
        return ToolSpec(
            self.name, self.description, self.parameters, self.annotations, self.origin, self.approval, self.group
        )

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, from JSON text or its decoded object; without the scope.

        Raises `ArgumentsInvalid`, whose text is for the model.
        """
        return self.rules.bind(arguments)

    def with_name(self, name: str) -> Tool:
        """The same tool under another name."""
        return replace(self, name=name)

    def with_origin(self, origin: str) -> Tool:
        """The same tool, from elsewhere: `code`, `project`, `plugin` or `mcp:<server>`."""
        return replace(self, origin=origin)

    @property
    def whence(self) -> str:
        """Its origin and where its function is written, for messages to people."""
        function = inspect.unwrap(self.function)
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code else getattr(function, "__module__", "")
        return f"{self.origin} ({place})" if place else self.origin

    def __reduce_ex__(self, protocol: Any) -> Any:
        module = sys.modules.get(self.__module__ or "")
        if module is not None and getattr(module, self.__dict__["__qualname__"] or "", None) is self:
            return self.__dict__["__qualname__"]
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<Tool {self.name} from {self.origin}>"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function, or a method of a Toolset, a tool: `@tool` or `@tool(read_only=True, timeout=5)`.

    Raises `ToolDefinitionError` for a signature that can't be offered, naming the parameter and the cure.
    """
    if function is None:
        return lambda decorated: _made(decorated, options)
    return _made(function, options)


def _made(function: Any, options: ToolOptions) -> Tool:
    static = isinstance(function, staticmethod)
    plain = function.__func__ if static else function
    _check_kind(plain)
    name = options.get("name") or getattr(plain, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise ToolDefinitionError(f"{function!r} has no name of its own; give name=")
    subject = f"the tool {name!r}"
    is_method = not static and _is_method(plain)
    rules = SignatureRules(plain, subject, skip_first=is_method)
    settings = _settings(options, subject)
    owner = getattr(plain, "__self__", None)
    return Tool(
        plain,
        name,
        rules,
        options.get("description"),
        barrier=_barrier_of(owner),
        unbound=is_method,
        group=_group_of(owner),
        **settings,
    )


class Barrier:
    """One for each Toolset instance: whoever must keep its tools from running together goes by it."""

    __slots__ = ("__weakref__",)


def _barrier_of(instance: object) -> Barrier | None:
    if not getattr(type(instance), "shares_state", False):
        return None
    # In its __dict__ and not by setattr, so that a frozen dataclass can be a Toolset.
    barrier: Barrier = vars(instance).setdefault("_ferrule_barrier", Barrier())
    return barrier


def _group_of(instance: object) -> ToolGroup | None:
    group: ToolGroup | None = getattr(type(instance), "_ferrule_group", None)
    return group


def _check_kind(function: Any) -> None:
    if isinstance(function, Tool):
        raise ToolDefinitionError(f"{function.name!r} is a tool already; use with_name or with_origin for a copy")
    if isinstance(function, classmethod):
        raise ToolDefinitionError(f"{function.__func__.__name__!r}: a class method can't be a tool; use a method")
    if isinstance(function, type):
        raise ToolDefinitionError(f"{function.__name__!r} is a class; a tool is a function, or a method of a Toolset")
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} can't be called; a tool is a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(f"{function.__name__!r} yields; a tool returns its result, so return a list")


def _is_method(function: Any) -> bool:
    """Whether a function was written in the body of a class, to be given `self`.

    The class may not exist yet, so the signature tells: a static method's first parameter has a type.
    """
    if not inspect.isfunction(function):
        return False
    outer = function.__qualname__.rpartition(".")[0]
    if not outer or outer.endswith("<locals>"):
        return False
    first = next(iter(signature_of(function, function.__qualname__).parameters.values()), None)
    return first is not None and (first.name == "self" or first.annotation is inspect.Parameter.empty)


def _settings(options: ToolSettings, subject: str) -> dict[str, Any]:
    unknown = set(options) - set(ToolOptions.__annotations__)
    if unknown:
        raise TypeError(f"{subject}: there is no option {min(unknown)!r}")
    hints = {name: options.get(name) for name in _HINTS}
    given = any(value is not None for value in hints.values())
    if given and "annotations" in options:
        raise ToolDefinitionError(f"{subject}: give annotations=, or the single hints, not both")
    annotations = options.get("annotations") or Annotations(**hints)  # type: ignore[arg-type]
    rest = {
        name: value for name, value in options.items() if name not in (*_HINTS, "annotations", "name", "description")
    }
    return {"annotations": annotations, **rest}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
