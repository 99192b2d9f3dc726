"""Turns a function into a Tool: its offer, the validation of its arguments, and how it should be run.

The executor runs it, the registry combines many. `toolset.py` has objects whose methods are tools.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, TypedDict, Unpack, overload

from ferrule.errors import ToolDefinitionError
from ferrule.tools.arguments import ArgumentRules, SignatureRules
from ferrule.tools.signature import read_signature
from ferrule.toolspec import Annotations, Approval, JSONSchema, ToolExample, ToolGroup, ToolSpec

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from ferrule.tools.intent import IntentFunction

    # With defaults, so that a plain `Tool` is one of any signature.
    Parameters = ParamSpec("Parameters", default=...)
    Returned = TypeVar("Returned", default=Any)
else:  # the library with defaults below Python 3.13 is slow to import
    from typing import ParamSpec, TypeVar

    Parameters = ParamSpec("Parameters")
    Returned = TypeVar("Returned")

Rest = ParamSpec("Rest")
Value = TypeVar("Value")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""Valid names of tools: those that every provider and every text notation can write."""


class ToolSettings(TypedDict, total=False):
    """The settings of a tool other than its name and parameters.

    `read_only`, `destructive`, `idempotent` and `open_world` are MCP's hints; `annotations` gives all four at once.
    `timeout` is in seconds. `isolate="process"` runs each call in a process that can be killed. A `serial` tool runs
    alone. `retries` counts further attempts after a failed one, for idempotent tools only. `intent` tells a policy what
    a call would do: a function, plain or async, that receives the validated arguments as a dict and returns an
    `Intent`; for a method of a Toolset, another method of it may be given. `examples` are calls that should succeed: a
    dict of arguments, or a `ToolExample` with the result too. An `always_offered` tool is also offered where a model
    has to search for the others.
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
    intent: IntentFunction | None
    examples: Sequence[ToolExample | Mapping[str, Any]]
    always_offered: bool


class ToolOptions(ToolSettings, total=False):
    """Settings, and overrides for the function's name and the description in its docstring."""

    name: str
    description: str


_HINTS = ("read_only", "destructive", "idempotent", "open_world")


