"""`ferrule sandbox doctor`: report the layers of containment of this machine, tested by canaries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ferrule._util.background import enter_synchronously
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult
from ferrule.sandbox.doctor import Layers, detect_layers, try_canaries
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.chores import load_chores
from ferrule.sandbox.tiers import PROMISES, Tier
from ferrule.session.terminal.output import print_json

# Ordinary first steps in a repository, which must not be refused.
_COMMAND = "echo >file && mkdir folder && mv file folder/ && chmod +x folder/file && touch -d 2001-02-03 folder/file"
_UNTESTED = "untested: no Mac has ever run this; the canaries below are all that is known of it"


def print_report(as_json: bool) -> int:
    """Print the report; returns the exit status."""
    found = detect_layers()
    canaries = try_canaries(found.tier)
    shell = None if found.shell_tier is Tier.NONE else _find_shell_problem(found.shell_tier)
    holds = bool(canaries) and all(one.is_stopped for one in canaries) and shell is None
    if as_json:
        tried = [{"name": one.name, "tries": one.tries, "reached": one.reached} for one in canaries]
        refuses = {why: list(names) for why, names in _list_refused_chores(found.shell_tier).items()}
        promises = {"promised": dict(PROMISES[found.tier].holds), "not_promised": list(PROMISES[found.tier].lacks)}
        print_json(
            {
                **_layers_to_json(found),
                **promises,
                "holds": holds,
                "canaries": tried,
                "shell_problem": shell,
                "shell_refuses": refuses,
            }
        )
    else:
        lines = (
            format_layers(found),
            _format_promises(found.tier),
            _format_canaries(canaries),
            _format_shell(found, shell),
        )
        print("\n".join(chain(*lines)))
    return int(not holds)


def _find_shell_problem(tier: Tier) -> str | None:
    """Find what keeps commands from running as their tier promises; the sandbox first tries canaries of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "repository")
        (folder / ".git/hooks").mkdir(parents=True)
        try:
            with enter_synchronously(ShellSandbox(folder)) as shell:
                done = shell.run_sync(_COMMAND)
        except SandboxUnavailable as error:
            return str(error)
        return f"a command was refused: {done.output.strip()}" if tier is Tier.FULL and done.exit_code != 0 else None


def _layers_to_json(found: Layers) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(found).items()}


def format_layers(found: Layers) -> Iterator[str]:
    """Yield lines about the layers that were found."""
    yield f"tier: {found.tier}"
    yield f"kernel: {found.kernel}, {found.machine}"
    if found.seatbelt is not None:
        yield f"seatbelt: {found.seatbelt} ({_UNTESTED})"
    yield f"Landlock: {f'ABI {found.landlock}' if found.landlock else 'no'}"
    yield f"seccomp: {_format_bool(found.seccomp)}"
    yield f"namespaces: {_format_bool(found.namespaces)}"
    yield f"namespaces of shell commands: {_format_bool(found.command_namespaces)}"
    yield f"cgroups: {_format_bool(found.cgroups)} (not used)"
    yield from (f"missing: {line}" for line in found.missing)


def _format_promises(tier: Tier) -> Iterator[str]:
    promises = PROMISES[tier]
    yield "promised:" if promises.holds else "promised: nothing, and so nothing runs"
    yield from (f"    {promise} ({layer})" for promise, layer in promises.holds.items())
    yield "not promised:"
    yield from (f"    {line}" for line in promises.lacks)


def _format_bool(is_there: bool) -> str:
    return "yes" if is_there else "no"


def _format_canaries(canaries: Sequence[CanaryResult]) -> Iterator[str]:
    out = sum(not one.is_stopped for one in canaries)
    yield f"python: {'does not hold' if out or not canaries else 'holds'}, {out} of {len(canaries)} canaries got out"
    for one in canaries:
        yield f"    {'ok' if one.is_stopped else f'REACHED {one.reached}'}: {one.tries}"


def _format_shell(found: Layers, problem: str | None) -> Iterator[str]:
    if found.shell_tier is Tier.NONE:
        return
    yield f"shell: {found.shell_tier}, {f'does not hold: {problem}' if problem else 'holds'}"
    if found.shell_tier in {Tier.FULL, Tier.CONTAINER}:
        refused = _list_refused_chores(found.shell_tier)
        passes = [chore.name for chore in load_chores() if not any(chore.name in names for names in refused.values())]
        yield f"    passes in a repository: {_join_names(passes)}"
        yield from (f"    refused there, since {why}: {_join_names(names)}" for why, names in refused.items())


def _list_refused_chores(tier: Tier) -> dict[str, list[str]]:
    """List the chores of coding work that the tier refuses, by reason."""
    found: dict[str, list[str]] = {}
    for chore in load_chores() if tier is Tier.CONTAINER else ():
        if chore.refused is not None:
            found.setdefault(chore.refused.why, []).append(chore.name)
    return found


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names).replace("`", "")
