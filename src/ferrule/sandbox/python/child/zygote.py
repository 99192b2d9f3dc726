"""The zygote: a warm, contained, single-threaded interpreter, which forks a child for each run and reaps it.

It is started by exec with a clean environment and exchanges JSON messages with the parent on one socket:

    ← settings   {"tier", "prefixes", "path", "readable", "packages", "files", "folder"}, first, and once
    → ready      {"ready": {"packages": […], "canaries": {…}}} or {"failed": why}
    ← start      {"start": id, "limits": {…}, "name", "session": bool} + channel, stdout, stderr[, listener]
    → started    {"started": id} + a descriptor of the process, or {"unstarted": id, "why": …}
    → ended      {"ended": id, "status": …, "cpu": seconds, "peak_memory": bytes}

End of file on that socket means that the parent has ended: the zygote exits, and as pid 1 of its namespace ends every
run. It executes no code of a run, and closes a run's descriptors once the child has them.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import site
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from ferrule.sandbox.canaries import Canaries
from ferrule.sandbox.containment import RunContainment, RunLimits, ZygoteContainment, confine, enter, prepare
from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.python.child import preload, runner, session_runner
from ferrule.sandbox.python.wire.frames import pack_frame
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import VisiblePaths

MESSAGE: Final = 64 * 1024
"""Maximum length of a message in bytes."""


@dataclass(frozen=True, slots=True)
class StartedChild:
    """A child that hasn't been reaped: its number in messages, and its pid in this namespace."""

    number: int
    pid: int


def main(descriptor: int) -> NoReturn:
    """Serve the parent over an inherited socket, until it is closed."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=descriptor)
    gc.disable()
    try:
        settings = json.loads(control.recv(MESSAGE))
        entered, ready = begin(settings)
    except BaseException as error:  # noqa: BLE001 - the parent must be informed of any failure
        _send(control, {"failed": f"{type(error).__name__}: {error}"[:4000]})
        os._exit(1)
    _send(control, {"ready": ready})
    ZygoteServer(control, entered).serve()


def begin(settings: dict[str, Any]) -> tuple[ZygoteContainment, dict[str, Any]]:
    """Contain this process, and load the packages while the canaries run. Raises `SandboxUnavailable`.

    Until then only the standard library and ferrule are loaded.
    """
    view = VisiblePaths(tuple(Path(path) for path in settings["readable"]))
    folder = Path(settings["folder"]) if settings["folder"] else None
    files = [MountedFile(*file) for file in settings["files"]]
    entered = enter(view, Tier(settings["tier"]), folder=folder, files=files)
    _find_packages(settings)
    canaries = Canaries.start(entered)
    loaded = preload.load(settings["packages"], entered)
    results = canaries.finish()
    warnings.filterwarnings("ignore", ".*non-interactive, and thus cannot be shown")
    runner.make_stdio()
    runner.reseed()
    gc.collect()
    gc.freeze()
    return entered, {"packages": loaded, "canaries": results}


def _find_packages(settings: dict[str, Any]) -> None:
    """Set up what `site` would, but without running code from the package folders (`.pth` files)."""
    sys.prefix, sys.exec_prefix = settings["prefixes"]
    sys.path.extend(entry for entry in settings["path"] if entry not in sys.path)
    site.setquit()
    site.setcopyright()
    site.sethelper()


class ZygoteServer:
    """The loop that forks and reaps."""

    def __init__(self, control: socket.socket, entered: ZygoteContainment) -> None:
        self._control = control
        self._entered = entered
        self._children: dict[int, StartedChild] = {}
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)

    def serve(self) -> NoReturn:
        """Handle messages and reap children until the parent has ended."""
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
            _send(self._control, {"unstarted": message["start"], "why": f"{type(error).__name__}: {error}"})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _start(self, message: dict[str, Any], descriptors: list[int]) -> None:
        own = os.getpid()
        runner.reseed()
        prepared = prepare(self._entered, RunLimits(**message["limits"]), name=message["name"])
        try:
            pid = os.fork()
            if pid == 0:
                _run_child(
                    lambda: _confine_and_serve(prepared, descriptors, own, is_session=message["session"]),
                    descriptors[0],
                )
        finally:
            prepared.release()
        handle = os.pidfd_open(pid)
        self._children[handle] = StartedChild(message["start"], pid)
        self._poll.register(handle, select.POLLIN)
        _send(self._control, {"started": message["start"]}, (handle,))

    def _reap(self, handle: int) -> None:
        started = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status, used = os.wait4(started.pid, 0)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
        code = os.waitstatus_to_exitcode(status)
        _send(self._control, {"ended": started.number, "status": code, "cpu": cpu, "peak_memory": peak})


def _confine_and_serve(prepared: RunContainment, descriptors: list[int], parent: int, *, is_session: bool) -> None:
    channel, stdout, stderr, *listener = descriptors
    runner.take_stdio(stdout, stderr)
    if listener:
        parent = stay_as_reaper()
    confine(prepared, keep={0, 1, 2, channel}, parent=parent, forks_through=listener[0] if listener else None)
    (session_runner.serve if is_session else runner.serve_once)(channel)


def _run_child(work: Callable[[], None], channel: int) -> NoReturn:
    """Do a child's work; a failure before it is contained is reported on its channel, and it ends."""
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - a child must never continue as a second zygote
        runner.write(channel, pack_frame({"failed": f"{type(error).__name__}: {error}"[:2000]}, []))
    finally:
        os._exit(1)


def _send(control: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message. A parent that has ended is only noticed by reading."""
    try:
        socket.send_fds(control, [json.dumps(message).encode()], descriptors)
    except (BrokenPipeError, ConnectionResetError):
        return


def stay_as_reaper() -> int:
    """Fork a child that becomes the session, and stay as its reaper; returns in the child, with the reaper's pid.

    Forks are the session's children, and orphans once it is rolled back. The reaper ends after the last of them; if
    it is killed, or the zygote ends, the kernel kills all of them.
    """
    own = os.getpid()
    if os.fork() == 0:
        return own
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            os._exit(0)
