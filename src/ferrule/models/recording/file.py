"""The file of a recording: rows of JSON, appended, read back, and put in an order that doesn't depend on time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation, ImageInput, ToolCall, iterate_images
from ferrule.errors import ConversationError, SettingsError
from ferrule.events import Event, MessageFinished, Usage
from ferrule.formats.conversation_json import message_from_json, message_to_json
from ferrule.models.recording.events import events_from_json, events_to_json
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.request import Request, Row, compute_digest, describe_message, dump_row, extend_prefix

VERSION = 1

_DEFAULTS = Capabilities()


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, as recorded."""

    model: str
    line: int
    request: Request
    row: Row

    @cached_property
    def described_answer(self) -> Row:
        """The answer as a message that is compared."""
        return describe_message(message_from_json(self.row["answer"]))

    def replay(self, conversation: Conversation, facts: Facts) -> list[Event]:
        """The events of the answer. Raises `SettingsError` for a row that can't be read."""
        row = (
            self.row | {name: facts.put_back(self.row.get(name)) for name in ("answer", "events", "withheld")}
            if facts
            else self.row
        )
        try:
            answer = message_from_json(row["answer"])
            events = events_from_json(row["events"], answer)
            usage = Usage(**row["usage"])
            images = tuple(_find_image(image, conversation) for image in row.get("prompt_images", ()))
            ids, confidences = tuple(row.get("prompt_ids", ())), tuple(row.get("confidences", ()))
            withheld = tuple(ToolCall(**call) for call in row.get("withheld") or ())
            stop, detail = row["stop"], row.get("detail", "")
            finished = MessageFinished(answer, usage, stop, ids, images, confidences, withheld, detail)
        except (ConversationError, LookupError, TypeError, ValueError) as error:
            raise SettingsError(f"row {self.line} can't be replayed ({error!r}); record it again") from error
        return [*events, finished]


def make_row(model: str, request: Request, continued: Exchange | None, events: Sequence[Event], facts: Facts) -> Row:
    """The row of an exchange. `events` end with a `MessageFinished`; `continued` is what the request begins with.

    With `facts`, ids of tokens are left out: another value has others.
    """
    finished = events[-1]
    if not isinstance(finished, MessageFinished):
        raise TypeError("an answer ends with MessageFinished")
    answer = facts.hide(message_to_json(finished.message))
    if facts:
        answer.pop("sampled", None)
    row: Row = {"version": VERSION, "type": "exchange", "id": compute_digest([request.key, answer]), "model": model}
    known = 0
    if continued is not None:
        known = len(continued.request.messages) + 1
        row["continues"] = continued.row["id"]
    row["messages"] = list(request.messages[known:])
    if continued is None or continued.request.tools != request.tools:
        row["tools"] = list(request.tools)
    if continued is None or continued.request.settings != request.settings:
        row["settings"] = request.settings
    row["events"] = facts.hide_events(events_to_json(events[:-1], finished.message))
    usage = finished.usage
    row |= {"answer": answer, "usage": {one.name: getattr(usage, one.name) for one in fields(usage)}}
    row |= {"stop": finished.stop, **({"detail": finished.detail} if finished.detail else {})}
    if finished.prompt_ids and not facts:
        row["prompt_ids"] = list(finished.prompt_ids)
    if finished.confidences:
        row["confidences"] = list(finished.confidences)
    if finished.withheld:
        row["withheld"] = facts.hide([asdict(call) for call in finished.withheld])
    if finished.prompt_images:
        row["prompt_images"] = [[one.image.hash, one.start, one.length] for one in finished.prompt_images]
    return row


def find_prefix(exchange: Exchange) -> str:
    """The name of what a request that continues this exchange begins with: its messages and its answer."""
    return extend_prefix(exchange.request.prefixes[-1], exchange.described_answer)


def make_model_row(key: str, name: str, capabilities: Capabilities) -> Row:
    """The row that says what a recorded model supports, so that a replay adapts conversations in the same way."""
    changed = {
        one.name: getattr(capabilities, one.name)
        for one in fields(capabilities)
        if getattr(capabilities, one.name) != getattr(_DEFAULTS, one.name)
    }
    data = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in changed.items()}
    shown = {} if name == key else {"name": name}
    return {"version": VERSION, "type": "model", "model": key, **shown, "capabilities": data}


