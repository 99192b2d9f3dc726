"""Serving tools until the client leaves, or Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ferrule.cli.guard import complain
from ferrule.cli.offer import offered
from ferrule.cli.permission import Nobody, Terms
from ferrule.errors import SettingsError
from ferrule.mcp.serving import serve
from ferrule.mcp.standard import stdout_to_stderr

_OWN = ("127.0.0.1", "::1", "localhost")


def serve_tools(folders: Sequence[Path], http: str | None, terms: Terms, yes: bool) -> None:
    """Serve the tools of the folders. Raises `SettingsError` for an address that can't be read, and `OSError`."""
    host, port = ("", 0) if http is None else _address(http)
    with stdout_to_stderr() if http is None else nullcontext():
        registry = offered(folders)
    # On stdin there is the client, so nobody can be asked there.
    approver = Nobody() if http is None and not yes else terms.approver
    if http is not None and host not in _OWN:
        complain(f"whoever can reach {host} can call these tools: there is no authentication")
    asyncio.run(
        serve(
            registry,
            policy=terms.policy,
            journal=terms.journal,
            approver=approver,
            transport="stdio" if http is None else "http",
            host=host,
            port=port,
            on_ready=lambda address: print(f"{len(registry)} tools at {address}", file=sys.stderr, flush=True),
        )
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"--http {text}: write it as HOST:PORT, such as 127.0.0.1:8000; port 0 is any free one")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
