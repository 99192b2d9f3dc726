"""Asks a person at a terminal about calls: shows what each would do, and reads the answers line by line."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

from ferrule._util.terminal_text import escape_line
from ferrule._util.word_folding import measure
from ferrule.errors import SettingsError
from ferrule.execution.decisions import ApprovalRequest, Decision
from ferrule.session.terminal.approval_list import ApprovalList, find_unclear_yes, split_answer
from ferrule.session.terminal.call_display import WIDTH, CallDisplay, Line, print_lines, write_lines
from ferrule.session.terminal.edit_arguments import EditableArguments, parse_arguments
from ferrule.session.terminal.programs import edit_text, find_editor, find_pager, page_text

_BY = "terminal"
_PAGE = 40
"""The most lines shown at once."""
_HELP = """\
  y            run the call, this time; only once all of it was shown
  y!           run it, although not all of it was shown
  y TEXT       the same, and the model gets TEXT with the result: "y, but …"
  n REASON     don't run it; the model gets the reason
  e            change the arguments in $VISUAL or $EDITOR; you see what it would do before it runs
  e {…}        replace all arguments by this JSON object: write those that stay, too
  a            run it, and don't ask again about what the "always" allows, for this session
  p            the same, and in later sessions in this project
  a?           show the exact rules of the "always"
  d            details: all arguments in full, with the defaults of others, and where links lead
  m            the next page
  v            view all of it in $PAGER or less
  b            back to the list of calls"""


class TerminalApprover:
    """Asks a person, one question at a time: yes, no with a reason, edit, always for this session or project.

    A long call is shown in pages, the reason for asking with the first one, or as a whole in the person's pager; a yes
    counts once all of it was shown. Several calls of one message are listed together. Reads lines from `input` and
    writes to `output`, by default stdin and stdout. What was typed at a terminal before a question was shown doesn't
    answer it. The end of the input means no. `columns` tells the width of a terminal that `output` isn't itself.
    """

    confirms_edits = True

    def __init__(
        self,
        input: TextIO | None = None,  # noqa: A002 - the field's word
        output: TextIO | None = None,
        *,
        columns: Callable[[], int] | None = None,
    ) -> None:
        self._input = input
        self._output = output
        self._columns = columns
        self._asking = asyncio.Lock()
        self._reading: concurrent.futures.Future[str] | None = None
        self._draft: tuple[str, str] | None = None
        """The hash of the call that is asked about, and its arguments as they were edited last."""
        self._seen: set[str] = set()
        """The hashes of the requests that were shown in full."""

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
            return await ApprovalList(self, requests).decide()

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
            if not rest:
                self.mark_seen(request)
            line = await self.ask(self._write_choices(request, len(rest), is_listed))
            if line is None:
                return Decision.deny("nobody answered", _BY)
            word = line.strip().casefold()
            if is_listed and word in ("b", "back"):
                return None
            if word in ("?", "h", "help"):
                self.say_wrapped(*_list_help(request, has_more=bool(rest), is_listed=is_listed))
                continue
            left = await self._show_more(word, request, rest)
            if left is not None:
                rest = left
                continue
            decision = await self.parse_answer(line.strip(), request, self._describe_unseen(request, len(rest)))
            if decision is not None:
                return decision

    async def _show_more(self, word: str, request: ApprovalRequest, rest: list[Line]) -> list[Line] | None:
        """Show what a word asks for; returns the lines that are still not shown, None for any other word."""
        match word:
            case "m" | "more" if rest:
                return self._show_page(rest)
            case "v" | "view":
                await self.view([request])
                return []
            case "d" | "details":
                return self._show_page([*self.display.render_details(request), *rest])
            case "a?" | "a ?" | "always?" | "always ?" | "p?" | "p ?":
                self.show(*self.display.render_rules(request))
            case _:
                return None
        return rest

    def _show_page(self, lines: list[Line]) -> list[Line]:
        """Show the first of these lines and return the others."""
        height = max(5, min(_PAGE, self._find_size()[1] - 4))
        self.show(*lines[:height])
        return lines[height:]

    def _describe_unseen(self, request: ApprovalRequest, lines_left: int) -> str:
        """Say what keeps a yes from counting; empty if nothing does."""
        if not lines_left or self.has_seen(request):
            return ""
        count = "1 line of it was" if lines_left == 1 else f"{lines_left:,} lines of it were"
        return f"{count} not shown; v shows all of it, m the next page, and y! runs it without a look"

    def has_seen(self, request: ApprovalRequest) -> bool:
        """Whether all that would happen was shown."""
        return request.hash in self._seen

    def mark_seen(self, request: ApprovalRequest) -> None:
        """Remember that all that would happen was shown."""
        self._seen.add(request.hash)

    def find_room(self) -> int:
        """How many lines several calls may take at once: two thirds of the terminal."""
        return min(_PAGE, self._find_size()[1] * 2 // 3)

    async def view(self, requests: Sequence[ApprovalRequest]) -> None:
        """Show calls in full, in the person's pager if there is one."""
        rendered = await asyncio.to_thread(lambda: [self.display.render(one) for one in requests])
        lines = [
            line
            for one, shown in zip(requests, rendered, strict=True)
            for line in (*shown, *self.display.render_reason(one), Line(""))
        ]
        stream = self._output or sys.stdout
        is_screen = stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")
        argv = find_pager() if is_screen else None
        was_shown = False
        if argv is not None:
            async with self.lend_terminal():
                was_shown = await page_text(argv, write_lines(lines))
        if not was_shown:
            self.show(*lines)
        self._seen.update(request.hash for request in requests)

    @asynccontextmanager
    async def lend_terminal(self) -> AsyncIterator[None]:
        """Let another program have the terminal until the end of the block."""
        yield

    def _write_choices(self, request: ApprovalRequest, lines_left: int, is_listed: bool) -> str:
        choices = ["[y]es", "[n]o REASON"]
        if not request.is_running:
            choices.append("[e]dit")
        if request.always is not None:
            choices.append("[a]lways this session" + (", [p] in this project" if request.can_save else ""))
        always = len(choices) - 1
        if is_listed:
            choices.append("[b]ack")
        if request.always is not None:
            scope = f" ({escape_line(request.always)})"
            if measure(", ".join(choices) + scope) + 2 <= self.display.width:
                choices[always] += scope
            else:
                # Not in a line that the terminal would wrap, where a part of it might pass for a line of ours.
                self.show(*self.display.render_scope(request))
        unseen = f"{lines_left:,} lines not shown yet: [v]iew all, [m]ore; " if lines_left else ""
        return f"{unseen}{', '.join(choices)}?"

    async def parse_answer(self, answer: str, request: ApprovalRequest, unseen: str = "") -> Decision | None:
        """Parse an answer about one call; None if it is none, which the person is told.

        `unseen` says what of the call was not shown: then only `y!` runs it.
        """
        word, rest = split_answer(answer)
        if problem := find_unclear_yes(word, answer, unseen):
            self.say_wrapped(problem)
            return None
        match word:
            case "y" | "yes" | "y!" | "yes!":
                return Decision.allow(_BY, rest)
            case "n" | "no":
                return Decision.deny(rest, _BY)
            case "a" | "always" if request.always is not None and not rest:
                return Decision.always(_BY)
            case "p" | "project" if request.always is not None and request.can_save and not rest:
                return Decision.always(_BY, "project")
            case "e" | "edit" if not request.is_running:
                return await self._edit(rest, request)
        self.say_wrapped("please answer with one of the letters; ? explains them")
        return None

    async def _edit(self, typed: str, request: ApprovalRequest) -> Decision | None:
        try:
            arguments = parse_arguments(typed, "json") if typed else await self._edit_in_editor(request)
        except SettingsError as error:
            self.say_wrapped(*f"not changed: {error}".split("\n"))
            return None
        if arguments is None or arguments == request.arguments:
            self.say_wrapped("nothing was changed")
            return None
        left_out = [name for name in request.arguments if name not in arguments]
        if typed and left_out:
            self.say_wrapped(f"e {{…}} replaces all arguments, and this leaves out: {', '.join(left_out)}")
        return Decision.edit(arguments, _BY)

    async def _edit_in_editor(self, request: ApprovalRequest) -> dict[str, Any] | None:
        try:
            argv = find_editor()
        except SettingsError as error:
            typed = await self.ask(escape_line(f"{error}; or write all arguments here, as one line of JSON:"))
            return parse_arguments(typed or "", "json")
        editable = EditableArguments.make(request)
        draft = self._draft[1] if self._draft is not None and self._draft[0] == request.hash else editable.text
        async with self.lend_terminal():
            text = await edit_text(argv, draft, editable.name)
        self._draft = request.hash, text
        try:
            return editable.parse(text)
        except SettingsError as error:
            raise SettingsError(f"{error}; e opens what you wrote again") from error

    def show(self, *lines: Line) -> None:
        """Write styled lines for the person."""
        print_lines(lines, self._output or sys.stdout)

    def say(self, *lines: str, end: str = "\n") -> None:
        """Write lines for the person."""
        print("\n".join(lines), end=end, file=self._output or sys.stdout, flush=True)

    def say_wrapped(self, *lines: str) -> None:
        """Write lines of our own, escaped, and broken between words."""
        for line in lines:
            self.say(self.display.wrap_words(escape_line(line), "  "))

    async def ask(self, question: str) -> str | None:
        """Ask a question of our own, and read the answer; None at the end of the input."""
        self._discard_typed()
        self.say(self.display.wrap_words(question), end=" ")
        return await self.read_line()

    def _discard_typed(self) -> None:
        """Discard what was typed before a question was shown, and can't be an answer to it."""
        if self._reading is not None:
            return
        stream = self._input or sys.stdin
        # A stream that is no terminal; and termios isn't everywhere.
        with suppress(OSError, ValueError, AttributeError, ImportError):
            if stream.isatty():
                import termios

                termios.tcflush(stream.fileno(), termios.TCIFLUSH)

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


def _read(stream: TextIO, reading: concurrent.futures.Future[str]) -> None:
    try:
        reading.set_result(stream.readline())
    except (OSError, ValueError):  # the terminal was closed, or the stream
        reading.set_result("")


def _list_help(request: ApprovalRequest, *, has_more: bool, is_listed: bool) -> list[str]:
    """List the answers that this question accepts, a line each."""
    has_always = request.always is not None
    accepted = {
        "e": not request.is_running,
        "a": has_always,
        "a?": has_always,
        "p": has_always and request.can_save,
        "m": has_more,
        "b": is_listed,
    }
    return [line for line in _HELP.split("\n") if accepted.get(line.split()[0], True)]
