"""What `ferrule history` does with a store, and how people and programs are shown it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from ferrule.cli.conversation_files import conversation_text, write_conversation
from ferrule.cli.words import answer_words, arguments_words, image_words, result_words
from ferrule.conversation import Conversation, Image, MalformedCall, Message, Text, ToolCall
from ferrule.conversation_json import escaped, to_json
from ferrule.store import Store, Stored, Summary

_ROLE, _ID, _CALL = "bold", "yellow", "cyan"


@dataclass(frozen=True, slots=True)
class Kept:
    """The conversations of one file. Every method raises `ConversationError` where it isn't there, or an id isn't."""

    path: Path

    def list(self, limit: int, as_json: bool) -> None:
        """Print a line for each conversation."""
        with self._opened() as store:
            summaries = store.list(limit)
        if as_json:
            _print_json([_data(summary) for summary in summaries])
            return
        for summary in summaries:
            _print((summary.id, _ID), (f"  {_about(summary)}  {_one_line(summary.title)}", ""))

    def show(self, name: str, as_json: bool) -> None:
        """Print a conversation."""
        with self._opened() as store:
            stored = store.load(name)
        if as_json:
            whole = {"pending": _pending(stored), "conversation": to_json(stored.conversation)}
            _print_json(_data(stored.summary) | whole)
            return
        summary = stored.summary
        _print((summary.id, _ID), (f"  {_about(summary)}  {_one_line(summary.title)}", ""))
        for line in _lines(stored.conversation):
            _print(*line)

    def search(self, text: str, limit: int, as_json: bool) -> None:
        """Print a line for each message that was found."""
        with self._opened() as store:
            hits = store.search(text, limit)
        if as_json:
            _print_json([asdict(hit) for hit in hits])
            return
        for hit in hits:
            _print((hit.id, _ID), (f"  {hit.position} {hit.role}  ", ""), (_one_line(hit.excerpt), ""))

    def fork(self, name: str, at: int | None, as_json: bool) -> None:
        """Print the id of the fork."""
        with self._opened() as store:
            fork = store.fork(name, at)
        if as_json:
            _print_json({"id": fork})
        else:
            print(fork)

    def delete(self, names: Sequence[str]) -> None:
        """Delete them all, or none where one isn't there."""
        with self._opened() as store:
            summaries = {summary.id: summary for summary in (store.load(name).summary for name in names)}
            for summary in summaries.values():
                store.delete(summary.id)
                print(f"deleted {summary.id}  {_one_line(summary.title)}")

    def export(self, name: str, form: str, out: Path | None) -> None:
        """Print a conversation as JSON, or write it to a file."""
        with self._opened() as store:
            conversation = store.load(name).conversation
        if out is None:
            print(conversation_text(conversation, form))
        else:
            write_conversation(out, conversation, form)

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        with Store(self.path, create=False) as store:
            yield store


def _data(summary: Summary) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(summary).items()}


def _pending(stored: Stored) -> list[dict[str, Any]]:
    if not stored.pending:
        return []
    from ferrule.execution.decisions_json import pending_to_json

    return [pending_to_json(one) for one in stored.pending]


def _about(summary: Summary) -> str:
    count = f"{summary.messages} message{'' if summary.messages == 1 else 's'}"
    waiting = f", {summary.waiting} waiting" if summary.waiting else ""
    return f"{summary.updated.astimezone():%Y-%m-%d %H:%M}  {count}{waiting}"


def _lines(conversation: Conversation) -> Iterator[list[tuple[str, str]]]:
    """A conversation as pieces of lines, each with its style."""
    results = {message.result.call_id: message.result for message in conversation.messages if message.role == "tool"}
    for message in conversation.messages:
        if message.role == "tool":
            continue
        said = answer_words("".join(_words(message))).strip("\n")
        if said:
            yield [(f"{message.role}: ", _ROLE), (said, "")]
        for call in message.calls:
            result = results.get(call.id)
            answer = "  …  waits for its answer" if result is None else f"  →  {result_words(result)}"
            yield [("▸ ", _CALL), (f"{_named(call)}  {arguments_words(call)}{answer}", "")]


def _words(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Image):
            yield image_words(part)


def _named(call: ToolCall | MalformedCall) -> str:
    return call.name if isinstance(call, ToolCall) else "unreadable call"


def _one_line(text: str) -> str:
    from ferrule.execution.showing import visible

    return visible(text)


@cache
def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _print(*pieces: tuple[str, str]) -> None:
    """A line, coloured on a terminal."""
    from rich.text import Text as Styled

    if _console().is_terminal:
        _console().print(Styled.assemble(*pieces))
    else:
        print("".join(text for text, _ in pieces))


def _print_json(value: object) -> None:
    print(escaped(json.dumps(value, ensure_ascii=False, indent=2)))
