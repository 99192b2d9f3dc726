"""Starts a server by a command, and exchanges messages with it over its standard input and output.

The SDK's own client ends at a byte that isn't UTF-8, keeps a line of any length, copies what it has of a line for each
piece, and parses on the event loop. Here a line is bounded, and a long one is parsed in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from ferrule.mcp.incoming import ENDS, MOST_BYTES, TOO_LONG, find_excess, parse_message, refuse_answer

if TYPE_CHECKING:
    from anyio.abc import ObjectReceiveStream, ObjectSendStream, Process
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_PIECE: Final = 65_536
_LONG: Final = 100_000
"""Characters from which on a line is parsed in a thread."""
_MOST_UNASKED: Final = 100
"""The most messages that answer nothing of one piece; with more, answers come first, and the rest is dropped."""
_BATCH: Final = 256
"""Lines that are parsed before other tasks may run."""
_OBJECT: Final = re.compile(r"\s*\{")
_CHANGED: Final = "notifications/tools/list_changed"
_log = logging.getLogger("ferrule.mcp")
_FLUSH_SECONDS: Final = 0.5
_END_SECONDS: Final = 2.0
"""How long a server may take to end after its input was closed, after SIGTERM, and after SIGKILL."""
_POLL_SECONDS: Final = 0.01


@asynccontextmanager
async def open_command(
    command: Sequence[str], env: Mapping[str, str] | None, cwd: str | Path | None, stderr: int
) -> AsyncIterator[TransportStreams]:
    """Start a server, and open streams of messages to and from it; at the end it is stopped, if necessary killed.

    `env` is added to the few variables that it inherits, and `stderr` is what it gets as its standard error. Raises
    `OSError` if it can't be started.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    process = await anyio.open_process(
        list(command),
        env=get_default_environment() | dict(env or {}),
        cwd=cwd,
        stderr=cast("TextIO", stderr),
        start_new_session=True,
    )
    to_session, from_server = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    from_session, to_server = anyio.create_memory_object_stream["SessionMessage"](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, process, to_session)
        flushed = anyio.Event()
        tasks.start_soon(_send, process, to_server, to_session, flushed)
        try:
            yield from_server, from_session
        finally:
            with anyio.CancelScope(shield=True):
                # What the server still writes is discarded from here on, so that it can read and end.
                from_server.close()
                from_session.close()
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await flushed.wait()
                await _stop(process)
            tasks.cancel_scope.cancel()


async def _receive(process: Process, to_session: ObjectSendStream[SessionMessage | Exception]) -> None:
    """Pass on the messages of a server until it ends; after the session's end, only read what it writes."""
    from anyio import BrokenResourceError, ClosedResourceError, EndOfStream

    assert process.stdout is not None
    lines, is_open, is_flooded = _Lines(), True, False
    async with to_session:
        with suppress(EndOfStream, ClosedResourceError, BrokenResourceError, ConnectionError):
            while True:
                piece = await process.stdout.receive(_PIECE)
                messages, dropped = await _parse_all(lines.feed(piece) if is_open else ())
                if dropped and not is_flooded:
                    is_flooded = True
                    _log.warning(
                        "the MCP server of the process %d sends too many messages; some are dropped", process.pid
                    )
                for message in messages:
                    try:
                        await to_session.send(message)
                    except (ClosedResourceError, BrokenResourceError):
                        is_open = False
                        break


async def _send(
    process: Process,
    to_server: ObjectReceiveStream[SessionMessage],
    to_session: ObjectSendStream[SessionMessage | Exception],
    flushed: Any,
) -> None:
    """Write the session's messages. If that isn't possible, the session sees the server's end."""
    from anyio import BrokenResourceError, ClosedResourceError

    assert process.stdin is not None
    try:
        async with to_server:
            async for sent in to_server:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{line}\n".encode())
    except (ClosedResourceError, BrokenResourceError, OSError):
        await to_session.aclose()
    finally:
        flushed.set()


@dataclass(frozen=True, slots=True)
class _LongLine:
    """The ends of a line that has more than `MOST_BYTES`."""

    first: bytes
    last: bytes


class _Lines:
    """Splits what a server writes into lines, without copying what it has for each piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._first = b""
        """The beginning of a line that is too long."""

    def feed(self, data: bytes) -> Iterator[str | _LongLine]:
        """Yield the lines that a piece completes. Bytes that aren't UTF-8 are replaced."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._add(part)
            yield self._take()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._pieces.append(part)
        self._size += len(part)
        if self._size <= MOST_BYTES:
            return
        held = b"".join(self._pieces)
        self._first = self._first or held[:ENDS]
        self._pieces = [held[-ENDS:]]

    def _take(self) -> str | _LongLine:
        held, first = b"".join(self._pieces), self._first
        self._pieces, self._size, self._first = [], 0, b""
        return _LongLine(first, held[-ENDS:]) if first else held.decode(errors="replace")


async def _parse_all(lines: Iterable[str | _LongLine]) -> tuple[list[SessionMessage | Exception], int]:
    """Parse the messages of one piece; returns them, and how many were dropped because they are too many."""
    from anyio import lowlevel

    kept: list[SessionMessage | Exception] = []
    unasked = dropped = 0
    is_changed = False
    for number, line in enumerate(lines):
        if number % _BATCH == _BATCH - 1:
            await lowlevel.checkpoint()
        if unasked >= _MOST_UNASKED and isinstance(line, str) and not _OBJECT.match(line):
            continue  # no message
        message = await _parse(line)
        if _is_answer(message):
            kept.append(message)
        elif getattr(getattr(message, "message", None), "method", None) == _CHANGED:
            # The tools are listed after the last of them, however many there are.
            kept += [] if is_changed else [message]
            is_changed = True
        elif unasked < _MOST_UNASKED:
            kept.append(message)
            unasked += 1
        elif not isinstance(message, Exception):
            dropped += 1
    if dropped:
        kept.sort(key=lambda one: not _is_answer(one))
    return kept, dropped


def _is_answer(message: SessionMessage | Exception) -> bool:
    return not isinstance(message, Exception) and not hasattr(message.message, "method")


async def _parse(line: str | _LongLine) -> SessionMessage | Exception:
    if isinstance(line, _LongLine):
        first, last = (end.decode(errors="replace") for end in (line.first, line.last))
        return refuse_answer(first, last, TOO_LONG) or ValueError(f"a message isn't read: {TOO_LONG}")
    if len(line) < _LONG:
        return parse_message(line)
    return await asyncio.to_thread(_parse_long, line)


def _parse_long(line: str) -> SessionMessage | Exception:
    excess = find_excess(line)
    if not excess:
        return parse_message(line)
    return refuse_answer(line[:ENDS], line[-ENDS:], excess) or ValueError(f"a message isn't read: {excess}")


async def _stop(process: Process) -> None:
    """Close a server's input; kill it and its children if it doesn't end."""
    from mcp.os.posix.utilities import terminate_posix_process_tree

    assert process.stdin is not None
    await process.stdin.aclose()
    if not await _has_ended(process):
        await terminate_posix_process_tree(process, _END_SECONDS)
    if await _has_ended(process):
        await process.aclose()
    else:
        _log.warning("the process %d of an MCP server can't be killed", process.pid)


async def _has_ended(process: Process) -> bool:
    """Whether a process ends soon. Waiting for it would also wait for children that hold its pipes."""
    from anyio import move_on_after, sleep

    with move_on_after(_END_SECONDS):
        while process.returncode is None:
            await sleep(_POLL_SECONDS)
    return process.returncode is not None
