"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def written(path: Path, data: bytes) -> None:
    """Write `path` under another name first, so that an interruption leaves what was there. Raises `OSError`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
