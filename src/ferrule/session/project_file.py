"""`ferrule.toml`: what a project, or a user for all projects, says about policy, tools, servers and folders.

    add_dirs = ["../shared"]

    [policy]
    profile = "ask"
    [[policy.rules]]
    command = "npm test"
    action = "allow"

    [[tools]]
    name = "run_script"
    description = "Run a script of package.json."
    command = ["npm", "run", "{script}"]
    parameters = { script = { description = "The script's name", choices = ["build", "lint"] } }

    [mcp.github]
    url = "https://api.githubcopilot.com/mcp/"

    [code]
    context_limit = 200_000

`project.py` decides what of it counts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ferrule.errors import PolicyError, SettingsError
from ferrule.execution.policy_file import PolicyData, describe_invalid_data, make_policy, parse_toml
from ferrule.sandbox.regular_files import open_regular_file

FILE_NAME = "ferrule.toml"

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST_BYTES = 1_000_000


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ToolParameter(_Section):
    """A parameter of a tool that runs a program."""

    type: Literal["string", "integer", "number", "boolean"] = "string"
    """Its JSON type."""
    description: str = ""
    """What it means, for the model."""
    choices: tuple[str, ...] = Field(default=(), strict=False)
    """The only values that it may have, if there are any here."""
    default: str | int | float | bool | None = None
    """Its value where the model gives none; without it the parameter is required."""

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        if self.choices and self.type != "string":
            raise ValueError(f"choices are for a parameter of the type string, not {self.type}")
        return self


class CommandTool(_Section):
    """A tool that runs one program, without a shell: each element of `command` stays one argument."""

    name: str
    """The name by which the model calls it."""
    description: str = Field(min_length=1)
    """What it does, for the model."""
    command: tuple[str, ...] = Field(strict=False, min_length=1)
    """The program and its arguments; `{name}` in an argument is replaced by the parameter of this name."""
    parameters: dict[str, ToolParameter] = {}
    """The parameters by name; each must be used in `command`."""
    timeout: float = Field(default=60.0, gt=0, le=3600)
    """Seconds that it may take."""
    read_only: bool = False
    """Whether it only reads, so that no profile asks about it."""

    @model_validator(mode="after")
    def _check_command(self) -> Self:
        if not _TOOL_NAME.fullmatch(self.name):
            raise ValueError(f"a tool's name has letters, digits, '_' and '-', up to 64 of them, not {self.name!r}")
        if not self.command[0] or _PLACEHOLDER.search(self.command[0]):
            raise ValueError(f"the program in command must be a fixed text, not {self.command[0]!r}")
        used = {name for argument in self.command for name in _PLACEHOLDER.findall(argument)}
        unknown = sorted(used - set(self.parameters))
        if unknown:
            raise ValueError(f"command uses {{{unknown[0]}}}, which isn't among its parameters; declare it there")
        unused = sorted(set(self.parameters) - used)
        if unused:
            raise ValueError(f"the parameter {unused[0]!r} isn't used in command; write {{{unused[0]}}} there")
        return self


class ServerData(_Section):
    """An MCP server: a command to start, or an address."""

    command: tuple[str, ...] | None = Field(default=None, strict=False, min_length=1)
    """The program and its arguments."""
    url: str | None = None
    """The address."""
    env: dict[str, str] = {}
    """Environment variables to start it with."""
    headers: dict[str, str] = {}
    """HTTP headers to send to the address."""

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a command or a url")
        if self.headers and self.url is None:
            raise ValueError("headers are for a server with a url")
        if self.env and self.command is None:
            raise ValueError("env is for a server with a command")
        return self


class CodeSettings(_Section):
    """Settings of the coding agent."""

    context_limit: int | None = Field(default=None, ge=1000)
    """The size of the model's context in tokens, where it isn't known."""
    test_command: tuple[str, ...] | None = Field(default=None, strict=False, min_length=1)
    """The program and arguments that run the project's tests, instead of what is found."""


class ProjectSettings(_Section):
    """The whole file."""

    policy: PolicyData = PolicyData()
    """Rules and a profile: see `execution/policy_file.py`."""
    tools: tuple[CommandTool, ...] = Field(default=(), strict=False)
    """Tools that run a program."""
    mcp: dict[str, ServerData] = {}
    """MCP servers by name."""
    add_dirs: tuple[str, ...] = Field(default=(), strict=False)
    """Further folders that tools may use: absolute, below `~`, or relative to the file's folder."""
    code: CodeSettings = CodeSettings()
    """Settings of the coding agent."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [tool.name for tool in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two tools are named {twice[0]!r}; rename one")
        return self


def read_project_file(path: Path) -> tuple[bytes, ProjectSettings]:
    """Read a file, and return its bytes, of which the settings are made, too.

    Raises `SettingsError`, whose text is one line that names the file, the field and what to do.
    """
    try:
        data = _read_bytes(path)
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise SettingsError(f"{path}: over {_MOST_BYTES // 1000:,} kB, which no such file needs; make it shorter")
    try:
        settings = ProjectSettings.model_validate(parse_toml(data, str(path)))
        make_policy(settings.policy, f"{path}: policy")
    except ValidationError as error:
        raise SettingsError("; ".join(describe_invalid_data(error, str(path), ProjectSettings))) from None
    except PolicyError as error:
        raise SettingsError(" ".join(str(error).splitlines())) from None
    return data, settings


def _read_bytes(path: Path) -> bytes:
    with open_regular_file(str(path)) as descriptor:
        if descriptor is None:
            raise OSError("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES + 1)
