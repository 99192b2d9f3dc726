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
    parameters = { script = { description = "The script's name", enum = ["build", "lint"] } }

    [mcp.github]
    url = "https://api.githubcopilot.com/mcp/"

    [code]
    context_limit = 200_000

`project.py` decides what of it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ferrule._util.toml_text import MOST_BYTES
from ferrule.builtin_tools.command_templates import CommandTool
from ferrule.errors import PolicyError, SandboxInputError, SettingsError
from ferrule.execution.policy_file import PolicyData, check_policy, describe_invalid_data, parse_toml
from ferrule.execution.secrets import scrub_secrets
from ferrule.sandbox.hidden_paths import check_visible
from ferrule.sandbox.regular_files import open_regular_file

FILE_NAME = "ferrule.toml"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"a url begins with https:// or http://, not {self.url!r}; a program is a command")
        if self.headers and self.url is None:
            raise ValueError("headers are for a server with a url")
        if self.env and self.command is None:
            raise ValueError("env is for a server with a command")
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The fields as `repr` shows them: of variables and headers the names, and no other secret."""
        for name, value in super().__repr_args__():
            shown = list(value) if isinstance(value, tuple | dict) else value
            yield name, scrub_secrets(shown)


class CodeSettings(_Section):
    """Settings of the coding agent."""

    context_limit: int | None = Field(default=None, ge=1000)
    """The size of the model's context in tokens, where it isn't known."""
    test_command: tuple[str, ...] | None = Field(default=None, strict=False, min_length=1)
    """The program and arguments that run the project's tests, instead of what is found."""
    visible: tuple[str, ...] | None = Field(default=None, strict=False)
    """Files that tools and commands may use although their names are hidden: names such as `.env`, or paths."""

    @field_validator("visible")
    @classmethod
    def _check_visible(cls, named: tuple[str, ...] | None) -> tuple[str, ...] | None:
        try:
            return None if named is None else check_visible(named)
        except SandboxInputError as error:
            raise ValueError(str(error)) from None


class ProjectSettings(_Section):
    """The whole file."""

    policy: PolicyData = PolicyData()
    """Rules and a profile: see `execution/policy_file.py`."""
    tools: tuple[CommandTool, ...] = Field(default=(), strict=False)
    """Tools that run one program: see `builtin_tools/command_templates.py`."""
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
        for name, server in self.mcp.items():
            _check_server(name, server)
        return self


def _check_server(name: str, server: ServerData) -> None:
    from ferrule.mcp.server_name import choose_name
    from ferrule.mcp.target import parse_target

    try:
        choose_name(
            parse_target(server.url or server.command or (), server.env or None, None, server.headers or None), name
        )
    except SettingsError as error:
        raise ValueError(f"mcp.{name}: {error}") from None


def read_project_file(path: Path) -> tuple[bytes, ProjectSettings]:
    """Read a file, and return its bytes, of which the settings are made, too.

    Raises `SettingsError`, whose text is one line that names the file, the field and what to do.
    """
    try:
        data = _read_bytes(path)
    except OSError as error:
        raise SettingsError(f"{path}: can't be read: {error.strerror or error}") from error
    try:
        settings = ProjectSettings.model_validate(parse_toml(data, str(path)))
        check_policy(settings.policy, str(path), "policy.")
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
            return file.read(MOST_BYTES + 1)
