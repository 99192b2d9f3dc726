"""Detects by trial which containment layers this machine has, and which tier they allow; tries whether a tier holds."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult
from ferrule.sandbox.installation import make_boot_program
from ferrule.sandbox.linux.probes import PROBES
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH
from ferrule.sandbox.macos import selftest as macos
from ferrule.sandbox.macos.python_runs import find_interpreter_paths
from ferrule.sandbox.macos.sbpl import SANDBOX_EXEC
from ferrule.sandbox.tiers import Tier

if TYPE_CHECKING:
    from ferrule.sandbox.shell.command import CommandResult

__all__ = [
    "Layers",
    "ShellCanary",
    "detect_layers",
    "detect_layers_of",
    "list_shell_canaries",
    "run_shell_canaries",
    "try_canaries",
]

_SECONDS: Final = 60
_SHELL_SECONDS: Final = 20.0
_ALL_TRIED: Final = "all tried"


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers found. `missing` says for each missing layer how to get the full tier."""

    kernel: str
    machine: str
    landlock: int
    """The Landlock ABI version; 0 if unavailable."""
    seccomp: bool
    namespaces: bool
    """Whether a child could enter new namespaces with a root of its own."""
    command_namespaces: bool
    """The same for shell commands, which get their own /proc and the machine's root with mounts over it."""
    cgroups: bool
    """Whether there is a unified cgroup hierarchy; reported only, nothing depends on it."""
    tier: Tier
    """Of Python runs."""
    shell_tier: Tier
    """Of shell commands."""
    missing: tuple[str, ...]
    seatbelt: Path | None = None
    """The path of macOS's `sandbox-exec`; None if it is missing or doesn't work."""


@functools.cache
def detect_layers() -> Layers:
    """Detect this machine's layers, once per process, by starting programs that try them (about 50 ms)."""
    return detect_layers_of(sys.platform)


def detect_layers_of(platform: str, seatbelt: Path = SANDBOX_EXEC) -> Layers:
    """Detect this machine's layers again, for a `platform` (a value of `sys.platform`)."""
    if platform == "linux":
        return _detect_linux()
    why = f"{platform}: Landlock, seccomp and namespaces are Linux's"
    uname = os.uname()
    found = Layers(uname.release, uname.machine, 0, False, False, False, False, Tier.NONE, Tier.NONE, (why,))
    if platform != "darwin":
        return found
    try:
        _try_seatbelt(seatbelt)
    except (SandboxUnavailable, ValueError) as error:
        return replace(found, missing=(why, str(error)))
    return replace(found, tier=Tier.SEATBELT, shell_tier=Tier.SEATBELT, seatbelt=seatbelt)


def _try_seatbelt(seatbelt: Path) -> tuple[CanaryResult, ...]:
    return macos.try_canaries(seatbelt, find_interpreter_paths(()), {"PATH": os.defpath})


def _detect_linux() -> Layers:
    kernel, full, commands = _run_trial(Tier.FULL)
    landlock, seccomp = int(kernel.get("landlock", 0)), bool(kernel.get("seccomp"))
    namespaces, command_namespaces = "error" not in full, "error" not in commands
    is_known = os.uname().machine in AUDIT_ARCH
    checks = (
        (is_known, f"this processor: filters are written for {' and '.join(AUDIT_ARCH)} alone"),
        (landlock, "Landlock: needs Linux 5.13 with `landlock` among its security modules (`lsm=` at boot)"),
        (seccomp, "seccomp: needs a kernel with CONFIG_SECCOMP_FILTER, and a container that allows it"),
    )
    missing = [why for is_there, why in checks if not is_there]
    tier = Tier.NONE if missing else Tier.FULL
    shell_tier = Tier.NONE if missing else Tier.CONTAINER
    if command_namespaces and is_known and seccomp:
        shell_tier = Tier.FULL
    if not namespaces:
        missing.append(f"namespaces: {full['error']}; {_FIX}")
        tier = tier if tier is Tier.NONE else _choose_tier_without_namespaces(missing)
    elif not command_namespaces:
        missing.append(f"namespaces of shell commands: {commands['error']}; {_FIX_FOR_COMMANDS}")
    return Layers(
        kernel=os.uname().release,
        machine=os.uname().machine,
        landlock=landlock,
        seccomp=seccomp,
        namespaces=namespaces,
        command_namespaces=command_namespaces,
        cgroups=Path("/sys/fs/cgroup/cgroup.controllers").exists(),
        tier=tier,
        shell_tier=shell_tier,
        missing=tuple(missing),
    )


def try_canaries(tier: Tier) -> tuple[CanaryResult, ...]:
    """Run a tier's canaries and return their results; empty for `Tier.NONE` or a tier that can't be entered.

    Raises `SandboxUnavailable` for the seatbelt tier on a machine without it.
    """
    if tier is Tier.NONE:
        return ()
    if tier is Tier.SEATBELT:
        return _try_seatbelt(SANDBOX_EXEC)
    tries = {probe.__name__: probe.__doc__ or "" for probe in PROBES}
    answers = _run_trial(tier)[1].get("canaries", [])
    return tuple(CanaryResult(name, tries[name], reached) for name, reached in answers)


@dataclass(frozen=True, slots=True)
class ShellCanary:
    """One escape, written with POSIX shell builtins only; it exits with 0 if it worked."""

    name: str
    script: str


def list_shell_canaries(tier: Tier, state: Path) -> tuple[ShellCanary, ...]:
    """The canaries of a shell sandbox, run before its first command.

    `state` is the sandbox's own folder, which no command may read or write.
    """
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


async def run_shell_canaries(
    run: Callable[[str, float], Awaitable[CommandResult]], tried: tuple[ShellCanary, ...]
) -> list[str]:
    """Run the canaries; returns the names of those that worked. Raises `SandboxUnavailable` if they can't run."""
    script = (
        "".join(f"( {each.script} ) >/dev/null 2>&1 && echo {each.name}\n" for each in tried) + f"echo {_ALL_TRIED}\n"
    )
    done = await run(script, _SHELL_SECONDS)
    *names, end = done.output.split("\n")[:-1] or [""]
    if end != _ALL_TRIED:
        raise SandboxUnavailable(f"the sandbox's self-test did not finish ({done.ended}): {done.output.strip()}")
    return names


_FIX: Final = (
    "allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns; in a container: a seccomp profile that allows unshare, mount, setns)"
)
_FIX_FOR_COMMANDS: Final = "in a container: let /proc be as the kernel makes it, with nothing mounted over parts of it"


def _choose_tier_without_namespaces(missing: list[str]) -> Tier:
    error = _run_trial(Tier.CONTAINER)[1].get("error")
    if error is None:
        return Tier.CONTAINER
    missing.append(f"the container tier can't be entered either: {error}")
    return Tier.NONE


def _run_trial(tier: Tier) -> tuple[Mapping[str, Any], ...]:
    """Run a trial in a fresh interpreter: returns its findings on the kernel, on Python runs and on shell commands.

    A new process, since this one may have threads.
    """
    program = make_boot_program(f"from ferrule.sandbox.tier_trial import main; main({tier.value!r})")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={"PATH": os.defpath},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, {"error": str(error)}, {"error": str(error)}
    found = [json.loads(line) for line in done.stdout.splitlines()]
    early = {"error": f"the trial ended early: {done.stderr.decode(errors='replace')[-300:]}"}
    return tuple((*found, *([early] * 3))[:3]) if found else ({}, early, early)
