"""What was called, by whom, who let it, and how it ended: one JSON object a line, written as it happens.

A `started` line stands before a call runs, so that after a crash `interrupted` knows what may have taken effect. The
texts of results are not kept here, they are in the conversation; only that of a result which came too late is.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ferrule.execution.scrubbing import scrubbed, scrubbed_text

_LATE_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class Permission:
    """Why a call may run, or why it may not: the decision, whose it was, and the reason."""

    decision: str
    by: str
    reason: str = ""


class Journal(Protocol):
    """Where calls are recorded. Each method is callable from any thread and returns once the line is written."""

    def started(self, call_id: str, tool: str, arguments: Mapping[str, Any], permission: Permission) -> str:
        """A call is about to run. Returns the key that its later lines are written under."""

    def finished(self, key: str, call_id: str, tool: str, status: str, seconds: float, detail: str = "") -> None:
        """A call that started has its answer; `detail` is the reason where it failed."""

    def refused(
        self, call_id: str, tool: str, arguments: Any, status: str, permission: Permission | None, detail: str
    ) -> None:
        """A call was answered, or paused, without being run."""

    def late(self, key: str, call_id: str, tool: str, status: str, seconds: float, text: str) -> None:
        """A call that had been given up came to its end after all."""


class NullJournal:
    """Records nothing."""

    def started(self, call_id: str, tool: str, arguments: Mapping[str, Any], permission: Permission) -> str:
        """Forget it."""
        return ""

    def finished(self, key: str, call_id: str, tool: str, status: str, seconds: float, detail: str = "") -> None:
        """Forget it."""

    def refused(
        self, call_id: str, tool: str, arguments: Any, status: str, permission: Permission | None, detail: str
    ) -> None:
        """Forget it."""

    def late(self, key: str, call_id: str, tool: str, status: str, seconds: float, text: str) -> None:
        """Forget it."""


class FileJournal:
    """A journal in a file that is only ever appended to, one `write` a line; several processes may share it.

    `who` names whose calls these are. Raises `OSError` where a line can't be written: a call that can't be recorded
    is not run. Lines are not forced to disk, so a machine that loses power may lose the last ones.
    """

    def __init__(self, path: str | Path, who: str = "") -> None:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Arguments may be private, so others on the machine don't get to read them.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        self._is_open = True
        self._who = who
        self._prefix = os.urandom(6).hex()
        self._numbers = itertools.count(1)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # the last writer died inside its line

    def started(self, call_id: str, tool: str, arguments: Mapping[str, Any], permission: Permission) -> str:
        """Write the line that stands before a call."""
        key = f"{self._prefix}-{next(self._numbers)}"
        self._write("started", key, call_id, tool, arguments=scrubbed(arguments), **_permission(permission))
        return key

    def finished(self, key: str, call_id: str, tool: str, status: str, seconds: float, detail: str = "") -> None:
        """Write a call's outcome."""
        more = {"detail": scrubbed_text(detail)} if detail else {}
        self._write("finished", key, call_id, tool, status=status, seconds=round(seconds, 6), **more)

    def refused(
        self, call_id: str, tool: str, arguments: Any, status: str, permission: Permission | None, detail: str
    ) -> None:
        """Write the one line of a call that isn't run."""
        key = f"{self._prefix}-{next(self._numbers)}"
        kept = scrubbed(arguments)
        self._write(
            "refused",
            key,
            call_id,
            tool,
            status=status,
            arguments=kept,
            detail=scrubbed_text(detail),
            **_permission(permission),
        )

    def late(self, key: str, call_id: str, tool: str, status: str, seconds: float, text: str) -> None:
        """Write what an abandoned call came to; nothing once the journal is closed."""
        kept = scrubbed_text(text[:_LATE_TEXT])
        self._write("late", key, call_id, tool, or_closed=True, status=status, seconds=round(seconds, 6), text=kept)

    def close(self) -> None:
        """Close the file; late results are no longer recorded."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._file)

    def __enter__(self) -> FileJournal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _write(
        self, event: str, key: str, call_id: str, tool: str, or_closed: bool = False, **fields: Any
    ) -> None:
        head = {"event": event, "key": key, "time": round(time.time(), 6), "who": self._who, "call": call_id}
        line = json.dumps({**head, "tool": tool, **fields}).encode() + b"\n"
        with self._lock:
            if not self._is_open:
                if or_closed:
                    return
                raise OSError("the journal is closed")
            if os.write(self._file, line) != len(line):
                raise OSError("a line of the journal could not be written whole; is the disk full?")


def _permission(permission: Permission | None) -> dict[str, str]:
    if permission is None:
        return {}
    return {"decision": permission.decision, "by": permission.by, "reason": permission.reason}


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A call that started and has no outcome: whether it took effect is unknown."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    who: str
    time: float


def entries(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a journal, in order. A line that was torn by a crash is left out."""
    found = []
    for line in Path(path).read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def interrupted(path: str | Path) -> list[Interrupted]:
    """The calls of a journal that started and came to no outcome, in order.

    Calls that run at this moment in another process are among them: read it when nobody writes it.
    """
    open_calls: dict[str, Interrupted] = {}
    for entry in entries(path):
        if entry.get("event") == "started":
            open_calls[entry["key"]] = Interrupted(
                entry["call"], entry["tool"], entry["arguments"], entry["who"], entry["time"]
            )
        else:
            open_calls.pop(entry.get("key", ""), None)
    return list(open_calls.values())
