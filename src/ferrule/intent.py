"""What a call would do, as data: what a policy judges and a person is shown before the call runs.

A tool says it through its `intent` (`@tool(intent=...)`), a function of the call's arguments; judging is
`execution/policy.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EffectKind = Literal["read", "write", "run", "net"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing a call would do. `target` is a path, a command line or an address, by kind."""

    kind: EffectKind
    target: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """Everything a call would do.

    `preview` is for people: a diff, a command line. `precondition` names the state that the call relies on (a
    file's hash): where it differs by the time a call that somebody approved would run, the call isn't run. `asks` has
    this one call asked for, also where a rule or the profile would let it run, as `approval="always"` does for a tool.
    """

    effects: tuple[Effect, ...] = ()
    preview: str = ""
    precondition: str | None = None
    asks: bool = False
