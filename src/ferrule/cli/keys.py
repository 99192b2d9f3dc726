"""`ferrule keys`: API keys of providers, in a file that only its owner can read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.completion import complete_provider
from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.models.providers import Provider

Name: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PROVIDER", help="Its name, such as openai; see `models`.", autocompletion=complete_provider
    ),
]

keys = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@keys.callback()
def _keys(context: typer.Context, as_json: AsJson = False) -> None:
    """Save the API keys of providers, list and remove them. A key in the environment takes precedence."""
    if context.invoked_subcommand is None:
        list_keys(as_json)


@keys.command("set")
def _set(name: Name) -> None:
    """Save the key of a provider.

    It is typed without being shown, or read from standard input.
    """
    from ferrule.errors import SettingsError
    from ferrule.models.keys import find_keys_file, store_key
    from ferrule.session.terminal.output import print_notice

    provider = find_key_provider(name)
    if not provider.key:
        raise SettingsError(f"{provider.label} has no key: it signs in with {provider.sign_in}")
    store_key(provider.key, read_key(provider))
    typer.echo(f"saved in {find_keys_file()}")
    for variable in filter(_is_in_environment, provider.keys):
        print_notice(f"{variable} is set in the environment, and is used instead of the saved key")


@keys.command("list")
def _list(as_json: AsJson = False) -> None:
    """List the providers that have a key, and where it is from. No key is shown."""
    list_keys(as_json)


@keys.command("remove")
def _remove(name: Name) -> None:
    """Remove the saved key of a provider."""
    from ferrule.errors import SettingsError
    from ferrule.models.keys import delete_key, find_keys_file

    provider = find_key_provider(name)
    if not delete_key(provider.key):
        raise SettingsError(f"no key for {name} is saved in {find_keys_file()}")
    typer.echo(f"removed from {find_keys_file()}")


def list_keys(as_json: bool) -> None:
    """Print the providers that have a key, by variable, and where it is from."""
    from ferrule.models.keys import find_keys_file, read_keys
    from ferrule.models.providers import PROVIDERS
    from ferrule.session.terminal.output import print_json

    saved = read_keys()
    rows = []
    for provider in PROVIDERS.values():
        used = next(filter(_is_in_environment, provider.keys), None)
        if used is not None or provider.key in saved:
            source = "file" if used is None else "environment"
            rows.append({"provider": provider.name, "variable": used or provider.key, "from": source})
    if as_json:
        print_json({"file": str(find_keys_file()), "keys": rows})
        return
    for row in rows:
        typer.echo(f"{row['provider']:18}{row['variable']}, from the {row['from']}")
    typer.echo(f"file: {find_keys_file()}" if rows else "no keys; save one with: ferrule keys set PROVIDER")


def find_key_provider(name: str) -> Provider:
    """Find the provider that a person names, perhaps in a model's name. Raises `SettingsError` for an unknown one."""
    from ferrule.errors import SettingsError
    from ferrule.models.providers import PROVIDERS
    from ferrule.tools.registry import find_nearest_names

    found = PROVIDERS.get(name.partition(":")[0])
    if found is None:
        near = find_nearest_names(name, PROVIDERS)
        advice = f"the nearest: {', '.join(near)}" if near else f"there are {', '.join(PROVIDERS)}"
        raise SettingsError(f"unknown provider {name!r}; {advice}")
    return found


def read_key(provider: Provider) -> str:
    """Read a key from the terminal without showing it, or from stdin. Raises `SettingsError` for an invalid one."""
    from ferrule.cli.standard_input import read_text
    from ferrule.errors import SettingsError
    from ferrule.session.approvals import is_interactive

    if is_interactive():
        from getpass import getpass

        try:
            key = getpass(f"Key for {provider.label} (not shown): ").strip()
        except EOFError:
            key = ""
    else:
        key = read_text()
    if not key:
        raise SettingsError("the key is empty; nothing was saved")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError("a key is one word of ASCII characters; nothing was saved")
    return key


def _is_in_environment(variable: str) -> bool:
    return bool(os.environ.get(variable, "").strip())
