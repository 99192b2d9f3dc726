"""Who is asked before a call runs, and the one who sits at a terminal.

What is shown, and how, is in `showing.py`; what an answer does, in `deciding.py`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import sys
import threading
from typing import Protocol, TextIO

from ferrule.execution.decisions import Decision, Request
from ferrule.execution.showing import shown_request, visible

_BY = "terminal"


class Approver(Protocol):
    """Whoever decides on calls that a policy asks about."""

    async def decide(self, request: Request) -> Decision:
        """The decision on one call. It is asked again, `request.problem` saying why, where an edit can't be used."""


class TerminalApprover:
    """Asks a person, one question at a time: yes, no with a reason, edit, always for this session.

    Reads lines from `input` and writes to `output`, by default the program's own. The end of the input is a no.
    """

    def __init__(self, input: TextIO | None = None, output: TextIO | None = None) -> None:  # noqa: A002 - the field's word
        self._input = input
        self._output = output
        self._asking = asyncio.Lock()
        self._reading: concurrent.futures.Future[str] | None = None

    async def decide(self, request: Request) -> Decision:
        """Show the call and wait for an answer that can be read."""
        async with self._asking:
            if self._reading is not None and self._reading.done():
                self._reading = None  # typed in answer to a question that was withdrawn
            self._say(*shown_request(request))
            while True:
                self._say(_choices(request), end=" ")
                line = await self._line()
                if line is None:
                    return Decision.deny("nobody answered", _BY)
                decision = await self._decision(line.strip(), request)
                if decision is not None:
                    return decision

    async def _decision(self, answer: str, request: Request) -> Decision | None:
        word, _, rest = answer.partition(" ")
        match word.casefold():
            case "y" | "yes":
                return Decision.allow(_BY)
            case "n" | "no":
                return Decision.deny(rest.strip(), _BY)
            case "a" | "always" if request.always is not None:
                return Decision.always(_BY)
            case "e" | "edit":
                return await self._edit(rest.strip())
        self._say("please answer with one of the letters")
        return None

    async def _edit(self, typed: str) -> Decision | None:
        if not typed:
            self._say("the arguments as one line of JSON:", end=" ")
            typed = await self._line() or ""
        try:
            arguments = json.loads(typed)
        except ValueError as error:
            self._say(f"not valid JSON: {error}")
            return None
        if not isinstance(arguments, dict):
            self._say("not a JSON object")
            return None
        return Decision.edit(arguments, _BY)

    def _say(self, *lines: str, end: str = "\n") -> None:
        print("\n".join(lines), end=end, file=self._output or sys.stdout, flush=True)

    async def _line(self) -> str | None:
        """The next line; None at the end of the input.

        A read that was cancelled can't be taken back: the next question gets the line that it waits for, and reads
        anew where that read is withdrawn meanwhile.
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
    except (OSError, ValueError):  # the terminal went away, or the stream was closed
        reading.set_result("")


def _choices(request: Request) -> str:
    always = "" if request.always is None else f", [a]lways this session ({visible(request.always)})"
    return f"[y]es, [n]o REASON, [e]dit{always}?"
