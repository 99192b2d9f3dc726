"""The options that several commands share; those of `ask` and `chat` are in `session_options.py`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from ferrule._util.output_files import check_parent_folder

if TYPE_CHECKING:
    from ferrule.execution.profiles import Profile


def require_parent_folder(path: Path | None) -> Path | None:
    """Return the path of a file that may be made. Raises `OSError` if its folder doesn't exist: a typing error."""
    if path is not None:
        check_parent_folder(path)
    return path


def change_folder(folder: Path | None) -> None:
    """Make a folder the current one before other options are read: their paths are relative to it."""
    if folder is not None:
        os.chdir(folder)


PASSED_ON = {"allow_extra_args": True, "allow_interspersed_args": False}
"""The settings of a command whose options end at its first argument: what follows belongs to a tool."""
APPROVAL_HINT = "allow calls by --policy FILE, or all with --yes"

ToolFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--tools",
        metavar="FILE|FOLDER",
        help="Also offer the tools of a Python file, of a folder's *_tool.py files, or the contained"
        " `python`, `shell` or `coding`. A file is trusted: its read-only tools run without asking. May be repeated.",
    ),
]
Plugins: TypeAlias = Annotated[bool, typer.Option("--plugins", help="Also offer the tools of installed packages.")]
Trust: TypeAlias = Annotated[
    bool, typer.Option("--trust", help="Trust what MCP servers declare about their tools, such as read-only.")
]
ServerEnvironment: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="An environment variable for the MCP server that is started; NAME alone takes the value from here. "
        "May be repeated.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Allow every call that the policy asks about.")]
ProfileName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="What runs without asking: plan, ask (the default), accept-edits, auto, all.",
    ),
]
PolicyFile: TypeAlias = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="Rules on what may run, in TOML.")
]
JournalFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        callback=require_parent_folder,
        help="Record every call in this file, as JSON lines.",
    ),
]
ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings, in TOML; --set overrides them.")
]
Changes: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting. May be repeated.")
]
ModelOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help="An option of the model, such as dtype=bfloat16 of a local one. May be repeated.",
    ),
]
FormatName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="ferrule, openai, openai-responses, anthropic, nanochat or ovis; default: detected.",
    ),
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        envvar="FERRULE_STORE",
        callback=require_parent_folder,
        help="The file of saved conversations.",
    ),
]


def read_server_environment(given: Sequence[str] | None, servers: Sequence[str]) -> dict[str, str] | None:
    """Read the values of `--env` for the one of `servers` that is started by a command; None without any.

    Raises `SettingsError` if it isn't one: a variable is often a secret, which other servers mustn't get.
    """
    if not given:
        return None
    from ferrule.errors import SettingsError
    from ferrule.mcp.target import is_address

    started = [server for server in servers if not is_address(server)]
    if len(started) != 1:
        raise SettingsError(
            f"--env is for one MCP server that is started by a command, but there are {len(started)}"
            + ("; give each its own in ferrule.toml: [mcp.NAME.env]" if started else "")
        )
    environment: dict[str, str] = {}
    for one in given:
        name, separator, value = one.partition("=")
        if not name or not (separator or name in os.environ):
            raise SettingsError(f"--env {name or one}: write NAME=VALUE, or the NAME of a variable that is set here")
        environment[name] = value if separator else os.environ[name]
    return environment


def check_profile(name: str | None) -> Profile | None:
    """Return the profile of `--profile`. Raises `SettingsError` for another name."""
    from typing import get_args

    from ferrule.errors import SettingsError
    from ferrule.execution.profiles import Profile

    if name is not None and name not in get_args(Profile):
        raise SettingsError(f"--profile {name}: expected one of {', '.join(get_args(Profile))}")
    return cast("Profile | None", name)
