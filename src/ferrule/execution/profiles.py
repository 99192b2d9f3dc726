"""The profiles: what happens to a call that no rule matches.

In the order `plan`, `ask`, `accept-edits`, `auto`, `all`, none is stricter than the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from ferrule.execution.rule_matching import find_effect_outside
from ferrule.execution.rules import Hints, PolicySubject, Verdict
from ferrule.tools.intent import Effect

Profile = Literal["plan", "ask", "accept-edits", "auto", "all"]

ALLOW_ALL = Verdict("allow", "the profile all allows everything")


def judge_by_profile(
    profile: Profile,
    tool: PolicySubject,
    hints: Hints,
    effect: Effect | None,
    *,
    is_trusted: bool,
    folders: Sequence[Path],
) -> Verdict:
    """Decide on one effect of a call (None if it may do anything) that no rule matches.

    `is_trusted`: what the tool says of itself may loosen the verdict. `folders` are those of `list_folders`.
    """
    if profile == "all":
        return ALLOW_ALL
    outside = None if effect is None else find_effect_outside(effect, folders)
    if _only_reads(hints, effect) and outside is None:
        return Verdict("allow", f"the profile {profile} allows reading")
    if profile == "plan" and (effect is None or effect.kind != "read"):
        return Verdict("deny", "the profile plan allows only reading; plan the change instead of making it")
    problem = _find_exceptional_access(profile, tool, effect)
    if problem is None and outside is not None and effect is not None:
        problem = f"{effect.kind} outside the workspace: {outside}"
    if problem is not None:
        return Verdict("ask", f"the profile {profile} asks before {tool.name} may {problem}")
    is_harmless = is_trusted and tool.annotations.destructive is not True
    if profile == "accept-edits" and is_harmless and effect is not None and effect.kind == "write":
        return Verdict("allow", "the profile accept-edits allows writing")
    if profile == "auto" and is_harmless:
        return Verdict("allow", "the profile auto allows what isn't annotated as destructive")
    return Verdict("ask", f"the profile {profile} asks before {_describe_effect(tool, effect, is_trusted)}")


def list_folders(tool: PolicySubject, workspace: Path | str | None) -> tuple[Path, ...]:
    """The folders outside of which a call of `tool` is asked about: the workspace, and its own. Empty: nothing is."""
    own: tuple[Path, ...] = getattr(tool, "folders", ())
    if workspace is None:
        return own
    return (workspace if isinstance(workspace, Path) else Path(workspace), *own)


def _find_exceptional_access(profile: Profile, tool: PolicySubject, effect: Effect | None) -> str | None:
    """Describe an effect on a protected place, or under `auto` on the network, else None."""
    if effect is None:
        return "reach the network" if profile == "auto" and tool.annotations.open_world is True else None
    if effect.kind == "net":
        return f"reach {effect.target or 'the network'}" if profile == "auto" else None
    if effect.is_protected and effect.kind == "run":
        return "run a command that can't be judged"
    if effect.is_protected and effect.kind != "read":
        return f"{_VERBS[effect.kind]} {effect.target}, which is protected"
    return None


@cache  # there are 162 combinations, and every call looks one up
def resolve_hints(
    read_only: bool | None, destructive: bool | None, idempotent: bool | None, open_world: bool | None, trusted: bool
) -> Hints:
    """Resolve annotations to their effective values."""
    reads = read_only is True and trusted
    harmless = (destructive is False and trusted) or (destructive is None and reads)
    return Hints(
        read_only=reads,
        destructive=not harmless,
        idempotent=idempotent is True and trusted,
        open_world=not (open_world is False and trusted),
    )


def _only_reads(hints: Hints, effect: Effect | None) -> bool:
    if effect is None:
        return hints.read_only
    return effect.kind == "read" or (effect.kind == "net" and hints.read_only)


def _describe_effect(tool: PolicySubject, effect: Effect | None, is_trusted: bool) -> str:
    if effect is None and tool.annotations.read_only is True and not is_trusted:
        return f"{tool.name}, whose {_describe_distrust(tool.origin)}"
    if effect is None:
        return f"{tool.name}, which isn't known to be read-only"
    return f"{tool.name} may {_VERBS[effect.kind]} {effect.target}".rstrip()


def _describe_distrust(origin: str) -> str:
    """Say why a tool's own word isn't enough, and what would make it so; short, as it is shown on one line."""
    cure = "name its file or set" if origin == "project" else "set"
    return f'read_only isn\'t trusted: {cure} trusted = ["{origin}"] in the policy'


_VERBS = {"read": "read", "write": "write", "run": "run", "net": "reach"}
