"""Approvers, which decide on calls that a policy asks about; one of them asks a person at a terminal.

`authorize.py` applies the decisions.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TextIO

from ferrule._util.terminal_text import escape_line
from ferrule.execution.decisions import ApprovalRequest, Decision

_BY = "terminal"
_PAGE = 40
"""Lines of a call shown at once."""
_WIDTH = 200
"""Characters per line; longer lines are wrapped."""


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


class TerminalApprover:
    """Asks a person, one question at a time: yes, no with a reason, edit, always for this session.

    A long call is shown in full, in pages: the reason for asking with the first one, the next whenever the person asks
    for more. Reads lines from `input` and writes to `output`, by default stdin and stdout. The end of the input means
    no.
    """

    confirms_edits = True

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None) -> None:  # noqa: A002 - the field's word
        self._input = input
        self._output = output
        self._asking = asyncio.Lock()
        self._reading: concurrent.futures.Future[str] | None = None

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Show the call and wait for a valid answer."""
        async with self.take_turn():
            rest = self._show_page(render_call(request))
            self.say(*render_reason(request))
            while True:
                self.say(_render_choices(request, len(rest)), end=" ")
                line = await self.read_line()
                if line is None:
                    return Decision.deny("nobody answered", _BY)
                if rest and line.strip().casefold() in ("m", "more"):
                    rest = self._show_page(rest)
                    continue
                decision = await self._parse_answer(line.strip(), request)
                if decision is not None:
                    return decision

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Wait until no other question is open, and keep others waiting: for another question to the person."""
        async with self._asking:
            if self._reading is not None and self._reading.done():
                self._reading = None  # typed in answer to a question that was withdrawn
            yield

    def _show_page(self, lines: list[str]) -> list[str]:
        """Show the first of these lines and return the others."""
        self.say(*lines[:_PAGE])
        return lines[_PAGE:]

    async def _parse_answer(self, answer: str, request: ApprovalRequest) -> Decision | None:
        word, _, rest = answer.partition(" ")
        match word.casefold():
            case "y" | "yes":
                return Decision.allow(_BY)
            case "n" | "no":
                return Decision.deny(rest.strip(), _BY)
            case "a" | "always" if request.always is not None:
                return Decision.always(_BY)
            case "e" | "edit" if not request.is_running:
                return await self._edit(rest.strip())
        self.say("please answer with one of the letters")
        return None

    async def _edit(self, typed: str) -> Decision | None:
        if not typed:
            self.say("the arguments as one line of JSON:", end=" ")
            typed = await self.read_line() or ""
        try:
            arguments = json.loads(typed)
        except ValueError as error:
            self.say(f"not valid JSON: {escape_line(str(error))}")
            return None
        if not isinstance(arguments, dict):
            self.say("not a JSON object")
            return None
        return Decision.edit(arguments, _BY)

    def say(self, *lines: str, end: str = "\n") -> None:
        """Write lines for the person."""
        print("\n".join(lines), end=end, file=self._output or sys.stdout, flush=True)

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


def render_call(request: ApprovalRequest) -> list[str]:
    """Render a call in full, as lines: its tool, effects, arguments and preview."""
    agent = f", for the sub-agent {request.agent}" if request.agent else ""
    lines = [f"▸ {escape_line(request.tool)} {_describe_state(request)}{escape_line(agent)}"]
    intent = request.intent
    if intent is not None:
        for effect in intent.effects:
            lines.extend(_render_field(f"will {effect.kind}", effect.target))
    if not request.arguments:
        lines.append("  without arguments")
    for name, value in request.arguments.items():
        is_text = isinstance(value, str) and "\n" in value.rstrip("\n")
        lines.extend(_render_field(escape_line(name), value if is_text else json.dumps(value, ensure_ascii=False)))
    if intent is not None and intent.preview:
        lines.extend(_render_block(str(intent.preview)))
    return lines


def _describe_state(request: ApprovalRequest) -> str:
    if request.is_running:
        return "is running, and asks for more"
    if request.is_changed:
        return "asks again, since an earlier call has changed what it would do"
    return "asks to run, edited" if request.is_edited else "asks to run"


def render_reason(request: ApprovalRequest) -> list[str]:
    """Render the reason for asking, and what was wrong with the last edit, as lines."""
    problem = _render_block(f"not accepted: {request.problem}") if request.problem else []
    return [*_render_field("why you are asked", request.reason), *problem]


def _render_field(name: str, text: str) -> list[str]:
    """Render a name and its text on one line, or with a long or multi-line text below the name."""
    line = f"  {name}: {escape_line(text)}"
    return [line] if len(line) <= _WIDTH and "\n" not in text else [f"  {name}:", *_render_block(text)]


def _render_block(text: str) -> list[str]:
    """Render lines behind a bar each, so that none can be mistaken for ours."""
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    pieces = (line[start : start + _WIDTH] for line in lines for start in range(0, max(1, len(line)), _WIDTH))
    return [f"  │ {escape_line(piece)}" for piece in pieces]


def _render_choices(request: ApprovalRequest, lines_left: int) -> str:
    more = f", [m]ore ({lines_left:,} lines not shown yet)" if lines_left else ""
    always = "" if request.always is None else f", [a]lways this session ({escape_line(request.always)})"
    edit = "" if request.is_running else ", [e]dit"
    return f"[y]es, [n]o REASON{edit}{always}{more}?"
