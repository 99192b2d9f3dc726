"""A log of calls: what was called, for whom, who permitted it, how it ended; one JSON object per line.

A `started` line is written before a call runs, so that after a crash `find_interrupted` finds the calls that may have
taken effect. The texts of results are in the conversation, not here, except for results that came too late.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.execution.decisions import Pending
from ferrule.execution.proposals import PermittedCall, ProposedCall, RefusedCall, decode_for_journal
from ferrule.execution.rules import Verdict
from ferrule.execution.secrets import scrub_secrets
from ferrule.sandbox.own_files import hide_own_file
from ferrule.tools.intent import Effect, Intent

JournalEvent = Literal["started", "authorization", "finished", "late", "refused", "pending"]
"""`refused` and `pending` calls have no `started` line: they weren't run. `authorization`: a running call asked for
more than its intent said, and the decision on that."""


_FREE = frozenset(("arguments", "edited_from", "detail", "effects", "text"))
"""The fields that may contain secrets."""


class Journal(Protocol):
    """Where calls are recorded. Both methods can be called from any thread."""

    def make_key(self) -> str:
        """Return a unique key for the lines of one call."""

    def record(self, event: JournalEvent, key: str, fields: Mapping[str, Any], /) -> None:
        """Write a line before returning. `fields` are JSON values, which may still contain secrets."""


class NullJournal:
    """Records nothing."""

    def make_key(self) -> str:
        """Return an empty key, which is never written."""
        return ""

    def record(self, _event: JournalEvent, _key: str, _fields: Mapping[str, Any], /) -> None:
        """Do nothing."""


class FileJournal:
    """A journal in an append-only file, with one `write` per line; several processes may share it.

    `who` is the caller to record. Raises `OSError` if a line can't be written: a call that can't be recorded is not
    run. There is no `fsync`, so the last lines may be lost in a power failure. While it is open, tools can neither read
    nor write the file.
    """

    def __init__(self, path: str | Path, who: str = "") -> None:
        from pydantic_core import to_json

        self._write_json = to_json
        self.path = path = Path(path)
        """The file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # Arguments may be private, so only the owner can read them.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._release = hide_own_file(path, "the journal of this session")
        self._lock = threading.Lock()
        self._is_open = True
        self._who = who
        self._prefix = os.urandom(6).hex()
        self._numbers = itertools.count(1)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # the last writer died in the middle of a line

    def make_key(self) -> str:
        """Return a key that is unique among all journals."""
        return f"{self._prefix}-{next(self._numbers)}"

    def record(self, event: JournalEvent, key: str, fields: Mapping[str, Any], /) -> None:
        """Write a line, with secrets scrubbed. After `close`, a `late` line is dropped."""
        entry = {"event": event, "key": key, "time": time.time(), "who": self._who, **fields}
        for name in _FREE.intersection(fields):
            entry[name] = scrub_secrets(entry[name])
        try:
            line = self._write_json(entry) + b"\n"
        except ValueError:  # a lone surrogate, which models may write and UTF-8 can't encode
            line = json.dumps(entry).encode() + b"\n"
        with self._lock:
            if not self._is_open:
                if event == "late":
                    return
                raise OSError("the journal is closed")
            try:
                written = os.write(self._file, line)
            except OSError as error:
                raise OSError(self._explain(error.strerror or str(error))) from error
            if written != len(line):
                raise OSError(self._explain("a line wasn't written completely; is the disk full?"))

    def _explain(self, reason: str) -> str:
        return f"the journal {self.path} can't be written ({reason}), and a call that can't be recorded is not run"

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._file)
                self._release()

    def __enter__(self) -> FileJournal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class InterruptedCall:
    """A call that started and has no recorded outcome: whether it took effect is unknown."""

    key: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    who: str
    time: float


def read_entries(path: str | Path) -> list[dict[str, Any]]:
    """Read the lines of a journal, in order. A line cut off by a crash is skipped."""
    found = []
    for line in Path(path).read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def find_interrupted(path: str | Path) -> list[InterruptedCall]:
    """Find the calls of a journal that started and have no outcome, in order.

    These include calls that are still running in another process, so use it when no process writes the journal.
    """
    open_calls: dict[str, InterruptedCall] = {}
    for entry in read_entries(path):
        if entry.get("event") == "started":
            names = ("key", "call", "tool", "arguments", "who", "time")
            open_calls[entry["key"]] = InterruptedCall(*(entry[name] for name in names))
        elif entry.get("event") != "authorization":
            open_calls.pop(entry.get("key", ""), None)
    return list(open_calls.values())


_LATE_TEXT = 2_000
"""The most characters recorded of a late result."""


