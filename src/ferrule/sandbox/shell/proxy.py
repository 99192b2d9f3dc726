"""The only way out of a sandbox with host rules: a proxy that names are checked by, resolved once, and dialled from.

`CONNECT` for everything encrypted, absolute addresses for plain HTTP. It can't see into an encrypted connection: a
host that serves others under its own name (domain fronting) is allowed together with them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ferrule.sandbox.shell.hosts import HostRules, address_of, is_public, normal_host

__all__ = ["FilteringProxy", "Resolve", "proxy_variables"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, as texts."""

_LONGEST_HEAD = 65_536
_MOST_CONNECTIONS = 64
_HEAD_SECONDS = 30.0
_DIAL_SECONDS = 20.0
_PIECE = 65_536
_HOP_HEADERS = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection|keep-alive|host)[ \t]*:.*(?:\r\n|\n)")


class _Refused(Exception):  # noqa: N818 - what happened
    """A request that isn't carried out; a status and a sentence for whoever asked."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def proxy_variables(port: int) -> dict[str, str]:
    """What tells programs of a proxy on a port of the loopback, and that the loopback itself is reached without."""
    address = f"http://127.0.0.1:{port}"
    proxies = {name: address for each in ("http_proxy", "https_proxy", "all_proxy") for name in (each, each.upper())}
    return proxies | dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")


@dataclass(slots=True)
class FilteringProxy:
    """Serves one command. `refused` collects the hosts that it asked for and wasn't given."""

    rules: HostRules
    resolve: Resolve = _resolve
    refused: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _accepting: asyncio.Task[None] | None = None

    def serve(self, listening: socket.socket) -> None:
        """Accept from a listening socket, which is closed by `aclose`."""
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listening))

    async def aclose(self) -> None:
        """End every connection."""
        tasks = [*self._tasks, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                connection, _ = await loop.sock_accept(listening)
                if len(self._tasks) >= _MOST_CONNECTIONS:
                    connection.close()
                    continue
                task = asyncio.create_task(self._serve_one(connection))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _serve_one(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=_LONGEST_HEAD)
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            host, port, forwarded = _target(head)
            far_reader, far_writer = await self._dial(host, port)
        except _Refused as refused:
            text = str(refused).encode()
            lead = (
                f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}"
            )
            writer.write(f"{lead}\r\nConnection: close\r\n\r\n".encode() + text)
            await _finish(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            await _finish(writer)
        else:
            await _join(reader, writer, far_reader, far_writer, forwarded)

    async def _dial(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to an address that was checked, and not to a name that could lead elsewhere a moment later."""
        if not self.rules.allow(host, port):
            self.refused.append(f"{host}:{port}")
            raise _Refused("403 Forbidden", f"{host}:{port} isn't among the hosts that this sandbox may reach\n")
        if address_of(host) is not None:
            addresses: Sequence[str] = [host]
        else:
            try:
                found = await self.resolve(host, port)
            except OSError as error:
                raise _Refused("502 Bad Gateway", f"{host} can't be resolved: {error.strerror}\n") from error
            addresses = [each for each in found if is_public(ipaddress.ip_address(each.partition("%")[0]))]
            if not addresses:
                self.refused.append(f"{host}:{port}")
                raise _Refused("403 Forbidden", f"{host} leads to no public address, so it isn't reached by name\n")
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await asyncio.open_connection(address, port, limit=_PIECE)
        raise _Refused("502 Bad Gateway", f"{host}:{port} can't be reached\n")


def _target(head: bytes) -> tuple[str, int, bytes | None]:
    """Host and port that a request is for, and what is to be sent on to it; None for a tunnel."""
    line, _, headers = head.partition(b"\r\n")
    parts = line.decode("ascii", "replace").split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Refused("400 Bad Request", "not a request to a proxy\n")
    method, target, _version = parts
    is_tunnel = method == "CONNECT"
    try:
        split = urlsplit(f"//{target}" if is_tunnel else target)
        name, port = split.hostname, split.port
    except ValueError as error:
        raise _Refused("400 Bad Request", f"not an address: {error}\n") from error
    host = normal_host(name) if name and "\ufffd" not in target and "%" not in name else None
    is_odd = is_tunnel and (port is None or split.path or split.query)
    if host is None or "@" in split.netloc or is_odd or (not is_tunnel and split.scheme != "http"):
        raise _Refused("400 Bad Request", "not the address of a host: write CONNECT host:port, or http://host/path\n")
    if is_tunnel:
        return host, port or 443, None
    shown = split.netloc.encode()
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    # The name that was checked is the one that the far server is told, and it answers one request.
    kept = _HOP_HEADERS.sub(b"", headers)
    return host, port or 80, b"%b %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n%b" % (
        method.encode(), path.encode(), shown, kept
    )  # fmt: skip


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    forwarded: bytes | None,
) -> None:
    """Carry both directions until both have ended."""
    try:
        if forwarded is None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(forwarded)
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(reader, far_writer))
            group.create_task(_carry(far_reader, writer))
    finally:
        await _finish(writer)
        await _finish(far_writer)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _finish(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, asyncio.CancelledError):
        await writer.wait_closed()
