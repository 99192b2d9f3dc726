"""On what terms a command lets calls run: its policy, who is asked, and where it is recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO, cast

from ferrule.cli.guard import complain
from ferrule.cli.standard_input import Answers, is_interactive
from ferrule.execution import Approver, Decision, FileJournal, Policy, Request, TerminalApprover, read_policy


class AlwaysYes:
    """The approver that `--yes` stands for. What a rule denies stays denied: it is never asked about."""

    async def decide(self, request: Request) -> Decision:
        """Yes; no to what it said yes to before and can't be run so."""
        return Decision.deny(request.problem, "--yes") if request.problem else Decision.allow("--yes")


class Nobody:
    """The approver where there is no person: every question is a no."""

    def __init__(self) -> None:
        self.was_asked = False

    async def decide(self, request: Request) -> Decision:
        """No."""
        self.was_asked = True
        reason = f"this call needs approval and there is nobody to give it ({request.reason})"
        return Decision.deny(reason, "nobody")


@dataclass(frozen=True, slots=True)
class Terms:
    """Who may do what. `answers` is where a person at the terminal types, None where there is none."""

    policy: Policy
    approver: Approver
    journal: FileJournal | None
    answers: Answers | None

    def trusting(self, *origins: str) -> Terms:
        """The same, and what tools of these origins say of themselves is believed."""
        return replace(self, policy=replace(self.policy, trusted=(*self.policy.trusted, *origins)))

    def tell_of_denials(self) -> None:
        """Where a call was denied since nobody could be asked, say on stderr what to do."""
        if isinstance(self.approver, Nobody) and self.approver.was_asked:
            self.approver.was_asked = False
            complain("nobody could be asked for approval here; allow calls by --policy FILE, or all with --yes")


def _asking(answers: Answers) -> TerminalApprover:
    # All that an approver wants of its input is lines.
    return TerminalApprover(cast("TextIO", answers), sys.stderr)


@contextmanager
def opened_terms(yes: bool, policy: Path | None, journal: Path | None) -> Iterator[Terms]:
    """The terms of one command. Raises `PolicyError` and `OSError` for files that can't be used."""
    rules = read_policy(policy) if policy is not None else Policy()
    if rules.profile is None:
        rules = replace(rules, profile="ask")
    answers = Answers() if is_interactive() and not yes else None
    approver = AlwaysYes() if yes else Nobody() if answers is None else _asking(answers)
    opened = FileJournal(journal, "ferrule") if journal is not None else None
    try:
        yield Terms(rules, approver, opened, answers)
    finally:
        if answers is not None:
            answers.withdraw()
        if opened is not None:
            opened.close()
