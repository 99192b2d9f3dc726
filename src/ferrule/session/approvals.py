"""Approvals in a session: which calls may run, who decides about them, and when."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
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
)
from ferrule.execution.always import write_policy_line
from ferrule.execution.approver import confirms_edits, decide_all
from ferrule.execution.decisions import NOBODY
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.session.terminal.output import print_notice

_POLL = 0.05
_ALL = "allow all"
_HINT = "allow calls by rules of the policy"


def is_interactive() -> bool:
    """Whether stdin is a terminal."""
    return sys.stdin.isatty()


class AllowAll:
    """Allows every call that the policy asks about. What a rule denies stays denied."""

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Allow; deny a call that was allowed before and can't run unchanged."""
        return Decision.deny(request.problem, _ALL) if request.problem else Decision.allow(_ALL)


class DenyAll:
    """Denies every call that the policy asks about: for when nobody can be asked. `hint` tells how to allow calls."""

    def __init__(self, hint: str = _HINT) -> None:
        self.was_asked = False
        self._hint = hint

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Deny."""
        self.was_asked = True
        reason = f"this call needs approval, and nobody can be asked ({request.reason}); {self._hint}"
        if request.always_rules:
            reason += f"; the policy's line for this one: {write_policy_line(request.always_rules)}"
        return Decision.deny(reason, NOBODY)


@dataclass(frozen=True, slots=True)
class Permissions:
    """Which calls may run: a policy, the approver for what it asks about, and the journal that records calls.

    `answers` reads what a person types at the terminal, if there is one. `hint` tells the person how to allow calls
    where nobody could be asked.
    """

    policy: Policy = field(default_factory=lambda: Policy(profile="ask"))
    approver: Approver = field(default_factory=DenyAll)
    journal: FileJournal | None = None
    answers: AnswerInput | None = None
    hint: str = _HINT

    def trust(self, *origins: str) -> Permissions:
        """Return permissions that also trust the annotations and intents of these origins."""
        return replace(self, policy=replace(self.policy, trusted=(*self.policy.trusted, *origins)))

    def begin_asking(self) -> None:
        """Begin a turn: the person may be asked."""
        if self.answers is not None:
            self.answers.begin()

    def stop_asking(self) -> None:
        """End a turn: an open question is withdrawn, and counts as unanswered."""
        if self.answers is not None:
            self.answers.withdraw()

    def warn_of_denials(self, notify: Callable[[str], None] = print_notice) -> None:
        """Notify the person if a call was denied because nobody could be asked."""
        if isinstance(self.approver, DenyAll) and self.approver.was_asked:
            self.approver.was_asked = False
            notify(f"nobody could be asked for approval here; {self.hint}")


def _open_terminal() -> TextIO | None:
    """Open the terminal to ask at where stdin is something else, such as the piped question; None if there is none.

    A process whose errors nobody sees, or that runs in the background, doesn't ask.
    """
    if not sys.stderr.isatty():
        return None
    try:
        terminal = Path("/dev/tty").open(encoding="utf-8", errors="replace")  # noqa: SIM115 - the caller closes it
    except OSError:
        return None
    try:
        is_in_foreground = os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        is_in_foreground = False
    if is_in_foreground:
        return terminal
    terminal.close()
    return None


def _make_terminal_approver(answers: AnswerInput) -> TerminalApprover:
    # The approver only reads lines from its input.
    return TerminalApprover(cast("TextIO", answers), sys.stderr)


def make_policy_in_force(folder: Path, file: Path | None, can_ask: bool) -> Policy:
    """Make the policy of a command that runs tools in a folder, with the rules of `file`, if there is one.

    Raises `PolicyError` for a file that can't be used, and `SettingsError` for a `ferrule.toml` of which that is true
    unless somebody `can_ask` about each call; then it is said, and everything is asked about.
    """
    from ferrule.session.project import load_project

    given = None
    if file is not None:
        from ferrule.execution.policy_file import read_policy

        given = read_policy(file)
    project = load_project(folder)
    if not can_ask:
        project.check_readable()
    for notice in project.notices:
        print_notice(notice)
    return project.make_policy(given)


@contextmanager
def open_approver(
    allow_all: bool, can_ask: bool = True, hint: str = _HINT
) -> Iterator[tuple[Approver, AnswerInput | None]]:
    """Open the approver of a command line, and what reads the answers of a person, if there is one to ask.

    A person is asked at stdin, or else at the terminal of the process, since stdin may be the question; nobody is if
    all calls are allowed, or without `can_ask`.
    """
    if allow_all or not can_ask:
        yield AllowAll() if allow_all else DenyAll(hint), None
        return
    terminal = None if is_interactive() else _open_terminal()
    if terminal is None and not is_interactive():
        yield DenyAll(hint), None
        return
    answers = AnswerInput(terminal)
    try:
        yield _make_terminal_approver(answers), answers
    finally:
        answers.withdraw()
        if terminal is not None:
            terminal.close()


@contextmanager
def open_permissions(
    allow_all: bool, policy: Path | None, journal: Path | None, hint: str = _HINT, can_ask: bool = True
) -> Iterator[Permissions]:
    """Open the permissions of a command line that runs tools in the current folder; see `open_approver`.

    The rules are those of the file `policy`, with those of the user's `ferrule.toml` and of the project's. Raises
    `PolicyError`, `SettingsError` and `OSError` for files that can't be used.
    """
    with open_approver(allow_all, can_ask, hint) as (approver, answers):
        rules = make_policy_in_force(Path.cwd(), policy, can_ask=answers is not None)
        opened = FileJournal(journal, "ferrule") if journal is not None else None
        try:
            yield Permissions(rules, approver, opened, answers, hint)
        finally:
            if opened is not None:
                opened.close()


class SessionApprover:
    """Asks another approver about a call, once the call was shown and on a line of its own."""

    def __init__(self, approver: Approver, clear_line: Callable[[], None]) -> None:
        self._approver = approver
        self._clear_line = clear_line
        self._shown: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def allow_questions(self, call_ids: Iterable[str]) -> None:
        """Allow questions about these calls: they were shown."""
        for call_id in call_ids:
            self._shown[call_id].set()

    def forget_calls(self) -> None:
        """Forget which calls were shown: those of a new turn may have the same ids."""
        self._shown.clear()

    @property
    def confirms_edits(self) -> bool:
        """Whether the approver is to be shown a call again after it was edited."""
        return confirms_edits(self._approver)

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Ask the approver once the call was shown."""
        await self._wait_until_shown(request)
        return await self._approver.decide(request)

    async def decide_all(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision | None]:
        """Ask the approver about several calls, once they were shown."""
        for request in requests:
            await self._wait_until_shown(request)
        return await decide_all(self._approver, requests)

    async def _wait_until_shown(self, request: ApprovalRequest) -> None:
        # The calls of a sub-agent aren't shown themselves, only the one that it answers.
        if not request.agent:
            await self._shown[request.call.id].wait()
        self._clear_line()


class AnswerInput:
    """Reads the lines typed in answer to an approver's questions; a question can be withdrawn.

    The approver reads in a thread of its own. A blocking read could not be stopped, and would consume the line meant
    for the next prompt. Without a `terminal`, it reads stdin.
    """

    def __init__(self, terminal: TextIO | None = None) -> None:
        self._terminal = terminal
        self._withdrawn = threading.Event()

    def begin(self) -> None:
        """Allow questions from now on."""
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Withdraw the open question: its reader gets the end of the input."""
        self._withdrawn.set()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return (self._terminal or sys.stdin).isatty()

    def fileno(self) -> int:
        """That of the terminal."""
        return (self._terminal or sys.stdin).fileno()

    def readline(self) -> str:
        """Return the next line typed; empty if the question was withdrawn or the input has ended."""
        withdrawn, stream = self._withdrawn, self._terminal or sys.stdin
        while not withdrawn.is_set():
            if select.select([stream], [], [], _POLL)[0] and not withdrawn.is_set():
                return stream.readline()
        return ""
