"""Hosts by rule: what a rule means, and a proxy that can't be talked round."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.host_rules import HostRules, is_public, normalize_host
from ferrule.sandbox.shell.proxy import FilteringProxy
from tables import each_case

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")


@each_case(
    ("rule", "host", "port", "is_allowed"),
    [
        ("packages.example", "packages.example", 443, True),
        ("packages.example", "Packages.Example.", 443, True),
        ("PACKAGES.example.", "packages.example", 80, True),
        ("packages.example", "packages.example", 22, False),
        ("packages.example:22", "packages.example", 22, True),
        ("packages.example:22", "packages.example", 443, False),
        ("packages.example", "evil-packages.example", 443, False),
        ("packages.example", "a.packages.example", 443, False),
        ("packages.example", "packages.example.evil.com", 443, False),
        ("*.example.org", "a.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("xn--bcher-kva.example", "BÜCHER.example", 443, True),
        ("192.0.2.7", "192.0.2.7", 443, True),
        ("192.0.2.7", "0xc0000207", 443, True),
        ("[::1]:8080", "[0:0::1]", 8080, True),
        ("127.0.0.1:8080", "[::ffff:127.0.0.1]", 8080, True),
        ("*.example.org", "127.0.0.1", 443, False),
    ],
)
def test_rules(rule: str, host: str, port: int, is_allowed: bool) -> None:
    named = normalize_host(host)
    assert named is not None
    assert HostRules([rule]).allow(named, port) is is_allowed


@each_case(
    "rule", ["", "*", "*.", "*.org", "*.1.2.3.4", "a b", "http://a.org", "a.org/x", "a@b.org", "a.org:0", "a.*.org"]
)
def test_rules_that_are_none(rule: str) -> None:
    with pytest.raises(SandboxInputError, match="rule"):
        HostRules([rule])


@each_case(
    "text",
    ["", ".", "a..b", "a b.org", "a@b.org", "-a.org", "a.org\0", "a.123", "x.0x7f", "a" * 64 + ".org", "a%2eorg"],
)
def test_hosts_that_are_none(text: str) -> None:
    assert normalize_host(text) is None


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "[::1]", "::ffff:7f00:1"]
)
def test_addresses_in_every_notation(text: str) -> None:
    host = normalize_host(text)
    assert host is not None
    assert ipaddress.ip_address(host).is_loopback


@each_case(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200"),
        *(
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
        ),
        *("::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:0:0:0:0:f5ff:fffe"),
    ],
)
def test_addresses_that_no_name_may_lead_to(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


# The first and last address of each block that IANA's special-purpose registries name, as of 2025, but for those whose
# addresses a host of the internet may have.
NOT_OF_THE_INTERNET = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
    *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("255.255.255.255/32", "::/128", "::1/128", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64"),
    *("100:0:0:1::/64", "2001::/32", "2001:1::/32", "2001:2::/48", "2001:3::/32", "2001:4:112::/48"),
    *("2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48"),
    *("3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]


@each_case("block", NOT_OF_THE_INTERNET)
def test_blocks_that_no_name_may_lead_into(block: str) -> None:
    network = ipaddress.ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        assert not is_public(address)
    if network.version == 4:
        for carrier in ("::ffff:0:0", "64:ff9b::", "2002::", "2606:4700::5efe:0:0", "2606:4700::200:5efe:0:0"):
            carried = ipaddress.IPv6Address(int(ipaddress.IPv6Address(carrier)) + int(network[0]))
            assert not is_public(carried), carried


def test_a_host_is_no_longer_than_a_name_may_be() -> None:
    assert normalize_host("a." * 126 + "a") is not None
    assert normalize_host("a." * 127 + "a") is None
    assert normalize_host("[" + "0" * 100_000 + "::1]") is None


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "151.101.0.223", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]
)
def test_addresses_of_the_internet(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@asynccontextmanager
async def make_serve_program(
    rules: Sequence[str], leads_to: Sequence[str]
) -> AsyncIterator[tuple[FilteringProxy, int, list[str]]]:
    """A proxy in front of a resolver that says what it was told to; and the names that it was asked for."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        if not leads_to:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return leads_to

    proxy = FilteringProxy(HostRules(rules), resolve)
    listening = socket.create_server(("127.0.0.1", 0))
    proxy.serve(listening)
    try:
        yield proxy, listening.getsockname()[1], asked
    finally:
        await proxy.aclose()


