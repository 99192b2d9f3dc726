"""`ferrule models`: the names of models, what each can do, and which providers are ready."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.completion import complete_provider
from ferrule.cli.options import AsJson

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
class ModelRow:
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
    ModelRow(
        "embedded",
        "the model in the package, which uses the calculator and up to seven tools of yours",
        "own",
        False,
        False,
        text_mode=False,
    ),
    ModelRow("local:FOLDER", "a checkpoint in Hugging Face's layout", None, None, False),
    ModelRow("echo", "repeats what it is asked", "none", False, False, text_mode=False),
)


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROVIDER]", help="Only this one, with its address and key.", autocompletion=complete_provider
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List models and providers, and whether their keys are set.

    What each can do is listed too. No request is made.
    """
    from ferrule.session.terminal.output import print_json

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
    from ferrule.cli.keys import find_key_provider

    return find_key_provider(name)


def _make_row(one: Provider) -> ModelRow:
    # Providers with an API of their own have no such fields: theirs takes images and schemas.
    images, schema = getattr(one, "user_images", True), getattr(one, "output_schema", True)
    return ModelRow(f"{one.name}:MODEL", one.label, "api", images, schema is not None)


def _list_plugins() -> list[ModelRow]:
    from ferrule.tools.plugins import find_plugins

    found = find_plugins("models")
    return [ModelRow(f"{one.name}:MODEL", f"a plugin of {one.package}", None, None, None, None) for one in found]


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
