"""Reads the payloads: small programs, each with a header that says what it hits and who promises to stop it.

`related` in a header names advisories about the same kind of way out of some other project's containment. No payload
is a copy of what was published with them.
"""

import platform
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "escapes"
NEXT = "# ---- the next run ----"

# What a payload can hit; `field`, `victim`, `census` and `outcome` say when it has.
CANARIES = {
    "claim": "did what should be refused, and says so",
    "secret": "shows the secret: a file, an environment variable, memory or a descriptor of the host",
    "folder": "changed something in a folder of the host",
    "workspace": "changed what the workspace protects",
    "network": "was heard by a listener of the host",
    "victim": "changed or ended a process of the host",
    "parent_signal": "reached the parent with a signal",
    "parent_limits": "changed a limit of the parent",
    "processes": "ran many processes at once",
    "threads": "ran many threads at once",
    "memory": "took much more memory than allowed",
    "running": "left a process running",
    "leftover": "left something on the host for others to find",
    "next": "was felt by the run after it",
    "flood": "made the parent take in tens of megabytes",
    "time": "went on well after its limit",
    "parent": "made the parent fail or wait",
}


@dataclass(frozen=True, slots=True)
class Payload:
    """One hostile program."""

    name: str
    """The family's folder and the file's name, without its ending."""

    family: str
    canaries: frozenset[str]
    tiers: frozenset[str]
    """The tiers that promise to stop it."""

    needs_root: bool
    """Whether it takes root to hit the canary in a plain subprocess."""

    alone: bool
    """Whether it is run while no other is: it is counted, signals the parent or takes much of the machine."""

    seconds: float | None
    """The limit that it is given, where it is about time."""

    code: str
    next_code: str
    """What the run after it does, which should feel nothing. Empty for most."""

    is_shell: bool


def payloads() -> tuple[Payload, ...]:
    """All payloads that this machine's processor and kernel can run, by family and name."""
    return tuple(read(path) for path in files() if _is_for_this_machine(header(path)))


def _is_for_this_machine(says: dict[str, str]) -> bool:
    """Whether its processor is this one, and its protocol there: to ask for another may load a module."""
    protocols = {line.split()[0] for line in Path("/proc/net/protocols").read_text("utf-8").splitlines()}
    return says.get("machine", platform.machine()) == platform.machine() and says.get("protocol") in {None, *protocols}


def files() -> list[Path]:
    """The files of all payloads."""
    return sorted([*FOLDER.glob("*/*.py"), *FOLDER.glob("*/*.sh")])


def header(path: Path) -> dict[str, str]:
    """The lines `key: value` at a payload's start."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines()[2:]:
        key, colon, value = line.removeprefix("# ").partition(": ")
        if not colon or not key.isalpha():
            break
        found[key] = value
    return found


def read(path: Path) -> Payload:
    """One payload from its file."""
    says = header(path)
    code, _, next_code = path.read_text(encoding="utf-8").partition(NEXT)
    return Payload(
        name=f"{path.parent.name}/{path.stem}",
        family=says["family"],
        canaries=frozenset(says["canary"].split(", ")),
        tiers=frozenset(says["stops"].split(", ")),
        needs_root=says["root"] == "yes",
        alone=says.get("alone") == "yes",
        seconds=float(says["seconds"]) if "seconds" in says else None,
        code=code,
        next_code=next_code,
        is_shell=path.suffix == ".sh",
    )
