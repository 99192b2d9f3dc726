"""The program on a terminal: takes what is typed, runs one turn at a time, and queues the rest.

The prompt is shown at once. The session, with its model and tools, is opened behind it, and what is typed meanwhile
waits for it: so whatever is slow to import is imported in a function.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.document import Document

from ferrule.coding.terminal.answers import PromptQuestions
from ferrule.coding.terminal.output import OutputAbovePrompt
from ferrule.coding.terminal.prompt import PromptCompleter, describe_status, make_application

if TYPE_CHECKING:
    from ferrule.coding.program import CodingOptions, CodingSession
    from ferrule.session.terminal.prompt_screen import PromptScreen

_TICK = 0.5
"""How often what is running is drawn again, in seconds."""
_TWICE = 2.0
"""Within how many seconds a second Ctrl-C leaves."""
_LIVE_SHARE = 2
"""What is happening takes at most one part in this many of the terminal's height."""


def run_terminal(
    prepare: Callable[[], CodingOptions],
    question: str | None = None,
    history: Path | None = None,
    describe_error: Callable[[Exception], str | None] = str,
) -> int:
    """Run the program until the person leaves; returns the exit status.

    `prepare` returns the options of the session; it is called in a thread. `describe_error` describes an exception that
    is the input's fault, and returns None for any other.
    """
    return asyncio.run(TerminalProgram(prepare, history, describe_error).run(question))


