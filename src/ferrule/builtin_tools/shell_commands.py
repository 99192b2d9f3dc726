"""Shell commands as a tool: a model's commands run contained in one workspace.

The arguments of a call are the command, its timeout, whether it runs in the background, the hosts that it needs, and
the protected places that it must write (`.git`, to commit), for which a person is always asked. Mode, network and
hidden files are set where the tool is made; no argument changes them.

`shell_plan.py` says what a command would do, as far as it can be parsed: the effects that a policy judges. In
`read-only` mode without network all effects are `read`, which the profiles `plan` and `ask` allow; in `full` mode, or
not contained, the tool is `destructive`, which `auto` asks about too.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from ferrule._util.background import close_at_exit, make_once
from ferrule.builtin_tools.shell_plan import SandboxTraits, plan_command
from ferrule.errors import ToolDefinitionError, ToolFailed, ToolRetry
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Intent
from ferrule.tools.scope import CallScope, limit_seconds
from ferrule.toolspec import Annotations

if TYPE_CHECKING:
    from ferrule.builtin_tools.shell_jobs import ShellJobs
    from ferrule.sandbox.shell import ShellSandbox

TIMEOUT: Final = 120.0
LONGEST: Final = 600.0
"""The default and the longest timeout of a command, in seconds."""
MAY_WRITE: Final = (".git",)

ModeName = Literal["read-only", "workspace-write", "full"]
CommandText = Annotated[str, "The command line, for sh"]
Seconds = Annotated[float, "Seconds that it may take; it is stopped after them, with what it wrote kept"]
Background = Annotated[bool, "Whether to start it and go on, without a time limit; job_output reads what it writes"]
Hosts = Annotated[
    list[str] | None, "Hosts of the network that it needs, such as example.org or *.example.org; the user may be asked"
]
Writable = Annotated[list[str] | None, "Protected places that this command must write, such as .git; the user is asked"]

_DESCRIPTION: Final = {
    "read-only": "Run a shell command that reads: nothing can be written but temporary files.",
    "workspace-write": "Run a shell command in the workspace. Files outside of it can be read and not written.",
    "full": "Run a shell command.",
}


def shell_tool(  # noqa: PLR0913 - options by their names, so that mypy finds a wrong one
    workspace: str | os.PathLike[str] | ShellSandbox | None = None,
    *,
    mode: ModeName = "workspace-write",
    network: bool | Sequence[str] = False,
    may_write: Collection[str] = MAY_WRITE,
    name: str = "shell",
    timeout: float = TIMEOUT,
    longest: float = LONGEST,
    jobs: ShellJobs | None = None,
    before_command: Callable[[], Awaitable[None]] | None = None,
) -> Tool:
    """Make a tool that runs commands in a workspace: a folder, or a `ShellSandbox`, which the caller closes.

    The default is the current folder at the first call. `mode` and `network` are for a folder; a sandbox has its own.
    `timeout` and `longest` are the default and the longest timeout of a call, in seconds. With `jobs`, commands may
    run in the background. `before_command` is awaited before a command that may change files.

    `may_write` lists the protected places that a command may ask to write. A person is asked about each such call:
    whoever can write `.git` can rewrite history.
    """
    if workspace is None or isinstance(workspace, str | os.PathLike):
        find, traits = _make_finder(workspace, mode, network), SandboxTraits.of(mode, network, None)
    elif not hasattr(workspace, "tier"):
        raise ToolDefinitionError(f"the workspace of a shell must be a folder or a ShellSandbox, not {workspace!r}")
    else:
        find, traits = (lambda: workspace), SandboxTraits.of(workspace.mode, workspace.network, workspace.tier)

    async def run(
        command: CommandText,
        scope: CallScope,
        timeout: Seconds = timeout,
        background: Background = False,
        hosts: Hosts = None,
        writable: Writable = None,
    ) -> str:
        from ferrule.builtin_tools.shell_runs import run_planned

        _check_writable(writable or (), may_write)
        sandbox = find()
        plan = plan_command(command, str(sandbox.workspace), traits, writable or (), hosts or ())
        _check_background(background, plan.writable)
        if before_command is not None and not (plan.only_reads or traits.only_reads):
            await before_command()
        if background and jobs is not None:
            return await jobs.start_planned(sandbox, command, plan)
        seconds = _choose_seconds(timeout, longest, scope)
        return await run_planned(sandbox, command, plan, scope, seconds, can_ask_for_hosts=traits.can_ask_for_hosts)

    # The current folder at the time of a call, where none was given.
    folder = Path() if workspace is None else Path(find().workspace)
    left_out = [*(() if jobs is not None else ("background",)), *(() if traits.can_ask_for_hosts else ("hosts",))]
    made: Tool = tool(
        name=name,
        description=_DESCRIPTION[traits.mode] + _describe_network(traits),
        annotations=_make_annotations(traits),
        intent=_make_intent(find, traits, may_write),
    )(_choose_parameters(run, left_out))
    return made.with_folders(folder)


def _choose_parameters(run: Callable[..., Awaitable[str]], left_out: Collection[str]) -> Callable[..., Awaitable[str]]:
    """Offer a model only the parameters that mean something for this sandbox."""
    signature = inspect.signature(run)
    kept = [one for one in signature.parameters.values() if one.name not in left_out]
    vars(run)["__signature__"] = signature.replace(parameters=kept)
    return run


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


def _choose_seconds(timeout: float, longest: float, scope: CallScope) -> float:
    if not timeout > 0:
        raise ToolRetry(f"timeout must be a number of seconds above 0, not {timeout:g}")
    return limit_seconds(min(timeout, longest), scope)


def _check_writable(writable: Collection[str], may_write: Collection[str]) -> None:
    refused = [name for name in writable if name not in may_write]
    if refused:
        allowed = f"only {', '.join(may_write)}" if may_write else "nothing"
        raise ToolFailed(f"writable names {', '.join(refused)}: {allowed} can be asked for")


def _check_background(background: bool, writable: Collection[str]) -> None:
    if background and writable:
        raise ToolFailed(
            f"this command writes {', '.join(writable)}, which a background job can't: run what writes it in the "
            "foreground first, and start the rest in the background"
        )


def _make_annotations(traits: SandboxTraits) -> Annotations:
    """Make the annotations. `workspace-write` leaves `destructive` open: it can destroy only the workspace."""
    reaches_hosts = traits.can_ask_for_hosts or bool(traits.hosts)
    # A tool that only reads may reach hosts under every profile, so one that asks for them is not annotated as such.
    if traits.only_reads and not reaches_hosts:
        return Annotations(read_only=True, destructive=False, open_world=False)
    return Annotations(read_only=False, destructive=True if traits.writes_anywhere else None, open_world=reaches_hosts)


def _make_intent(
    find: Callable[[], ShellSandbox], traits: SandboxTraits, may_write: Collection[str]
) -> Callable[[Mapping[str, Any]], Intent]:
    def intent(arguments: Mapping[str, Any]) -> Intent:
        workspace, command = str(find().workspace), str(arguments["command"])
        writable, hosts = list(arguments.get("writable") or ()), list(arguments.get("hosts") or ())
        _check_writable(writable, may_write)
        plan = plan_command(command, workspace, traits, writable, hosts)
        _check_background(bool(arguments.get("background")), plan.writable)
        mode = "read-only" if plan.only_reads else traits.mode
        notes = [f"in {workspace}", mode if traits.is_contained else "not contained"]
        notes += ["in the background"] if arguments.get("background") else []
        notes += [f"writes {name}, which is protected" for name in plan.writable]
        notes += [f"reaches {host}" for host in (*traits.hosts, *plan.hosts)]
        notes += [f"not judged: {plan.problem}"] if plan.problem else []
        return Intent(plan.effects, f"$ {command}\n[{'; '.join(notes)}]", asks=bool(writable))

    return intent


def _describe_network(traits: SandboxTraits) -> str:
    if "*" in traits.hosts:
        return ""
    reached = f"Of the network it reaches: {', '.join(traits.hosts)}." if traits.hosts else "There is no network."
    return f" {reached}" + (" `hosts` asks for some." if traits.can_ask_for_hosts else "")


shell = shell_tool()
"""Runs commands in the current folder at the first call, in `workspace-write` mode and without network."""
