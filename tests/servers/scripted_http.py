"""An HTTP server on loopback that gives one written reply after another, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Self

Ending = Literal["whole", "dropped", "closed", "stalled"]


@dataclass(frozen=True)
class Reply:
    """What a request is answered with: `pieces` are written one at a time.

    It ends `whole`; `dropped`, in the middle of the encoding; `closed`, as if that had been all of it; or `stalled`,
    where nothing more comes until the other side goes away.
    """

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    ending: Ending = "whole"


def json_reply(status: int, body: Any, **headers: str) -> Reply:
    """A reply of JSON, such as errors are. A header's name has `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps(body).encode()], status, {"content-type": "application/json", **named})


def cut(data: bytes, *places: int) -> list[bytes]:
    """The bytes, cut at these places."""
    bounds = [0, *places, len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


@dataclass(frozen=True)
class Request:
    """What came: `body` is decoded JSON."""

    path: str
    headers: Mapping[str, str]
    body: Any


class ScriptedServer:
    """`async with ScriptedServer(judge, reply, …) as server`; `judge` may answer a request in the script's place."""

    def __init__(self, judge: Callable[[Request], Reply | None], *script: Reply) -> None:
        self._judge = judge
        self.script = list(script)
        self.requests: list[Request] = []
        self._unfinished = 0
        self._idle = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=2048)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no answer is being written: until those who are stalled have gone away."""
        await self._idle.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether another may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(head[0].split()[1], headers, json.loads(data or b"null"))
        reply = self._judge(request)
        if reply is None:
            self.requests.append(request)
            assert self.script, "the script has ended, and another request came"
            reply = self.script.pop(0)
        self._unfinished += 1
        self._idle.clear()
        try:
            return await _write(reply, reader, writer)
        finally:
            self._unfinished -= 1
            if not self._unfinished:
                self._idle.set()


async def _write(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    is_chunked = reply.ending != "closed"
    length = {"transfer-encoding": "chunked"} if is_chunked else {"connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**reply.headers, **length}.items())
    writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode("latin-1"))
    for piece in filter(None, reply.pieces):
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece)
        # One round of the loop each, so that the pieces arrive apart as far as that can be arranged.
        await writer.drain()
        await asyncio.sleep(0)
    if reply.ending == "whole":
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
    if reply.ending == "stalled":
        await reader.read()
    return False
