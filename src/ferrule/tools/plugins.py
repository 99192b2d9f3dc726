"""What installed packages add through an entry point: tools, models, dialects.

    [project.entry-points."ferrule.models"]
    acme = "acme_models:AcmeModel"

Entry points are read only to look up a name that ferrule itself doesn't define, and a plugin is imported only when it
is used. Importing one runs its code, as accepted by installing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule.errors import FerruleError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ferrule.tools.registry import ToolRegistry

Kind: TypeAlias = Literal["tools", "models", "dialects"]
KINDS: tuple[Kind, ...] = ("tools", "models", "dialects")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point. `package` is the name and version of its distribution."""

    kind: Kind
    name: str
    package: str
    entry: EntryPoint

    def __str__(self) -> str:
        return f"the plugin {self.name!r} ({self.kind}) of {self.package}"

    @property
    def target(self) -> str:
        """The object that it refers to: `module:attribute`."""
        return self.entry.value

    def load(self) -> Any:
        """Import the object that it refers to. Raises `PluginError`, with the reason, if that fails."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:
            raise PluginError(f"{self} can't be imported: {type(error).__name__}: {error}") from error


def find_plugins(kind: Kind) -> tuple[Plugin, ...]:
    """The plugins of one kind, by name."""
    # Only a search for plugins pays for this.
    from importlib.metadata import entry_points

    found = [
        Plugin(kind, entry.name, _describe_package(entry), entry) for entry in entry_points(group=f"ferrule.{kind}")
    ]
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.package)))


def find_plugin(kind: Kind, name: str) -> Plugin | None:
    """The plugin with that name; None if there is none. Raises `PluginError` if several packages have one."""
    found = [plugin for plugin in find_plugins(kind) if plugin.name == name]
    if len(found) > 1:
        packages = ", ".join(plugin.package for plugin in found)
        raise PluginError(f"several packages have a plugin {name!r} ({kind}): {packages}; uninstall all but one")
    return found[0] if found else None


def _describe_package(entry: EntryPoint) -> str:
    # An entry point that was created manually belongs to no distribution.
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "no distribution"


@dataclass(frozen=True, slots=True)
class PluginTools:
    """What one plugin offers: its tools, with the origin `plugin`, or the reason why there are none."""

    plugin: Plugin
    registry: ToolRegistry
    problem: str = ""


def load_plugin_tools(taken: ToolRegistry | None = None) -> Iterator[PluginTools]:
    """The tools of each plugin in the group `ferrule.tools`, by name.

    The entry point refers to anything that a registry accepts, or a list. A plugin that can't be imported, offers no
    tool, or uses a name that is in `taken` or belongs to an earlier plugin has a problem, without affecting the others.
    """
    from ferrule.tools.registry import ToolRegistry

    known = taken or ToolRegistry()
    for plugin in find_plugins("tools"):
        try:
            found = _make_registry(plugin.load())
            known = known.add(found)
        except FerruleError as error:
            yield PluginTools(plugin, ToolRegistry(), str(error))
        else:
            yield PluginTools(plugin, found)


def _make_registry(loaded: Any) -> ToolRegistry:
    from ferrule.tools.registry import ToolRegistry

    items = loaded if isinstance(loaded, list | tuple) else [loaded]
    registry = ToolRegistry(items).with_origin("plugin")
    # A type without a schema is only detected here.
    _ = registry.specs
    return registry
