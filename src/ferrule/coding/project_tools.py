"""The tools that a project brings: command templates of `ferrule.toml`, and the files of `.ferrule/tools`.

    found = find_project_tools(workspace, load_project(workspace.folder))
    if found.list_untrusted(): ...  # show these lines and ask, then: found = found.trust()
    registry = tools(workspace).add(found.registry)

None of their code has run before it was trusted; `session/project.py` says which templates count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.builtin_tools.command_templates import make_command_tool
from ferrule.coding.registry import tools
from ferrule.coding.tool_files import FOLDER, ToolFiles, find_tool_files
from ferrule.errors import FerruleError
from ferrule.session.project_file import FILE_NAME
from ferrule.session.trust import is_trusted, trust
from ferrule.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from ferrule.coding.workspace import Workspace
    from ferrule.session.project import Project
    from ferrule.tools.decorator import Tool

_HINT = "to look at it and decide: ferrule policy trust"


@dataclass(frozen=True, slots=True)
class ProjectTools:
    """What a project offers. `problems` are what can't be used, a line each; `untrusted` are the files not loaded."""

    registry: ToolRegistry
    problems: tuple[str, ...] = ()
    untrusted: ToolFiles | None = None
    grants: tuple[str, ...] = ()
    """What `ferrule.toml` would allow, start or open, if it were trusted."""
    taken: frozenset[str] = frozenset()
    """The names of other tools, which those of a project can't have."""

    def list_untrusted(self) -> list[str]:
        """What would be loaded if the person trusted the tool files, a line each; empty if there is no question."""
        if self.untrusted is None:
            return []
        return [f"runs {escape_line(str(FOLDER / name))} in ferrule's own process" for name in self.untrusted.names]

    def describe_untrusted(self) -> list[str]:
        """What of the project doesn't count, and what to do about it, a line each, for where nobody can be asked."""
        lines = []
        if self.untrusted is not None:
            names = ", ".join(self.untrusted.names)
            files = pluralize(len(self.untrusted.names), "tool file")
            lines.append(f"{files} in {FOLDER} not loaded, as not trusted or changed since: {names}; {_HINT}")
        if self.grants:
            grants = "; ".join(self.grants)
            lines.append(f"{FILE_NAME} is not trusted, or has changed since, so this doesn't count: {grants}; {_HINT}")
        return [escape_line(line) for line in lines]

    def trust(self) -> ProjectTools:
        """Trust the tool files with the content that was found, and load them.

        Raises `RegistryError` if they have changed since, `SettingsError` and `OSError`.
        """
        if self.untrusted is None:
            return self
        found = self.untrusted
        loaded = found.load()
        trust("tools", found.folder, found.digest)
        return _add(replace(self, untrusted=None), loaded)


def find_project_tools(workspace: Workspace, project: Project) -> ProjectTools:
    """Find the tools of a project, and load the files that the user has trusted with their content of now.

    Raises `OSError`, and `SettingsError` if what was trusted can't be read.
    """
    made = ProjectTools(ToolRegistry(), grants=tuple(project.list_untrusted()), taken=frozenset(tools(workspace).names))
    for template in project.tools:
        try:
            tool = make_command_tool(template, lambda: workspace.sandbox, before_write=workspace.before_command)
        except FerruleError as error:
            made = replace(made, problems=(*made.problems, f"{FILE_NAME}: {error}"))
            continue
        made = _add(made, ToolRegistry([tool.with_folders(*workspace.access.folders)]))
    try:
        found = find_tool_files(workspace.folder)
        if found is None:
            return made
        if not is_trusted("tools", found.folder, found.digest):
            return replace(made, untrusted=found)
        return _add(made, found.load())
    except FerruleError as error:
        return replace(made, problems=(*made.problems, str(error)))


def _add(found: ProjectTools, more: ToolRegistry) -> ProjectTools:
    """Add tools, except those whose name another one has: a project must not take the place of `read_file`."""
    taken = {*found.taken, *found.registry.names}
    refused = list(_list_refused(more, taken))
    problems = [f"{one.name} is not offered: there is another tool of this name; rename it" for one in refused]
    names = [one.name for one in refused]
    kept = more if not names else ToolRegistry((), more.problems) if len(names) == len(more) else more.without(*names)
    unusable = [f"{one}; its tools are not offered" for one in more.problems]
    return replace(
        found, registry=found.registry.add(kept), problems=(*found.problems, *unusable, *map(escape_line, problems))
    )


def _list_refused(registry: ToolRegistry, taken: Collection[str]) -> Iterator[Tool]:
    return (one for one in registry if one.name in taken)
