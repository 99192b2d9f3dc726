"""Servers that the clients are tried on: the SDK's, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "cli", HERE.parent / "servers"):
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def addresses() -> Iterator[dict[str, str]]:
    """The addresses of two servers of the SDK: one of the newest protocol, one of that before."""
    command = [sys.executable, str(HERE / "sdk_server.py"), "--http"]
    started = {
        "newest": subprocess.Popen(command, stdout=subprocess.PIPE, text=True),
        "legacy": subprocess.Popen([*command, "--legacy"], stdout=subprocess.PIPE, text=True),
    }
    try:
        yield {name: process.stdout.readline().strip() for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.wait()
            process.stdout.close()


@pytest.fixture(params=["newest", "legacy"])
def address(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    """The address of each of them."""
    return addresses[request.param]


@pytest.fixture
def strange(tmp_path: Path) -> Callable[[str], list[str]]:
    """The command of a server that misbehaves in a way; the ids of its processes stand in `tmp_path / "pids"`."""
    return lambda way: [sys.executable, "-S", str(HERE / "strange_server.py"), way, str(tmp_path / "pids")]


@pytest.fixture
def serving() -> Callable[..., Any]:
    """Our server over HTTP in this process: `async with serving(registry, **options) as address`."""
    import asyncio

    from ferrule.mcp import serve

    @asynccontextmanager
    async def served(registry: Any, **options: Any) -> AsyncIterator[str]:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(serve(registry, transport="http", on_ready=ready.set_result, **options))
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        try:
            yield ready.result()
        finally:
            task.cancel()
            await asyncio.wait({task})

    return served
