"""`ferrule history`: the conversations that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ferrule.cli.options import AsJson, StoreFile

if TYPE_CHECKING:
    from ferrule.conversation import Conversation, MalformedCall, Message, ToolCall
    from ferrule.store import ConversationSummary, Store, StoredConversation

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first characters of it.")]
Limit: TypeAlias = Annotated[int, typer.Option(min=1, help="The most that are shown.")]

_ROLE, _ID, _CALL = "bold", "yellow", "cyan"

history = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@history.callback()
def _history(context: typer.Context, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List, show, search, fork, delete and export kept conversations."""
    context.obj = store
    if context.invoked_subcommand is None:
        _history_of(context, store).list(50, as_json)


@history.command("list")
def _list(context: typer.Context, limit: Limit = 50, store: StoreFile = None, as_json: AsJson = False) -> None:
    """List conversations, the one that was last changed first."""
    _history_of(context, store).list(limit, as_json)


@history.command("show")
def _show(context: typer.Context, name: Id, store: StoreFile = None, as_json: AsJson = False) -> None:
    """Show a conversation."""
    _history_of(context, store).show(name, as_json)


@history.command("search")
def _search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="Words, or parts of words, that are all in one message.")],
    limit: Limit = 20,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Find messages, the newest first."""
    _history_of(context, store).search(text, limit, as_json)


@history.command("fork")
def _fork(
    context: typer.Context,
    name: Id,
    at: Annotated[int | None, typer.Option(min=0, help="How many of its messages to take; all, if not given.")] = None,
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Make another conversation that begins with the same messages, and print its id."""
    _history_of(context, store).fork(name, at, as_json)


@history.command("delete")
def _delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="ID...", help="Their ids.")],
    store: StoreFile = None,
) -> None:
    """Delete conversations; what others share with them stays."""
    _history_of(context, store).delete(names)


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
    _history_of(context, store).export(name, form, out)


def _history_of(context: typer.Context, store: Path | None) -> History:
    """The history in the store that is named before the command's own name or after it."""
    from ferrule.session.persistence import find_store_path

    return History(find_store_path(store or context.obj))


@dataclass(frozen=True, slots=True)
class History:
    """Prints and changes the conversations of one store.

    Every method raises `ConversationError` where the file or an id doesn't exist.
    """

    path: Path

    def list(self, limit: int, as_json: bool) -> None:
        """Print a line for each conversation."""
        from ferrule.session.terminal_output import print_json

        with self._open() as store:
            summaries = store.list(limit)
        if as_json:
            print_json([_summary_data(summary) for summary in summaries])
            return
        for summary in summaries:
            _print_styled((summary.id, _ID), (f"  {_describe_summary(summary)}  {_one_line(summary.title)}", ""))

    def show(self, name: str, as_json: bool) -> None:
        """Print a conversation."""
        from ferrule.formats.conversation_json import to_json
        from ferrule.session.terminal_output import print_json

        with self._open() as store:
            stored = store.load(name)
        if as_json:
            whole = {"pending": _pending_data(stored), "conversation": to_json(stored.conversation)}
            print_json(_summary_data(stored.summary) | whole)
            return
        summary = stored.summary
        _print_styled((summary.id, _ID), (f"  {_describe_summary(summary)}  {_one_line(summary.title)}", ""))
        for line in _conversation_lines(stored.conversation):
            _print_styled(*line)

    def search(self, text: str, limit: int, as_json: bool) -> None:
        """Print a line for each message that was found."""
        from ferrule.session.terminal_output import print_json

        with self._open() as store:
            hits = store.search(text, limit)
        if as_json:
            print_json([asdict(hit) for hit in hits])
            return
        for hit in hits:
            _print_styled((hit.id, _ID), (f"  {hit.position} {hit.role}  ", ""), (_one_line(hit.excerpt), ""))

    def fork(self, name: str, at: int | None, as_json: bool) -> None:
        """Print the id of the fork."""
        from ferrule.session.terminal_output import print_json

        with self._open() as store:
            fork = store.fork(name, at)
        if as_json:
            print_json({"id": fork})
        else:
            print(fork)

    def delete(self, names: Sequence[str]) -> None:
        """Delete them all, or none where one isn't there."""
        with self._open() as store:
            summaries = {summary.id: summary for summary in (store.load(name).summary for name in names)}
            for summary in summaries.values():
                store.delete(summary.id)
                print(f"deleted {summary.id}  {_one_line(summary.title)}")

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
        from ferrule.store import Store

        with Store(self.path, create=False) as store:
            yield store


def _summary_data(summary: ConversationSummary) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(summary).items()}


def _pending_data(stored: StoredConversation) -> list[dict[str, Any]]:
    if not stored.pending:
        return []
    from ferrule.execution.decisions import pending_to_json

    return [pending_to_json(one) for one in stored.pending]


def _describe_summary(summary: ConversationSummary) -> str:
    count = f"{summary.messages} message{'' if summary.messages == 1 else 's'}"
    waiting = f", {summary.waiting} waiting" if summary.waiting else ""
    return f"{summary.updated.astimezone():%Y-%m-%d %H:%M}  {count}{waiting}"


def _conversation_lines(conversation: Conversation) -> Iterator[list[tuple[str, str]]]:
    """A conversation as pieces of lines, each with its style."""
    from ferrule.execution.terminal_text import escape_text
    from ferrule.session.terminal_output import summarize_arguments, summarize_result

    results = {message.result.call_id: message.result for message in conversation.messages if message.role == "tool"}
    for message in conversation.messages:
        if message.role == "tool":
            continue
        said = escape_text("".join(_message_text(message))).strip("\n")
        if said:
            yield [(f"{message.role}: ", _ROLE), (said, "")]
        for call in message.calls:
            result = results.get(call.id)
            answer = "  …  waits for its answer" if result is None else f"  →  {summarize_result(result)}"
            yield [("▸ ", _CALL), (f"{_call_name(call)}  {summarize_arguments(call)}{answer}", "")]


def _message_text(message: Message) -> Iterator[str]:
    from ferrule.conversation import Image, Text
    from ferrule.session.terminal_output import describe_image

    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Image):
            yield describe_image(part)


def _call_name(call: ToolCall | MalformedCall) -> str:
    from ferrule.conversation import ToolCall

    return _one_line(call.name) if isinstance(call, ToolCall) else "unreadable call"


def _one_line(text: str) -> str:
    from ferrule.execution.terminal_text import escape_line

    return escape_line(text)


@cache
def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _print_styled(*pieces: tuple[str, str]) -> None:
    """A line, coloured on a terminal."""
    from rich.text import Text as Styled

    if _console().is_terminal:
        _console().print(Styled.assemble(*pieces))
    else:
        print("".join(text for text, _ in pieces))
