"""`ferrule history`: saved conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ferrule.cli.options import AsJson, StoreFile

if TYPE_CHECKING:
    from ferrule.store import ConversationSummary, Store, StoredConversation

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first characters of the id.")]
Limit: TypeAlias = Annotated[int, typer.Option(min=1, help="The most to show.")]

_SHORTEST_PREFIX = 4
"""Of an id that is deleted: `history delete 1` was meant as a number in the list."""
_ROLE, _ID, _CALL = "bold", "yellow", "cyan"

history = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@history.callback()
def _history(context: typer.Context, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List, show, search, fork, delete or export conversations."""
    context.obj = store
    if context.invoked_subcommand is None:
        _open_history(context, store).list(50, as_json)


@history.command("list")
def _list(context: typer.Context, limit: Limit = 50, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List conversations, the last changed first."""
    _open_history(context, store).list(limit, as_json)


@history.command("show")
def _show(context: typer.Context, name: Id, store: StoreFile = None, as_json: AsJson = False) -> None:
    """Show a conversation."""
    _open_history(context, store).show(name, as_json)


@history.command("search")
def _search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="Words, or parts of words, all in one message.")],
    limit: Limit = 20,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Find messages, newest first."""
    _open_history(context, store).search(text, limit, as_json)


@history.command("fork")
def _fork(
    context: typer.Context,
    name: Id,
    at: Annotated[int | None, typer.Option(min=0, help="How many of its messages to take; default: all.")] = None,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Start another conversation with the same first messages.

    Its id is printed.
    """
    _open_history(context, store).fork(name, at, as_json)


@history.command("delete")
def _delete(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Their ids, or at least four characters of them.")
    ],
    store: StoreFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Delete conversations; what others share with them stays. At a terminal it asks; elsewhere it needs --yes."""
    _open_history(context, store).delete(names, yes)


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
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file; - is standard output.")] = None,
    store: StoreFile = None,
) -> None:
    """Write a conversation as JSON. What the format can't express is listed on stderr."""
    _open_history(context, store).export(name, form, out)


def _open_history(context: typer.Context, store: Path | None) -> History:
    """Open the store named by the option before or after the subcommand's name."""
    from ferrule.session.persistence import find_store_path

    named = store or context.obj
    return History(find_store_path(named), named is not None)


@dataclass(frozen=True, slots=True)
class History:
    """Prints and changes the conversations of one store.

    Every method raises `ConversationError` if the file or an id doesn't exist.
    """

    path: Path
    is_named: bool
    """Whether the person named the file; the user's own need not exist."""

    def list(self, limit: int, as_json: bool) -> None:
        """Print a line for each conversation."""
        from ferrule.session.terminal.output import print_json, print_notice

        summaries: Sequence[ConversationSummary] = ()
        # A person who hasn't saved anything has no store of their own yet.
        if self.path.exists() or self.is_named:
            with self._open() as store:
                summaries = store.list(limit)
        if as_json:
            print_json([_summary_to_json(summary) for summary in summaries])
            return
        if not summaries:
            print_notice("no conversations are saved; ask and chat save them with --keep")
        for summary in summaries:
            _print_styled(
                (_escape_line(summary.id), _ID), (f"  {_describe_summary(summary)}  {_escape_line(summary.title)}", "")
            )

    def show(self, name: str, as_json: bool) -> None:
        """Print a conversation."""
        from ferrule.formats.conversation_json import to_json
        from ferrule.session.terminal.output import print_json
        from ferrule.transcript import iterate_lines

        with self._open() as store:
            stored = store.load(name)
        if as_json:
            whole = {"pending": _pending_to_json(stored), "conversation": to_json(stored.conversation)}
            print_json(_summary_to_json(stored.summary) | whole)
            return
        summary = stored.summary
        _print_styled(
            (_escape_line(summary.id), _ID), (f"  {_describe_summary(summary)}  {_escape_line(summary.title)}", "")
        )
        if summary.model is not None:
            _print_styled(("model: ", _ROLE), (f"{_escape_line(summary.model)}", ""))
        for label, text in iterate_lines(stored.conversation):
            _print_styled((label, _CALL if label.startswith("▸") else _ROLE), (text, ""))

    def search(self, text: str, limit: int, as_json: bool) -> None:
        """Print a line for each message found."""
        from ferrule.session.terminal.output import print_json, print_notice

        with self._open() as store:
            hits = store.search(text, limit)
        if as_json:
            print_json([asdict(hit) for hit in hits])
            return
        if not hits:
            print_notice(f"no saved message has {text!r}")
        for hit in hits:
            found = f"  {hit.position} {_escape_line(hit.role)}  "
            _print_styled((_escape_line(hit.id), _ID), (found, ""), (_escape_line(hit.excerpt), ""))

    def fork(self, name: str, at: int | None, as_json: bool) -> None:
        """Fork a conversation and print the id of the fork."""
        from ferrule.session.terminal.output import print_json

        with self._open() as store:
            fork = store.fork(name, at)
        if as_json:
            print_json({"id": fork})
        else:
            print(fork)

    def delete(self, names: Sequence[str], is_confirmed: bool) -> None:
        """Delete conversations, unless the person says no: all of them, or none if one doesn't exist.

        Raises `SettingsError` for a shorter part of an id than four characters, and where nobody can be asked.
        """
        from ferrule.errors import SettingsError

        with self._open() as store:
            titles = dict(store.find_title(name) for name in names)
            for name in names:
                if len(name) < _SHORTEST_PREFIX:
                    raise SettingsError(
                        f"{name!r} is too short to delete by; give at least {_SHORTEST_PREFIX} characters"
                    )
            if not is_confirmed and not _confirm_deletion(titles):
                return
            for name, title in titles.items():
                store.delete(name)
                print(f"deleted {_escape_line(name)}  {_escape_line(title)}")

    def export(self, name: str, form: str, out: Path | None) -> None:
        """Print a conversation as JSON, or write it to a file."""
        from ferrule.cli.files import format_conversation, write_conversation

        with self._open() as store:
            conversation = store.load(name).conversation
        if out is None:
            print(format_conversation(conversation, form))
        else:
            write_conversation(out, conversation, form)

    @contextmanager
    def _open(self) -> Iterator[Store]:
        from ferrule.session.terminal.output import print_warnings
        from ferrule.store import Store

        with print_warnings("ferrule.store"), Store(self.path, create=False) as store:
            yield store


def _confirm_deletion(titles: Mapping[str, str]) -> bool:
    """Ask at the terminal whether to delete these. Raises `SettingsError` where nobody can be asked."""
    from ferrule._util.pluralize import pluralize
    from ferrule.errors import SettingsError
    from ferrule.session.approvals import is_interactive

    if not is_interactive():
        raise SettingsError("nobody can be asked here whether to delete; add --yes")
    for name, title in titles.items():
        print(f"{_escape_line(name)}  {_escape_line(title)}", file=sys.stderr)
    print(f"delete {pluralize(len(titles), 'conversation')}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _summary_to_json(summary: ConversationSummary) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(summary).items()}


def _pending_to_json(stored: StoredConversation) -> list[dict[str, Any]]:
    if not stored.pending:
        return []
    from ferrule.execution.decisions import pending_to_json

    return [pending_to_json(one) for one in stored.pending]


def _describe_summary(summary: ConversationSummary) -> str:
    from ferrule._util.pluralize import pluralize

    count = pluralize(summary.messages, "message")
    waiting = f", {summary.waiting} waiting" if summary.waiting else ""
    return f"{summary.updated.astimezone():%Y-%m-%d %H:%M}  {count}{waiting}"


def _escape_line(text: str) -> str:
    from ferrule._util.terminal_text import escape_line

    return escape_line(text)


@cache
def _get_console() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _print_styled(*pieces: tuple[str, str]) -> None:
    """Print a line, coloured on a terminal."""
    from rich.text import Text as Styled

    if _get_console().is_terminal:
        _get_console().print(Styled.assemble(*pieces))
    else:
        print("".join(text for text, _ in pieces))
