"""`ferrule models` and `ferrule keys`: the names of models, what each can do, and the keys of their providers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ferrule.cli.completion import complete_provider
from ferrule.cli.options import AsJson, ModelOptions

if TYPE_CHECKING:
    from ferrule.models.providers import Provider

_VARIES = "varies"
_LEGEND = """\
tools: how they are offered, own: as the model was trained; --mode NOTATION
offers them in the text, to local models and those of every provider. images:
read from -a. schema: held to that of --schema; the prompt states it elsewhere,
and where calls would not be possible with it.
All write answers as a stream."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """What is known of a model, or of the models of a provider; None where that depends on the model."""

    name: str
    what: str
    tools: str | None
    """`api`, `text`, `own` for a notation that no other model is offered, or `none`."""
    images: bool | None
    schema: bool | None
    streams: bool | None = True
    text_mode: bool | None = True
    """Whether tools can be offered in the text instead."""


_IN_PROCESS = (
    ListedModel(
        "embedded",
        "the model in the package, which uses the calculator and up to seven tools of yours",
        "own",
        False,
        False,
        text_mode=False,
    ),
    ListedModel("local:FOLDER", "a checkpoint in Hugging Face's layout, in a folder or on its hub", None, None, False),
    ListedModel("echo", "repeats what it is asked", "none", False, False, text_mode=False),
)


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROVIDER|local:FOLDER]",
            help="Only this one, with its address and key; or what is chosen for a checkpoint, and why.",
            autocompletion=complete_provider,
        ),
    ] = None,
    model_options: ModelOptions = None,
    as_json: AsJson = False,
) -> None:
    """List models and providers, and whether their keys are set.

    What each can do is listed too. No request is made, except for a checkpoint that is named as on Hugging Face's hub.
    """
    from ferrule.session.terminal.output import print_json

    if name is not None and name.startswith("local:"):
        from ferrule.cli.checkpoint import show_checkpoint

        show_checkpoint(name, model_options or (), as_json)
        return
    if model_options:
        from ferrule.errors import SettingsError

        raise SettingsError("--model-option is for a checkpoint: ferrule models local:FOLDER --model-option …")
    if as_json:
        print_json(list_models() if name is None else _provider_to_json(_find_provider(name)))
        return
    for line in format_models() if name is None else format_provider(_find_provider(name)):
        typer.echo(line)


def list_models() -> list[dict[str, Any]]:
    """List the local models, the providers and the plugins, as data."""
    from ferrule.models.providers import PROVIDERS

    return [*map(asdict, _IN_PROCESS), *map(_provider_to_json, PROVIDERS.values()), *map(asdict, _list_plugins())]


def format_models() -> Iterator[str]:
    """Yield the same as a table for people, of at most 80 columns."""
    from ferrule._util.terminal_text import escape_line
    from ferrule.models import http
    from ferrule.models.providers import PROVIDERS

    rows = [(row, "not needed") for row in _IN_PROCESS]
    rows += [(_make_row(one), _describe_key_state(one)) for one in PROVIDERS.values()]
    rows += [(row, _VARIES) for row in _list_plugins()]
    yield f"{'model':24}{'tools':12}{'images':8}{'schema':8}key"
    for row, key in rows:
        name = escape_line(row.name)
        yield f"{name:24}{row.tools or _VARIES:12}{_say(row.images):8}{_say(row.schema):8}{key}"
    yield ""
    yield _LEGEND
    yield "ferrule models PROVIDER shows its address and key; ferrule keys set saves one."
    yield "ferrule models local:FOLDER says what is chosen for a checkpoint, and why."
    if not http.is_installed():
        yield f"The providers need: pip install 'ferrule[{http.EXTRA}]'"


def format_provider(one: Provider) -> Iterator[str]:
    """Yield lines about one provider."""
    row = _make_row(one)
    variable = f" (change it by {one.url})" if one.url else ""
    yield f"{row.name}  {one.label}"
    nowhere = "that of the region" if one.name in ("bedrock", "vertex") else "give it by --base-url"
    yield f"  address  {one.address or nowhere}{variable if one.address else ''}"
    if one.sign_in:
        yield f"  sign in  with {one.sign_in}"
    if one.key:
        save = f"save one with: ferrule keys set {one.name}"
        yield f"  key      {' or '.join(one.keys)}: {'set' if one.key_is_set else 'not set'}; {save}"
    if one.find_missing_package():
        yield f"  package  missing: pip install 'ferrule[{one.extra}]'"
    yield f"  tools    {row.tools}, or in the text by --mode NOTATION"
    yield f"  images   {_say(row.images)}"
    yield f"  schema   {_say(row.schema)}"


def _find_provider(name: str) -> Provider:

    return find_key_provider(name)


def _make_row(one: Provider) -> ListedModel:
    # Providers with an API of their own have no such fields: theirs takes images and schemas.
    images, schema = getattr(one, "user_images", True), getattr(one, "output_schema", True)
    return ListedModel(f"{one.name}:MODEL", one.label, "api", images, schema is not None)


def _list_plugins() -> list[ListedModel]:
    from ferrule.tools.plugins import find_plugins

    found = find_plugins("models")
    return [ListedModel(f"{one.name}:MODEL", f"a plugin of {one.package}", None, None, None, None) for one in found]


def _describe_key_state(one: Provider) -> str:
    if one.key_is_set:
        return "set"
    return "signs in" if one.sign_in else "not set" if one.needs_key else "not needed"


def _say(answer: bool | None) -> str:
    return _VARIES if answer is None else "yes" if answer else "no"


def _provider_to_json(one: Provider) -> dict[str, Any]:
    return {
        **asdict(_make_row(one)),
        "address": one.address or None,
        "keys": list(one.keys),
        "key_is_set": one.key_is_set,
        "needs_key": one.needs_key,
        "package": one.packages[-1],
        "is_installed": one.find_missing_package() is None,
    }


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
