"""What one command of the shell tool would do: the effects that a policy judges, and how the sandbox is to run it.

A command that is known to only read runs where nothing can be written, so a wrong guess can't do harm. One that writes
git's repository may write `.git`, and one that names hosts may reach them: the policy has judged both as effects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from ferrule.errors import SandboxInputError
from ferrule.tools.intent import Effect

__all__ = ["CommandPlan", "SandboxTraits", "plan_command"]

_REPOSITORY: Final = ".git"


@dataclass(frozen=True, slots=True)
class SandboxTraits:
    """What a policy needs to know about a sandbox; the host `*` is the whole network."""

    mode: str
    hosts: tuple[str, ...]
    is_contained: bool
    can_ask_for_hosts: bool = False
    """Whether a proxy refuses all hosts but those, so that a command can be given more."""

    @classmethod
    def of(cls, mode: str, network: bool | Sequence[str], tier: str | None) -> SandboxTraits:
        """Describe a sandbox by its settings."""
        is_contained = tier != "none"
        if network is True or not is_contained:
            return cls(str(mode), ("*",), is_contained)
        return cls(str(mode), tuple(network or ()), is_contained, network is not False)

    @property
    def only_reads(self) -> bool:
        """Whether no command can change or reach anything."""
        return self.is_contained and self.mode == "read-only" and not self.hosts

    @property
    def writes_anywhere(self) -> bool:
        """Whether a command may write outside of the workspace."""
        return self.mode == "full" or not self.is_contained


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """The effects of a command, and what it is given in the sandbox."""

    effects: tuple[Effect, ...]
    only_reads: bool = False
    """Whether it is to run in read-only mode."""
    writable: tuple[str, ...] = ()
    """Protected places that it may write."""
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach, in addition to those of the sandbox."""
    problem: str = ""
    """Why it can't be judged; every profile but `all` asks about it then."""


def plan_command(
    command: str, workspace: str, traits: SandboxTraits, writable: Sequence[str] = (), hosts: Sequence[str] = ()
) -> CommandPlan:
    """Plan a command; `writable` and `hosts` are what its call names."""
    named = tuple(Effect("net", host) for host in (*traits.hosts, *hosts))
    if traits.only_reads and not hosts:
        return CommandPlan(_list_reads(command, workspace))
    if not traits.is_contained or not _can_parse():
        return CommandPlan(
            (*_list_unjudged(command, workspace, traits, writable), *named), False, tuple(writable), tuple(hosts)
        )
    from ferrule.sandbox.shell.command_line.judge import parse_command_line

    line = parse_command_line(command, workspace)
    effects = line.effects
    if line.problem is not None:
        run, *others = _list_unjudged(command, workspace, traits, ())
        effects = (replace(run, is_protected=True), *others)
    only_reads = line.problem is None and line.only_reads and not writable
    if traits.writes_anywhere and not only_reads:
        effects = (*effects, Effect("write", "/"))
    asked = tuple(Effect("write", str(Path(workspace, name)), is_protected=True) for name in writable)
    repositories = () if traits.mode == "read-only" else _find_written_repositories(line.effects, workspace)
    reached = (one.target for one in line.effects if one.kind == "net" and traits.can_ask_for_hosts)
    return CommandPlan(
        (*effects, *(one for one in repositories if one not in effects), *asked, *named),
        only_reads,
        tuple(dict.fromkeys((*writable, *(os.path.relpath(one.target, workspace) for one in repositories)))),
        tuple(dict.fromkeys((*hosts, *filter(_is_host, reached)))),
        line.problem or "",
    )


def _list_reads(command: str, workspace: str) -> tuple[Effect, ...]:
    """The effects of a command where nothing can be written: it may read anything, unless more is known of it."""
    if _can_parse():
        from ferrule.sandbox.shell.command_line.judge import parse_command_line

        line = parse_command_line(command, workspace)
        if line.problem is None and line.only_reads:
            return line.effects
    return (Effect("read", "/"),)


def _find_written_repositories(effects: Sequence[Effect], workspace: str) -> tuple[Effect, ...]:
    """The effects of writing `.git`, with those of repositories in folders that the command works in."""
    from ferrule.sandbox.paths import is_within

    repository = str(Path(workspace, _REPOSITORY))
    written = next((one for one in effects if (one.kind, one.target) == ("write", repository)), None)
    if written is None:
        return ()
    entered = (one.target for one in effects if one.kind == "read" and one.words[:1] in (("cd",), ("git",)))
    inner = (str(Path(folder, _REPOSITORY)) for folder in entered if is_within(folder, workspace))
    found = (path for path in dict.fromkeys(inner) if path != repository and Path(path).is_dir())
    return written, *(replace(written, target=path) for path in found)


def _list_unjudged(command: str, workspace: str, traits: SandboxTraits, writable: Sequence[str]) -> tuple[Effect, ...]:
    """The effects of a command of which nothing is known."""
    run = Effect("run", command)
    if traits.writes_anywhere:
        return run, Effect("write", "/")
    if traits.mode == "read-only":
        return (run,)
    protected = (Effect("write", str(Path(workspace, name)), is_protected=True) for name in writable)
    return run, Effect("write", workspace), *protected


@cache
def _can_parse() -> bool:
    """Whether commands can be parsed, which needs the extra `coding`."""
    from importlib.util import find_spec

    return find_spec("tree_sitter") is not None and find_spec("tree_sitter_bash") is not None


def _is_host(text: str) -> bool:
    from ferrule.sandbox.shell.host_rules import HostRules

    try:
        HostRules([text])
    except SandboxInputError:
        return False
    return True
