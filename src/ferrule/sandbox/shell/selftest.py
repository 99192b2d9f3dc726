"""Canaries of a shell sandbox, run before its first command: a few escapes, each of which must fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.shell.command import CommandResult
from ferrule.sandbox.tiers import Tier

__all__ = ["ShellCanary", "list_canaries", "run_canaries"]

_SECONDS = 20.0
_END = "all tried"


@dataclass(frozen=True, slots=True)
class ShellCanary:
    """One escape, written with POSIX shell builtins only; it exits with 0 if it worked."""

    name: str
    script: str


def list_canaries(tier: Tier, state: Path) -> tuple[ShellCanary, ...]:
    """The canaries of a tier. `state` is the sandbox's own folder, which no command may read or write."""
    canary, written = quote(f"{state}/canary"), quote(f"{state}/written")
    each = "while read -r name value rest"
    status = each + '; do case $name in {0}) [ "$value" {1} ] && exit 0;; esac; done </proc/self/status; false'
    if tier is Tier.NONE:
        return ()
    found = [
        ShellCanary("read-hidden", f"read -r line <{canary}"),
        ShellCanary("write-outside", f": >{written}"),
    ]
    if tier is Tier.FULL:
        found += [
            ShellCanary("capabilities", status.format("CapEff:|CapBnd:", "!= 0000000000000000")),
            ShellCanary("no-filter", status.format("Seccomp:", "!= 2")),
            ShellCanary("new-privileges", status.format("NoNewPrivs:", "!= 1")),
            ShellCanary(
                "host-processes", '[ ! -d /proc/2 ] || { read -r name </proc/2/comm; [ "$name" = kthreadd ]; }'
            ),
            ShellCanary("kernel-settings", "[ -w /proc/sys/kernel/core_pattern ]"),
        ]
    return tuple(found)


async def run_canaries(
    run: Callable[[str, float], Awaitable[CommandResult]], tried: tuple[ShellCanary, ...]
) -> list[str]:
    """Run the canaries; returns the names of those that worked. Raises `SandboxUnavailable` if they can't run."""
    script = "".join(f"( {each.script} ) >/dev/null 2>&1 && echo {each.name}\n" for each in tried) + f"echo {_END}\n"
    done = await run(script, _SECONDS)
    *names, end = done.output.split("\n")[:-1] or [""]
    if end != _END:
        raise SandboxUnavailable(f"the sandbox's self-test did not finish ({done.ended}): {done.output.strip()}")
    return names
