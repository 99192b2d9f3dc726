"""Approvers, which decide on calls that a policy asks about.

`authorize.py` applies the decisions; `session/terminal/approver.py` asks a person.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from ferrule._util.callback_signature import find_callback_problem
from ferrule.errors import PolicyError, SettingsError
from ferrule.execution.decisions import ApprovalRequest, Decision
from ferrule.execution.threads import ThreadRun

Decide: TypeAlias = "Callable[[ApprovalRequest], Decision | bool | Awaitable[Decision | bool]]"
"""A function that stands for an approver: True allows a call, False denies it."""


class Approver(Protocol):
    """Decides on calls that a policy asks about.

    It may also have:

    - `async decide_all(requests) -> Sequence[Decision | None]`, which decides on several calls of one message. None
      leaves one undecided; it is called again with those, except for the ones that an "always" has covered meanwhile.
    - `confirms_edits = True`, if it shows calls to somebody: requests have a `preview` then, and after an edit it is
      called again, with the edited call and `request.is_edited`. Otherwise an edited call runs at once.
    """

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Decide on a call. After an edit that can't be used it is called again, with `request.problem` set."""


class FunctionApprover:
    """An approver that is a function, async, or sync and then called in a thread, in which it may wait for a person."""

    def __init__(self, function: Decide) -> None:
        self._function = function
        self._name: str = getattr(function, "__name__", type(function).__name__)

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Return what the function decides. Raises `PolicyError` for anything but a decision, True or False."""
        found: Any
        if inspect.iscoroutinefunction(self._function):
            found = await self._function(request)
        else:
            outcome = await ThreadRun(partial(self._function, request), _ignore).wait(None)
            assert outcome is not None, "it has no timeout"
            if outcome.error is not None:
                raise outcome.error
            found = await outcome.value if inspect.isawaitable(outcome.value) else outcome.value
        if found is True:
            return Decision.allow(by=self._name)
        if found is False:
            return Decision.deny(f"{self._name} doesn't allow it", by=self._name)
        if not isinstance(found, Decision):
            raise PolicyError(f"the approver {self._name} must return a Decision, True or False, not {found!r}")
        return found


def _ignore(_outcome: object) -> None:
    """Ignore what a function decides after its run was stopped."""


def make_approver(given: Approver | Decide) -> Approver:
    """Return the approver, or make one of a function. Raises `SettingsError` for anything else."""
    if isinstance(given, type):
        raise SettingsError(f"approver can't be the class {given.__name__}; give {given.__name__}()")
    if callable(getattr(given, "decide", None)):
        return cast("Approver", given)
    problem = find_callback_problem(given)
    if problem:
        raise SettingsError(f"approver must have the method decide(), or be a function of the request, {problem}")
    return FunctionApprover(cast("Decide", given))


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
