"""Checks of model-written Python: early advice to the model, before anything runs.

They read the code's syntax tree. What they find says what is wrong, where, and what to do instead. They keep nobody
safe: a list of names is walked around by a string, and what contains the code is the sandbox. `checks_syntax` reads
the code, `checks_advice` and `checks_seed` walk its tree, `checks_lists` holds the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from ferrule.sandbox.checks_advice import advice
from ferrule.sandbox.checks_finding import Finding, place
from ferrule.sandbox.checks_seed import seed_findings
from ferrule.sandbox.checks_syntax import LONGEST, read, too_long

__all__ = ["LONGEST", "PROFILES", "CheckProfile", "Finding", "check", "explained"]

CheckProfile = Literal["seed", "advise", "off"]
"""How strict: every name of the fourth seed's lists, only what can't work in the sandbox, or nothing."""

PROFILES: Final[tuple[CheckProfile, ...]] = get_args(CheckProfile)


def check(code: str, *, profile: CheckProfile = "advise") -> tuple[Finding, ...]:
    """What there is to say of `code`, in the order of its lines.

    `advise` finds what is certain to fail or to be pointless in the sandbox (no network, no processes, no keyboard);
    its findings accompany the run. `seed` finds every name, path and file name that the fourth seed's lists forbid,
    and those that we add: each such finding `refuses`. Both find syntax errors, of which there is one at most, and
    then nothing else. `off` finds nothing. Code of more than `LONGEST` characters isn't read: `seed` refuses it.

    Never runs the code. Raises ValueError for an unknown profile.
    """
    if profile not in PROFILES:
        raise ValueError(f"checks is one of {', '.join(PROFILES)}, not {profile!r}")
    if profile == "off":
        return ()
    if len(code) > LONGEST:
        return too_long(code) if profile == "seed" else ()
    tree = read(code)
    if isinstance(tree, Finding):
        return (tree,)
    found = seed_findings(tree, code) if profile == "seed" else advice(tree, code)
    return tuple(sorted(found, key=place))


def explained(findings: Sequence[Finding]) -> str:
    """The findings as text for a model or a person, one to three lines each; empty where there are none."""
    return "\n".join(str(finding) for finding in findings)
