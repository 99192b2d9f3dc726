"""The zygote: a warm, contained interpreter of one thread, which forks a child for each run and reaps it.

It is started by exec with a clean environment and speaks with the parent on one socket, a JSON object a message:

    ← settings   {"tier", "path", "readable", "packages", "folder"}, first, and once
    → ready      {"ready": {"packages": […], "canaries": {…}}} or {"failed": why}
    ← start      {"start": id, "limits": {…}, "name", "session": bool} + descriptors: channel, stdout, stderr [, leash]
    → started    {"started": id} + a descriptor of the process, or {"unstarted": id, "why": …}
    → ended      {"ended": id, "status": …, "cpu": seconds, "peak_memory": bytes}

The end of the file on that socket is the end of the parent, and so its own; being pid 1 of its namespace, it takes
every run with it. It runs no code of a run, and holds none of a run's descriptors once its child has them.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from ferrule.sandbox.canaries import Canaries
from ferrule.sandbox.contain import Entered, Limits, Prepared, confine, enter, prepare
from ferrule.sandbox.python import child, keeper, session_child
from ferrule.sandbox.python.wire import frame
from ferrule.sandbox.tier import Tier
from ferrule.sandbox.view import python_view

MESSAGE: Final = 64 * 1024
"""Bytes of the longest message."""


@dataclass(frozen=True, slots=True)
class Started:
    """A child that has not been reaped: its number with the parent, and its pid here."""

    number: int
    pid: int


def main(descriptor: int) -> NoReturn:
    """Serve the parent at the other end of an inherited socket, until it closes it."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=descriptor)
    gc.disable()
    try:
        settings = json.loads(control.recv(MESSAGE))
        entered, ready = begin(settings)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent has to learn of it
        _say(control, {"failed": f"{type(error).__name__}: {error}"[:4000]})
        os._exit(1)
    _say(control, {"ready": ready})
    Zygote(control, entered).serve()


def begin(settings: dict[str, Any]) -> tuple[Entered, dict[str, Any]]:
    """Contain this process, and load the packages while the canaries try to get out. Raises `SandboxUnavailable`."""
    sys.path.extend(entry for entry in settings["path"] if entry not in sys.path)
    view = python_view(Path(path) for path in settings["readable"])
    entered = enter(view, Tier(settings["tier"]), folder=Path(settings["folder"]) if settings["folder"] else None)
    canaries = Canaries.start(entered)
    loaded = [name for name in settings["packages"] if _is_loaded(name)]
    results = canaries.finish()
    warnings.filterwarnings("ignore", ".*non-interactive, and thus cannot be shown")
    child.make_stdio()
    child.reseed()
    gc.collect()
    gc.freeze()
    return entered, {"packages": loaded, "canaries": results}


def _is_loaded(name: str) -> bool:
    """Load a package that a run is likely to want; one that isn't installed is no error."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            return False
        raise
    return True


class Zygote:
    """The loop that forks and reaps."""

    def __init__(self, control: socket.socket, entered: Entered) -> None:
        self._control = control
        self._entered = entered
        self._children: dict[int, Started] = {}
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)

    def serve(self) -> NoReturn:
        """Answer messages and reap children until the parent is gone."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._control.fileno():
                    self._receive()
                else:
                    self._reap(descriptor)

    def _receive(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE, 8)
        if not data:
            os._exit(0)
        message = json.loads(data)
        try:
            self._start(message, descriptors)
        except OSError as error:
            _say(self._control, {"unstarted": message["start"], "why": f"{type(error).__name__}: {error}"})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _start(self, message: dict[str, Any], descriptors: list[int]) -> None:
        own = os.getpid()
        child.reseed()
        prepared = prepare(self._entered, Limits(**message["limits"]), name=message["name"])
        try:
            pid = os.fork()
            if pid == 0:
                _become(lambda: _child(prepared, descriptors, own, is_session=message["session"]), descriptors[0])
        finally:
            prepared.release()
        handle = os.pidfd_open(pid)
        self._children[handle] = Started(message["start"], pid)
        self._poll.register(handle, select.POLLIN)
        _say(self._control, {"started": message["start"]}, (handle,))

    def _reap(self, handle: int) -> None:
        started = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status, used = os.wait4(started.pid, 0)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
        code = os.waitstatus_to_exitcode(status)
        _say(self._control, {"ended": started.number, "status": code, "cpu": cpu, "peak_memory": peak})


def _child(prepared: Prepared, descriptors: list[int], parent: int, *, is_session: bool) -> None:
    channel, stdout, stderr, *leash = descriptors
    child.take_stdio(stdout, stderr)
    if leash:
        parent = keeper.keep()
    confine(prepared, keep={0, 1, 2, channel}, parent=parent, forks_through=leash[0] if leash else None)
    (session_child.serve if is_session else child.serve_once)(channel)


def _become(work: Callable[[], None], channel: int) -> NoReturn:
    """Do a child's work; whatever goes wrong before it is contained is told on its channel, and it ends."""
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - a child must never go on as a second zygote
        child.write(channel, frame({"failed": f"{type(error).__name__}: {error}"[:2000]}, []))
    finally:
        os._exit(1)


def _say(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message; a parent that has gone is learnt of by reading."""
    try:
        socket.send_fds(control, [json.dumps(message).encode()], descriptors)
    except (BrokenPipeError, ConnectionResetError):
        return
