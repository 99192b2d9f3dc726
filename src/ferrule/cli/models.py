"""`ferrule models`: the names of models, and which providers are ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.models.providers import Provider

_IN_PROCESS = (
    ("embedded", "the model in the package, which uses the calculator"),
    ("local:FOLDER", "a checkpoint in Hugging Face's layout"),
    ("echo", "repeats what it is asked"),
)


def models(as_json: AsJson = False) -> None:
    """List models and providers, with their addresses, keys and packages. No request is made."""
    from ferrule.session.terminal_output import print_json

    if as_json:
        print_json(list_models())
    else:
        for line in format_models():
            typer.echo(line)


def list_models() -> list[dict[str, Any]]:
    """List the local models, the providers and the plugins, as data."""
    from ferrule.models.providers import PROVIDERS
    from ferrule.tools.plugins import find_plugins

    in_process = [{"name": name, "what": what} for name, what in _IN_PROCESS]
    plugins = [{"name": f"{one.name}:MODEL", "what": f"a plugin of {one.package}"} for one in find_plugins("models")]
    return [*in_process, *map(_provider_to_json, PROVIDERS.values()), *plugins]


def format_models() -> Iterator[str]:
    """Yield the same as lines for people."""
    from ferrule._util.terminal_text import escape_line
    from ferrule.models.providers import PROVIDERS
    from ferrule.tools.plugins import find_plugins

    providers = PROVIDERS.values()
    names = [*(name for name, _ in _IN_PROCESS), *(f"{one.name}:MODEL" for one in providers)]
    width = max(map(len, names))
    for name, what in _IN_PROCESS:
        yield f"{name:{width}}  {what}"
    for one in providers:
        notes = (one.address or "needs --base-url", _describe_key(one), *_find_missing_package())
        yield f"{one.name + ':MODEL':{width}}  {'; '.join(notes)}"
    for plugin in find_plugins("models"):
        yield f"{escape_line(plugin.name) + ':MODEL':{width}}  a plugin of {escape_line(plugin.package)}"


def _describe_key(one: Provider) -> str:
    state = "set" if one.key_is_set else "not set" if one.needs_key else "not set, not needed"
    return f"{' or '.join(one.keys)}: {state}"


def _find_missing_package() -> Iterator[str]:
    from ferrule.models import http

    if not http.is_installed():
        yield f"needs pip install 'ferrule[{http.EXTRA}]'"


def _provider_to_json(one: Provider) -> dict[str, Any]:
    from ferrule.models import http

    return {
        "name": f"{one.name}:MODEL",
        "what": one.label,
        "address": one.address or None,
        "keys": list(one.keys),
        "key_is_set": one.key_is_set,
        "needs_key": one.needs_key,
        "package": http.PACKAGE,
        "is_installed": http.is_installed(),
    }
