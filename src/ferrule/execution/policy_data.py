"""The fields of a policy that comes from outside, as pydantic checks them.

Apart from `policy_file.py`, and imported when one is read: few programs do, and pydantic takes long to import.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ferrule.execution.policy import Action, Profile
from ferrule.intent import EffectKind

_Hint = Literal["read_only", "destructive", "idempotent", "open_world"]


class RuleData(BaseModel):
    """A rule: see `policy.Rule`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Action
    tool: str = "*"
    annotations: dict[_Hint, bool] = {}
    arguments: dict[str, str] = {}
    effect: EffectKind | None = None
    target: str | None = None
    reason: str = ""


class PolicyData(BaseModel):
    """A whole policy: see `policy.Policy`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    profile: Profile | None = None
    trusted: list[str] = []
    rules: list[RuleData] = []
