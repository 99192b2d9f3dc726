"""What is shown of a call and of its result: a line about what it is about, and below it what a person wants to see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.conversation import MalformedCall, ToolCall, ToolResult
from ferrule.execution.error_results import find_output_until_cancelled, is_not_run
from ferrule.transcript import EDITED, count_edits, name_call, summarize_arguments, summarize_result

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The colours of a diff's lines, by how they begin."""
BAR = "  │ "
"""What stands before each line of a result, so that none can be mistaken for one of ours."""
_SHOWN_DIFF = 40
"""The most lines of a change that are shown with a result."""
_SHOWN_OUTPUT = 9
"""The most further lines of what a command has written."""
_SUBJECTS = ("command", "path", "pattern", "prompt")
"""The arguments that say what a call is about."""
_SHORT = 40
_LONGEST_SUBJECT = 200
_QUIET = ("read_file", "search", "list_files", "read_result")
"""Tools of which only the length of a result is shown: the model reads it, the person has the files."""
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$(?:\n\*\*\* Move to: (.+)$)?", re.MULTILINE)
_MOST_PATCHED = 5
"""The most files of a patch that are named."""
_FOR_THE_MODEL = (
    (
        re.compile(r"\[This is call (\d+) of \S+ with the same arguments and the same result: .*\]"),
        r"[call \1 of the same]",
    ),
    (re.compile(r"\[(also found: .*); `runner` chooses\]"), r"[\1]"),
    (re.compile(r"\[(no access to the network: .*); if the command needs them, .*\]"), r"[\1]"),
    (re.compile(r"(started as \S+); job_output reads what it writes, stop_job stops it"), r"\1"),
    (re.compile(r"(\[… [\d,]+ characters left out); the whole is kept as .* …\]"), r"\1 …]"),
)
"""Notes that only a model can act on, and what a person is shown of them."""


def format_call(call: ToolCall | MalformedCall, *, is_edited: bool = False) -> str:
    """Format a call as one line: what it is about, and what else is short."""
    head = f"▸ {name_call(call)}"
    if isinstance(call, MalformedCall):
        return f"{head}  {summarize_arguments(call)}"
    try:
        arguments = call.decode()
    except (ValueError, RecursionError):
        arguments = None
    about = (
        "  ".join(_describe_arguments(call.name, arguments))
        if isinstance(arguments, dict)
        else summarize_arguments(call)
    )
    return f"{head}  {about}".rstrip() + (EDITED if is_edited else "")


def _describe_arguments(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a person wants to know of the arguments, each escaped and short."""
    subject = next((one for one in _SUBJECTS if isinstance(arguments.get(one), str)), None)
    if subject is not None and arguments[subject]:
        yield _join_lines(arguments[subject])
    for key, value in arguments.items():
        if key != subject:
            yield from _describe_argument(name, key, value)


def _describe_argument(name: str, key: str, value: Any) -> Iterator[str]:
    if key == "edits" and (counted := count_edits(value)):
        yield counted
    elif isinstance(value, str) and (name == "apply_patch" or key == "patch") and _PATCHED.search(value):
        yield f"{_describe_patched(value)}  {_count_signs(value)}"
    elif isinstance(value, str) and "\n" in value.strip("\n"):
        yield pluralize(len(value.splitlines()), "line")
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        yield pluralize(len(value), key.removesuffix("s"))
    elif value not in (None, "") and len(text := json.dumps(value, ensure_ascii=False)) <= _SHORT:
        yield escape_line(f"{key}={text}")


def _join_lines(text: str) -> str:
    shown = escape_line(" ⏎ ".join(line.strip() for line in text.strip().split("\n")))
    if len(shown) <= _LONGEST_SUBJECT:
        return shown
    return f"{shown[: _LONGEST_SUBJECT - 1]}… ({len(text):,} characters)"


def _describe_patched(patch: str) -> str:
    """Name the files of a patch, and those that it creates, deletes or moves as such."""
    files = [
        f"{path} moved to {moved}" if moved else path + {"Add": " created", "Delete": " deleted"}.get(kind, "")
        for kind, path, moved in _PATCHED.findall(patch)
    ]
    files = list(dict.fromkeys(files))  # a file may have several sections
    more = len(files) - _MOST_PATCHED
    return escape_line(", ".join(files[:_MOST_PATCHED])) + (f" and {more} more" if more > 0 else "")


def _count_signs(patch: str) -> str:
    lines = patch.split("\n")
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"+{added:,} −{removed:,}"


def summarize_lines(result: ToolResult, *, with_diff: bool) -> tuple[str, list[str]]:
    """Return a line about a result, and lines to show below it: of a change its diff, of a command its output."""
    if result.status == "cancelled":
        return _summarize_cancelled(result)
    text = result.text.strip("\n")
    lines = text.split("\n")
    if result.name == "todo" and not result.is_error and lines[-1].startswith("("):
        return escape_line(lines[-1].strip("()")), [escape_line(line) for line in lines[:-1]]
    if any(not hasattr(part, "text") for part in result.content):
        return summarize_result(result), []
    if result.name in _QUIET and not result.is_error and (counted := _count_lines(result.name, lines)):
        return counted, []
    if len(lines) < 2:
        return summarize_result(result), []
    head, diff = _split_diff(lines)
    if diff:
        return "; ".join(map(_write_for_person, filter(None, head))), _shorten_lines(diff) if with_diff else []
    return _write_for_person(lines[0]), [_write_for_person(line) for line in _shorten_lines(lines[1:], _SHOWN_OUTPUT)]


def _count_lines(name: str, lines: Sequence[str]) -> str:
    """Count lines that aren't notes; empty if there are none, or a single one that isn't of a file, which is shown."""
    count = sum(not (line.startswith("[") and line.endswith("]")) for line in lines)
    return pluralize(count, "line") if count > 1 or (count and name == "read_file") else ""


def _write_for_person(line: str) -> str:
    """Escape a line of a result, without what only the model can do."""
    for pattern, shown in _FOR_THE_MODEL:
        if pattern.fullmatch(line):
            return escape_line(pattern.sub(shown, line))
    return escape_line(line)


def _summarize_cancelled(result: ToolResult) -> tuple[str, list[str]]:
    """What a person who has stopped the turn wants to know: whether the call ran, and what it wrote."""
    if is_not_run(result):
        return "not run", []
    output = find_output_until_cancelled(result)
    lines = [escape_line(line) for line in output.split("\n")] if output else []
    return "stopped; it may have taken effect", _shorten_lines(lines, _SHOWN_OUTPUT)


def _split_diff(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split the lines of a result into those before its unified diff, and the diff."""
    start = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), None)
    if start is None:
        return lines, []
    head = [line for line in lines[:start] if line != "Diff:" and line[:4] not in ("--- ", "+++ ")]
    return head, [escape_line(line) for line in lines[start:]]


def _shorten_lines(lines: list[str], most: int = _SHOWN_DIFF) -> list[str]:
    """Leave out the middle of many lines."""
    if len(lines) <= most:
        return lines
    left_out = len(lines) - most + 1
    return [*lines[: most // 2], f"… {left_out} more lines", *lines[len(lines) - (most - most // 2 - 1) :]]
