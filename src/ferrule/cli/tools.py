"""`ferrule tools`: the tools that commands offer, and the problems of files that offer none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.options import APPROVAL_HINT, AsJson, JournalFile, Plugins, PolicyFile, ToolFolders, Yes

if TYPE_CHECKING:
    from ferrule.session.approvals import Permissions
    from ferrule.tools.decorator import Tool
    from ferrule.toolspec import Annotations, ToolSpec

_HINTS = {
    "read_only": ("reads only", "writes"),
    "destructive": ("destructive", "not destructive"),
    "idempotent": ("idempotent", "not idempotent"),
    "open_world": ("open world", "closed world"),
}


def tools(  # noqa: PLR0913 - a command's options are its parameters
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[check] [FILE|FOLDER]...",
            help="Python files, folders with *_tool.py files, or `python`, `shell` or `coding`.",
        ),
    ] = None,
    *,
    named: ToolFolders = None,
    plugins: Plugins = False,
    as_json: AsJson = False,
    run: Annotated[bool, typer.Option("--run", help="With `check`: call each tool as its examples say.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="With `check`: report what breaks callers of the tools in FILE, an earlier `ferrule tools --json`.",
        ),
    ] = None,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """List the tools on offer.

    With `check`, report all problems of files and their tools; the exit status is 1 if there are any. --yes, --policy
    and --journal are for --run.
    """
    from ferrule.cli.tool_sources import collect_tools
    from ferrule.errors import SettingsError
    from ferrule.session.approvals import open_permissions
    from ferrule.session.terminal.output import print_json

    words = [*(words or ()), *map(str, named or ())]
    if run and words[:1] != ["check"]:
        raise SettingsError("--run is for `ferrule tools check`")
    if against is not None and words[:1] != ["check"]:
        raise SettingsError("--against is for `ferrule tools check`")
    if not run and (yes or policy or journal):
        raise SettingsError("--yes, --policy and --journal are for `ferrule tools check --run`")
    if words[:1] == ["check"]:
        paths = [Path(word) for word in words[1:]] or [Path()]
        if not run:
            print_check(paths, None, as_json, against)
            return
        with open_permissions(yes, policy, journal, APPROVAL_HINT) as permissions:
            print_check(paths, permissions, as_json, against)
        return
    if "coding" in words:
        _warn_of_project()
    registry = collect_tools((Path(word) for word in words), plugins)
    if as_json:
        print_json([tool_to_json(tool) for tool in registry.tools])
        return
    for spec in registry.specs:
        typer.echo("\n".join(format_tool(spec)))


def _warn_of_project() -> None:
    """Print why a `ferrule.toml` can't be used, which commands that run tools say themselves."""
    from ferrule.session.project import load_project
    from ferrule.session.terminal.output import print_notice

    for notice in load_project(Path.cwd()).notices:
        print_notice(notice)


def print_check(paths: list[Path], permissions: Permissions | None, as_json: bool, against: Path | None = None) -> None:
    """Print the problems of the tools of files and folders; with `permissions`, their examples are called too.

    With `against`, also what breaks the contracts of the tools in that file. Exits with 1 if there are any.
    """
    from ferrule._util.pluralize import pluralize
    from ferrule._util.terminal_text import escape_line
    from ferrule.cli.check_tools import check_contracts, check_paths
    from ferrule.session.terminal.output import print_json

    check = check_paths(paths, permissions)
    if against is not None:
        check_contracts(check, against)
    if as_json:
        rows = [{"path": str(one.path), "line": one.line or None, "reason": one.reason} for one in check.problems]
        print_json({"tools": check.names, "examples": check.run_count, "problems": rows})
    else:
        for problem in check.problems:
            typer.echo(escape_line(str(problem)))
        run = f", {pluralize(check.run_count, 'example')} run" if permissions is not None else ""
        found = pluralize(len(check.problems), "problem") if check.problems else "no problems"
        typer.echo(f"{pluralize(len(check.names), 'tool')} on offer{run}, {found}")
    if check.problems:
        raise typer.Exit(1)


def format_tool(spec: ToolSpec) -> list[str]:
    """Format a tool for people, as lines: its name and hints, description and parameters."""
    from ferrule._util.terminal_text import escape_line
    from ferrule.cli.tool_options import format_parameters

    notes = [f"from {spec.origin}", *_format_hints(spec.annotations)]
    if spec.approval is not None:
        notes.append(f"{spec.approval} asks")
    description = [f"  {escape_line(line.strip())}" for line in spec.description.splitlines() if line.strip()]
    return [escape_line(f"{spec.name}  ({', '.join(notes)})"), *description, *format_parameters(spec.parameters)]


def _format_hints(annotations: Annotations) -> list[str]:
    said = {name: getattr(annotations, name) for name in _HINTS}
    return [_HINTS[name][0 if value else 1] for name, value in said.items() if value is not None]


def tool_to_json(tool: Tool) -> dict[str, Any]:
    """Convert a tool to JSON data."""
    spec = tool.spec
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "output_schema": tool.output_schema,
        "annotations": {name: getattr(spec.annotations, name) for name in _HINTS},
        "origin": spec.origin,
        "approval": spec.approval,
    }
