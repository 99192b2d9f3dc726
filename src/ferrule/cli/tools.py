"""`ferrule tools`: the tools that commands offer, and the problems of files that offer none."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.options import APPROVAL_HINT, AsJson, JournalFile, Plugins, PolicyFile, ToolFolders, Yes

if TYPE_CHECKING:
    from ferrule.session.approvals import Permissions
    from ferrule.tools.decorator import Tool
    from ferrule.tools.registry import ToolLike, ToolRegistry
    from ferrule.toolspec import Annotations, ToolSpec

CONTAINED = ("python", "shell", "coding")
"""Built-in tools that are offered only if named; a folder of the same name takes precedence."""

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


def collect_tools(paths: Iterable[Path], plugins: bool = False, *, with_calculator: bool = True) -> ToolRegistry:
    """Collect the calculator, the tools of files and folders (or built-in ones by name), and with `plugins` of plugins.

    Files of a folder, and plugins, that can't be used are listed on stderr. Raises `SettingsError` for a missing path,
    and `RegistryError` for a duplicate name or a file that offers no tool.
    """
    from ferrule.builtin_tools.calculator_tool import calculator
    from ferrule.errors import RegistryError
    from ferrule.tools.registry import ToolRegistry

    # What a file prints when it is imported must not get into a command's output, which may be JSON.
    with redirect_stdout(sys.stderr):
        once = {path.resolve(): path for path in paths}
        registry = ToolRegistry([*map(load_path_or_builtin, once.values())])
    if with_calculator:
        if same := registry.get(calculator.name):
            raise RegistryError(
                f"two tools are named {same.name!r}: ferrule's own, and one from {same.location}; leave ferrule's out "
                "with --no-calculator where a model is asked, or rename yours in its file"
            )
        registry = ToolRegistry([calculator, registry])
    for problem in registry.problems:
        _warn(f"{problem}; its tools are not offered")
    return _add_plugins(registry) if plugins else registry


def load_path_or_builtin(path: Path) -> ToolLike:
    """Load the tools of a file or folder, or built-in ones by name. Raises `SettingsError` and `RegistryError`."""
    from ferrule import builtin_tools
    from ferrule.errors import SettingsError
    from ferrule.tools.registry import ToolRegistry

    if path.is_dir():
        return ToolRegistry.discover(path)
    if str(path) == "coding":
        return load_coding_tools()
    if str(path) in CONTAINED:
        contained: ToolLike = getattr(builtin_tools, str(path))
        return contained
    if not path.exists():
        raise SettingsError(f"{path}: no such file or folder, and not one of the tools {', '.join(CONTAINED)}")
    return ToolRegistry.from_file(path)


def load_coding_tools() -> ToolRegistry:
    """Make the tools of a coding agent for the current folder, with those of the project that the user has trusted."""
    from ferrule._util.background import close_at_exit
    from ferrule.coding.project_tools import find_project_tools
    from ferrule.coding.registry import tools
    from ferrule.coding.workspace import Workspace
    from ferrule.session.project import load_project

    project = load_project(Path.cwd())
    workspace = close_at_exit(Workspace(Path.cwd(), project.folders, visible=project.visible))
    found = find_project_tools(workspace, project)
    for problem in (*found.problems, *found.describe_untrusted()):
        _warn(problem)
    return tools(workspace).add(found.registry)


def _warn_of_project() -> None:
    """Print why a `ferrule.toml` can't be used, which commands that run tools say themselves."""
    from ferrule.session.project import load_project

    for notice in load_project(Path.cwd()).notices:
        _warn(notice)


def _add_plugins(registry: ToolRegistry) -> ToolRegistry:
    from ferrule.tools.plugins import load_plugin_tools

    found = list(load_plugin_tools(registry))
    for one in found:
        if one.problem:
            _warn(f"{one.plugin}: {one.problem}; its tools are not offered")
    return registry.add(*(one.registry for one in found))


def _warn(text: str) -> None:
    from ferrule.session.terminal.output import print_notice

    print_notice(text)


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
