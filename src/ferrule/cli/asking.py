"""Asking a person in the middle of what is shown, and keeping the "always" answers for as long as the command runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ferrule.cli.screen import Screen
from ferrule.execution import Approver, Decision, Policy, Request
from ferrule.execution.policy import always_for
from ferrule.registry import ToolRegistry


@dataclass(slots=True)
class Asking:
    """An approver whose questions come after all that was said before them, on a line of their own.

    `policy` is the one to begin the next run with: a run's executor keeps "always" for that run alone.
    """

    approver: Approver
    screen: Screen
    registry: ToolRegistry
    policy: Policy
    heard: set[str] = field(default_factory=set)
    """The ids of the calls that were shown; whoever watches the run adds to it."""

    async def decide(self, request: Request) -> Decision:
        """What the approver says, once the call that it is about was shown."""
        while request.call.id not in self.heard:
            await asyncio.sleep(0)
        self.screen.clear()
        decision = await self.approver.decide(request)
        tool = self.registry.get(request.tool)
        if decision.action == "always" and tool is not None:
            always = always_for(tool, request.intent, self.policy.trusts(tool.origin))
            self.policy = self.policy.with_always(always)
        return decision
