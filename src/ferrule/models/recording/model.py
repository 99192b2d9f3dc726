"""A model that answers from a recording, and asks the model that it records where that is allowed."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Literal, TypeAlias, get_args

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation
from ferrule.errors import ModelError, RequestNotRecorded, SettingsError
from ferrule.events import Event, MessageFinished
from ferrule.models.protocol import Model, ModelSettings
from ferrule.models.recording.differences import describe_differences, find_nearest
from ferrule.models.recording.exchange import Exchange, make_row
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.file import RecordingFile, WrittenRow
from ferrule.models.recording.request import Request, make_request
from ferrule.models.recording.secrets import SecretFinder
from ferrule.sandbox.own_files import hide_own_file
from ferrule.toolspec import ToolSpec

RecordMode: TypeAlias = Literal["once", "replay", "refresh"]
"""`once`: what is recorded is replayed, anything else is asked and recorded. `replay`: the model is never asked.
`refresh`: everything is asked, and what was recorded before is replaced."""
MODES: tuple[RecordMode, ...] = get_args(RecordMode)
"""The names of all modes."""
VARIABLE = "FERRULE_RECORD"
"""The environment variable with the mode where none is given."""

_LOCK = Lock()


def choose_mode(given: str | None) -> str:
    """The mode that is given, or that of `FERRULE_RECORD`, or `once`. Raises `SettingsError` for an unknown one."""
    chosen = given or os.environ.get(VARIABLE, "").strip() or "once"
    if chosen not in MODES:
        where = "mode" if given else VARIABLE
        raise SettingsError(f"{where} must be one of {', '.join(MODES)}, not {chosen!r}")
    return chosen


@dataclass(slots=True)
class _Burst:
    """The rows written while requests overlapped: once none is open, they are put in the order of the requests."""

    open: int = 0
    rows: list[tuple[int, WrittenRow, Exchange]] = field(default_factory=list)


class RecordedModel:
    """See `record`. `key` is the name of the model in the file, and `create` makes it; None: the file has only one.

    `keys` are the secrets that it was given.
    """

    def __init__(
        self,
        path: Path,
        key: str | None,
        mode: str,
        *,
        create: Callable[[], Model] | None = None,
        facts: Mapping[str, str] | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.mode = mode
        self._facts = Facts(facts or {})
        self._file = RecordingFile(path, refreshes=mode == "refresh")
        if self._file.values:
            raise SettingsError(f"{path} is the recording of an analysis; name another file to record a model in")
        self._key = self._find_only_key() if key is None else key
        self._make = create
        self._secrets = SecretFinder(keys or {})
        self._inner = self._create() if self._key not in self._file.models or mode == "refresh" else None
        self.name: str
        self.capabilities: Capabilities
        if self._inner is None:
            self.name, self.capabilities = self._file.models[self._key]
        else:
            self.name, self.capabilities = self._inner.name, self._inner.capabilities
        # What was in the file when it was opened is replayed in turn; what was asked since then is asked each time.
        self._answers: dict[str, list[Exchange]] = {}
        self._given_out: dict[str, Iterator[int]] = {}
        for exchange in self._list_own() if mode != "refresh" else ():
            if exchange.row.failure is None:
                self._answers.setdefault(exchange.request.key, []).append(exchange)
        self._release = hide_own_file(path, "the recording of the model's answers")
        self._numbers = count()
        self._burst = _Burst()

    def _list_own(self) -> list[Exchange]:
        return [one for one in self._file.exchanges if one.row.model == self._key]

    def _find_only_key(self) -> str:
        names = list(self._file.models)
        if not names:
            missing = "is empty" if self.path.exists() else "doesn't exist"
            raise ModelError(f'the recording {self.path} {missing}; record it first: record("{self.path}", "openai:…")')
        if len(names) > 1:
            raise ModelError(f'{self.path} holds several models; name one: record("{self.path}", "{names[0]}")')
        return names[0]

    def _create(self) -> Model:
        if self.mode == "replay" or self._make is None:
            known = f", only of {', '.join(self._file.models)}" if self._file.models else ""
            raise ModelError(f"{self.path} holds no answers of {self._key}{known}; record some first")
        return self._make()

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises `RequestNotRecorded` if the model may not, or can't, be asked, and `SettingsError`
        for a request or an answer with a secret: a file without it could only replay something else."""
        request = make_request(conversation, tools, settings, self._facts)
        recorded = self._take_answer(request)
        if recorded is not None:
            for event in recorded.replay(conversation, self._facts):
                yield event
            return
        inner = self._get_inner(request)
        self._refuse_secrets(request)
        number = self._begin()
        events: list[Event] = []
        try:
            async with aclosing(inner.stream(conversation, tools, settings)) as answer:
                async for event in answer:
                    events.append(event)
                    # An answer that broke off in a call is asked for again, and so is left out.
                    if isinstance(event, MessageFinished) and not (event.stop == "error" and event.message.is_cut_off):
                        self._write(number, request, events)
                    yield event
        finally:
            self._end()

    def _refuse_secrets(self, request: Request) -> None:
        """Raise for the value of a variable or a key in a request: where that isn't set, it couldn't be recognised."""
        asked = {
            **{f"message {at} ({message['role']})": message for at, message in enumerate(request.messages)},
            **{f"the tool {tool['name']!r}": tool for tool in request.tools},
            "the settings": request.settings,
        }
        for where, part in asked.items():
            if name := self._secrets.find_value(part):
                raise SettingsError(
                    f"the request can't be recorded in {self.path}: {where} contains the value of {name}; "
                    "take it out of the request, or record where that has another value"
                )

    def _take_answer(self, request: Request) -> Exchange | None:
        with _LOCK:
            known = self._answers.get(request.key)
            if not known:
                return None
            turns = self._given_out.setdefault(request.key, count())
            return known[next(turns) % len(known)]

    def _get_inner(self, request: Request) -> Model:
        if self.mode == "replay":
            raise RequestNotRecorded(self._describe(request))
        if self._inner is None:
            try:
                self._inner = self._create()
            except ModelError as error:
                raise RequestNotRecorded(f"{self._describe(request)}\nIt can't be asked: {error}") from error
        return self._inner

    def _describe(self, request: Request) -> str:
        exchanges = self._list_own()
        asked = f"{self.path} holds no answer of {self._key} to this request"
        at = find_nearest(request, [one.request for one in exchanges])
        if at is None:
            return f"{asked}; it holds none at all. Record it: {VARIABLE}=refresh"
        nearest = exchanges[at]
        lines = describe_differences(nearest.request, request)
        shown = "".join(f"\n  {line}" for line in lines)
        return f"{asked}. The nearest of {len(exchanges)}, row {nearest.line}, differs:{shown}"

    def _begin(self) -> int:
        with _LOCK:
            self._burst.open += 1
            return next(self._numbers)

    def _write(self, number: int, request: Request, events: Sequence[Event]) -> None:
        with _LOCK:
            row = make_row(self._key, request, events, self._file, facts=self._facts)
            if found := self._secrets.find([row.events, row.answer]):
                raise SettingsError(
                    f"the answer of {self._key} can't be recorded in {self.path}, since it contains {found}: "
                    "a recording without it would replay another answer; take it out of what the model is told"
                )
            self._file.add_model(self._key, self.name, self.capabilities)
            written = self._file.add_exchange(row)
            self._burst.rows.append((number, *written))

    def _end(self) -> None:
        with _LOCK:
            burst = self._burst
            burst.open -= 1
            if not burst.open:
                rows, burst.rows = burst.rows, []
                if len(rows) > 1:
                    self._file.arrange(sort_rows(rows))

    async def aclose(self) -> None:
        """Close the model that is recorded. Until then, tools can neither read nor write the file."""
        self._release()
        if self._inner is not None:
            await self._inner.aclose()


def sort_rows(rows: Sequence[tuple[int, WrittenRow, Exchange]]) -> list[WrittenRow]:
    """The rows of overlapping requests, conversation after conversation: the numbers say in which order they began."""
    numbered = sorted(rows, key=lambda one: one[0])
    # By what a request that continues the exchange begins with.
    inner: dict[tuple[str, ...], list[tuple[WrittenRow, Exchange]]] = {}
    known = {(*exchange.row.messages, exchange.row.id) for _, _, exchange in rows}
    first: list[tuple[WrittenRow, Exchange]] = []
    for _, written, exchange in numbered:
        names = exchange.row.messages
        before = next((begun for at in range(len(names), 0, -1) if (begun := tuple(names[:at])) in known), None)
        (first if before is None else inner.setdefault(before, [])).append((written, exchange))
    ordered: list[WrittenRow] = []
    waiting = first[::-1]
    while waiting:
        written, exchange = waiting.pop()
        ordered.append(written)
        waiting += reversed(inner.pop((*exchange.row.messages, exchange.row.id), []))
    return ordered
