"""`ferrule history`: the conversations that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import AsJson, StoreFile

if TYPE_CHECKING:
    from ferrule.cli.kept import Kept

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first characters of it.")]
Limit: TypeAlias = Annotated[int, typer.Option(min=1, help="The most that are shown.")]

history = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@history.callback()
def _history(context: typer.Context, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List, show, search, fork, delete and export kept conversations."""
    context.obj = store
    if context.invoked_subcommand is None:
        _kept(context, store).list(50, as_json)


@history.command("list")
def _list(context: typer.Context, limit: Limit = 50, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List conversations, the one that was last changed first."""
    _kept(context, store).list(limit, as_json)


@history.command("show")
def _show(context: typer.Context, name: Id, store: StoreFile = None, as_json: AsJson = False) -> None:
    """Show a conversation."""
    _kept(context, store).show(name, as_json)


@history.command("search")
def _search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="Words, or parts of words, that are all in one message.")],
    limit: Limit = 20,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Find messages, the newest first."""
    _kept(context, store).search(text, limit, as_json)


@history.command("fork")
def _fork(
    context: typer.Context,
    name: Id,
    at: Annotated[int | None, typer.Option(min=0, help="How many of its messages to take; all, if not given.")] = None,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Make another conversation that begins with the same messages, and print its id."""
    _kept(context, store).fork(name, at, as_json)


@history.command("delete")
def _delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Their ids.")],
    store: StoreFile = None,
) -> None:
    """Delete conversations; what others share with them stays."""
    _kept(context, store).delete(names)


@history.command("export")
def _export(
    context: typer.Context,
    name: Id,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="ferrule, openai, openai-responses, anthropic, nanochat or ovis."
        ),
    ] = "ferrule",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there, and not to stdout.")] = None,
    store: StoreFile = None,
) -> None:
    """Write a conversation as JSON. What the format can't hold is told on stderr."""
    _kept(context, store).export(name, form, out)


def _kept(context: typer.Context, store: Path | None) -> Kept:
    """The store that is named before the command's own name or after it."""
    from ferrule.cli.keeping import store_file
    from ferrule.cli.kept import Kept

    return Kept(store_file(store or context.obj))
