"""Asks a person at a terminal about calls: shows what each would do, and reads the answers line by line."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

from ferrule._util.terminal_text import escape_line
from ferrule.errors import SettingsError
from ferrule.execution.call_display import WIDTH, CallDisplay, Line, measure, print_lines
from ferrule.execution.decisions import ApprovalRequest, Decision
from ferrule.execution.edit_arguments import EditableArguments, edit_text, find_editor

_BY = "terminal"
_PAGE = 40
"""The most lines shown at once."""
_HELP = """\
  y            run the call, this time
  y TEXT       the same, and the model gets TEXT with the result: "y, but …"
  n REASON     don't run it; the model gets the reason
  e            change the arguments in $VISUAL or $EDITOR; you see what it would do before it runs
  e {…}        change them here, to this JSON object
  a            run it, and don't ask again about what the "always" allows, for this session
  p            the same, and in later sessions in this project
  a?           show the exact rules of the "always"
  d            details: all arguments in full, and where links lead
  m            the next page"""
_HELP_TOGETHER = """\
  NUMBER       look at one call, and decide on it
  2 y, 2 n REASON, …   decide on call 2 at once, with the answers of a single call
  y TEXT       run all of them; the model gets TEXT with each result
  n REASON     run none of them; the model gets the reason
  l            list them again"""

EditText = Callable[[Sequence[str], str, str], Awaitable[str]]
"""Lets a person edit a text: by the editor's command, the text, and the name of the file for it."""


