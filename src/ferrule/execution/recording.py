"""The lines that a journal gets of one call, whatever becomes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.execution.deciding import Ready, Refused, written
from ferrule.execution.decisions import Pending
from ferrule.execution.journal import Journal
from ferrule.execution.policy import Verdict

_LATE_TEXT = 2_000
"""Characters of a late result that are recorded."""


@dataclass(slots=True)
class Record:
    """The record of one call that has started. `began` is a `time.perf_counter()` value."""

    journal: Journal
    key: str
    call: ToolCall
    began: float

    @classmethod
    def started(cls, journal: Journal, ready: Ready) -> Record:
        """Write the line that stands before a call."""
        proposal, verdict, key = ready.proposal, ready.verdict, journal.new_key()
        fields = {
            "call": proposal.call.id,
            "tool": proposal.call.name,
            "arguments": proposal.plain,
            "decision": verdict.action,
            "by": verdict.by,
            "reason": verdict.reason,
        }
        journal.record("started", key, fields)
        return cls(journal, key, proposal.call, time.perf_counter())

    def ended(self, status: str, detail: str = "") -> None:
        """Write how it ended, and after how many seconds; `detail` is what was wrong."""
        fields = self._fields(status)
        if detail:
            fields["detail"] = detail
        self.journal.record("finished", self.key, fields)

    def ended_late(self, status: str, text: str) -> None:
        """Write what it came to after it had been given up."""
        self.journal.record("late", self.key, {**self._fields(status), "text": text[:_LATE_TEXT]})

    def _fields(self, status: str) -> dict[str, Any]:
        seconds = time.perf_counter() - self.began
        return {"call": self.call.id, "tool": self.call.name, "status": status, "seconds": seconds}


def record_refused(journal: Journal, refused: Refused) -> None:
    """Write the one line of a call that is answered without being run."""
    fields = {**_what(refused.call, refused.arguments), "status": refused.result.status, "detail": refused.result.text}
    decided = {} if refused.verdict is None else _decided(refused.verdict)
    journal.record("refused", journal.new_key(), {**fields, **decided})


def record_pending(journal: Journal, pending: Pending) -> None:
    """Write that a call waits."""
    journal.record("pending", journal.new_key(), {**_what(pending.call), "detail": pending.reason})


def record_cancelled(journal: Journal, call: ToolCall | MalformedCall) -> None:
    """Write that the run was stopped before a call began."""
    journal.record("refused", journal.new_key(), {**_what(call), "status": "cancelled"})


def _what(call: ToolCall | MalformedCall, arguments: Any = None) -> dict[str, Any]:
    if isinstance(call, MalformedCall):
        return {"call": call.id, "tool": "", "arguments": call.raw}
    arguments = written(call.arguments) if arguments is None else arguments
    return {"call": call.id, "tool": call.name, "arguments": arguments}


def _decided(verdict: Verdict) -> dict[str, str]:
    return {"decision": verdict.action, "by": verdict.by, "reason": verdict.reason}
