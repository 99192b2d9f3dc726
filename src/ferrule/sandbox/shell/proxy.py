"""The only network access of a sandbox with host rules: a proxy that checks a name, resolves it once and connects.

It handles `CONNECT` for encrypted traffic and absolute URLs for plain HTTP. It can't inspect encrypted connections:
allowing a host also allows others that it serves under its name (domain fronting).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ferrule.sandbox.shell.host_rules import HostRules, is_public, normalize_host, parse_address

__all__ = ["FilteringProxy", "RefusedHosts", "Resolve", "make_proxy_variables"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and port to addresses."""

_MAX_HEAD_BYTES = 65_536
_MAX_CONNECTIONS = 64
_HEAD_SECONDS = 30.0
_DIAL_SECONDS = 20.0
_MAX_ADDRESSES = 16
"""Addresses tried per name, each for `_DIAL_SECONDS`."""
_FINISH_SECONDS = 30.0
_MAX_REFUSED = 100
_RESOLVERS = 4
_PAUSE_SECONDS = 0.05
_CHUNK_BYTES = 65_536
_HOP_HEADERS = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection|keep-alive|host)[ \t]*:.*(?:\r\n|\n)")


class _Refused(Exception):  # noqa: N818 - what happened
    """A refused request, with an HTTP status and a sentence for the client."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _look_up(host: str, port: int) -> Sequence[str]:
    return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def make_proxy_variables(port: int | str) -> dict[str, str]:
    """Variables that make programs use a proxy on a loopback port, except for the loopback itself.

    `port` may be a placeholder, where the port isn't known yet.
    """
    address = f"http://127.0.0.1:{port}"
    proxies = {name: address for each in ("http_proxy", "https_proxy", "all_proxy") for name in (each, each.upper())}
    return proxies | dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")


@dataclass(slots=True)
class RefusedHosts:
    """The hosts that were requested and refused: the first hundred, each once, with its port."""

    hosts: list[str] = field(default_factory=list)
    left_out: int = 0
    """How many more requests were refused, for hosts not in `hosts`."""

    def add(self, host: str, port: int) -> None:
        """Add a host, normalized by `normalize_host` (at most 254 characters)."""
        named = f"{host}:{port}"
        if named in self.hosts:
            return
        if len(self.hosts) < _MAX_REFUSED:
            self.hosts.append(named)
        else:
            self.left_out += 1


@dataclass(slots=True)
class FilteringProxy:
    """Serves one command. `refused` collects the hosts that it requested but may not reach."""

    rules: HostRules
    resolve: Resolve | None = None
    """Used instead of the system's resolver."""
    refused: RefusedHosts = field(default_factory=RefusedHosts)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _accepting: asyncio.Task[None] | None = None
    # A separate pool: slow names would use up the threads that other commands wait for.
    _resolvers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_RESOLVERS, "resolver"))

    def serve(self, listening: socket.socket) -> None:
        """Accept from a listening socket, which is closed by `aclose`."""
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listening))

    async def aclose(self) -> None:
        """End every connection at once and drop data in transit."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)
        tasks = [*self._tasks, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets aborted transports close their sockets

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listening)
                except OSError:  # the client has gone already, or this process is out of descriptors
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                if len(self._tasks) >= _MAX_CONNECTIONS:
                    connection.close()
                    continue
                self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        def is_over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            connection.close()  # in case it was cancelled before it started

        task = asyncio.create_task(self._serve_one(connection))
        self._tasks.add(task)
        task.add_done_callback(is_over)

    async def _serve_one(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
        try:
            await self._answer(reader, writer)
        finally:
            # close() would wait until its buffer is sent, which may be never.
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            host, port, forwarded = _parse_request(head)
            far_reader, far_writer = await self._dial(host, port)
        except _Refused as refused:
            text = str(refused).encode()
            lead = (
                f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}"
            )
            writer.write(f"{lead}\r\nConnection: close\r\n\r\n".encode() + text)
            await _finish(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return
        else:
            try:
                await _tunnel(reader, writer, far_reader, far_writer, forwarded)
            finally:
                far_writer.transport.abort()

    async def _dial(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a checked address, not to a name, which could resolve differently a moment later."""
        if not self.rules.allow(host, port):
            self.refused.add(host, port)
            raise _Refused("403 Forbidden", f"{host}:{port} isn't among the hosts that this sandbox may reach\n")
        if parse_address(host) is not None:
            addresses: Sequence[str] = [host]
        else:
            try:
                async with asyncio.timeout(_DIAL_SECONDS):
                    found = await self._resolve(host, port)
            except OSError as error:
                why = error.strerror or "it took too long"
                raise _Refused("502 Bad Gateway", f"{host} can't be resolved: {why}\n") from error
            addresses = [each for each in found if is_public(ipaddress.ip_address(each.partition("%")[0]))]
            if not addresses:
                self.refused.add(host, port)
                raise _Refused("403 Forbidden", f"{host} has no public address, so it can't be reached by name\n")
        for address in addresses[:_MAX_ADDRESSES]:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await asyncio.open_connection(address, port, limit=_CHUNK_BYTES)
        raise _Refused("502 Bad Gateway", f"{host}:{port} can't be reached\n")

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        if self.resolve is not None:
            return await self.resolve(host, port)
        return await asyncio.get_running_loop().run_in_executor(self._resolvers, _look_up, host, port)


def _parse_request(head: bytes) -> tuple[str, int, bytes | None]:
    """Parse a request: its host and port, and the bytes to forward (None for a tunnel)."""
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
    host = normalize_host(name) if name and "\ufffd" not in target and "%" not in name else None
    is_odd = is_tunnel and (port is None or split.path or split.query)
    if host is None or "@" in split.netloc or is_odd or (not is_tunnel and split.scheme != "http"):
        raise _Refused("400 Bad Request", "not the address of a host: write CONNECT host:port, or http://host/path\n")
    if is_tunnel:
        return host, port or 443, None
    shown = split.netloc.encode()
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    # The server gets the name that was checked, and only one request per connection.
    kept = _HOP_HEADERS.sub(b"", headers)
    return host, port or 80, b"%b %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n%b" % (
        method.encode(), path.encode(), shown, kept
    )  # fmt: skip


async def _tunnel(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    forwarded: bytes | None,
) -> None:
    """Copy both directions until both have ended; if one breaks, the other ends as well."""
    if forwarded is None:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    else:
        far_writer.write(forwarded)
    with suppress(OSError):
        await _run_both(_copy_stream(reader, far_writer), _copy_stream(far_reader, writer))
        await _run_both(_finish(writer), _finish(far_writer))


async def _run_both(first: Coroutine[None, None, None], second: Coroutine[None, None, None]) -> None:
    """Run both concurrently. Raises `OSError` as soon as one does, and cancels the other."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(first)
            group.create_task(second)
    except* OSError as errors:
        raise OSError(str(errors)) from None


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _finish(writer: asyncio.StreamWriter) -> None:
    """Flush and close, waiting a while for the other side to read it."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_FINISH_SECONDS):
            await writer.wait_closed()
