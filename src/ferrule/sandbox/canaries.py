"""Canaries: at each start a contained process tries what its tier promises to stop; if one succeeds, nothing runs.

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
    """One probe: its name, what it tried, and what it reached (None: it was stopped)."""

    name: str
    tries: str
    reached: str | None

    @property
    def is_stopped(self) -> bool:
        return self.reached is None


class Canaries:
    """A child that tries to get out, started by a zygote and asked for its results later."""

    def __init__(self, pid: int, answers: int, entered: ZygoteContainment) -> None:
        self._pid = pid
        self._answers = answers
        self._entered = entered

    @classmethod
    def start(cls, entered: ZygoteContainment) -> "Canaries":
        """Fork and confine a child that tries each probe. In a zygote, which must still have one thread."""
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
        """Wait for the child, and return the result of each probe, by name.

        Raises SandboxUnavailable if one got through or didn't answer. Without a tier none is tried.
        """
        results = self.results()
        require_all_stopped(results, self._entered.tier)
        return {result.name: "stopped" if result.reached is None else result.reached for result in results}

    def results(self) -> tuple[CanaryResult, ...]:
        """Like `finish`, but doesn't raise: a probe that didn't answer counts as having got through."""
        said = _read_all(self._answers)
        os.close(self._answers)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        if self._entered.tier is not Tier.FULL:
            (self._entered.scratch / _FOLDER).rmdir()
        return parse_results(said)


def require_all_stopped(results: Iterable[CanaryResult], tier: Tier) -> None:
    """Raise SandboxUnavailable for probes that got through, by name; without a tier nothing is promised."""
    reached = [f"{result.name} reached {result.reached}" for result in results if not result.is_stopped]
    if reached and tier is not Tier.NONE:
        raise SandboxUnavailable(
            f"the {tier} tier doesn't hold on this machine: {'; '.join(reached)}. Nothing was run. "
            "`ferrule sandbox doctor` lists the available layers"
        )


def parse_results(said: bytes, probes: Iterable[Callable[..., str | None]] = PROBES) -> tuple[CanaryResult, ...]:
    """Parse the results of probes from a child's lines; a missing one counts as having got through."""
    answers: dict[str, str | None] = {}
    for line in said.splitlines():
        try:
            name, reached = json.loads(line)
        except ValueError:
            continue  # cut short: it counts as missing
        answers[name] = reached
    return tuple(
        CanaryResult(probe.__name__, probe.__doc__ or "", answers.get(probe.__name__, "something: it never answered"))
        for probe in probes
    )


def _try_all(prepared: RunContainment, zygote: int, write: int) -> NoReturn:
    try:
        confine(prepared, keep={0, 1, 2, write}, parent=zygote)
        around = ProbeContext(prepared.entered, zygote, frozenset({0, 1, 2, write}))
        for probe in PROBES:
            os.write(write, json.dumps([probe.__name__, _try_probe(probe, around)]).encode() + b"\n")
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must not go on as a second zygote
        os.write(2, f"canaries: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def _try_probe(probe: Callable[[ProbeContext], str | None], around: ProbeContext) -> str | None:
    try:
        return probe(around)
    except Exception as error:  # noqa: BLE001 - a probe that fails has shown nothing
        return f"an error: {type(error).__name__}: {error}"


def _read_all(descriptor: int) -> bytes:
    said = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll(_SECONDS * 1000):
        piece = os.read(descriptor, 65536)
        if not piece:
            break
        said += piece
    return said
