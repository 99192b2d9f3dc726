"""Canaries: at each start a contained process tries what its tier should stop; if one succeeds, nothing runs.

They run during the zygote's preload, in a child that is created and confined like a run, so the real setup is tested.
"""

import json
import os
import select
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.containment import RunContainment, ZygoteContainment, confine, prepare
from ferrule.sandbox.linux.probes import LIMITS, PROBES, ProbeContext
from ferrule.sandbox.tiers import Tier

__all__ = ["Canaries", "CanaryResult", "parse_results", "require_all_stopped"]

_SECONDS: Final = 20.0
_FOLDER: Final = "canaries"


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """One probe: its name, what it tried, and what it reached (None if it was stopped)."""

    name: str
    tries: str
    reached: str | None

    @property
    def is_stopped(self) -> bool:
        return self.reached is None


class Canaries:
    """A child process that tries to escape, started by a zygote; its results are collected later."""

    def __init__(self, pid: int, answers: int, entered: ZygoteContainment) -> None:
        self._pid = pid
        self._answers = answers
        self._entered = entered

    @classmethod
    def start(cls, entered: ZygoteContainment) -> "Canaries":
        """Fork and confine a child that runs each probe. The caller is a zygote with a single thread."""
        answers, write = os.pipe()
        zygote = os.getpid()
        prepared = prepare(entered, LIMITS, name=_FOLDER, with_files=False)
        pid = os.fork()
        if pid == 0:
            _try_all(prepared, zygote, write)
        prepared.release()
        os.close(write)
        return cls(pid, answers, entered)

    def finish(self) -> dict[str, str]:
        """Wait for the child and return the result of each probe by name.

        Raises SandboxUnavailable if a probe succeeded or didn't answer. `Tier.NONE` is not enforced.
        """
        results = self.collect_results()
        require_all_stopped(results, self._entered.tier)
        return {result.name: "stopped" if result.reached is None else result.reached for result in results}

    def collect_results(self) -> tuple[CanaryResult, ...]:
        """Like `finish`, but doesn't raise; a probe that didn't answer counts as successful."""
        output = _read_all(self._answers)
        os.close(self._answers)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        if self._entered.tier is not Tier.FULL:
            (self._entered.scratch / _FOLDER).rmdir()
        return parse_results(output)


def require_all_stopped(results: Iterable[CanaryResult], tier: Tier) -> None:
    """Raise SandboxUnavailable naming the probes that succeeded; `Tier.NONE` promises nothing."""
    reached = [f"{result.name} reached {result.reached}" for result in results if not result.is_stopped]
    if reached and tier is not Tier.NONE:
        raise SandboxUnavailable(
            f"the {tier} tier doesn't hold on this machine: {'; '.join(reached)}. Nothing was run. "
            "`ferrule sandbox doctor` lists the available layers"
        )


def parse_results(output: bytes, probes: Iterable[Callable[..., str | None]] = PROBES) -> tuple[CanaryResult, ...]:
    """Parse probe results from the child's output lines; a missing one counts as successful."""
    answers: dict[str, str | None] = {}
    for line in output.splitlines():
        try:
            name, reached = json.loads(line)
        except ValueError:
            continue  # a truncated line counts as missing
        answers[name] = reached
    return tuple(
        CanaryResult(probe.__name__, probe.__doc__ or "", answers.get(probe.__name__, "something: no answer"))
        for probe in probes
    )


def _try_all(prepared: RunContainment, zygote: int, write: int) -> NoReturn:
    try:
        confine(prepared, keep={0, 1, 2, write}, parent=zygote)
        context = ProbeContext(prepared.entered, zygote, frozenset({0, 1, 2, write}))
        for probe in PROBES:
            os.write(write, json.dumps([probe.__name__, _try_probe(probe, context)]).encode() + b"\n")
    except BaseException as error:  # noqa: BLE001 - this process must never continue as a second zygote
        os.write(2, f"canaries: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def _try_probe(probe: Callable[[ProbeContext], str | None], context: ProbeContext) -> str | None:
    try:
        return probe(context)
    except Exception as error:  # noqa: BLE001 - a failed probe proves nothing
        return f"an error: {type(error).__name__}: {error}"


def _read_all(descriptor: int) -> bytes:
    output = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll(_SECONDS * 1000):
        piece = os.read(descriptor, 65536)
        if not piece:
            break
        output += piece
    return output
