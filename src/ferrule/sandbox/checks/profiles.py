"""The profiles of checks, and `check`, which applies one to code: in this process, or for long code in a subprocess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from ferrule.sandbox.checks.findings import MOST, Finding
from ferrule.sandbox.checks.in_subprocess import check_here, check_in_subprocess
from ferrule.sandbox.checks.syntax import LONGEST, report_too_long

__all__ = [
    "AT_ONCE",
    "LONGEST",
    "MOST",
    "PROFILES",
    "CheckProfile",
    "Finding",
    "check",
    "explain_findings",
    "resolve_profile",
]

CheckProfile = Literal["strict", "advise", "off"]
"""What is reported: every listed name, only what can't work in the sandbox, or nothing."""

PROFILES: Final[tuple[CheckProfile, ...]] = get_args(CheckProfile)
"""The names of all profiles."""
_ALIASES: Final[dict[str, CheckProfile]] = {"seed": "strict"}


AT_ONCE: Final = 10_000
"""Characters of code that are checked in this process; longer code is checked in a subprocess, which can be killed."""

MOST_SECONDS: Final = 10.0
"""The longest time that code is checked for."""


def resolve_profile(name: str) -> CheckProfile:
    """Return the profile of a name; `seed` is an alias of `strict`. Raises ValueError for an unknown one."""
    profile = _ALIASES.get(name, name)
    for known in PROFILES:
        if profile == known:
            return known
    raise ValueError(f"checks is one of {', '.join(PROFILES)}, not {name!r}")


def check(
    code: str, *, profile: CheckProfile | Literal["seed"] = "advise", seconds: float = MOST_SECONDS
) -> tuple[Finding, ...]:
    """Findings in `code`, in the order of its lines: the first `MOST`, then one that says how many are left out.

    `advise` finds what is certain to fail or to be pointless in the sandbox (no network, no processes, no keyboard);
    its findings accompany the run. `strict` finds every name, path and file name on the lists of forbidden names, and
    each such finding `refuses`. Both report a syntax error, and then nothing else. `off` finds nothing. Code of more
    than `LONGEST` characters isn't read: `strict` refuses it, as it does code that takes longer to read than `seconds`
    (`MOST_SECONDS` at most); `advise` reports that it wasn't checked.

    Never runs the code. Raises ValueError for an unknown profile.
    """
    profile = resolve_profile(profile)
    if profile == "off":
        return ()
    if len(code) > LONGEST:
        return report_too_long(code) if profile == "strict" else ()
    if len(code) > AT_ONCE:
        return check_in_subprocess(code, profile, min(seconds, MOST_SECONDS))
    return check_here(code, profile)


def explain_findings(findings: Sequence[Finding]) -> str:
    """Format findings for a model or a person, one to three lines each; empty if there are none."""
    return "\n".join(str(finding) for finding in findings)
