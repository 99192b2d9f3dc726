"""One run with one child, in the parent: send the code, watch the clock, read the answer, and say what happened."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Final

from ferrule.sandbox.loops import beside
from ferrule.sandbox.python.accounting import cpu_seconds, peak_memory
from ferrule.sandbox.python.answers import Answer, answer_of
from ferrule.sandbox.python.channel import Channel
from ferrule.sandbox.python.output import Output
from ferrule.sandbox.python.process import Child, Ended, Lost
from ferrule.sandbox.python.run import ErrorKind, Run, RunError, Usage
from ferrule.sandbox.python.wire import WireError

_LARGE: Final = 64 * 1024
"""Bytes of an answer that is read in a thread, so that the loop goes on meanwhile."""
_LOST: Final = "the sandbox's zygote ended while it ran; nothing is wrong with the code: run it again"


async def run_once(child: Child, request: bytes, seconds: float) -> Run:
    """Run a request in a child that waits for it, and is killed afterwards. Raises nothing but cancellation."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    try:
        answer = await read_answer(child.channel, request, seconds)
        wall = clock() - begin
        if isinstance(answer, Answer):
            # It waits to be killed; what it took is the kernel's word, and its last page needs nobody's patience.
            usage = Usage(wall, cpu_seconds(child.pid), peak_memory(child.pid))
        else:
            ended = await _ending(child)
            answer = answer or _error_of(ended)
            usage = Usage(wall, ended.cpu, ended.peak_memory) if isinstance(ended, Ended) else Usage(wall, 0.0, 0)
        child.output.drain()
        return run_of(child.output, overflow(child.output) or answer, usage)
    finally:
        child.close()


async def _ending(child: Child) -> Ended | Lost:
    """How a child ended that gave no answer, once it is gone."""
    try:
        return await child.gone()
    except (Lost, TimeoutError):
        return Lost()


async def read_answer(channel: Channel, request: bytes, seconds: float) -> Answer | RunError | None:
    """The child's answer, what the parent made of it, or None where the channel ended without one."""
    try:
        async with asyncio.timeout(seconds):
            await channel.send(request)
            parts = await channel.receive()
    except TimeoutError:
        return RunError("timeout", f"it took longer than {seconds:g} s and was ended")
    except WireError as error:
        return RunError("protocol", f"what came back was no answer: {error}")
    if parts is None:
        return None
    try:
        return await beside(answer_of, *parts) if _takes_long(*parts) else answer_of(*parts)
    except WireError as error:
        return RunError("protocol", f"what came back was no answer: {error}")


def _takes_long(head: bytes, data: bytes) -> bool:
    """Is reading it work that the loop should not wait for?"""
    return len(head) + len(data) > _LARGE or (b'"array"' in head and "numpy" not in sys.modules)


def run_of(output: Output, answer: Answer | RunError, usage: Usage) -> Run:
    """The run, with what it wrote."""
    stdout, stderr = output.take()
    if isinstance(answer, RunError):
        return Run(stdout=stdout, stderr=stderr, error=answer, usage=usage)
    return Run(
        value=answer.value,
        stdout=stdout,
        stderr=stderr,
        files=answer.files,
        images=answer.images,
        error=answer.error,
        usage=usage,
        omitted=answer.omitted,
    )


def overflow(output: Output) -> RunError | None:
    """What there is to say of a run that wrote too much."""
    if not output.is_over:
        return None
    return RunError("output", f"it wrote more than {output.limit} bytes and was ended; what came before is kept")


def _error_of(ended: Ended | Lost) -> RunError:
    return RunError("lost", _LOST) if isinstance(ended, Lost) else RunError(*ending(ended.status))


def ending(status: int) -> tuple[ErrorKind, str]:
    """The words for a process that ended without an answer."""
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
    signal.SIGTERM: "something sent it that signal, itself most likely",
}
