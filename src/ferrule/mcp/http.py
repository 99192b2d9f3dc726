"""An ASGI app on an address, until it is cancelled or the process is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

_PATIENCE = 5
"""Seconds that open requests get to end when the server stops."""


async def serve_http(app: Any, host: str, port: int, path: str, on_ready: Callable[[str], None] | None) -> None:
    """Serve `app`; `on_ready` gets its address once it accepts connections. Raises `OSError` for one that is taken."""
    import uvicorn

    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    with socket.socket(family, kind) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=_PATIENCE
        )
        server = uvicorn.Server(config)
        if on_ready is not None:
            # The socket listens: who connects from now on is served as soon as the app is.
            shown = f"[{host}]" if ":" in host else host
            on_ready(f"http://{shown}:{listening.getsockname()[1]}{path}")
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await asyncio.wait({serving})
        except asyncio.CancelledError:
            server.should_exit = True
            await asyncio.wait({serving}, timeout=2 * _PATIENCE)
            raise
        finally:
            serving.cancel()
        await serving