class TerminalProgram:
    """The prompt with all that happens behind it. It is the owner of the prompt, see `prompt.py`."""

    def __init__(
        self,
        prepare: Callable[[], CodingOptions],
        history: Path | None,
        describe_error: Callable[[Exception], str | None],
    ) -> None:
        self._prepare = prepare
        self._describe_error = describe_error
        self._output = OutputAbovePrompt()
        self._questions = PromptQuestions(self._begin_question, self._end_question)
        self._asked_at = 0.0
        self._app: Application[int] = make_application(
            self, history, PromptCompleter(self._list_commands, self._list_files)
        )
        self._queue: deque[str] = deque()
        self._has_line = asyncio.Event()
        self._coding: CodingSession | None = None
        self._screen: PromptScreen | None = None
        self._turn: asyncio.Task[Any] | None = None
        self._quick_commands: set[asyncio.Task[None]] = set()
        self._turn_began = 0.0
        self._interrupted = float("-inf")
        self._draft: Document | None = None
        self._status = 0

    async def run(self, question: str | None) -> int:
        """Show the prompt until the person leaves."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end_by_signal, number)
        if question is not None:
            self._enqueue(question)
        with self._output.install(self._app):
            worker = asyncio.create_task(self._work())
            ticker = asyncio.create_task(self._tick())
            try:
                with suppress(EOFError):
                    self._status = await self._app.run_async()
            finally:
                ticker.cancel()
                self._stop_turn()
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker
        return self._status

    # What the prompt asks its owner.

    @property
    def is_answering(self) -> bool:
        """Whether what is typed answers a question of the program."""
        return self._questions.is_waiting

    def accept_line(self, text: str) -> None:
        """Answer the open question with a line, or run it after those that were typed before."""
        if self._questions.is_waiting:
            self._questions.answer(text)
        elif text.strip():
            self._enqueue(text)
        elif self._coding is not None and self._coding.is_cut_off and self._turn is None and not self._queue:
            self._enqueue("")

    @property
    def has_queue(self) -> bool:
        """Whether something that was typed waits for the turn to end."""
        return bool(self._queue)

    def take_back(self) -> None:
        """Return the line that was queued last to the prompt."""
        self._app.current_buffer.document = Document(self._queue.pop())

    def interrupt(self) -> None:
        """Stop the turn; without one clear what is typed; pressed twice, leave."""
        now = time.monotonic()
        is_second = now - self._interrupted < _TWICE
        self._interrupted = now
        if self._turn is not None and not (is_second and self._turn.cancelling()):
            self._stop_turn()
        elif self._app.current_buffer.text and not self._turn:
            self._app.current_buffer.reset()
            self._interrupted = float("-inf")
        elif is_second:
            self._leave_with(0)
        self._app.invalidate()

    def leave(self) -> None:
        """Leave, or leave an open question unanswered."""
        if self._questions.is_waiting:
            self._questions.answer(None)
        else:
            self._leave_with(0)

    def list_live_text(self) -> str:
        """The open question; without one what is happening now, and what waits."""
        if self._questions.is_waiting:
            return self._wrap(self._questions.text)
        height = max(3, self._app.output.get_size().rows // _LIVE_SHARE)
        lines = [] if self._screen is None else list(self._screen.list_live_lines(height))
        waiting = self._queue if self._turn is not None or self._coding is None else ()
        hint = "  (Up takes it back)"
        lines += [f"queued: {_shorten(line)}{hint if line is self._queue[-1] else ''}" for line in waiting]
        if self._output.unfinished:
            lines.append(self._output.unfinished)
        return "\n".join(lines)

    def describe_prompt(self) -> str:
        """What stands before the typed text."""
        return "? " if self._questions.is_waiting else "› "

    def describe_status(self, width: int) -> str:
        """The model, the profile, what was taken, how full the context is, and what is going on."""
        is_leaving = self._turn is None and time.monotonic() - self._interrupted < _TWICE
        now = self._asked_at if self._questions.is_waiting else time.monotonic()
        seconds = None if self._turn is None else now - self._turn_began
        return describe_status(self._coding, seconds, width, is_leaving)

    # What runs behind it.

    def _enqueue(self, line: str) -> None:
        if self._coding is not None and self._turn is not None and self._run_quick_command(line):
            return
        self._queue.append(line)
        self._has_line.set()

    def _run_quick_command(self, line: str) -> bool:
        """Run a command that doesn't touch the turn, beside it."""
        from ferrule.coding.commands import is_quick

        if not is_quick(line):
            return False
        command = asyncio.create_task(self._answer(line))
        self._quick_commands.add(command)  # the event loop itself keeps no task from being collected
        command.add_done_callback(self._quick_commands.discard)
        return True

    async def _work(self) -> None:
        """Open the session, then run line after line."""
        try:
            async with AsyncExitStack() as opened:
                self._coding = await self._open(opened)
                self._show_beginning(self._coding)
                sizing = asyncio.create_task(self._coding.find_context_size())
                sizing.add_done_callback(lambda _: self._app.invalidate())
                naming = asyncio.create_task(asyncio.to_thread(self._coding.list_files))
                for one in (sizing, naming):
                    opened.callback(one.cancel)
                while True:
                    while not self._queue:
                        self._has_line.clear()
                        await self._has_line.wait()
                    await self._answer(self._queue.popleft())
        except Exception as error:  # noqa: BLE001 - shown, or raised
            self._fail(error)

    def _show_beginning(self, coding: CodingSession) -> None:
        """Show what the session works with, and where a resumed conversation stands."""
        from ferrule.coding.overview import describe_session

        if self._screen is not None:
            self._screen.print_lines(describe_session(coding))
        self._app.invalidate()

    async def _open(self, opened: AsyncExitStack) -> CodingSession:
        """Open the session. What takes long to import or to load runs in a thread."""
        options, modules = await asyncio.to_thread(lambda: (self._prepare(), _import_session()))
        screen_kind, renderer_kind, open_session, approver_kind, route_output = modules
        screen = self._screen = screen_kind(self._output.write, self.find_width)
        opened.enter_context(route_output())
        approver = approver_kind(self._questions, self._output, self, screen.exclude_time)
        renderer = renderer_kind(screen, self._app.invalidate)
        coding: CodingSession = await opened.enter_async_context(
            open_session(options, renderer, approver, self._questions)
        )
        return coding

    def find_width(self) -> int:
        """How many columns the terminal has."""
        return self._app.output.get_size().columns

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Let the person's editor or pager have the terminal, and what is written wait."""
        async with in_terminal():
            with self._output.hold():
                yield

    async def _answer(self, line: str) -> None:
        """Run a command, or ask the model; an error is shown, and the session goes on.

        An empty line goes on with a turn that was cut off.
        """
        from ferrule.coding.commands import is_command, run_command

        coding = self._coding
        assert coding is not None
        if not line:
            await self._run_turn(coding.go_on())
            return
        shown = _escape(line).replace("\n", "\n  ")
        self._output.write(f"› {shown}\n")
        if not is_command(line):
            await self._run_turn(coding.ask(line))
            return
        try:
            said = await run_command(coding, line)
            if self._screen is not None:
                self._screen.print_lines(said, is_diff=line.startswith("/diff"))
        except EOFError:
            self._leave_with(0)
        except Exception as error:  # noqa: BLE001 - shown, or raised
            self._show_error(error)

    async def _run_turn(self, turn: Coroutine[Any, Any, Any]) -> None:
        """Run a turn, which Ctrl-C stops."""
        self._turn, self._turn_began = asyncio.create_task(turn), time.monotonic()
        try:
            await asyncio.wait([self._turn])
            if self._turn.cancelled():
                self._return_queue()
            elif (error := self._turn.exception()) is not None:
                if not isinstance(error, Exception):
                    raise error
                self._show_error(error)
                self._offer_to_go_on()
        except asyncio.CancelledError:
            # The program ends: the turn is cancelled as well, and what it did is recorded.
            self._turn.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._turn])
            raise
        finally:
            self._turn = None
            self._app.invalidate()

    def _offer_to_go_on(self) -> None:
        """Say how to repeat a request that failed, with what was asked or done before it kept."""
        if self._coding is not None and self._coding.is_cut_off and self._screen is not None:
            self._screen.notify(f"{self._coding.describe_cut()}; Enter tries again")

    def _return_queue(self) -> None:
        """Return what waited to the prompt: it was typed for a turn that was stopped."""
        if self._queue:
            buffer = self._app.current_buffer
            lines = [*self._queue, *filter(None, [buffer.text])]
            self._queue.clear()
            buffer.document = Document("\n".join(lines))

    def _stop_turn(self) -> None:
        if self._turn is not None:
            self._turn.cancel()  # and with it an open question, which nobody has denied

    def _end_by_signal(self, number: int) -> None:
        """Leave as if killed, such as when the terminal is closed: calls that were not decided on stay open."""
        if self._coding is not None:
            self._coding.session.keeps_open_calls = True
        self._leave_with(128 + number)

    def _leave_with(self, status: int) -> None:
        self._status = status
        if self._app.is_running and not self._app.is_done:
            self._app.exit(result=status)

    def _fail(self, error: Exception) -> None:
        """Show why the session could not be opened, and leave."""
        self._show_error(error)
        self._leave_with(2)

    def _show_error(self, error: Exception) -> None:
        message = self._describe_error(error)
        if message is None:
            self._leave_with(1)
            raise error
        self._output.write(f"ferrule: {'; '.join(map(_escape, message.splitlines()))}\n")

    def _begin_question(self) -> None:
        """Make room for an answer: what was typed by now is for the queue, and put aside until the answer is given."""
        with suppress(EOFError, OSError):
            keys = self._app.key_processor
            keys.feed_multiple(self._app.input.read_keys())
            keys.process_keys()
        self._asked_at = time.monotonic()
        self._draft = self._app.current_buffer.document
        self._app.current_buffer.reset()
        self._app.invalidate()

    def _end_question(self, question: str, answer: str | None) -> None:
        """Print a question with its answer, and go on; the time that the person took isn't the turn's."""
        self._turn_began += time.monotonic() - self._asked_at
        said = "(not answered)" if answer is None else _escape(answer).replace("\n", "\n  ")
        self._output.write_now(f"{self._wrap(f'{question} {said}')}\n")
        if self._draft is not None:
            self._app.current_buffer.document, self._draft = self._draft, None
        self._app.invalidate()

    def _wrap(self, text: str) -> str:
        from ferrule.session.terminal.call_display import CallDisplay

        return CallDisplay(self.find_width()).wrap_words(text)

    async def _tick(self) -> None:
        """Draw the elapsed times again while something runs."""
        while True:
            await asyncio.sleep(_TICK)
            if self._coding is not None and self._screen is not None:
                for notice in self._coding.take_notices():
                    self._screen.notify(notice)
            if self._turn is not None or time.monotonic() - self._interrupted < _TWICE + 2 * _TICK:
                self._app.invalidate()

    def _list_commands(self) -> list[tuple[str, str]]:
        from ferrule.coding.commands import COMMANDS

        return [(command.usage, command.about) for command in COMMANDS.values()]

    def _list_files(self) -> list[str]:
        return [] if self._coding is None else self._coding.list_files()


def _import_session() -> tuple[Any, ...]:
    """Import what the session needs."""
    from ferrule.coding.opening import open_coding_session
    from ferrule.coding.terminal.approver import PromptApprover
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.terminal.prompt_screen import PromptScreen
    from ferrule.session.terminal.renderer import TextRenderer

    return PromptScreen, TextRenderer, open_coding_session, PromptApprover, route_tool_output


def _escape(text: str) -> str:
    from ferrule._util.terminal_text import escape_text

    return escape_text(text)


def _shorten(line: str) -> str:
    line = " ".join(_escape(line).split())
    return line if len(line) <= 60 else f"{line[:59]}…"
