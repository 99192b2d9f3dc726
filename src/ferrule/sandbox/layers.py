"""Which layers of containment this machine has, tried and not guessed, and the tier that they give."""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.canaries import CanaryResult
from ferrule.sandbox.linux.numbers import AUDIT_ARCH
from ferrule.sandbox.macos import selftest as macos
from ferrule.sandbox.macos.runs import ground
from ferrule.sandbox.macos.sbpl import SANDBOX_EXEC
from ferrule.sandbox.probes import PROBES
from ferrule.sandbox.tier import Tier

__all__ = ["Layers", "canary_results", "layers", "layers_of"]

_SECONDS: Final = 60
_SOURCE: Final = str(Path(__file__).parents[2])


@dataclass(frozen=True, slots=True)
class Layers:
    """What was found. `missing` says, layer by layer, what keeps the machine from the full tier and what to do."""

    kernel: str
    machine: str
    landlock: int
    """The Landlock ABI; 0 where there is none."""
    seccomp: bool
    namespaces: bool
    """Namespaces, a root of its own and a pid namespace were entered by a child."""
    bubblewrap: Path | None
    """`bwrap`, None where it isn't installed or can't make a sandbox here."""
    bubblewrap_version: str | None
    cgroups: bool
    """Whether there is a unified cgroup hierarchy. Nothing here rests on it: it is reported."""
    tier: Tier
    missing: tuple[str, ...]
    seatbelt: Path | None = None
    """macOS's `sandbox-exec`, None where it isn't there or starts nothing."""


@functools.cache
def layers() -> Layers:
    """This machine's layers; tried once in a process's life, by programs started for it (about 50 ms)."""
    return layers_of(sys.platform)


def layers_of(platform: str, seatbelt: Path = SANDBOX_EXEC) -> Layers:
    """This machine's layers as `platform` (as `sys.platform` has it) has them, tried anew."""
    if platform == "linux":
        return _of_linux()
    why = f"{platform}: Landlock, seccomp and namespaces are Linux's"
    uname = os.uname()
    found = Layers(uname.release, uname.machine, 0, False, False, None, None, False, Tier.NONE, (why,))
    if platform != "darwin":
        return found
    try:
        _tried_on_mac(seatbelt)
    except (SandboxUnavailable, ValueError) as error:
        return replace(found, missing=(why, str(error)))
    return replace(found, tier=Tier.SEATBELT, seatbelt=seatbelt)


def _tried_on_mac(seatbelt: Path) -> tuple[CanaryResult, ...]:
    return macos.canary_results(seatbelt, ground(()), {"PATH": os.defpath})


def _of_linux() -> Layers:
    said, full = _tried(Tier.FULL)
    landlock, seccomp = int(said.get("landlock", 0)), bool(said.get("seccomp"))
    namespaces = "error" not in full
    version, bubblewrap = _bubblewrap()
    checks = (
        (os.uname().machine in AUDIT_ARCH, f"this processor: filters are written for {' and '.join(AUDIT_ARCH)} alone"),
        (landlock, "Landlock: needs Linux 5.13 with `landlock` among its security modules (`lsm=` at boot)"),
        (seccomp, "seccomp: needs a kernel with CONFIG_SECCOMP_FILTER, and a container that allows it"),
    )
    missing = [why for is_there, why in checks if not is_there]
    tier = Tier.NONE if missing else Tier.FULL
    if not namespaces:
        missing.append(f"namespaces: {full['error']}; {_CURE}")
        tier = tier if tier is Tier.NONE else _without_namespaces(missing)
    if bubblewrap is None:
        missing.append("bubblewrap: `bwrap` isn't installed or can't make a sandbox here; shells use Landlock alone")
    return Layers(
        kernel=os.uname().release,
        machine=os.uname().machine,
        landlock=landlock,
        seccomp=seccomp,
        namespaces=namespaces,
        bubblewrap=bubblewrap,
        bubblewrap_version=version,
        cgroups=Path("/sys/fs/cgroup/cgroup.controllers").exists(),
        tier=tier,
        missing=tuple(missing),
    )


def canary_results(tier: Tier) -> tuple[CanaryResult, ...]:
    """What each canary came to in a tier, tried anew. Empty where the tier can't be entered at all, and for none.

    Raises `SandboxUnavailable` for the seatbelt tier on a machine without it.
    """
    if tier is Tier.NONE:
        return ()
    if tier is Tier.SEATBELT:
        return _tried_on_mac(SANDBOX_EXEC)
    tries = {probe.__name__: probe.__doc__ or "" for probe in PROBES}
    answers = _tried(tier)[1].get("canaries", [])
    return tuple(CanaryResult(name, tries[name], reached) for name, reached in answers)


_CURE: Final = (
    "allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns; in a container: a seccomp profile that allows unshare, mount, setns)"
)


def _without_namespaces(missing: list[str]) -> Tier:
    error = _tried(Tier.CONTAINER)[1].get("error")
    if error is None:
        return Tier.CONTAINER
    missing.append(f"the container tier can't be entered either: {error}")
    return Tier.NONE


def _tried(tier: Tier) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What a fresh interpreter's trial found, and what came of a tier: by exec, since this process may have threads."""
    program = f"import sys; sys.path.append({_SOURCE!r}); from ferrule.sandbox.trial import main; main({tier.value!r})"
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
        return {}, {"error": str(error)}
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) == 2:
        return found[0], found[1]
    words = done.stderr.decode(errors="replace")[-300:]
    return found[0] if found else {}, {"error": f"the trial ended early: {words}"}


def _bubblewrap() -> tuple[str | None, Path | None]:
    """Its version and path, if a command runs in a sandbox that it makes."""
    path = shutil.which("bwrap")
    if path is None:
        return None, None
    probe = [
        path,
        "--unshare-all",
        # Where it is installed set-user-id it gives nobody a capability, and the launcher needs some.
        *("--cap-add", "CAP_SYS_ADMIN"),
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "true",
    ]
    try:
        version = subprocess.run([path, "--version"], capture_output=True, timeout=_SECONDS, check=True).stdout
        subprocess.run(probe, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None, None
    return version.decode().split()[-1], Path(path)
