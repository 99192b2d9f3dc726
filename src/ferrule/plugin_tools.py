"""The tools of installed packages, as a registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ferrule.errors import FerruleError
from ferrule.plugins import Plugin, installed
from ferrule.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class PluginTools:
    """What one plugin offers: its tools, of origin `plugin`, or the reason why there are none."""

    plugin: Plugin
    registry: ToolRegistry
    problem: str = ""


def plugin_tools(taken: ToolRegistry | None = None) -> Iterator[PluginTools]:
    """The tools of each plugin in the group `ferrule.tools`, by name.

    The entry point names whatever a registry takes, or a list of such. A plugin that can't be imported, offers no tool,
    or uses a name that is in `taken` or belongs to an earlier plugin has a problem, and takes nothing from the others.
    """
    known = taken or ToolRegistry()
    for plugin in installed("tools"):
        try:
            found = _registry(plugin.load())
            known = known.add(found)
        except FerruleError as error:
            yield PluginTools(plugin, ToolRegistry(), str(error))
        else:
            yield PluginTools(plugin, found)


def _registry(loaded: Any) -> ToolRegistry:
    items = loaded if isinstance(loaded, list | tuple) else [loaded]
    registry = ToolRegistry(items).with_origin("plugin")
    # A type without a schema shows only here.
    _ = registry.specs
    return registry