@dataclass(slots=True)
class CallRecord:
    """Writes the lines of a call that has started. `began` is from `time.perf_counter()`."""

    journal: Journal
    key: str
    call: ToolCall
    began: float

    @classmethod
    def start(cls, journal: Journal, permitted: PermittedCall) -> CallRecord:
        """Write the `started` line of a call."""
        proposal = permitted.proposal
        call, key = proposal.call, journal.make_key()
        fields: dict[str, Any] = {"call": call.id, "tool": call.name, "arguments": proposal.plain}
        if permitted.edited_from is not None:
            fields["edited_from"] = permitted.edited_from
        fields |= proposal.tool.declared if proposal.intent is None else _describe_proposal(proposal)
        fields |= _describe_verdict(permitted.verdict)
        journal.record("started", key, fields)
        return cls(journal, key, call, time.perf_counter())

    def record_authorization(self, intent: Intent, verdict: Verdict) -> None:
        """Record that the call asked for more while it was running, and whether it may."""
        fields = {
            "call": self.call.id,
            "tool": self.call.name,
            "effects": _describe_effects(intent),
            **_describe_verdict(verdict),
        }
        self.journal.record("authorization", self.key, fields)

    def finish(self, status: str, detail: str = "") -> None:
        """Record how the call ended, and after how many seconds; `detail` is what went wrong."""
        fields = self._describe_end(status)
        if detail:
            fields["detail"] = detail
        self.journal.record("finished", self.key, fields)

    def finish_late(self, status: str, text: str) -> None:
        """Record how the call ended after it was abandoned."""
        self.journal.record("late", self.key, {**self._describe_end(status), "text": text[:_LATE_TEXT]})

    def _describe_end(self, status: str) -> dict[str, Any]:
        seconds = time.perf_counter() - self.began
        return {"call": self.call.id, "tool": self.call.name, "status": status, "seconds": seconds}


def record_refused(journal: Journal | None, refused: RefusedCall) -> None:
    """Record a call that is answered without being run."""
    if journal is None:
        return
    fields = {
        **_describe_call(refused.call, refused.arguments),
        "status": refused.result.status,
        "detail": refused.result.text,
    }
    decided = {} if refused.verdict is None else _describe_verdict(refused.verdict)
    judged = {} if refused.proposal is None else _describe_proposal(refused.proposal)
    journal.record("refused", journal.make_key(), {**fields, **judged, **decided})


def record_pending(journal: Journal | None, pending: Pending) -> None:
    """Record that a call waits for a decision."""
    if journal is None:
        return
    journal.record("pending", journal.make_key(), {**_describe_call(pending.call), "detail": pending.reason})


def record_cancelled(journal: Journal | None, call: ToolCall | MalformedCall) -> None:
    """Record that the run was stopped before a call started."""
    if journal is None:
        return
    journal.record("refused", journal.make_key(), {**_describe_call(call), "status": "cancelled"})


def _describe_call(call: ToolCall | MalformedCall, arguments: Any = None) -> dict[str, Any]:
    if isinstance(call, MalformedCall):
        return {"call": call.id, "tool": "", "arguments": call.raw}
    arguments = decode_for_journal(call.arguments) if arguments is None else arguments
    return {"call": call.id, "tool": call.name, "arguments": arguments}


def _describe_proposal(proposal: ProposedCall) -> dict[str, Any]:
    """What a policy judged besides the arguments, so that another policy can judge the call anew."""
    described, intent = dict(proposal.tool.declared), proposal.intent
    if intent is not None:
        described["effects"] = _describe_effects(intent)
        if intent.asks:
            described["asks"] = True
    return described


def _describe_effects(intent: Intent) -> list[dict[str, Any]]:
    described = []
    for effect in intent.effects:
        fields: dict[str, Any] = {"kind": effect.kind, "target": effect.target}
        if effect.words:
            # As one text, in which the secret after an option is found.
            fields["command"] = shlex.join(effect.words)
        if effect.is_protected:
            fields["is_protected"] = True
        if effect.is_recursive:
            fields["is_recursive"] = True
        described.append(fields)
    return described


def read_recorded_intent(entry: Mapping[str, Any]) -> Intent | None:
    """The intent of a recorded call, without its preview; None if it had none.

    Raises `LookupError`, `TypeError` and `ValueError` for an entry that no journal writes.
    """
    if "effects" not in entry:
        return None
    effects = tuple(
        Effect(
            one["kind"],
            one["target"],
            _split_words(one.get("command", "")),
            one.get("is_protected", False),
            one.get("is_recursive", False),
        )
        for one in entry["effects"]
    )
    return Intent(effects, asks=entry.get("asks", False))


def _split_words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # a secret was scrubbed together with a quotation mark
        return ()


def _describe_verdict(verdict: Verdict) -> dict[str, str]:
    return {"decision": verdict.action, "by": verdict.by, "reason": verdict.reason}
