"""Tools that are command templates: a list of arguments, in which `{name}` is replaced by a value of the model's.

    [[tools]]
    name = "run_script"
    description = "Run a script of package.json."
    command = ["npm", "run", "{script}"]

    [tools.parameters.script]
    description = "Its name"
    enum = ["build", "test"]

No shell interprets a value: whatever is in it, it is one argument, or a part of one. A value at the beginning of an
argument must not begin with `-`, which the program would take as an option, unless a `--` comes before it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import PurePath
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ferrule.builtin_tools.shell_plan import CommandPlan, SandboxTraits, plan_command
from ferrule.builtin_tools.shell_runs import run_planned
from ferrule.errors import ToolDefinitionError, ToolRetry
from ferrule.tools.decorator import Tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope, limit_seconds
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from ferrule.sandbox.shell import ShellSandbox

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh"})
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_PREFIX_OF_PATTERN, _SUFFIX_OF_PATTERN = "^(?:", ")$"

_SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c")

Scalar = str | bool | int | float


class CommandParameter(BaseModel):
    """A value that the model gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["string", "integer", "number", "boolean"] = "string"
    """The JSON type; a boolean is written `true` or `false`."""
    description: str = ""
    """What the model reads about it."""
    enum: Annotated[tuple[Scalar, ...], Field(min_length=1)] | None = None
    """The values that it may have."""
    pattern: str | None = None
    """A regular expression for the whole value."""
    minimum: float | None = None
    """The least number."""
    maximum: float | None = None
    """The greatest number."""
    default: Scalar | None = None
    """The value if the model gives none."""
    optional: bool = False
    """Whether the model may leave it out: the arguments with it are then left out of the command."""

    @property
    def is_required(self) -> bool:
        """Whether the model must give it."""
        return self.default is None and not self.optional

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        kind = _KINDS[self.type]
        for value in (*(self.enum or ()), *(() if self.default is None else (self.default,))):
            if not isinstance(value, kind) or (isinstance(value, bool) and self.type != "boolean"):
                raise ValueError(f"{value!r} is not of the type {self.type}")
        if self.pattern is not None and self.type != "string":
            raise ValueError(f"a pattern is for strings, not for the type {self.type}")
        if (self.minimum is not None or self.maximum is not None) and self.type not in ("integer", "number"):
            raise ValueError(f"minimum and maximum are for numbers, not for the type {self.type}")
        if self.optional and self.default is not None:
            raise ValueError("a parameter with a default is optional already; leave out `optional`")
        return self

    def make_schema(self) -> dict[str, Any]:
        """Make its JSON Schema."""
        given = self.model_dump(exclude_none=True, exclude={"optional", "pattern"})
        if self.enum is not None:
            given["enum"] = list(self.enum)
        if self.pattern is not None:
            given["pattern"] = f"{_PREFIX_OF_PATTERN}{self.pattern}{_SUFFIX_OF_PATTERN}"
        return {name: value for name, value in given.items() if value != ""}