class TerminalApprover:
    """Asks a person, one question at a time: yes, no with a reason, edit, always for this session or project.

    A long call is shown in full, in pages: the reason for asking with the first one, the next whenever the person asks
    for more. Several calls of one message are listed together. Reads lines from `input` and writes to `output`, by
    default stdin and stdout. The end of the input means no. `columns` tells the width of a terminal that `output` isn't
    itself; `edit` lets the person edit a text where an editor can't just take over the terminal.
    """

    confirms_edits = True

    def __init__(
        self,
        input: TextIO | None = None,  # noqa: A002 - the field's word
        output: TextIO | None = None,
        *,
        columns: Callable[[], int] | None = None,
        edit: EditText = edit_text,
    ) -> None:
        self._input = input
        self._output = output
        self._columns = columns
        self._edit_text = edit
        self._asking = asyncio.Lock()
        self._reading: concurrent.futures.Future[str] | None = None
        self._draft: tuple[str, str] | None = None
        """The hash of the call that is asked about, and its arguments as they were edited last."""

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Show the call and wait for a valid answer."""
        async with self.take_turn():
            decision = await self._ask(request)
            assert decision is not None, "there is no list to go back to"
            return decision

    async def decide_all(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision | None]:
        """List the calls, and wait until all are decided, or one in a way that concerns the others too."""
        async with self.take_turn():
            if len(requests) == 1:
                return [await self._ask(requests[0])]
            first = next((place for place, one in enumerate(requests) if one.is_edited or one.problem), None)
            if first is not None:
                # What somebody has edited is shown again before it can be part of an answer to all.
                return [await self._ask(one) if place == first else None for place, one in enumerate(requests)]
            return await _List(self, requests).decide()

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Wait until no other question is open, and keep others waiting: for another question to the person."""
        async with self._asking:
            if self._reading is not None and self._reading.done():
                self._reading = None  # typed in answer to a question that was withdrawn
            yield

    @property
    def display(self) -> CallDisplay:
        """A display as wide as the terminal is now."""
        return CallDisplay(self._find_size()[0])

    async def ask_about(self, request: ApprovalRequest) -> Decision | None:
        """Ask about one call of several; None to go back to the list of them."""
        return await self._ask(request, is_listed=True)

    async def _ask(self, request: ApprovalRequest, is_listed: bool = False) -> Decision | None:
        if not request.problem:
            self._draft = None
        # A diff of a large file takes a while.
        rest = self._show_page(await asyncio.to_thread(self.display.render, request))
        self.show(*self.display.render_reason(request))
        while True:
            self._say_choices(request, len(rest), is_listed)
            line = await self.read_line()
            if line is None:
                return Decision.deny("nobody answered", _BY)
            word = line.strip().casefold()
            if rest and word in ("m", "more"):
                rest = self._show_page(rest)
            elif is_listed and word in ("b", "back"):
                return None
            elif word in ("d", "details"):
                rest = self._show_page([*self.display.render_details(request), *rest])
            elif word in ("a?", "a ?", "always?", "always ?", "p?", "p ?"):
                self.show(*self.display.render_rules(request))
            elif word in ("?", "h", "help"):
                self.say(_HELP)
            else:
                decision = await self.parse_answer(line.strip(), request)
                if decision is not None:
                    return decision

    def _show_page(self, lines: list[Line]) -> list[Line]:
        """Show the first of these lines and return the others."""
        height = max(5, min(_PAGE, self._find_size()[1] - 4))
        self.show(*lines[:height])
        return lines[height:]

    def _say_choices(self, request: ApprovalRequest, lines_left: int, is_listed: bool) -> None:
        choices = ["[y]es", "[n]o REASON"]
        if not request.is_running:
            choices.append("[e]dit")
        if request.always is not None:
            choices.append("[a]lways this session" + (", [p] in this project" if request.can_save else ""))
        always = len(choices) - 1
        if lines_left:
            choices.append(f"[m]ore ({lines_left:,} lines not shown yet)")
        if is_listed:
            choices.append("[b]ack")
        if request.always is not None:
            scope = f" ({escape_line(request.always)})"
            if measure(", ".join(choices) + scope) + 2 <= self.display.width:
                choices[always] += scope
            else:
                # Not in a line that the terminal would wrap, where a part of it might pass for a line of ours.
                self.show(*self.display.render_scope(request))
        self.say(self.display.wrap_words(f"{', '.join(choices)}?"), end=" ")

    async def parse_answer(self, answer: str, request: ApprovalRequest) -> Decision | None:
        """Parse an answer about one call; None if it is none, which the person is told."""
        word, _, rest = answer.partition(" ")
        rest = rest.strip()
        match word.rstrip(",").casefold():
            case "y" | "yes":
                return Decision.allow(_BY, rest)
            case "n" | "no":
                return Decision.deny(rest, _BY)
            case "a" | "always" if request.always is not None and not rest:
                return Decision.always(_BY)
            case "p" | "project" if request.always is not None and request.can_save and not rest:
                return Decision.always(_BY, "project")
            case "e" | "edit" if not request.is_running:
                return await self._edit(rest, request)
        self.say("please answer with one of the letters; ? explains them")
        return None

    async def _edit(self, typed: str, request: ApprovalRequest) -> Decision | None:
        try:
            arguments = _parse_typed(typed) if typed else await self._edit_in_editor(request)
        except SettingsError as error:
            self.say(*self._wrap(f"not changed: {error}"))
            return None
        if arguments is None or arguments == request.arguments:
            self.say("nothing was changed")
            return None
        return Decision.edit(arguments, _BY)

    async def _edit_in_editor(self, request: ApprovalRequest) -> dict[str, Any] | None:
        try:
            argv = find_editor()
        except SettingsError as error:
            self.say(*self._wrap(f"{error}; or write the arguments here, as one line of JSON:"), end=" ")
            typed = await self.read_line()
            return _parse_typed(typed or "")
        editable = EditableArguments.make(request)
        draft = self._draft[1] if self._draft is not None and self._draft[0] == request.hash else editable.text
        text = await self._edit_text(argv, draft, editable.name)
        self._draft = request.hash, text
        try:
            return editable.parse(text)
        except SettingsError as error:
            raise SettingsError(f"{error}; e opens what you wrote again") from error

    def _wrap(self, text: str) -> list[str]:
        return [escape_line(line) for line in text.split("\n")]

    def show(self, *lines: Line) -> None:
        """Write styled lines for the person."""
        print_lines(lines, self._output or sys.stdout)

    def say(self, *lines: str, end: str = "\n") -> None:
        """Write lines for the person."""
        print("\n".join(lines), end=end, file=self._output or sys.stdout, flush=True)

    def _find_size(self) -> tuple[int, int]:
        """The columns and lines of the terminal, or the limits where it isn't one."""
        if self._columns is not None:
            return self._columns(), shutil.get_terminal_size((WIDTH, _PAGE)).lines
        try:
            stream = self._output or sys.stdout
            size = os.get_terminal_size(stream.fileno()) if stream.isatty() else None
        except (OSError, ValueError, AttributeError):
            size = None
        if size is None:
            return WIDTH, _PAGE + 4
        known = shutil.get_terminal_size((WIDTH, _PAGE + 4))
        return size.columns or known.columns, size.lines or known.lines

    async def read_line(self) -> str | None:
        """Read a line; None at the end of the input.

        A blocking read can't be cancelled: the next question reuses it, and reads again if it comes back empty.
        """
        left = self._reading
        line = await self._read()
        if not line and left is not None:
            line = await self._read()
        return line or None

    async def _read(self) -> str:
        if self._reading is None:
            self._reading = concurrent.futures.Future()
            self._reading.set_running_or_notify_cancel()
            arguments = (self._input or sys.stdin, self._reading)
            threading.Thread(target=_read, args=arguments, name="approver", daemon=True).start()
        line = await asyncio.wrap_future(self._reading)
        self._reading = None
        return line


