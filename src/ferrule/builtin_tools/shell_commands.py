"""Shell commands as a tool: a model's commands run contained in one workspace.

The arguments of a call are the command, its timeout, and the protected places that it must write (`.git`, to commit),
for which a person is always asked. Mode, network and hidden files are set where the tool is made; no argument changes
them.

The effects that a policy sees: in `read-only` mode without network `read`, which the profiles `plan` and `ask` allow;
in `workspace-write` mode `run` and `write`, which `ask` and `accept-edits` ask about and `auto` allows; in `full` mode,
or not contained, the tool is `destructive`, which `auto` asks about too. Each host is an effect `net`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from ferrule.builtin_tools.default_sandboxes import close_at_exit, make_once
from ferrule.builtin_tools.python_code import limit_seconds
from ferrule.errors import FerruleError, ToolFailed, ToolRetry
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from ferrule.sandbox.shell import CommandResult, ShellSandbox

TIMEOUT: Final = 120.0
LONGEST: Final = 600.0
"""The default and the longest timeout of a command, in seconds."""
MAY_WRITE: Final = (".git",)

ModeName = Literal["read-only", "workspace-write", "full"]
Command = Annotated[str, "The command line, for sh"]
Seconds = Annotated[float, "Seconds that it may take; it is stopped after them, with what it wrote kept"]
Writable = Annotated[list[str], "Protected places that this command must write, such as .git; the user is asked"]

_DESCRIPTION: Final = {
    "read-only": "Run a shell command that reads: nothing can be written but temporary files.",
    "workspace-write": "Run a shell command in the workspace. Files outside of it can be read and not written.",
    "full": "Run a shell command.",
}


@dataclass(frozen=True, slots=True)
class _SandboxTraits:
    """What a policy needs to know about a sandbox; the host `*` is the whole network."""

    mode: str
    hosts: tuple[str, ...]
    is_contained: bool

    @classmethod
    def of(cls, mode: str, network: bool | Sequence[str], tier: str | None) -> _SandboxTraits:
        is_contained = tier != "none"
        if network is True or not is_contained:
            return cls(str(mode), ("*",), is_contained)
        return cls(str(mode), tuple(network or ()), is_contained)

    @property
    def only_reads(self) -> bool:
        return self.is_contained and self.mode == "read-only" and not self.hosts

    @property
    def writes_anywhere(self) -> bool:
        return self.mode == "full" or not self.is_contained


def shell_tool(
    workspace: str | os.PathLike[str] | ShellSandbox | None = None,
    *,
    mode: ModeName = "workspace-write",
    network: bool | Sequence[str] = False,
    may_write: Collection[str] = MAY_WRITE,
    name: str = "shell",
    timeout: float = TIMEOUT,
    longest: float = LONGEST,
) -> Tool:
    """Make a tool that runs commands in a workspace: a folder, or a `ShellSandbox`, which the caller closes.

    The default is the current folder at the first call. `mode` and `network` are for a folder; a sandbox has its own.
    `timeout` and `longest` are the default and the longest timeout of a call, in seconds.

    `may_write` lists the protected places that a command may ask to write. A person is asked about each such call:
    whoever can write `.git` can make git run something later, outside of the sandbox.
    """
    if workspace is None or isinstance(workspace, str | os.PathLike):
        find, traits = _make_finder(workspace, mode, network), _SandboxTraits.of(mode, network, None)
    else:
        find, traits = (lambda: workspace), _SandboxTraits.of(workspace.mode, workspace.network, workspace.tier)

    async def run(
        command: Command, scope: CallScope, timeout: Seconds = timeout, writable: Writable | None = None
    ) -> str:
        _check_writable(writable or (), may_write)
        return await _run(find(), command, _choose_seconds(timeout, longest, scope), tuple(writable or ()))

    return tool(
        name=name,
        description=_DESCRIPTION[traits.mode] + _describe_network(traits.hosts),
        annotations=_make_annotations(traits),
        intent=_make_intent(find, traits, may_write),
    )(run)


def _make_finder(
    workspace: str | os.PathLike[str] | None, mode: ModeName, network: bool | Sequence[str]
) -> Callable[[], ShellSandbox]:
    def make() -> ShellSandbox:
        from ferrule.sandbox.shell import ShellSandbox

        return ShellSandbox(Path.cwd() if workspace is None else Path(workspace), mode=mode, network=network)

    if workspace is None:
        return make_once(make)
    # Created now, so that a missing folder is an error where the tool is made.
    made = close_at_exit(make())
    return lambda: made


async def _run(sandbox: ShellSandbox, command: str, seconds: float, writable: tuple[str, ...]) -> str:
    try:
        done = await sandbox.run(command, timeout=seconds, writable=writable)
    except FerruleError as error:
        raise ToolFailed(f"not run: {error}") from error
    return render_result(done)


def _choose_seconds(timeout: float, longest: float, scope: CallScope) -> float:
    if not timeout > 0:
        raise ToolRetry(f"timeout must be a number of seconds above 0, not {timeout:g}")
    return limit_seconds(min(timeout, longest), scope)


def _check_writable(writable: Collection[str], may_write: Collection[str]) -> None:
    refused = [name for name in writable if name not in may_write]
    if refused:
        allowed = f"only {', '.join(may_write)}" if may_write else "nothing"
        raise ToolFailed(f"writable names {', '.join(refused)}: {allowed} can be asked for")


def _make_annotations(traits: _SandboxTraits) -> Annotations:
    """Make the annotations. `workspace-write` leaves `destructive` open: it can destroy only the workspace."""
    if traits.only_reads:
        return Annotations(read_only=True, destructive=False, open_world=False)
    return Annotations(
        read_only=False, destructive=True if traits.writes_anywhere else None, open_world=bool(traits.hosts)
    )


def _make_intent(
    find: Callable[[], ShellSandbox], traits: _SandboxTraits, may_write: Collection[str]
) -> Callable[[Mapping[str, Any]], Intent]:
    def intent(arguments: Mapping[str, Any]) -> Intent:
        workspace, command = str(find().workspace), str(arguments["command"])
        writable = list(arguments.get("writable") or ())
        _check_writable(writable, may_write)
        effects = [
            *_list_file_effects(traits, command, workspace, writable),
            *(Effect("net", one) for one in traits.hosts),
        ]
        notes = [f"in {workspace}", traits.mode if traits.is_contained else "not contained"]
        notes += [f"writes {name}, which is protected" for name in writable]
        notes += [f"reaches {host}" for host in traits.hosts]
        return Intent(tuple(effects), f"$ {command}\n[{'; '.join(notes)}]", asks=bool(writable))

    return intent


def _list_file_effects(traits: _SandboxTraits, command: str, workspace: str, writable: Sequence[str]) -> list[Effect]:
    run = Effect("run", command)
    if traits.writes_anywhere:
        return [run, Effect("write", "/")]
    if traits.mode == "read-only":
        return [Effect("read", "/")] if traits.only_reads else [run]
    return [run, Effect("write", workspace), *(Effect("write", str(Path(workspace, name))) for name in writable)]


def _describe_network(hosts: Sequence[str]) -> str:
    if not hosts:
        return " There is no network."
    return "" if "*" in hosts else f" Of the network it reaches: {', '.join(hosts)}."


def render_result(done: CommandResult) -> str:
    """Render the output of a command. Raises `ToolFailed` with it unless the exit status is 0."""
    lines = [done.output.rstrip("\n")] if done.output.strip() else []
    if done.appeared:
        lines.append(f"[it created protected places: {', '.join(done.appeared)}]")
    if done.unsearched:
        lines.append(f"[hidden, since they contain too many folders: {', '.join(done.unsearched)}]")
    if done.hint:
        lines.append(f"[{done.hint}]")
    if done.ended == "exit" and done.exit_code == 0:
        return "\n".join(lines) or "[no output]"
    raise ToolFailed("\n".join([_ENDS.get(done.ended, f"exit status {done.exit_code}"), *lines]))


_ENDS: Final[dict[str, str]] = {
    "timeout": "timed out and was stopped; it may have had some of its effects",
    "output": "stopped, since it wrote too much output",
    "signal": "ended by a signal",
    "killed": "stopped; it may have had some of its effects",
}

shell = shell_tool()
"""Runs commands in the current folder at the first call, in `workspace-write` mode and without network."""
