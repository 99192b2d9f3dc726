"""The tools that commands offer: the calculator, those of files and folders, of the project, and of plugins."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.tools.registry import ToolLike, ToolRegistry

CONTAINED = ("python", "shell", "coding")
"""Built-in tools that are offered only if named; a folder of the same name takes precedence."""


def collect_tools(paths: Iterable[Path], plugins: bool = False, *, with_calculator: bool = True) -> ToolRegistry:
    """Collect the calculator, the tools of files and folders (or built-in ones by name), and with `plugins` of plugins.

    Files of a folder, and plugins, that can't be used are listed on stderr. Raises `SettingsError` for a missing path,
    and `RegistryError` for a duplicate name or a file that offers no tool.
    """
    from ferrule.builtin_tools import calculator
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
