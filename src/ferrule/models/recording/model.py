"""A model that answers from a recording, and asks the model that it records where that is allowed."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias, get_args

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation
from ferrule.errors import ModelError, RequestNotRecorded, SettingsError
from ferrule.events import Event, MessageFinished
from ferrule.models.naming import find_model, get_model
from ferrule.models.protocol import Model, ModelSettings
from ferrule.models.recording.differences import describe_differences, find_nearest
from ferrule.models.recording.facts import Facts
from ferrule.models.recording.file import Exchange, RecordingFile, find_prefix, make_model_row, make_row
from ferrule.models.recording.request import Request, Row, make_request
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
_REFRESHED: set[Path] = set()
"""The files that this process has begun anew: several models, or tests, may refresh one file."""


def record(
    path: str | Path,
    model: str | Model | None = None,
    *,
    mode: RecordMode | None = None,
    facts: Mapping[str, str] | None = None,
    **options: Any,
) -> RecordedModel:
    """A model whose answers are recorded in `path`, and replayed from there.

    `model` is a name or a `Model`; a name's `options` (`api_key`, …) are those of `get_model`, and the model is created
    when it is first asked, so that a replay needs neither key nor package. Without one, the file must hold what a
    single model answered, which is replayed. `mode` is that of `FERRULE_RECORD` if left out, or `once`.

    `facts` are texts that differ between machines, by name, such as `{"workspace": "/home/me/project"}`: the file has
    their names, and a replay its own texts.

    Raises `SettingsError` for a file that isn't a recording or an unknown mode, and `ModelError` for a model that is
    neither recorded nor can be created.
    """
    chosen = mode or os.environ.get(VARIABLE, "").strip() or "once"
    if chosen not in MODES:
        where = "mode" if mode else VARIABLE
        raise SettingsError(f"{where} must be one of {', '.join(MODES)}, not {chosen!r}")
    if model is None and mode not in (None, "replay"):
        raise SettingsError(f'record("{path}", mode="{mode}") needs the model to ask: record("{path}", "openai:…")')
    return RecordedModel(Path(path), model, "replay" if model is None else chosen, options, Facts(facts or {}))


@dataclass(slots=True)
class _Burst:
    """The rows written while requests overlapped: once none is open, they are put in the order of the requests."""

    open: int = 0
    rows: list[tuple[int, Row]] | None = None


class RecordedModel:
    """See `record`."""

    def __init__(self, path: Path, model: str | Model | None, mode: str, options: dict[str, Any], facts: Facts) -> None:
        self.path = path
        self._facts = facts
        self.mode = mode
        begins_anew = mode == "refresh" and path.resolve() not in _REFRESHED
        self._file = RecordingFile(path, ignores_content=begins_anew)
        self._options = options
        self._inner: Model | None = None if isinstance(model, str) else model
        self._secrets = SecretFinder(_find_keys(options))
        self._key = self._find_key(model)
        if self._key not in self._file.models or mode == "refresh":
            self._inner = self._create()
        self.name: str
        self.capabilities: Capabilities
        if self._inner is None:
            self.name, self.capabilities = self._file.models[self._key]
        else:
            self.name, self.capabilities = self._inner.name, self._inner.capabilities
        # What was in the file when it was opened is replayed in turn; what was asked since then is asked each time.
        self._answers: dict[str, list[Exchange]] = {}
        self._given_out: dict[str, Iterator[int]] = {}
        self._continuable: dict[str, Exchange] = {}
        for exchange in self._own_exchanges():
            if mode != "refresh":
                self._answers.setdefault(exchange.request.key, []).append(exchange)
            self._continuable[find_prefix(exchange)] = exchange
        self._release = hide_own_file(path, "the recording of the model's answers")
        self._numbers = count()
        self._burst = _Burst()

    def _own_exchanges(self) -> list[Exchange]:
        return [one for one in self._file.exchanges if one.model == self._key]

    def _find_key(self, given: str | Model | None) -> str:
        """The name under which the file holds the model."""
        if given is not None:
            return given if isinstance(given, str) else find_model(given).name
        names = list(self._file.models)
        if not names:
            missing = "is empty" if self.path.exists() else "doesn't exist"
            raise ModelError(f'the recording {self.path} {missing}; record it first: record("{self.path}", "openai:…")')
        if len(names) > 1:
            raise ModelError(f'{self.path} holds several models; name one: record("{self.path}", "{names[0]}")')
        return names[0]

    def _create(self) -> Model:
        if self._inner is not None:
            return self._inner
        if self.mode == "replay":
            known = f", only of {', '.join(self._file.models)}" if self._file.models else ""
            raise ModelError(f"{self.path} holds no answers of {self._key}{known}; record some first")
        return get_model(self._key, **self._options)

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
        if self._inner is None or self.mode == "replay":
            if self.mode == "replay":
                raise RequestNotRecorded(self._describe(request))
            try:
                self._inner = self._create()
            except ModelError as error:
                raise RequestNotRecorded(f"{self._describe(request)}\nIt can't be asked: {error}") from error
        return self._inner

    def _describe(self, request: Request) -> str:
        exchanges = self._own_exchanges()
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
            prefixes = reversed(request.prefixes)
            continued = next((self._continuable[one] for one in prefixes if one in self._continuable), None)
            row = make_row(self._key, request, continued, events, self._facts)
            if found := self._secrets.find([row["events"], row["answer"]]):
                raise SettingsError(
                    f"the answer of {self._key} can't be recorded in {self.path}, since it contains {found}: "
                    "a recording without it would replay another answer; take it out of what the model is told"
                )
            path = self.path.resolve()
            is_new = self.mode == "refresh" and path not in _REFRESHED
            rows = [row]
            if is_new or self._key not in self._file.models:
                self._file.models[self._key] = self.name, self.capabilities
                rows.insert(0, make_model_row(self._key, self.name, self.capabilities))
            self._file.append(rows, anew=is_new)
            if is_new:
                _REFRESHED.add(path)
            exchange = self._file.add(row)
            assert exchange is not None
            self._continuable[find_prefix(exchange)] = exchange
            self._burst.rows = [*(self._burst.rows or ()), (number, row)]

    def _end(self) -> None:
        with _LOCK:
            burst = self._burst
            burst.open -= 1
            if burst.open:
                return
            rows, burst.rows = burst.rows or [], None
            ordered = sort_rows(rows)
            if ordered != [row for _, row in rows]:
                self._file.reorder(ordered)

    async def aclose(self) -> None:
        """Close the model that is recorded. Until then, tools can neither read nor write the file."""
        self._release()
        if self._inner is not None:
            await self._inner.aclose()


def sort_rows(rows: Sequence[tuple[int, Row]]) -> list[Row]:
    """The rows of overlapping requests, conversation after conversation: the numbers say in which order they began."""
    inner: dict[str, list[Row]] = {}
    known = {row["id"] for _, row in rows}
    first: list[Row] = []
    for _, row in sorted(rows, key=lambda numbered: numbered[0]):
        before = row.get("continues", "")
        (inner.setdefault(before, []) if before in known else first).append(row)
    ordered: list[Row] = []
    waiting = first[::-1]
    while waiting:
        row = waiting.pop()
        ordered.append(row)
        waiting += reversed(inner.pop(row["id"], []))
    return ordered


def _find_keys(options: dict[str, Any]) -> dict[str, str]:
    """The options whose values are secret."""
    return {name: value for name, value in options.items() if isinstance(value, str) and "key" in name}