class CommandTool(BaseModel):
    """A tool that runs one command in the workspace, contained like every command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    """The tool's name."""
    description: Annotated[str, Field(min_length=1)]
    """What the model reads about it."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """The program and its arguments; `{name}` is the value of a parameter, `{{` and `}}` are braces."""
    parameters: dict[str, CommandParameter] = Field(default_factory=dict)
    """The parameters by name."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """Seconds after which it is stopped."""
    read_only: bool = False
    """Whether it only reads: it then runs without the right to write, whatever it does."""

    @model_validator(mode="after")
    def _check_command(self) -> Self:
        used = set[str]()
        for word in self.command:
            used.update(_list_names(word))
        if unknown := sorted(used - set(self.parameters)):
            raise ValueError(f"the command has {{{unknown[0]}}}, and there is no parameter {unknown[0]!r}")
        if unused := sorted(set(self.parameters) - used):
            raise ValueError(f"the command lacks {{{unused[0]}}}, though there is a parameter {unused[0]!r}")
        if _list_names(self.command[0]) or not self.command[0].strip():
            raise ValueError("the program, the first word of the command, can't come from the model")
        self._check_shell()
        return self

    def _check_shell(self) -> None:
        is_shell = False
        for word, following in pairwise(self.command):
            is_shell = is_shell or PurePath(word).name in _SHELLS
            if is_shell and _SCRIPT_OPTION.fullmatch(word) and _list_names(following):
                raise ValueError(
                    'a value inside a shell script could run anything; pass it as an argument, as in ["sh", "-c", '
                    '"wc -l \\"$1\\"", "sh", "{path}"]'
                )

    def make_arguments(self, values: Mapping[str, Scalar]) -> list[str]:
        """Make the command's arguments. Raises `ToolRetry` for a value that can't be an argument, or is an option."""
        given = {
            name: one.default if values.get(name) is None else values[name] for name, one in self.parameters.items()
        }
        arguments: list[str] = []
        for word in self.command:
            if any(given[name] is None for name in _list_names(word)):
                continue
            filled = _fill(word, given)
            if filled.startswith("-") and _begins_with_value(word) and "--" not in arguments:
                raise ToolRetry(f"{filled!r} begins with '-', which {self.command[0]} would take as an option")
            arguments.append(filled)
        return arguments


def make_command_tool(
    settings: CommandTool,
    sandbox: Callable[[], ShellSandbox],
    *,
    origin: str = "project",
    before_write: Callable[[], Awaitable[None]] | None = None,
) -> Tool:
    """Make the tool of a command template; `sandbox` returns what runs it.

    `before_write` is awaited before a command that may write. Raises `ToolDefinitionError` for a name that no model can
    be offered, or a pattern that can't be checked.
    """

    def plan(values: Mapping[str, Any]) -> tuple[str, SandboxTraits, CommandPlan]:
        command, running = shlex.join(settings.make_arguments(values)), sandbox()
        traits = SandboxTraits.of(running.mode, running.network, running.tier)
        if settings.read_only and traits.is_contained:
            return command, traits, CommandPlan((Effect("read", "/"),), only_reads=True)
        return command, traits, plan_command(command, str(running.workspace), traits)

    async def run(ferrule_scope: CallScope, **values: Scalar) -> str:
        command, traits, planned = plan(values)
        if before_write is not None and not planned.only_reads:
            await before_write()
        seconds = limit_seconds(settings.timeout, ferrule_scope)
        can_ask = traits.can_ask_for_hosts
        return await run_planned(sandbox(), command, planned, ferrule_scope, seconds, can_ask_for_hosts=can_ask)

    def intend(values: Mapping[str, Any]) -> Intent:
        command, traits, planned = plan(values)
        mode = "read-only" if planned.only_reads else traits.mode
        notes = [f"in {sandbox().workspace}", mode if traits.is_contained else "not contained"]
        return Intent(planned.effects, f"$ {command}\n[{'; '.join(notes)}]")

    schema = {
        "type": "object",
        "properties": {name: one.make_schema() for name, one in settings.parameters.items()},
        "required": [name for name, one in settings.parameters.items() if one.is_required],
        "additionalProperties": False,
    }
    annotations = Annotations(read_only=settings.read_only, open_world=False)
    made = Tool.from_schema(
        settings.name, settings.description, schema, run, annotations=annotations, intent=intend, origin=origin
    )
    if made.unchecked_rules:
        raise ToolDefinitionError(f"the tool {settings.name!r}: {made.unchecked_rules[0]}; write a simpler pattern")
    return made


def _parse(word: str) -> Iterator[tuple[str, str | None]]:
    """Parse a word of a template: texts, each with the name of the parameter after it. Raises `ValueError`."""
    try:
        parsed = list(Formatter().parse(word))
    except ValueError as error:
        raise ValueError(f"{word!r}: {error}; write {{{{ and }}}} for braces") from error
    for text, name, form, conversion in parsed:
        if name is not None and (not name.isidentifier() or form or conversion):
            raise ValueError(f"{word!r}: only {{name}} is replaced; write {{{{ and }}}} for braces")
        yield text, name


def _list_names(word: str) -> list[str]:
    return [name for _, name in _parse(word) if name is not None]


def _begins_with_value(word: str) -> bool:
    text, name = next(_parse(word), ("", None))
    return not text and name is not None


def _fill(word: str, values: Mapping[str, Scalar | None]) -> str:
    filled = "".join(text + ("" if name is None else _write_value(values[name])) for text, name in _parse(word))
    if "\0" in filled:
        raise ToolRetry("a value has a null byte, which no command can be given")
    return filled


def _write_value(value: Scalar | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
