"""What installed packages add under an entry point: tools, models, dialects.

    [project.entry-points."ferrule.models"]
    acme = "acme_models:AcmeModel"

Nothing is read before a name is looked for that ferrule itself doesn't know, and a plugin is imported only when it is
used. Importing one runs its code, as installing it allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind: TypeAlias = Literal["tools", "models", "dialects"]
KINDS: tuple[Kind, ...] = ("tools", "models", "dialects")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point. `package` is the name and version of the distribution that it is from."""

    kind: Kind
    name: str
    package: str
    entry: EntryPoint

    def __str__(self) -> str:
        return f"the plugin {self.name!r} ({self.kind}) of {self.package}"

    @property
    def where(self) -> str:
        """The object that it names: `module:attribute`."""
        return self.entry.value

    def load(self) -> Any:
        """What it names, imported. Raises `PluginError`, with the reason, where that fails."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:
            raise PluginError(f"{self} can't be imported: {type(error).__name__}: {error}") from error


def installed(kind: Kind) -> tuple[Plugin, ...]:
    """The plugins of one kind, by name."""
    # Only whoever looks for a plugin pays for this.
    from importlib.metadata import entry_points

    found = [Plugin(kind, entry.name, _package(entry), entry) for entry in entry_points(group=f"ferrule.{kind}")]
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.package)))


def plugin_named(kind: Kind, name: str) -> Plugin | None:
    """The plugin of that name, None where there is none. Raises `PluginError` where several packages have one."""
    found = [plugin for plugin in installed(kind) if plugin.name == name]
    if len(found) > 1:
        packages = ", ".join(plugin.package for plugin in found)
        raise PluginError(f"several packages have a plugin {name!r} ({kind}): {packages}; uninstall all but one")
    return found[0] if found else None


def _package(entry: EntryPoint) -> str:
    # An entry point that was made by hand belongs to no distribution.
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "no distribution"
