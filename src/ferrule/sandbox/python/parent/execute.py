"""Runs code in one child, in the parent: send the request, enforce the timeout, read the answer, build the result."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from ferrule._util.background import run_in_thread
from ferrule.sandbox.checks import CheckProfile, check
from ferrule.sandbox.python.parent.answer import ChildAnswer, parse_answer
from ferrule.sandbox.python.parent.channel import ChildChannel
from ferrule.sandbox.python.parent.child_process import ChildExit, ChildProcess, ZygoteLost
from ferrule.sandbox.python.parent.output import ChildOutput
from ferrule.sandbox.python.parent.process_handle import read_cpu_seconds, read_peak_memory
from ferrule.sandbox.python.result import ErrorKind, PythonResult, ResourceUsage, RunError, find_refusal
from ferrule.sandbox.python.wire.frames import WireError

_LARGE: Final = 64 * 1024
"""Bytes; a longer answer is decoded in a thread, so as not to block the loop."""
_LOST: Final = "the sandbox's zygote ended while it ran; nothing is wrong with the code: run it again"


async def execute_once(child: ChildProcess, request: bytes, seconds: float) -> PythonResult:
    """Run a request in a waiting child, which is killed afterwards. Raises only `CancelledError`."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    try:
        answer = await read_answer(child.channel, request, seconds)
        wall = clock() - begin
        if isinstance(answer, ChildAnswer):
            # Usage is read from the kernel; don't wait for its memory to be freed.
            usage = ResourceUsage(wall, read_cpu_seconds(child.pid), read_peak_memory(child.pid))
        else:
            ended = await _wait_for_exit(child)
            answer = answer or _make_error(ended)
            usage = (
                ResourceUsage(wall, ended.cpu, ended.peak_memory)
                if isinstance(ended, ChildExit)
                else ResourceUsage(wall, 0.0, 0)
            )
        child.output.drain()
        return build_result(child.output, check_output_limit(child.output) or answer, usage)
    finally:
        child.close()


async def _wait_for_exit(child: ChildProcess) -> ChildExit | ZygoteLost:
    """Wait for the end of a child that gave no answer."""
    try:
        return await child.wait_until_gone()
    except (ZygoteLost, TimeoutError):
        return ZygoteLost()


async def read_answer(
    channel: ChildChannel, request: bytes, seconds: float, received: Callable[[], None] = lambda: None
) -> ChildAnswer | RunError | None:
    """Send the request and read the answer: parsed, an error if that fails, or None if the channel ended first.

    `received` is called when the answer has arrived, before it is decoded.
    """
    try:
        async with asyncio.timeout(seconds):
            await channel.send(request)
            parts = await channel.receive()
            received()
    except TimeoutError:
        return RunError("timeout", f"it took longer than {seconds:g} s and was ended")
    except WireError as error:
        return RunError("protocol", f"what came back was no answer: {error}")
    if parts is None:
        return None
    try:
        return await run_in_thread(parse_answer, *parts) if _takes_long(*parts) else parse_answer(*parts)
    except WireError as error:
        return RunError("protocol", f"what came back was no answer: {error}")


def _takes_long(head: bytes, data: bytes) -> bool:
    """Would decoding it block the loop for long?"""
    return len(head) + len(data) > _LARGE or (b'"array"' in head and "numpy" not in sys.modules)


def build_result(output: ChildOutput, answer: ChildAnswer | RunError, usage: ResourceUsage) -> PythonResult:
    """Build the result from the answer and the captured output."""
    stdout, stderr = output.take()
    if isinstance(answer, RunError):
        return PythonResult(stdout=stdout, stderr=stderr, error=answer, usage=usage)
    return PythonResult(
        value=answer.value,
        stdout=stdout,
        stderr=stderr,
        files=answer.files,
        images=answer.images,
        error=answer.error,
        usage=usage,
        omitted=answer.omitted,
    )


def check_output_limit(output: ChildOutput) -> RunError | None:
    """Return the error of a run that wrote too much, or None."""
    if not output.is_over:
        return None
    return RunError("output", f"it wrote more than {output.limit} bytes and was ended; what came before is kept")


def _make_error(ended: ChildExit | ZygoteLost) -> RunError:
    return RunError("lost", _LOST) if isinstance(ended, ZygoteLost) else RunError(*describe_exit(ended.status))


def describe_exit(status: int) -> tuple[ErrorKind, str]:
    """Return the kind and message for a process that ended without an answer."""
    if status >= 0:
        return "killed", f"it ended its own process with status {status} before it gave an answer"
    name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
    why = _SIGNALS.get(-status, "a crash in native code, or memory that ran out there")
    return "killed", f"its process was ended by {name}: {why}"


_SIGNALS: Final[dict[int, str]] = {
    signal.SIGSYS: "it made a system call that the sandbox forbids",
    signal.SIGXCPU: "it used up its processor time",
    signal.SIGKILL: "it used up its processor time, or the machine's memory ran out",
    signal.SIGXFSZ: "it wrote a file that is too large",
    signal.SIGTERM: "a process sent it that signal, most likely itself",
}


_MAX_THREADS: Final = 32


async def run_with_checks(
    code: str, profile: CheckProfile, seconds: float, run: Callable[[], Awaitable[PythonResult]]
) -> PythonResult:
    """Await `run` and add the findings of the checks; under `strict` the code runs only after its check."""
    findings = asyncio.ensure_future(
        run_in_thread(partial(check, code, profile=profile, seconds=seconds), threads=_get_threads())
    )
    try:
        if profile == "strict":
            refused = find_refusal(await findings)
            if refused is not None:
                return refused
        done = await run()
        return replace(done, findings=await findings)
    finally:
        findings.cancel()


@lru_cache(maxsize=1)
def _get_threads() -> ThreadPoolExecutor:
    """Return the threads of the checks, separate so that long checks don't delay reading answers."""
    return ThreadPoolExecutor(_MAX_THREADS, "ferrule-checks")


# Threads don't survive a fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_get_threads.cache_clear)
