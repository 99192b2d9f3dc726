"""What a model reads of a command that has ended: its status, its output, its errors and what the sandbox noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ferrule.errors import ToolFailed

if TYPE_CHECKING:
    from ferrule.sandbox.shell import CommandResult

__all__ = ["describe_end", "finish", "render_result"]

STDERR: Final = "STDERR:"
NO_OUTPUT: Final = "(no output)"
_MOST_SPILLED: Final = 16 * 1024 * 1024
"""Bytes of a long output that are handed on whole, to be cut and kept by the executor."""
_ENDS: Final[dict[str, str]] = {
    "timeout": "timed out and was stopped; it may have had some of its effects",
    "output": "stopped, since it wrote too much output",
    "signal": "ended by a signal",
    "killed": "stopped; it may have had some of its effects",
}


def render_result(done: CommandResult) -> str:
    """Render the output of a command. Raises `ToolFailed` with it unless the exit status is 0."""
    return finish(done, render_output(done))


def finish(done: CommandResult, text: str) -> str:
    """Return the text of a command's result. Raises `ToolFailed` with it unless the exit status is 0."""
    if done.ended == "exit" and done.exit_code == 0:
        return text or NO_OUTPUT
    raise ToolFailed(f"{describe_end(done)}\n{text or NO_OUTPUT}")


def describe_end(done: CommandResult) -> str:
    """How a command ended, in words."""
    return _ENDS.get(done.ended, f"exit status {done.exit_code}")


def render_output(done: CommandResult) -> str:
    """The standard output, after "STDERR:" the errors if they are separate, and what the sandbox noticed."""
    output = _read_whole(done.output, done.spilled).rstrip("\n")
    errors = _read_whole(done.errors or "", done.spilled_errors).rstrip("\n")
    lines = [output] if output.strip() else []
    lines += [STDERR, errors] if errors.strip() else []
    if done.appeared:
        lines.append(f"[it created protected places: {', '.join(done.appeared)}]")
    lines += [f"[{each}]" for each in done.repositories]
    if done.unsearched:
        lines.append(f"[hidden, since they contain too many folders: {', '.join(done.unsearched)}]")
    if done.hint:
        lines.append(f"[{done.hint}]")
    return "\n".join(lines)


def _read_whole(shown: str, spilled: Path | None) -> str:
    """The whole output where it isn't too long: the executor cuts it, and keeps it where the model can read on."""
    try:
        if spilled is not None and spilled.stat().st_size <= _MOST_SPILLED:
            return spilled.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the sandbox was closed meanwhile
        pass
    return shown
