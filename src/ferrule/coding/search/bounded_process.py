"""Runs a helper program of a file tool, such as ripgrep: by argv, without input, its output read line by line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.sandbox.shell.settings import clean_environment

__all__ = ["HELPER_VARIABLES", "HelperEnd", "run_helper"]

HELPER_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_*", "XDG_CONFIG_HOME", "TMPDIR", "SYSTEMROOT")
"""What a helper gets of the environment: nothing that configures it or holds a secret."""
_CHUNK: Final = 1024 * 1024
_LONGEST_LINE: Final = 8 * 1024 * 1024
_MOST_ERRORS: Final = 64 * 1024
_MOST_MEMORY: Final = 1024 * 1024 * 1024
"""Bytes that a helper may allocate; a mapped file doesn't count."""


@dataclass(frozen=True, slots=True)
class HelperEnd:
    """How a helper ended.

    `status` is None if it was stopped: because its time was over, or on request. It is negative if a signal ended it,
    as where it has no more memory.
    """

    status: int | None
    errors: str
    is_out_of_time: bool = False


async def run_helper(
    argv: Sequence[str],
    folder: Path | str,
    take: Callable[[bytes], bool],
    *,
    seconds: float,
    separator: bytes = b"\n",
    environment: dict[str, str] | None = None,
) -> HelperEnd:
    """Run a program and pass each line of its output, without its end, to `take`, which returns whether to go on.

    `seconds` is its time. Of a line over 8 MB only the start is passed on. The program and what it
    started are killed when it is cancelled, out of time or no longer needed; on Linux its memory is limited. Raises
    `OSError` if it can't be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        env=clean_environment(os.environ, passed=HELPER_VARIABLES) | (environment or {}),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_CHUNK,
    )
    _limit_memory(process.pid)
    assert process.stdout is not None
    assert process.stderr is not None
    ends = time.monotonic() + seconds
    errors = asyncio.create_task(_read_errors(process.stderr))
    is_complete = is_out_of_time = False
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + seconds):
            is_complete = await _read_lines(process.stdout, take, separator, ends)
            if is_complete:
                await process.wait()
        is_out_of_time = not is_complete and time.monotonic() >= ends
    except TimeoutError:
        is_complete, is_out_of_time = False, True
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        text = await errors
    return HelperEnd(process.returncode if is_complete else None, text, is_out_of_time)


def _limit_memory(pid: int) -> None:
    if sys.platform == "linux":
        import resource

        with suppress(OSError):  # it has ended
            resource.prlimit(pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))


async def _read_lines(
    stream: asyncio.StreamReader, take: Callable[[bytes], bool], separator: bytes, ends: float
) -> bool:
    """Pass on lines until the end; False if `take` had enough or the time was over."""
    rest = bytearray()
    while chunk := await stream.read(_CHUNK):
        first, *more = chunk.split(separator)
        if len(rest) < _LONGEST_LINE:
            rest += first
        for line in more:
            if not take(bytes(rest)):
                return False
            rest = bytearray(line)
        if time.monotonic() >= ends:
            return False
    return not rest or take(bytes(rest))


async def _read_errors(stream: asyncio.StreamReader) -> str:
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[:_MOST_ERRORS]
    return kept.decode("utf-8", "replace").strip()