class _List:
    """The calls of one message that need approval, decided on together or one by one."""

    def __init__(self, approver: TerminalApprover, requests: Sequence[ApprovalRequest]) -> None:
        self._approver = approver
        self._requests = requests
        self._decisions: list[Decision | None] = [None] * len(requests)

    async def decide(self) -> list[Decision | None]:
        """Show the list, and answer until all calls are decided, or one in a way that concerns the others."""
        await self._show()
        while None in self._decisions:
            choices = "[y]es to all, [n]o REASON to all, or a NUMBER to look at one?"
            self._approver.say(self._approver.display.wrap_words(choices), end=" ")
            line = await self._approver.read_line()
            if line is None:
                self._decide_rest(Decision.deny("nobody answered", _BY))
                break
            word, _, rest = line.strip().partition(" ")
            match word.rstrip(",").casefold():
                case "y" | "yes" | "all":
                    self._decide_rest(Decision.allow(_BY, rest.strip()))
                case "n" | "no" | "none":
                    self._decide_rest(Decision.deny(rest.strip(), _BY))
                case "l" | "list":
                    await self._show()
                case "?" | "h" | "help":
                    self._approver.say(_HELP_TOGETHER)
                case number if number.isascii() and number.isdigit() and 0 < int(number) <= len(self._requests):
                    decision = await self._decide_one(int(number) - 1, rest.strip())
                    if decision is not None and decision.action in ("always", "edit"):
                        break
                case _:
                    self._approver.say("please answer with a letter or the number of a call; ? explains them")
        return self._decisions

    def _decide_rest(self, decision: Decision) -> None:
        self._decisions = [one or decision for one in self._decisions]

    async def _decide_one(self, place: int, answer: str) -> Decision | None:
        request = self._requests[place]
        if answer:
            decision = await self._approver.parse_answer(answer, request)
        else:
            decision = await self._approver.ask_about(request)
        if decision is not None:
            self._decisions[place] = decision
        if None in self._decisions and (decision is None or decision.action in ("allow", "deny")):
            await self._show()
        return decision

    async def _show(self) -> None:
        display = self._approver.display
        marks = [" " if one is None else "✓" if one.action == "allow" else "✗" for one in self._decisions]
        numbers = [f"{mark} {number:>3}" for number, mark in enumerate(marks, 1)]
        pairs = [*zip(self._requests, numbers, strict=True)]
        summaries = await asyncio.to_thread(lambda: [display.summarize(*pair) for pair in pairs])
        lines = [Line(f"▸ {len(self._requests)} calls ask to run", "bold")]
        for summary, decision in zip(summaries, self._decisions, strict=True):
            lines += summary if decision is None else [Line(line.text, "dim") for line in summary]
        self._approver.show(*lines)


def _parse_typed(typed: str) -> dict[str, Any]:
    try:
        arguments = json.loads(typed)
    except ValueError as error:
        raise SettingsError(f"not valid JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise SettingsError("not a JSON object")
    return arguments


def _read(stream: TextIO, reading: concurrent.futures.Future[str]) -> None:
    try:
        reading.set_result(stream.readline())
    except (OSError, ValueError):  # the terminal was closed, or the stream
        reading.set_result("")
