"""Where the values of options are from: the command line, the environment, or the user's configuration file.

A default that the command line contradicts is dropped; two options of the command line that contradict each other are
refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    from ferrule.cli.session_options import SessionOptions

_CONTRADICTIONS = {"no_tools": ("tools", "plugins", "mcp", "trust"), "resume": ("system",)}
_OF_A_MODEL = ("base_url", "mode")
"""Options that are meant for the model beside which they are set."""
_PRECEDENCE = ("DEFAULT", "DEFAULT_MAP", "ENVIRONMENT", "COMMANDLINE")
"""The names of click's sources. `DEFAULT_MAP` is the configuration file."""


def drop_contradicted(options: SessionOptions, context: typer.Context) -> SessionOptions:
    """Drop the defaults that the command line contradicts.

    An address or a mode goes with a model: it is dropped if a source that takes precedence names another model, whose
    key must not be sent to that address. Raises `SettingsError` for two contradicting options of the command line.
    """
    from ferrule.errors import SettingsError

    dropped = [name for name in _OF_A_MODEL if 0 < _rank(context, name) < _rank(context, "model")]
    for name, others in _CONTRADICTIONS.items():
        for other in others if getattr(options, name) else ():
            if _rank(context, other) == len(_PRECEDENCE) - 1:
                raise SettingsError(f"--{name.replace('_', '-')} and --{other} can't be used together")
            dropped.append(other)
    defaults = type(options)()
    return replace(options, **{name: getattr(defaults, name) for name in dropped})


def _rank(context: typer.Context, name: str) -> int:
    source = context.get_parameter_source(name)
    return _PRECEDENCE.index(source.name) if source is not None and source.name in _PRECEDENCE else 0
