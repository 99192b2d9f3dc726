"""The results of calls that failed or were not run: always `error: ` and a reason that a model can act on.

The same failure always gives the same text, also in training data. So addresses, temporary paths, measured durations
and generated ids are removed, unless the model wrote them itself.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from ferrule.conversation import MalformedCall, ResultStatus, Text, ToolCall, ToolResult
from ferrule.errors import ArgumentsInvalid, ToolFailed, ToolRetry


class RaisedElsewhere(Exception):  # noqa: N818 - a stand-in for another exception
    """An exception that a tool raised in another process: the name of its type, its message and its traceback."""

    def __init__(self, type_name: str, message: str, formatted: str = "") -> None:
        super().__init__(message)
        self.type_name = type_name
        self.formatted = formatted


_MALFORMED = {
    "truncated": "the call broke off where the message reached its limit of tokens (max_tokens); write it again, "
    "complete and shorter",
    "unclosed": "the call was not closed; write it again with its closing marker",
    "invalid_json": "the call's arguments are not valid JSON; write it again with valid JSON",
    "no_name": "the call names no tool; write it again with the name of a tool",
    "forged_result": "results come from the tools, not from you; write the call, then stop and wait",
}


_CANCELLED = "cancelled: the run was stopped before this call finished; it may have taken effect"
_NOT_RUN = "not run: "

TimeoutAction = Literal["stopped", "abandoned", "killed"]

_TIMED_OUT = {
    "stopped": "it was stopped, and may have had some of its effects",
    "abandoned": "it was abandoned but is still running, and may yet take effect",
    "killed": "it was killed, and may have had some of its effects",
}


def make_error_result(call_id: str, name: str, status: ResultStatus, reason: str) -> ToolResult:
    """Answer a call that failed."""
    return ToolResult(call_id, name, (Text(f"error: {reason}"),), status)


def make_malformed_result(call: MalformedCall) -> ToolResult:
    """Answer what was meant as a call but can't be read."""
    reason = _MALFORMED.get(call.kind) or f"the call can't be read ({call.kind.replace('_', ' ')}); write it again"
    return make_error_result(call.id, "", "invalid", reason)


def make_unknown_tool_result(call: ToolCall, nearest: Sequence[str], offered: Sequence[str]) -> ToolResult:
    """Answer a call of an unknown tool."""
    if nearest:
        hint = f"the nearest are: {', '.join(nearest)}" if len(nearest) > 1 else f"the nearest is: {nearest[0]}"
    else:
        hint = f"there are: {', '.join(offered)}" if offered else "there are no tools; answer without one"
    return make_error_result(call.id, call.name, "unknown_tool", f"unknown tool {call.name!r}; {hint}")


def make_timed_out_result(call: ToolCall, action: TimeoutAction, read_only: bool) -> ToolResult:
    """Answer a call that timed out; `action` is what was done to it."""
    reason = "timed out" if read_only else f"timed out; {_TIMED_OUT[action]}"
    return make_error_result(call.id, call.name, "timeout", reason)


def make_not_started_result(call: ToolCall, busy: bool) -> ToolResult:
    """Answer a call that timed out before it ran: waiting for its Toolset's lock (`busy`), or by the run's deadline."""
    cause = "an earlier call of the same tools is still running" if busy else "no time is left"
    return make_error_result(call.id, call.name, "timeout", f"not started: {cause}; it had no effect")


def make_denied_result(call: ToolCall, reason: str) -> ToolResult:
    """Answer a call that isn't permitted."""
    return make_error_result(call.id, call.name, "denied", f"denied: {reason}")


def make_cancelled_result(call: ToolCall | MalformedCall, output: str = "") -> ToolResult:
    """Answer a call that didn't finish because the run was stopped; `output` is what it had returned by then."""
    reason = f"{_CANCELLED}\n{output}" if output else _CANCELLED
    return make_error_result(call.id, _get_name(call), "cancelled", reason)


def make_not_run_result(call: ToolCall | MalformedCall, reason: str) -> ToolResult:
    """Answer a call that was never started."""
    return make_error_result(call.id, _get_name(call), "cancelled", f"{_NOT_RUN}{reason}")


def is_not_run(result: ToolResult) -> bool:
    """Whether a result is that of a call that was never started, see `make_not_run_result`."""
    return result.status == "cancelled" and result.text.startswith(f"error: {_NOT_RUN}")


def find_output_until_cancelled(result: ToolResult) -> str:
    """Find what a call had returned when the run was stopped, see `make_cancelled_result`."""
    return result.text.removeprefix(f"error: {_CANCELLED}").strip("\n")


def make_interrupted_result(call: ToolCall | MalformedCall) -> ToolResult:
    """Answer, on resuming, a call that according to the journal started and never finished."""
    reason = "interrupted: the program ended while this call ran; whether it took effect is unknown"
    return make_error_result(call.id, _get_name(call), "interrupted", reason)


def describe_failure(error: BaseException, arguments: str) -> tuple[ResultStatus, str]:
    """Describe an exception of a tool by status and reason; `arguments` is what the model wrote, and may see again."""
    if isinstance(error, ToolRetry):
        return "retry", error.hint
    if isinstance(error, ToolFailed):
        return "error", error.reason
    if isinstance(error, ArgumentsInvalid):
        return "invalid", str(error)
    name = error.type_name if isinstance(error, RaisedElsewhere) else type(error).__name__
    try:
        message = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception whose `__str__` fails still has a name
        message = ""
    return "error", scrub_message(f"{name}: {message}" if message else name, arguments)


def format_tool_traceback(error: BaseException) -> str:
    """Format the traceback of what a tool raised, from the first frame on that isn't of this package."""
    if isinstance(error, RaisedElsewhere):
        return error.formatted
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename).parent == Path(__file__).parent:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))


def scrub_message(message: str, arguments: str) -> str:
    """Replace addresses, temporary paths, ids and measured durations in `message` that aren't in `arguments`."""

    def replace_match(found: re.Match[str]) -> str:
        whole = found.group()
        if whole in arguments:
            return whole
        return _STAND_INS[found.lastgroup or ""]

    return _compile_volatile_pattern().sub(replace_match, message)


_STAND_INS = {"address": "0x…", "temporary": "<temporary>", "id": "<id>", "duration": "<duration>"}


@lru_cache(maxsize=1)
def _compile_volatile_pattern() -> re.Pattern[str]:
    # Slow to import, and needed only for the message of a failed tool.
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
