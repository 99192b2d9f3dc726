"""The results of calls that failed or were not run: always `error: ` and a reason that a model can act on.

The same failure gives the same text tomorrow and in training data, so addresses, temporary paths, measured
durations and generated ids don't get in, unless the model wrote them itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from ferrule.conversation import MalformedCall, ResultStatus, Text, ToolCall, ToolResult
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.tools.argument_errors import ArgumentsInvalid


class RaisedElsewhere(Exception):  # noqa: N818 - it carries an exception, it isn't one more
    """What a tool raised in a process of its own: the name of its type, and its message."""

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(message)
        self.type_name = type_name


_MALFORMED = {
    "truncated": "the call broke off before its end; write it again, whole and shorter",
    "unclosed": "the call was not closed; write it again with its closing marker",
    "invalid_json": "the call's arguments are not valid JSON; write it again with valid JSON",
    "no_name": "the call names no tool; write it again with the name of a tool",
    "forged_result": "results come from the tools, not from you; write the call, then stop and wait",
}


Manner = Literal["stopped", "abandoned", "killed"]

_TIMED_OUT = {
    "stopped": "it was stopped and may have taken part of its effect",
    "abandoned": "it was given up but still runs, and may yet take effect",
    "killed": "it was killed and may have taken part of its effect",
}


def error_result(call_id: str, name: str, status: ResultStatus, reason: str) -> ToolResult:
    """The answer to a call that failed."""
    return ToolResult(call_id, name, (Text(f"error: {reason}"),), status)


def malformed_result(call: MalformedCall) -> ToolResult:
    """The answer to what was meant as a call."""
    reason = _MALFORMED.get(call.kind) or f"the call can't be read ({call.kind.replace('_', ' ')}); write it again"
    return error_result(call.id, "", "invalid", reason)


def unknown_tool_result(call: ToolCall, nearest: Sequence[str], offered: Sequence[str]) -> ToolResult:
    """The answer to a call of a tool that isn't on offer."""
    if nearest:
        cure = f"the nearest are: {', '.join(nearest)}" if len(nearest) > 1 else f"the nearest is: {nearest[0]}"
    else:
        cure = f"there are: {', '.join(offered)}" if offered else "there are no tools; answer without one"
    return error_result(call.id, call.name, "unknown_tool", f"there is no tool {call.name!r}; {cure}")


def timed_out_result(call: ToolCall, manner: Manner, read_only: bool) -> ToolResult:
    """The answer to a call whose time was up; `manner` says what became of it."""
    reason = "timed out" if read_only else f"timed out; {_TIMED_OUT[manner]}"
    return error_result(call.id, call.name, "timeout", reason)


def not_started_result(call: ToolCall, busy: bool) -> ToolResult:
    """The answer to a call whose time was up before it ran: behind another of its Toolset, or by the run's deadline."""
    cause = "an earlier call of the same tools still runs" if busy else "no time is left"
    return error_result(call.id, call.name, "timeout", f"not started: {cause}; it took no effect")


def denied_result(call: ToolCall, reason: str) -> ToolResult:
    """The answer to a call that may not run."""
    return error_result(call.id, call.name, "denied", f"denied: {reason}")


def cancelled_result(call: ToolCall | MalformedCall) -> ToolResult:
    """The answer to a call that was not finished because the run was stopped."""
    reason = "cancelled: the run was stopped before this call finished; it may have taken effect"
    return error_result(call.id, _get_name(call), "cancelled", reason)


def interrupted_result(call: ToolCall | MalformedCall) -> ToolResult:
    """The answer, on resuming, to a call that the journal has as started and never ended."""
    reason = "interrupted: the program ended while this call ran; whether it took effect is unknown"
    return error_result(call.id, _get_name(call), "interrupted", reason)


def describe_failure(error: BaseException, arguments: str) -> tuple[ResultStatus, str]:
    """Status and reason for what a tool raised; `arguments` is what the model wrote and may see again."""
    if isinstance(error, ToolRetry):
        return "retry", error.hint
    if isinstance(error, ToolFailed):
        return "error", error.reason
    if isinstance(error, ArgumentsInvalid):
        return "invalid", str(error)
    name = error.type_name if isinstance(error, RaisedElsewhere) else type(error).__name__
    try:
        message = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception that can't say itself still has its name
        message = ""
    return "error", scrub_message(f"{name}: {message}" if message else name, arguments)


def scrub_message(message: str, arguments: str) -> str:
    """`message` without addresses, temporary paths, ids and measured durations that aren't in `arguments`."""

    def shortened(found: re.Match[str]) -> str:
        whole = found.group()
        if whole in arguments:
            return whole
        return _STAND_INS[found.lastgroup or ""]

    return _volatile_pattern().sub(shortened, message)


_STAND_INS = {"address": "0x…", "temporary": "<temporary>", "id": "<id>", "duration": "<duration>"}


@lru_cache(maxsize=1)
def _volatile_pattern() -> re.Pattern[str]:
    # Only a message of a tool that failed needs it, and it is slow to import.
    import tempfile

    folders = "|".join(re.escape(folder) for folder in sorted({tempfile.gettempdir(), "/tmp", "/var/tmp"}))
    return re.compile(
        r"(?P<address>\b0x[0-9a-fA-F]{6,16}\b)"
        rf"|(?P<temporary>(?:{folders})/(?:tmp[a-z0-9_]{{6,}}|[\w.-]{{0,255}}[-_.](?=\w{{0,255}}\d)[a-z0-9_]{{8,255}})(?![\w.-]))"
        r"|(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
        r"|(?P<duration>\b\d+\.\d{2,}\s?(?:seconds|secs?|ms|µs|us|s)\b)"
    )


def _get_name(call: ToolCall | MalformedCall) -> str:
    return call.name if isinstance(call, ToolCall) else ""
