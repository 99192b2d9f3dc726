"""The calls of one message that need approval, listed together and decided on together or one by one.

What the terminal has room for is shown in full with the list, so that one answer can be enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from ferrule.execution.decisions import ApprovalRequest, Decision
from ferrule.session.terminal.call_display import CallDisplay, Line

_BY = "terminal"
_HELP_TOGETHER = """\
  NUMBER       look at one call, and decide on it
  2 y, 2 n REASON, …   decide on call 2 at once, with the answers of a single call
  y TEXT       run all of them, once each was shown in full; the model gets TEXT with each result
  y!           run all of them, although not all of it was shown
  v            view all of them in $PAGER or less
  n REASON     run none of them; the model gets the reason
  l            list them again"""
_CHOICES = "[y]es to all, [n]o REASON to all, [v]iew all, or a NUMBER to look at one?"
_CHOICES_BEFORE = "[v]iew all, then [y]es to all; [n]o REASON to all, or a NUMBER to look at one?"
"""While some of it wasn't shown, and a yes doesn't count."""


class CallTerminal(Protocol):
    """What the list needs of the approver at a terminal."""

    @property
    def display(self) -> CallDisplay:
        """A display as wide as the terminal is now."""

    def show(self, *lines: Line) -> None:
        """Write styled lines."""

    def say_wrapped(self, *lines: str) -> None:
        """Write lines of our own."""

    async def ask(self, question: str) -> str | None:
        """Ask a question; None at the end of the input."""

    async def ask_about(self, request: ApprovalRequest) -> Decision | None:
        """Ask about one call; None to go back to the list."""

    async def parse_answer(self, answer: str, request: ApprovalRequest, unseen: str = "") -> Decision | None:
        """Parse an answer about one call; None if it is none."""

    async def view(self, requests: Sequence[ApprovalRequest]) -> None:
        """Show calls in full."""

    def has_seen(self, request: ApprovalRequest) -> bool:
        """Whether all of a call was shown."""

    def mark_seen(self, request: ApprovalRequest) -> None:
        """Remember that all of a call was shown."""

    def find_room(self) -> int:
        """How many lines several calls may take at once."""


class ApprovalList:
    """The calls of one message that need approval, decided on together or one by one."""

    def __init__(self, approver: CallTerminal, requests: Sequence[ApprovalRequest]) -> None:
        self._approver = approver
        self._requests = requests
        self._decisions: list[Decision | None] = [None] * len(requests)

    async def decide(self) -> list[Decision | None]:
        """Show the list, and answer until all calls are decided, or one in a way that concerns the others."""
        await self._show()
        while None in self._decisions:
            line = await self._ask()
            if line is None:
                self._decide_rest(Decision.deny("nobody answered", _BY))
                break
            word, rest = split_answer(line)
            match word:
                case "y" | "yes" | "y!" | "yes!":
                    self._allow_rest(word, line.strip(), rest)
                case "n" | "no" | "none":
                    self._decide_rest(Decision.deny(rest, _BY))
                case "l" | "list":
                    await self._show(is_repeated=True)
                case "v" | "view":
                    await self._approver.view([self._requests[place] for place in self._list_open()])
                case "?" | "h" | "help":
                    self._approver.say_wrapped(*_HELP_TOGETHER.split("\n"))
                case number if number.isascii() and number.isdigit() and 0 < int(number) <= len(self._requests):
                    decision = await self._decide_one(int(number) - 1, rest)
                    if decision is not None and decision.action in ("always", "edit"):
                        break
                case _:
                    self._approver.say_wrapped("please answer with a letter or the number of a call; ? explains them")
        return self._decisions

    async def _ask(self) -> str | None:
        """Ask for an answer; a yes to all is offered first only where it counts."""
        unseen = self._list_unseen()
        if unseen:
            which = _name_calls(unseen)
            self._approver.say_wrapped(f"There was no room to show {which} in full, which a yes to all waits for.")
        return await self._approver.ask(_CHOICES_BEFORE if unseen else _CHOICES)

    def _list_open(self) -> list[int]:
        """The places of the calls that aren't decided on."""
        return [place for place, decision in enumerate(self._decisions) if decision is None]

    def _list_unseen(self) -> list[int]:
        """The places of the calls that aren't decided on, and weren't shown in full."""
        return [place for place in self._list_open() if not self._is_seen(place)]

    def _is_seen(self, place: int) -> bool:
        """Whether a call was shown in full, be it in the list."""
        request = self._requests[place]
        return self._approver.has_seen(request) or self._approver.display.is_whole_summary(request)

    def _allow_rest(self, word: str, answer: str, comment: str) -> None:
        """Allow the calls that aren't decided on, unless some of them weren't shown in full."""
        unseen, reason = self._list_unseen(), ""
        if unseen:
            which = f"{_name_calls(unseen)} {'was' if len(unseen) == 1 else 'were'}"
            reason = f"{which} not shown in full; v shows all, a number one of them, and y! runs all without a look"
        problem = find_unclear_yes(word, answer, reason)
        if problem:
            self._approver.say_wrapped(problem)
        else:
            self._decide_rest(Decision.allow(_BY, comment))

    def _decide_rest(self, decision: Decision) -> None:
        self._decisions = [one or decision for one in self._decisions]

    async def _decide_one(self, place: int, answer: str) -> Decision | None:
        request = self._requests[place]
        if answer:
            number = place + 1
            unseen = f"it was not shown in full; {number} shows it, and {number} y! runs it without a look"
            decision = await self._approver.parse_answer(answer, request, "" if self._is_seen(place) else unseen)
        else:
            decision = await self._approver.ask_about(request)
        if decision is not None:
            self._decisions[place] = decision
        if None in self._decisions and (decision is None or decision.action in ("allow", "deny")):
            await self._show()
        return decision

    async def _show(self, is_repeated: bool = False) -> None:
        """Show a line or more for each call, and in full those not seen yet that there is room for.

        With `is_repeated`, those that were seen are shown in full again.
        """
        display = self._approver.display
        marks = [" " if one is None else "✓" if one.action == "allow" else "✗" for one in self._decisions]
        numbers = [f"{mark} {number:>3}" for number, mark in enumerate(marks, 1)]
        pairs = [*zip(self._requests, numbers, strict=True)]
        summaries = await asyncio.to_thread(lambda: [display.summarize(*pair) for pair in pairs])
        title = Line(f"▸ {len(self._requests)} calls ask to run", "bold")
        room = self._approver.find_room() - 1 - sum(map(len, summaries))
        bodies = await asyncio.to_thread(self._render_bodies, display, room, is_repeated)
        lines = [title]
        for place, (summary, decision) in enumerate(zip(summaries, self._decisions, strict=True)):
            lines += summary if decision is None else [Line(line.text, "dim") for line in summary]
            lines += bodies.get(place, [])
        self._approver.show(*lines)
        for place in bodies:
            self._approver.mark_seen(self._requests[place])

    def _render_bodies(self, display: CallDisplay, room: int, is_repeated: bool) -> dict[int, list[Line]]:
        """Render calls in full, the shortest first, as long as there are lines left for them."""
        places = self._list_open()
        if not is_repeated:
            places = [place for place in places if not self._is_seen(place)]
        bodies = {place: display.render_body(self._requests[place], is_listed=True) for place in places}
        chosen = {}
        for place in sorted(bodies, key=lambda one: len(bodies[one])):
            room -= len(bodies[place])
            if room < 0:
                break
            chosen[place] = bodies[place]
        return chosen


def _name_calls(places: Sequence[int]) -> str:
    """Name calls by their numbers in the list."""
    numbers = [str(place + 1) for place in places]
    return f"call {numbers[0]}" if len(numbers) == 1 else f"calls {', '.join(numbers[:-1])} and {numbers[-1]}"


def split_answer(answer: str) -> tuple[str, str]:
    """Split an answer into its first word, as answers are compared, and the rest."""
    word, rest = (*answer.split(maxsplit=1), "", "")[:2]
    return word.rstrip(",").casefold(), rest.strip()


def find_unclear_yes(word: str, answer: str, unseen: str) -> str:
    """Say why a yes doesn't count: not all was shown, or it may be pasted text; empty if it does."""
    if word not in ("y", "yes", "a", "always", "p", "project", "y!", "yes!"):
        return ""
    if "\n" in answer:
        return "not run: an answer of several lines may have been pasted; please answer on one line"
    return f"not run yet: {unseen}" if unseen and not word.endswith("!") else ""
