"""The servers that hosted models are tried on are in a folder of their own."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "servers"):
    sys.path.insert(0, str(folder))


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address that answers no further connection: as many as may wait there do."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for one in waiting:
            one.close()
