"""What this machine can contain: its layers, its tier, what each layer stops, and canaries that try to get out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ferrule.background import entered
from ferrule.cli.list_tools import print_json
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult
from ferrule.sandbox.layers import Layers, canary_results, layers
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.tier import PROMISES, Tier

_UNTESTED = "untested: no Mac has ever run this; the canaries below are all that is known of it"


def doctor(as_json: bool) -> int:
    """Print all of it; the exit status."""
    found = layers()
    canaries = canary_results(found.tier)
    shell = None if found.tier is Tier.NONE else _shell_problem()
    holds = bool(canaries) and all(one.is_stopped for one in canaries) and shell is None
    if as_json:
        tried = [{"name": one.name, "tries": one.tries, "reached": one.reached} for one in canaries]
        promises = {"promised": dict(PROMISES[found.tier].holds), "not_promised": list(PROMISES[found.tier].lacks)}
        print_json({**_fields(found), **promises, "holds": holds, "canaries": tried, "shell_problem": shell})
    else:
        lines = (layer_lines(found), _promise_lines(found.tier), _canary_lines(canaries), _shell_lines(found, shell))
        print("\n".join(chain(*lines)))
    return int(not holds)


def _shell_problem() -> str | None:
    """Why a shell sandbox doesn't open here; it tries canaries of its own, and doesn't where one gets out."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with entered(ShellSandbox(Path(folder))):
                return None
        except SandboxUnavailable as error:
            return str(error)


def _fields(found: Layers) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(found).items()}


def layer_lines(found: Layers) -> Iterator[str]:
    """The lines that say what was found."""
    yield f"tier: {found.tier}"
    yield f"kernel: {found.kernel}, {found.machine}"
    if found.seatbelt is not None:
        yield f"seatbelt: {found.seatbelt} ({_UNTESTED})"
    yield f"Landlock: {f'ABI {found.landlock}' if found.landlock else 'no'}"
    yield f"seccomp: {_there(found.seccomp)}"
    yield f"namespaces: {_there(found.namespaces)}"
    yield f"bubblewrap: {f'{found.bubblewrap_version}, {found.bubblewrap}' if found.bubblewrap else 'no'}"
    yield f"cgroups: {_there(found.cgroups)} (not used)"
    yield from (f"missing: {line}" for line in found.missing)


def _promise_lines(tier: Tier) -> Iterator[str]:
    promises = PROMISES[tier]
    yield "promised:" if promises.holds else "promised: nothing, and so nothing runs"
    yield from (f"    {promise} ({layers})" for promise, layers in promises.holds.items())
    yield "not promised:"
    yield from (f"    {line}" for line in promises.lacks)


def _there(is_there: bool) -> str:
    return "yes" if is_there else "no"


def _canary_lines(canaries: Sequence[CanaryResult]) -> Iterator[str]:
    out = sum(not one.is_stopped for one in canaries)
    yield f"python: {'does not hold' if out or not canaries else 'holds'}, {out} of {len(canaries)} canaries got out"
    for one in canaries:
        yield f"    {'ok' if one.is_stopped else f'REACHED {one.reached}'}: {one.tries}"


def _shell_lines(found: Layers, problem: str | None) -> Iterator[str]:
    if found.tier is not Tier.NONE:
        yield f"shell: {f'does not hold: {problem}' if problem else 'holds'}"
