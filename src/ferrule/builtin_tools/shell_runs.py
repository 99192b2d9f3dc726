"""Runs one command of the shell tool, and renders what a model reads of it.

It runs in the mode and with the places that it needs, and again with more hosts. A result has the command's status, its
output, its errors and what the sandbox noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ferrule.errors import FerruleError, ToolFailed
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.builtin_tools.shell_plan import CommandPlan
    from ferrule.sandbox.shell import CommandResult, ShellSandbox

__all__ = ["describe_end", "render_output", "run_planned"]

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

_MOST_RUNS: Final = 4
"""A command that asks for more and more hosts (redirections, mirrors) is not run more often."""


async def run_planned(
    sandbox: ShellSandbox,
    command: str,
    plan: CommandPlan,
    scope: CallScope,
    seconds: float,
    *,
    can_ask_for_hosts: bool = False,
) -> str:
    """Run a command to its end and render its result. Raises `ToolFailed` with that if it failed or nothing was run.

    `can_ask_for_hosts`: the sandbox has a proxy, which says what it refused.
    """
    hosts, earlier = plan.hosts, list[str]()

    async def run() -> CommandResult:
        return await _run_once(sandbox, command, plan, scope, seconds, hosts, earlier)

    done = await run()
    while refused := _find_refused(done, hosts):
        if not can_ask_for_hosts or _succeeded(done) or len(earlier) + 1 >= _MOST_RUNS:
            return _finish(done, _join([*earlier, render_output(done), _describe_refused(done)]))
        try:
            await scope.authorize(_make_network_intent(command, refused))
        except ToolFailed as denial:
            return _finish(done, _join([*earlier, render_output(done), f"{_describe_refused(done)}\n[{denial}]"]))
        earlier.append(
            f"[{describe_end(done)}, without access to {', '.join(refused)}]\n{render_output(done)}\n"
            f"[the command was run again with access to {', '.join(refused)}]"
        )
        hosts = (*hosts, *refused)
        done = await run()
    return _finish(done, _join([*earlier, render_output(done)]))


async def _run_once(
    sandbox: ShellSandbox,
    command: str,
    plan: CommandPlan,
    scope: CallScope,
    seconds: float,
    hosts: tuple[str, ...],
    earlier: Sequence[str],
) -> CommandResult:
    def keep_output(stopped: CommandResult) -> None:
        scope.keep_output(_join([*earlier, render_output(stopped)]))

    try:
        return await sandbox.run(
            command,
            timeout=seconds,
            writable=plan.writable,
            separate=True,
            mode="read-only" if plan.only_reads else None,
            hosts=hosts,
            on_stopped=keep_output,
            watch=scope.report_progress,
        )
    except FerruleError as error:
        raise ToolFailed(f"not run: {error}") from error


def _make_network_intent(command: str, refused: tuple[str, ...]) -> Intent:
    named = ", ".join(refused)
    return Intent(
        tuple(Effect("net", host) for host in refused),
        f"$ {command}\n[it failed without access to {named}; with access it is run again from its beginning]",
    )


def _find_refused(done: CommandResult, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that a command was refused for want of permission, not because they lead into a private network."""
    return tuple(host for host in done.refused if host not in hosts)


def _succeeded(done: CommandResult) -> bool:
    return done.ended == "exit" and done.exit_code == 0


def _describe_refused(done: CommandResult) -> str:
    more = f" and {done.refused_left_out} more requests" if done.refused_left_out else ""
    return (
        f"[no access to the network: {', '.join(done.refused)}{more}; if the command needs them, name them in "
        f"`hosts`, for which the user may be asked]"
    )


def _join(texts: list[str]) -> str:
    return "\n".join(text for text in texts if text)


def _finish(done: CommandResult, text: str) -> str:
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
