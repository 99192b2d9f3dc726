"""The parent's end of a child's channel: sends and receives frames, and identifies senders. On the background loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any, Final

from ferrule.sandbox.python.wire.frames import HEADER, WireError, parse_lengths, parse_tree

_PIECE: Final = 256 * 1024
_CREDENTIALS: Final = struct.Struct("3i")


class ChildChannel:
    """A socket to a child. Input from it is bounded and untrusted."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        # The kernel attaches the sender's pid to each message; macOS doesn't.
        self._names_senders = hasattr(socket, "SO_PASSCRED")
        if self._names_senders:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._end = end
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        """Send bytes. A closed end is only noticed by reading."""
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._loop.sock_sendall(self._end, data)

    async def receive(self) -> tuple[bytes, bytes] | None:
        """Receive the two parts of a frame, None at the end. Raises `WireError` if it is too long."""
        header = await self._read_exactly(HEADER.size)
        if header is None:
            return None
        size, blobs = parse_lengths(header)
        body = await self._read_exactly(size + blobs)
        return None if body is None else (body[:size], body[size:])

    async def _read_exactly(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = await self._loop.sock_recv(self._end, min(size, _PIECE))
            except ConnectionResetError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    async def receive_greeting(self) -> tuple[Any, int] | None:
        """Receive a short frame's tree and its sender's pid, reported by the kernel; None at the end.

        The pid is 0 if the kernel doesn't report it. Raises `WireError` for anything else.
        """
        await self._wait_until_readable()
        if not self._names_senders:
            return self._decode_unsigned(self._end.recv(4096))
        data, extra, _, _ = self._end.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
        pids = [_CREDENTIALS.unpack(found)[0] for _, kind, found in extra if kind == socket.SCM_CREDENTIALS]
        if not data:
            return None
        if len(data) < HEADER.size or len(pids) != 1 or pids[0] <= 0:
            raise WireError("not a greeting")
        return parse_tree(data[HEADER.size :]), pids[0]

    @staticmethod
    def _decode_unsigned(data: bytes) -> tuple[Any, int] | None:
        if data and len(data) < HEADER.size:
            raise WireError("not a greeting")
        return (parse_tree(data[HEADER.size :]), 0) if data else None

    async def _wait_until_readable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._end, _settle, ready)
        try:
            await ready
        finally:
            self._loop.remove_reader(self._end)

    def drain(self) -> None:
        """Discard what a dead process sent."""
        with suppress(BlockingIOError, ConnectionResetError):
            while self._end.recv(_PIECE):
                pass

    def close(self) -> None:
        """Close this end. Can be called again."""
        self._end.close()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
