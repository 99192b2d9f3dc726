"""Approvers, which decide on calls that a policy asks about.

`authorize.py` applies the decisions; `terminal_approver.py` asks a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ferrule.execution.decisions import ApprovalRequest, Decision


class Approver(Protocol):
    """Decides on calls that a policy asks about.

    It may also have:

    - `async decide_all(requests) -> Sequence[Decision | None]`, which decides on several calls of one message. None
      leaves one undecided; it is called again with those, except for the ones that an "always" has covered meanwhile.
    - `confirms_edits = True`, if it shows previews to somebody: after an edit it is called again, with the edited call,
      its new preview, and `request.is_edited`. Otherwise an edited call runs at once.
    """

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Decide on a call. After an edit that can't be used it is called again, with `request.problem` set."""


async def decide_all(approver: Approver, requests: Sequence[ApprovalRequest]) -> Sequence[Decision | None]:
    """Ask an approver about several calls: all of them if it can decide on several, else the first."""
    decide = getattr(approver, "decide_all", None)
    if decide is not None:
        decided: Sequence[Decision | None] = await decide(requests)
        return decided
    return [await approver.decide(requests[0]), *[None] * (len(requests) - 1)]


def confirms_edits(approver: Approver | None) -> bool:
    """Whether an approver is to be shown a call again after it was edited."""
    return getattr(approver, "confirms_edits", False) is True
