"""Approvals of a session: who is asked about a call, and when."""

from __future__ import annotations

import asyncio
import select
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO, cast

from ferrule.execution import (
    ApprovalRequest,
    Approver,
    Decision,
    FileJournal,
    Policy,
    TerminalApprover,
)
from ferrule.session.terminal_output import print_notice

_POLL = 0.05


def is_interactive() -> bool:
    """Whether stdin is a terminal."""
    return sys.stdin.isatty()


class AllowAll:
    """An approver that allows every call. What a rule denies stays denied: nobody is asked about it."""

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Allow; deny a call that was allowed before and can't run as it is."""
        return Decision.deny(request.problem, "--yes") if request.problem else Decision.allow("--yes")


class DenyAll:
    """The approver where nobody can be asked: every call is denied."""

    def __init__(self) -> None:
        self.was_asked = False

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Deny."""
        self.was_asked = True
        reason = f"this call needs approval and there is nobody to give it ({request.reason})"
        return Decision.deny(reason, "nobody")


@dataclass(frozen=True, slots=True)
class Permissions:
    """Which calls may run: a policy, the approver whom it asks, and the journal that records them.

    `answers` is where a person at the terminal types, None without one.
    """

    policy: Policy = field(default_factory=lambda: Policy(profile="ask"))
    approver: Approver = field(default_factory=DenyAll)
    journal: FileJournal | None = None
    answers: AnswerInput | None = None

    def trusting(self, *origins: str) -> Permissions:
        """The same, with the annotations and intents of these origins trusted."""
        return replace(self, policy=replace(self.policy, trusted=(*self.policy.trusted, *origins)))

    def begin_asking(self) -> None:
        """A turn begins: the person may be asked."""
        if self.answers is not None:
            self.answers.begin()

    def stop_asking(self) -> None:
        """A turn ends: a question that is open is withdrawn, and counts as unanswered."""
        if self.answers is not None:
            self.answers.withdraw()

    def warn_of_denials(self, notify: Callable[[str], None] = print_notice) -> None:
        """Tell what to do, where a call was denied because nobody could be asked."""
        if isinstance(self.approver, DenyAll) and self.approver.was_asked:
            self.approver.was_asked = False
            notify("nobody could be asked for approval here; allow calls by --policy FILE, or all with --yes")


def _ask_person(answers: AnswerInput) -> TerminalApprover:
    # All that an approver wants of its input is lines.
    return TerminalApprover(cast("TextIO", answers), sys.stderr)


@contextmanager
def open_permissions(yes: bool, policy: Path | None, journal: Path | None) -> Iterator[Permissions]:
    """The permissions of one command. Raises `PolicyError` and `OSError` for files that can't be used."""
    rules = Policy()
    if policy is not None:
        from ferrule.execution.policy_file import read_policy

        rules = read_policy(policy)
    if rules.profile is None:
        rules = replace(rules, profile="ask")
    answers = AnswerInput() if is_interactive() and not yes else None
    approver = AllowAll() if yes else DenyAll() if answers is None else _ask_person(answers)
    opened = FileJournal(journal, "ferrule") if journal is not None else None
    try:
        yield Permissions(rules, approver, opened, answers)
    finally:
        if answers is not None:
            answers.withdraw()
        if opened is not None:
            opened.close()


class SessionApprover:
    """Asks another approver about a call once the call is shown, and on a line of its own."""

    def __init__(self, approver: Approver, clear_line: Callable[[], None]) -> None:
        self._approver = approver
        self._clear_line = clear_line
        self._shown: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def allow_questions(self, call_ids: Iterable[str]) -> None:
        """These calls are shown, so the person can be asked about them."""
        for call_id in call_ids:
            self._shown[call_id].set()

    def forget_calls(self) -> None:
        """Another turn begins, whose calls may have the ids of earlier ones."""
        self._shown.clear()

    async def decide(self, request: ApprovalRequest) -> Decision:
        """The approver's decision, asked for once the call is shown."""
        await self._shown[request.call.id].wait()
        self._clear_line()
        return await self._approver.decide(request)


class AnswerInput:
    """Reads the lines typed in answer to an approver's questions; a question can be withdrawn.

    The approver reads in a thread of its own. Blocked in a plain read it could not be stopped, and would take the
    line that is meant for the next prompt.
    """

    def __init__(self) -> None:
        self._withdrawn = threading.Event()

    def begin(self) -> None:
        """Questions may be asked from now on."""
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Whoever waits for a line gets the end of the input."""
        self._withdrawn.set()

    def readline(self) -> str:
        """The next line that is typed; empty once the question was withdrawn, or the input has ended."""
        withdrawn = self._withdrawn
        while not withdrawn.is_set():
            if select.select([sys.stdin], [], [], _POLL)[0] and not withdrawn.is_set():
                return sys.stdin.readline()
        return ""