class RecordingFile:
    """What one file holds. Appending is atomic, also between processes. Raises `SettingsError` for any other file."""

    def __init__(self, path: Path, *, ignores_content: bool = False) -> None:
        self.path = path
        self.models: dict[str, tuple[str, Capabilities]] = {}
        """The name and capabilities of each model, by the name that it was asked for."""
        self.exchanges: list[Exchange] = []
        self._by_id: dict[str, Exchange] = {}
        if path.exists() and not ignores_content:
            self._read()

    def _read(self) -> None:
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            raise SettingsError(f"the recording {self.path} can't be read: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    self.add(json.loads(line), number)
                except (LookupError, TypeError, ValueError) as error:
                    why = "no JSON" if isinstance(error, json.JSONDecodeError) else repr(error)
                    raise SettingsError(
                        f"{self.path}, row {number} is not a row of a recording ({why}); "
                        "repair it, or delete the file and record it again; if it is no recording, name another file"
                    ) from error

    def add(self, row: Row, line: int = 0) -> Exchange | None:
        """Take a row that is in the file. Raises `SettingsError` for a newer version, and `ValueError`."""
        if not isinstance(row, dict) or "version" not in row:
            raise ValueError("no version")
        if row["version"] != VERSION:
            raise SettingsError(
                f"{self.path}, row {line}: the version must be {VERSION}, not {row['version']!r}; update ferrule"
            )
        if row["type"] == "model":
            self.models[row["model"]] = (
                row["name"] if "name" in row else row["model"],
                read_capabilities(row["capabilities"]),
            )
            return None
        if row["type"] != "exchange":
            raise ValueError(f"unknown type {row['type']!r}")
        exchange = Exchange(row["model"], line, self._read_request(row), row)
        self.exchanges.append(exchange)
        self._by_id[row["id"]] = exchange
        return exchange

    def _read_request(self, row: Row) -> Request:
        if "continues" not in row:
            return Request(tuple(row["messages"]), tuple(row["tools"]), row["settings"])
        before = self._by_id.get(row["continues"])
        if before is None:
            raise ValueError(f"it continues {row['continues']}, which no earlier row has as its id")
        tools = tuple(row["tools"]) if "tools" in row else before.request.tools
        messages = (*before.request.messages, before.described_answer, *row["messages"])
        return Request(messages, tools, row.get("settings", before.request.settings))

    def append(self, rows: Sequence[Row], *, anew: bool = False) -> None:
        """Write rows at the end; `anew` replaces the file. Raises `OSError`."""
        lines = [dump_row(row) for row in rows]
        with self._lock() as path:
            if anew:
                _replace(path, lines)
                return
            with path.open("a+b") as file:
                # A writer that died may have left half a row.
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read() != b"\n":
                        lines.insert(0, b"\n")
                file.write(b"".join(lines))

    def reorder(self, rows: Sequence[Row]) -> None:
        """Put these rows, which are in the file, in this order, in the places that they have together."""
        ordered = [dump_row(row) for row in rows]
        with self._lock() as path:
            lines = path.read_bytes().splitlines(keepends=True)
            moved = set(ordered)
            places = [at for at, line in enumerate(lines) if line in moved]
            if len(places) == len(ordered):
                for at, line in zip(places, ordered, strict=True):
                    lines[at] = line
                _replace(path, lines)

    @contextmanager
    def _lock(self) -> Iterator[Path]:
        """Keep other processes from writing. The folder is locked, since the file itself may be replaced."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            # A link keeps pointing to the file that is replaced.
            yield self.path.resolve()
        finally:
            os.close(folder)


def _replace(path: Path, lines: Sequence[bytes]) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(b"".join(lines))
    partial.replace(path)


def read_capabilities(data: Mapping[str, Any]) -> Capabilities:
    """What the row of a model says it supports. Raises `ValueError` and `TypeError`."""
    kinds = {one.name: type(getattr(_DEFAULTS, one.name)) for one in fields(_DEFAULTS)}
    if unknown := sorted(set(data) - set(kinds)):
        raise ValueError(f"unknown capability {unknown[0]!r}")
    values: dict[str, Any] = {
        name: frozenset(value) if kinds[name] is frozenset else tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
    }
    return Capabilities(**values)


def _find_image(place: Sequence[Any], conversation: Conversation) -> ImageInput:
    name, start, length = place
    found = next((image for image in iterate_images(conversation.messages) if image.hash == name), None)
    if found is None:
        raise LookupError(f"the image {name} is not in the conversation")
    return ImageInput(found, start, length)
