"""Which tools a command offers, and whether a model can use them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.cli.guard import complain
from ferrule.errors import ModelError

if TYPE_CHECKING:
    from ferrule.models.protocol import Model
    from ferrule.registry import Item, ToolRegistry

CONTAINED = ("python", "shell")
"""The tools that come with ferrule and are offered where they are named; a folder of such a name goes first."""


def offered(folders: Iterable[Path], plugins: bool = False) -> ToolRegistry:
    """The calculator, the tools of the folders, or `python` or `shell`, and those of plugins where they are wanted.

    What couldn't be read is told on stderr.

    Raises `RegistryError` for a folder that isn't there, or a name that is used twice.
    """
    from ferrule.registry import ToolRegistry
    from ferrule.tools import calculator

    registry = ToolRegistry([calculator, *map(_named, folders)])
    for problem in registry.problems:
        complain(f"{problem}; its tools are not offered")
    return _with_plugins(registry) if plugins else registry


def _named(folder: Path) -> Item:
    from ferrule import tools
    from ferrule.registry import ToolRegistry

    if str(folder) in CONTAINED and not folder.is_dir():
        contained: Item = getattr(tools, str(folder))
        return contained
    return ToolRegistry.discover(folder)


def _with_plugins(registry: ToolRegistry) -> ToolRegistry:
    from ferrule.plugin_tools import plugin_tools

    found = list(plugin_tools(registry))
    for one in found:
        if one.problem:
            complain(f"{one.plugin}: {one.problem}; its tools are not offered")
    return registry.add(*(one.registry for one in found))


def check_offer(model: Model, registry: ToolRegistry) -> None:
    """Raise `ModelError` where the model can't use a tool of the registry."""
    known = model.capabilities.tools
    strange = [] if known is None else [name for name in registry.names if name not in known]
    if known is not None and strange:
        raise ModelError(f"{model.name} can only use {', '.join(known) or 'no tool'}, not {', '.join(strange)}")