async def answer(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def origin(connected: list[bytes]) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(await reader.read(65536))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def test_a_tunnel_to_a_listed_address() -> None:
    heard: list[bytes] = []
    async with await origin(heard) as server:
        far = server.sockets[0].getsockname()[1]
        async with make_serve_program([f"127.0.0.1:{far}"], []) as (proxy, port, asked):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"CONNECT 127.0.0.1:{far} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
            writer.write(b"through the tunnel")
            assert (await reader.read()).endswith(b"hello")
            writer.close()
            await writer.wait_closed()
            assert (heard, asked, proxy.refused.hosts) == ([b"through the tunnel"], [], [])


async def test_plain_http_tells_the_far_server_the_name_that_was_checked() -> None:
    heard: list[bytes] = []
    async with await origin(heard) as server:
        far = server.sockets[0].getsockname()[1]
        async with make_serve_program([f"127.0.0.1:{far}"], []) as (_, port, _):
            target = f"http://127.0.0.1:{far}/a?b"
            request = f"GET {target} HTTP/1.1\r\nhost: evil.example\r\nProxy-Authorization: x\r\nA: b\r\n\r\n"
            assert (await answer(port, request.encode())).endswith(b"hello")
    lines = heard[0].decode().split("\r\n")
    assert lines == ["GET /a?b HTTP/1.1", f"Host: 127.0.0.1:{far}", "Connection: close", "A: b", "", ""]


@pytest.mark.parametrize(
    "target",
    [
        "evil.com:443",
        "example.org.evil.com:443",
        "example.org:22",
        "127.0.0.1:443",
        "[::1]:443",
        "2130706433:443",
        "0x7f.1:443",
    ],
)
async def test_what_no_rule_allows_is_refused_and_named(target: str) -> None:
    async with make_serve_program(["example.org"], ["1.1.1.1"]) as (proxy, port, asked):
        assert (await answer(port, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403 ")
        assert len(proxy.refused.hosts) == 1
        assert asked == []


@pytest.mark.parametrize(
    "request_line",
    [
        *(
            "CONNECT example.org HTTP/1.1",
            "CONNECT user@example.org:443 HTTP/1.1",
            "CONNECT example.org:443:80 HTTP/1.1",
        ),
        *(
            "CONNECT example.org:443/x HTTP/1.1",
            "CONNECT example.org%00.evil.com:443 HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
        ),
        *("GET / HTTP/1.1", "GET ftp://example.org/ HTTP/1.1", "GET http://user:p@example.org/ HTTP/1.1", "nonsense"),
        *(
            "GET https://example.org/ HTTP/1.1",
            "CONNECT example.org\\@evil.com:443 HTTP/1.1",
            "CONNECT example.org:99999 HTTP/1.1",
        ),
        *("CONNECT example.org:443 HTTP/2.0", "CONNECT ex\u00e4mple.org:443 HTTP/1.1"),
    ],
)
async def test_requests_that_are_none(request_line: str) -> None:
    async with make_serve_program(["example.org"], ["1.1.1.1"]) as (_, port, asked):
        assert (await answer(port, f"{request_line}\r\n\r\n".encode())).startswith(b"HTTP/1.1 400 ")
        assert asked == []


@pytest.mark.parametrize(
    "leads_to", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1%lo"]
)
async def test_a_name_that_leads_inside_is_refused(leads_to: str) -> None:
    heard: list[bytes] = []
    async with await origin(heard) as server:
        far = server.sockets[0].getsockname()[1]
        async with make_serve_program([f"example.org:{far}"], [leads_to]) as (proxy, port, asked):
            said = await answer(port, f"CONNECT EXAMPLE.org.:{far} HTTP/1.1\r\n\r\n".encode())
            assert said.startswith(b"HTTP/1.1 403 ")
            assert b"no public address" in said
            assert (asked, proxy.refused.hosts, heard) == (["example.org"], [f"example.org:{far}"], [])


async def test_a_name_is_resolved_once_and_what_was_checked_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[str] = []
    connect = asyncio.open_connection

    async def noted(host: str | None = None, *rest: object, **named: object) -> object:
        if host is not None and host != "127.0.0.1":
            dialled.append(host)
            raise OSError("there is no internet in a test")
        return await connect(host, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "open_connection", noted)
    async with make_serve_program(["example.org"], ["10.0.0.1", "1.1.1.1", "192.168.0.1"]) as (_, port, asked):
        assert (await answer(port, b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")
    assert (asked, dialled) == (["example.org"], ["1.1.1.1"])


async def test_a_name_that_is_not_there() -> None:
    async with make_serve_program(["example.org"], []) as (_, port, _):
        assert (await answer(port, b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")


async def test_a_head_without_end_is_dropped() -> None:
    async with make_serve_program(["example.org"], []) as (_, port, _):
        assert await answer(port, b"x" * 200_000 + b"\r\n\r\n") == b""


async def test_of_many_refused_hosts_the_first_are_named_and_the_rest_are_counted() -> None:
    async with make_serve_program(["example.org"], []) as (proxy, port, _):
        for number in (*range(130), 0, 1):
            await answer(port, f"CONNECT {'x' * 63}.{number}.example.com:443 HTTP/1.1\r\n\r\n".encode())
    assert len(proxy.refused.hosts) == 100
    assert proxy.refused.hosts[99] == f"{'x' * 63}.99.example.com:443"
    assert proxy.refused.left_out == 30


@asynccontextmanager
async def stalled() -> AsyncIterator[int]:
    """The port of a server that accepts and then neither reads nor writes."""
    with socket.create_server(("127.0.0.1", 0), backlog=8) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        yield listening.getsockname()[1]


async def filled(writer: asyncio.StreamWriter) -> None:
    """Write until nothing more is taken."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()


@pytest.mark.parametrize("ends", ["neither", "half"])
async def test_a_proxy_ends_although_a_host_has_stopped_reading(ends: str) -> None:
    async with stalled() as far, make_serve_program([f"127.0.0.1:{far}"], []) as (proxy, port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"CONNECT 127.0.0.1:{far} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await filled(writer)
        if ends == "half":
            writer.transport.abort()
            await asyncio.sleep(0.05)
        await asyncio.wait_for(proxy.aclose(), 20)
        assert not proxy._tasks
        writer.transport.abort()


async def test_a_proxy_ends_although_its_client_never_reads() -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

    async with await asyncio.start_server(pour, "127.0.0.1", 0) as server:
        far = server.sockets[0].getsockname()[1]
        async with make_serve_program([f"127.0.0.1:{far}"], []) as (proxy, port, _):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(f"CONNECT 127.0.0.1:{far} HTTP/1.1\r\n\r\n".encode())
                await asyncio.sleep(0.2)
                await asyncio.wait_for(proxy.aclose(), 20)
                assert not proxy._tasks


async def test_a_proxy_ends_although_a_name_is_never_resolved() -> None:
    waiting = asyncio.Event()

    async def resolve(host: str, port: int) -> Sequence[str]:
        waiting.set()
        await asyncio.Event().wait()
        return ()

    proxy = FilteringProxy(HostRules(["example.org"]), resolve)
    listening = socket.create_server(("127.0.0.1", 0))
    proxy.serve(listening)
    _, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
    writer.write(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
    await waiting.wait()
    await asyncio.wait_for(proxy.aclose(), 20)
    writer.transport.abort()


async def test_a_client_learns_of_a_host_that_broke_off() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        far = server.sockets[0].getsockname()[1]
        async with make_serve_program([f"127.0.0.1:{far}"], []) as (_, port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"CONNECT 127.0.0.1:{far} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"more than it reads")
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.transport.abort()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


FETCH = "{python} -I -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/x').read())\""
# The word is in two pieces: from Python 3.13 on, a traceback shows the lines of a program that was given with -c.
DIRECT = "{python} -I -S -c \"import socket; socket.create_connection(('127.0.0.1',{port}),3); print('rea' 'ched')\""


async def test_a_command_reaches_what_is_listed_through_the_proxy_alone(workspace: Path) -> None:
    heard: list[bytes] = []
    python = os.path.realpath(sys.executable)
    async with await origin(heard) as server:
        far = server.sockets[0].getsockname()[1]
        fetch = FETCH.format(python=python, port=far)
        async with ShellSandbox(workspace, network=[f"127.0.0.1:{far}"], readable=[sys.base_prefix]) as shell:
            # A program asks the proxy for loopback too only where it is told to.
            done = await shell.run(f"no_proxy= NO_PROXY= {fetch}")
            assert "hello" in done.output
            assert "reached" not in (await shell.run(DIRECT.format(python=python, port=far))).output
        async with ShellSandbox(workspace, network=["example.org"], readable=[sys.base_prefix]) as shell:
            done = await shell.run(f"no_proxy= NO_PROXY= {fetch}; exit 4")
            assert "403" in done.output
            assert (done.refused, done.exit_code) == ((f"127.0.0.1:{far}",), 4)
    assert len(heard) == 1


async def test_a_command_ends_in_time_although_a_host_has_stopped_reading(workspace: Path) -> None:
    send = (
        "import os, socket, urllib.parse; way = urllib.parse.urlsplit(os.environ['http_proxy']); "
        "s = socket.create_connection((way.hostname, way.port)); "
        "s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n'); s.recv(99); "
        "s.sendall(bytes(1 << 28))"
    )
    python = os.path.realpath(sys.executable)
    async with (
        stalled() as far,
        ShellSandbox(workspace, network=[f"127.0.0.1:{far}"], readable=[sys.base_prefix], grace=0.2) as shell,
    ):
        run = shell.run(f'{python} -I -c "{send.format(port=far)}"', timeout=2)
        done = await asyncio.wait_for(run, 60)
        assert done.ended == "timeout"


async def test_nothing_of_ours_is_left_in_a_sandbox_with_a_proxy(workspace: Path) -> None:
    async with ShellSandbox(workspace, network=["example.org"]) as shell:
        done = await shell.run("ls -l /proc/self/fd; for each in /proc/[0-9]*; do cat $each/comm; done; echo end")
        assert "socket:" not in done.output
        assert "python" not in done.output
        assert done.output.endswith("end\n")


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_the_whole_network_where_the_user_says_so(workspace: Path, tier: str) -> None:
    async with await origin([]) as server:
        command = DIRECT.format(python=os.path.realpath(sys.executable), port=server.sockets[0].getsockname()[1])
        async with ShellSandbox(workspace, network=True, tier=tier, readable=[sys.base_prefix]) as shell:
            assert "reached" in (await shell.run(command)).output


async def test_loopback_within_a_command(workspace: Path) -> None:
    command = (
        "{python} -I -S -c \"import socket; s=socket.create_server(('127.0.0.1',0)); "
        "socket.create_connection(s.getsockname(),3); print('reached')\""
    )
    async with ShellSandbox(workspace, readable=[sys.base_prefix]) as shell:
        assert (await shell.run(command.format(python=os.path.realpath(sys.executable)))).output == "reached\n"


async def test_the_container_tier_refuses_rules_for_hosts(workspace: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="hosts"):
        await ShellSandbox(workspace, network=["example.org"], tier="container").run("true")
