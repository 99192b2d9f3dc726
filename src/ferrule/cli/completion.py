"""`ferrule completion`: the script that completes commands in a shell; and the names that options complete."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated

import typer

VARIABLE = "_FERRULE_COMPLETE"
"""Is set by the script of a shell that asks for completions."""
_SHELLS = ("bash", "zsh", "fish")


def completion(shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print a script that completes commands, options and names.

    `ferrule --install-completion` installs it.

    In bash: eval "$(ferrule completion bash)"
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    from ferrule.errors import SettingsError

    if shell not in _SHELLS:
        raise SettingsError(f"no completion for {shell!r}; there is one for {', '.join(_SHELLS)}")
    typer.echo(get_completion_script(prog_name="ferrule", complete_var=VARIABLE, shell=shell))


def find_completed_command() -> str | None:
    """Find the command of the line that a shell wants completed; None if it isn't known, or nothing is completed."""
    if VARIABLE not in os.environ:
        return None
    words = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()
    return words[1] if len(words) > 1 else None


def complete_model(incomplete: str) -> list[str]:
    """Complete the name of a model as far as its provider."""
    from ferrule.models.providers import PROVIDERS

    return _select(("embedded", "echo", "local:", *(f"{name}:" for name in PROVIDERS)), incomplete)


def complete_provider(incomplete: str) -> list[str]:
    """Complete the name of a provider."""
    from ferrule.models.providers import PROVIDERS

    return _select(PROVIDERS, incomplete)


def complete_mode(incomplete: str) -> list[str]:
    """Complete how calls are written."""
    from ferrule.dialects.catalogue import load_families

    return _select(("auto", "api", *load_families()), incomplete)


def complete_family(incomplete: str) -> list[str]:
    """Complete the name of a family whose calls can be read."""
    from ferrule.dialects.catalogue import load_families

    return _select(load_families(), incomplete)


def complete_dialect(incomplete: str) -> list[str]:
    """Complete the name of a dialect that writes whole conversations."""
    from ferrule.dialects.catalogue import list_dialects

    return _select(list_dialects(), incomplete)


def _select(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
