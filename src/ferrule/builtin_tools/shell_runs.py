"""Runs one command of the shell tool: in the mode and with the places that it needs, and again with more hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ferrule.builtin_tools.shell_results import describe_end, finish, render_output
from ferrule.errors import FerruleError, ToolFailed
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.builtin_tools.shell_jobs import ShellJobs
    from ferrule.builtin_tools.shell_plan import CommandPlan
    from ferrule.sandbox.shell import CommandResult, ShellSandbox

__all__ = ["ShellRun"]

_MOST_RUNS: Final = 4
"""A command that asks for more and more hosts (redirections, mirrors) is not run more often."""


@dataclass(frozen=True, slots=True)
class ShellRun:
    """A command, and what it may do in its sandbox.

    `can_ask_for_hosts`: the sandbox has a proxy, which says what it refused.
    """

    sandbox: ShellSandbox
    command: str
    plan: CommandPlan
    can_ask_for_hosts: bool = False

    async def start(self, jobs: ShellJobs) -> str:
        """Start it in the background and say by which id it can be found. Raises `ToolFailed`."""
        try:
            name = await jobs.start(self.sandbox, self.command, writable=self.plan.writable, hosts=self.plan.hosts)
        except FerruleError as error:
            raise ToolFailed(f"not run: {error}") from error
        return f"started as {name}; job_output reads what it writes, stop_job stops it"

    async def run(self, scope: CallScope, seconds: float) -> str:
        """Run it to its end and render its result. Raises `ToolFailed` with that if it failed or nothing was run."""
        hosts, earlier = self.plan.hosts, list[str]()
        done = await self._run(scope, seconds, hosts, earlier)
        while refused := _find_refused(done, hosts):
            if not self.can_ask_for_hosts or _succeeded(done) or len(earlier) + 1 >= _MOST_RUNS:
                return finish(done, _join([*earlier, render_output(done), _describe_refused(done)]))
            try:
                await scope.authorize(self._make_network_intent(refused))
            except ToolFailed as denial:
                return finish(done, _join([*earlier, render_output(done), f"{_describe_refused(done)}\n[{denial}]"]))
            earlier.append(
                f"[{describe_end(done)}, without access to {', '.join(refused)}]\n{render_output(done)}\n"
                f"[the command was run again with access to {', '.join(refused)}]"
            )
            hosts = (*hosts, *refused)
            done = await self._run(scope, seconds, hosts, earlier)
        return finish(done, _join([*earlier, render_output(done)]))

    async def _run(
        self, scope: CallScope, seconds: float, hosts: tuple[str, ...], earlier: Sequence[str]
    ) -> CommandResult:
        def keep_output(stopped: CommandResult) -> None:
            scope.keep_output(_join([*earlier, render_output(stopped)]))

        try:
            return await self.sandbox.run(
                self.command,
                timeout=seconds,
                writable=self.plan.writable,
                separate=True,
                mode="read-only" if self.plan.only_reads else None,
                hosts=hosts,
                on_stopped=keep_output,
                watch=scope.report_progress,
            )
        except FerruleError as error:
            raise ToolFailed(f"not run: {error}") from error

    def _make_network_intent(self, refused: tuple[str, ...]) -> Intent:
        named = ", ".join(refused)
        return Intent(
            tuple(Effect("net", host) for host in refused),
            f"$ {self.command}\n[it failed without access to {named}; with access it is run again from its beginning]",
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