@dataclass(frozen=True, eq=False, repr=False)
class Tool(Generic[Parameters, Returned]):
    """A tool. Calling it calls its function, without validation: `get_weather("Paris")`.

    Created by `@tool`, `Tool.from_callable` or `Tool.from_schema`. `original_name` is the name before the first
    renaming, None if there was none. `unbound` is true for a method whose object is not known yet; `barrier` is one
    object for all tools of a Toolset instance, None elsewhere, and `group` describes that Toolset. `folders` are those
    that it works in: a policy judges its calls by them, and asks where it names no profile. `instructions` are those of
    its server, for all of the server's tools.
    """

    function: Callable[Parameters, Returned]
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
    examples: tuple[ToolExample, ...] = ()
    always_offered: bool = False
    barrier: object | None = None
    unbound: bool = False
    group: ToolGroup | None = None
    original_name: str | None = None
    folders: tuple[Path, ...] = ()
    instructions: str = ""

    def __post_init__(self) -> None:
        subject = f"the tool {self.name!r}"
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"{subject}: a name is 1 to 64 letters, digits, '_', '-' or '.', and starts with a letter or '_'; "
                "give name="
            )
        _check_offer(self, subject)
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout < float("inf")):
            raise ToolDefinitionError(f"{subject}: timeout must be seconds above 0, not {self.timeout!r}")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise ToolDefinitionError(f"{subject}: retries must be an integer of at least 0, not {self.retries!r}")
        if self.isolate not in (None, "process"):
            raise ToolDefinitionError(f"{subject}: isolate must be None or 'process', not {self.isolate!r}")
        if self.approval not in (None, "always", "never"):
            raise ToolDefinitionError(f"{subject}: approval must be 'always' or 'never', not {self.approval!r}")
        if self.intent is not None and not callable(self.intent):
            raise ToolDefinitionError(f"{subject}: intent must be a function of the arguments, not {self.intent!r}")
        # For help(), doctest and pickle.
        for attribute in ("__module__", "__qualname__", "__doc__"):
            self.__dict__[attribute] = getattr(self.function, attribute, None)
        self.__dict__["__wrapped__"] = self.function

    @classmethod
    def from_callable(cls, function: Callable[Rest, Value], /, **options: Unpack[ToolOptions]) -> Tool[Rest, Value]:
        """A tool from an annotated function, bound method, `functools.partial` or callable object.

        Raises `ToolDefinitionError` at once for a signature that can't be offered; types are converted to a schema at
        the first offer.
        """
        made: Tool[Rest, Value] = _make_tool(function, options)
        return made

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: JSONSchema,
        function: Callable[..., Any],
        *,
        output_schema: JSONSchema | None = None,
        **settings: Unpack[ToolSettings],
    ) -> Tool:
        """A tool from a JSON Schema and a callable that receives the validated arguments as keywords.

        `output_schema` describes what it returns; an MCP server publishes it.

        Raises `ToolDefinitionError` if the schema isn't one of an object, or the function doesn't accept its fields.
        """
        # Only tools with a schema of their own need this import.
        from ferrule.tools.schema_only import SchemaRules

        rules = SchemaRules(parameters, function, f"the tool {name!r}", output_schema)
        return cls(function, name, rules, description, **_collect_settings(settings, f"the tool {name!r}"))

    def __call__(self, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Tool[Parameters, Returned]: ...
    @overload
    def __get__(
        self: Tool[Concatenate[Any, Rest], Returned], instance: object, owner: type | None = None
    ) -> Tool[Rest, Returned]: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Tool[..., Returned]:
        if instance is None or not self.unbound:
            return self
        return self.with_instance(instance)

    def with_instance(self, instance: object) -> Tool[..., Returned]:
        """The tool of a method, bound to its object."""
        # A static method is a tool of the object too, but isn't given it.
        method = self.function.__get__(instance, type(instance)) if self.unbound else self.function
        intent = self.intent
        if intent is not None and _takes_self(intent):
            intent = intent.__get__(instance, type(instance))
        barrier, group = _get_barrier(instance), _get_group(instance)
        return replace(self, function=method, intent=intent, barrier=barrier, unbound=False, group=group)

    @property
    def description(self) -> str:
        """The description for models: the one given, or the docstring's paragraphs before its parameters.

        A method of a Toolset without either has the description of the Toolset.
        """
        if self.explicit_description is not None:
            return self.explicit_description
        own = self.rules.docstring.description
        return own if own or self.group is None else self.group.description

    @property
    def parameters(self) -> JSONSchema:
        """The JSON Schema of its arguments. Raises `ToolDefinitionError` for a type without one."""
        return self.rules.schema

    @property
    def output_schema(self) -> JSONSchema | None:
        """The JSON Schema of what it returns, from the return type; None for text, images and types without one."""
        return self.rules.output_schema

    @property
    def schema(self) -> JSONSchema:
        """`parameters`, by the name that other libraries use."""
        return self.parameters

    @property
    def unchecked_rules(self) -> tuple[str, ...]:
        """The rules in `parameters` that are not enforced, such as a pattern with a lookahead, each with the reason."""
        return self.rules.unchecked_rules

    @cached_property
    def scope_parameter(self) -> str | None:
        """The parameter that takes the `CallScope`; no model sees it."""
        return self.rules.scope_parameter

    @cached_property
    def is_async(self) -> bool:
        """Whether calling it returns an awaitable."""
        function = self.function
        while isinstance(function, partial):
            function = function.func
        call = getattr(type(function), "__call__", None)  # noqa: B004 - its kind matters, not its existence
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)

    @cached_property
    def spec(self) -> ToolSpec:
        """The data that is offered."""
        return ToolSpec(
            self.name, self.description, self.parameters, self.annotations, self.origin, self.approval, self.group
        )

    @cached_property
    def declared(self) -> Mapping[str, Any]:
        """What a policy judges besides a call's arguments and intent, as JSON values: origin, hints, approval."""
        hints = {name: value for name in _HINTS if (value := getattr(self.annotations, name)) is not None}
        approval = {} if self.approval is None else {"approval": self.approval}
        return {"origin": self.origin, **({"annotations": hints} if hints else {}), **approval}

    def bind(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, from JSON text or its decoded object; without the scope.

        Raises `ArgumentsInvalid`, whose text is for the model.
        """
        return self.rules.bind(arguments)

    def with_name(self, name: str) -> Tool[Parameters, Returned]:
        """The same tool under another name; `original_name` keeps the first, which rules of a policy still match."""
        return replace(self, name=name, original_name=self.original_name or self.name)

    def with_folders(self, *folders: Path | str) -> Tool[Parameters, Returned]:
        """The same tool, which works in these folders."""
        return replace(self, folders=tuple(map(Path, folders)))

    def with_origin(self, origin: str) -> Tool[Parameters, Returned]:
        """The same tool with another origin: `code`, `project`, `plugin` or `mcp:<server>`."""
        return replace(self, origin=origin)

    @property
    def location(self) -> str:
        """Its origin and the location of its function, for messages to people."""
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


# For `tool(staticmethod(f))`. Type checkers treat `@staticmethod` below `@tool` as a plain function, so for them such a
# tool loses its first parameter if it is accessed through an instance, though not through the class.
@overload
def tool(function: staticmethod[Rest, Value], /, **options: Unpack[ToolOptions]) -> Tool[..., Value]: ...
@overload
def tool(function: Callable[Rest, Value], /, **options: Unpack[ToolOptions]) -> Tool[Rest, Value]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[Rest, Value]], Tool[Rest, Value]]: ...
def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Turn a function, or a method of a Toolset, into a tool: `@tool`, `@tool(read_only=True)`, `tool(f, name="g")`.

    The tool keeps the function's signature, for type checkers and for calls.

    Raises `ToolDefinitionError` for a signature that can't be offered, naming the parameter and the solution.
    """
    if function is None:
        return lambda decorated: _make_tool(decorated, options)
    return _make_tool(function, options)


def _make_tool(function: Any, options: ToolOptions) -> Any:
    static = isinstance(function, staticmethod)
    plain = function.__func__ if static else function
    _check_kind(plain)
    name = options.get("name") or getattr(plain, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        kind = "lambda" if name == "<lambda>" else f"{type(plain).__name__} object"
        raise ToolDefinitionError(f'a {kind} has no name of its own; give it one: tool(f, name="…")')
    subject = f"the tool {name!r}"
    is_method = not static and _is_method(plain)
    rules = SignatureRules(plain, subject, skip_first=is_method)
    settings = _collect_settings(options, subject)
    owner = getattr(plain, "__self__", None)
    return Tool(
        plain,
        name,
        rules,
        options.get("description"),
        barrier=_get_barrier(owner),
        unbound=is_method,
        group=_get_group(owner),
        **settings,
    )


class Barrier:
    """One per Toolset instance: with it, the executor prevents tools that share state from running concurrently."""

    __slots__ = ("__weakref__",)


def _get_barrier(instance: object) -> Barrier | None:
    if not getattr(type(instance), "shares_state", False):
        return None
    # Stored in its __dict__ and not by setattr, so that a frozen dataclass can be a Toolset.
    barrier: Barrier = vars(instance).setdefault("_ferrule_barrier", Barrier())
    return barrier


def _get_group(instance: object) -> ToolGroup | None:
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
    """Whether a function was defined in the body of a class, to receive `self`.

    The class may not exist yet, so the signature decides: a static method's first parameter has a type.
    """
    if not inspect.isfunction(function):
        return False
    outer = function.__qualname__.rpartition(".")[0]
    if not outer or outer.endswith("<locals>"):
        return False
    first = next(iter(read_signature(function, function.__qualname__).parameters.values()), None)
    return first is not None and (first.name == "self" or first.annotation is inspect.Parameter.empty)


def _takes_self(intent: Callable[..., Any]) -> bool:
    """Whether an intent is an unbound method of the Toolset, which takes the object and the arguments."""
    if not inspect.isfunction(intent):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(intent).parameters.values()
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in parameters) == 2


def _collect_settings(options: ToolSettings, subject: str) -> dict[str, Any]:
    unknown = set(options) - set(ToolOptions.__annotations__)
    if unknown:
        known = ", ".join(sorted(ToolOptions.__annotations__))
        raise TypeError(f"{subject}: unknown option {min(unknown)!r}; the options are {known}")
    hints = {name: options.get(name) for name in _HINTS}
    given = any(value is not None for value in hints.values())
    if given and "annotations" in options:
        raise ToolDefinitionError(f"{subject}: give annotations=, or the single hints, not both")
    annotations = options.get("annotations") or Annotations(**hints)  # type: ignore[arg-type]
    rest = {
        name: value for name, value in options.items() if name not in (*_HINTS, "annotations", "name", "description")
    }
    if "examples" in rest:
        rest["examples"] = _read_examples(rest["examples"], subject)
    return {"annotations": annotations, **rest}


def _read_examples(given: Any, subject: str) -> tuple[ToolExample, ...]:
    examples = [ToolExample(one) if isinstance(one, Mapping) else one for one in given]
    if any(not isinstance(one, ToolExample) or not isinstance(one.arguments, Mapping) for one in examples):
        raise ToolDefinitionError(
            f'{subject}: an example is a dict of arguments, such as {{"city": "Paris"}}, or a ToolExample'
        )
    return tuple(examples)


def _check_offer(tool: Tool, subject: str) -> None:
    """Raise `ToolDefinitionError` for a description, an origin or a hint of another type."""
    if not isinstance(tool.origin, str):
        raise ToolDefinitionError(f"{subject}: origin must be a text, such as 'project', not {tool.origin!r}")
    if not isinstance(tool.annotations, Annotations):
        raise ToolDefinitionError(
            f"{subject}: annotations must be Annotations(read_only=…), not {tool.annotations!r}; the hints can also be "
            "given one by one, read_only=True"
        )
    if not isinstance(tool.explicit_description, str | None):
        raise ToolDefinitionError(f"{subject}: description must be a text, not {tool.explicit_description!r}")
    for hint in _HINTS:
        given = getattr(tool.annotations, hint)
        if given is not None and not isinstance(given, bool):
            raise ToolDefinitionError(f"{subject}: {hint} must be True, False or None, not {given!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
