"""A zygote, as the parent controls it: started by exec, reached through one socket, lost when that closes.

Everything here runs on the background loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from ferrule._util.background import run_in_thread
from ferrule.sandbox.installation import PACKAGE_FOLDERS, make_boot_program
from ferrule.sandbox.python.parent.child_process import ChildExit, ChildNotStarted, ChildProcess, ZygoteLost, open_ends
from ferrule.sandbox.temporary_folders import remove_tree

_MESSAGE: Final = 256 * 1024
_START_SECONDS: Final = 120.0
"""To load the packages, even from a slow disk."""
_THREADS: Final = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
# Each arena of malloc reserves 64 MB of address space, which counts as a run's memory; Arrow's own allocator needs to
# reserve a gigabyte.
_ALWAYS: Final = {"MPLBACKEND": "Agg", "MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
_KEPT: Final = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class ZygoteReport:
    """What a zygote reports when it is ready: the packages that it loaded, and each canary's result, by name."""

    packages: tuple[str, ...]
    canary_results: Mapping[str, str]


class ZygoteProcess:
    """A zygote's process, and the children that it hasn't reaped."""

    def __init__(self) -> None:
        """Start the process, which loads its own code and waits for settings from `prepare`. Raises `OSError`."""
        self._loop = asyncio.get_running_loop()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        self._errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - until it is ready
        with theirs:
            self._process = _spawn(theirs.fileno(), self._errors)
        self._children: dict[int, ChildProcess] = {}
        self._count = 0
        self._folder: Path | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_lost = False
        _OPEN.add(self)

    async def prepare(self, settings: dict[str, Any]) -> ZygoteReport:
        """Send the settings and wait until it is ready. Raises `ZygoteLost` with the reason if that fails."""
        self._folder = Path(settings["folder"]) if settings["folder"] else None
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._loop.sock_sendall(self._control, json.dumps(settings).encode())
                data = await self._loop.sock_recv(self._control, _MESSAGE)
            message: dict[str, Any] = json.loads(data) if data else {"failed": await self._read_errors()}
        except (OSError, TimeoutError) as error:
            message = {"failed": f"{type(error).__name__}: {error}; {await self._read_errors()}"}
        except BaseException:
            self.close()
            raise
        self._errors.close()
        if "ready" not in message:
            self.close()
            raise ZygoteLost(message["failed"])
        self._loop.add_reader(self._control, self._read)
        return ZygoteReport(tuple(message["ready"]["packages"]), message["ready"]["canaries"])

    def spawn(
        self,
        limits: dict[str, int],
        output_limit: int,
        *,
        is_session: bool = False,
        listener_socket: socket.socket | None = None,
    ) -> ChildProcess:
        """Request a child. A session's child serves many requests, and may fork if `listener_socket` is given.

        That socket receives its seccomp listener. Raises `ZygoteLost` if the zygote has ended, `OSError` if no
        descriptors are left.
        """
        self._count += 1
        with ExitStack() as ours, ExitStack() as theirs:
            channel, output, descriptors = open_ends(ours, theirs, output_limit)
            if listener_socket is not None:
                descriptors.append(listener_socket.fileno())
            child = ChildProcess(channel, output)
            output.overflow = child.kill
            message = {"start": self._count, "limits": limits, "name": _name_folder(self._count), "session": is_session}
            self._send(json.dumps(message).encode(), descriptors)
            self._children[self._count] = child
            ours.pop_all()
        return child

    def _send(self, data: bytes, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self._control, [data], descriptors)
        except (BrokenPipeError, ConnectionResetError, BlockingIOError) as error:
            # A full queue means that the zygote no longer reads.
            self.close()
            raise ZygoteLost(f"the zygote has ended ({type(error).__name__})") from None

    def _read(self) -> None:
        while not self.is_lost:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE, 4, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data, descriptors = b"", []
            if not data:
                self.close()
                return
            self._handle_message(json.loads(data), descriptors)

    def _handle_message(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if "started" in message:
            self._children[message["started"]].on_started(descriptors[0])
        elif "unstarted" in message:
            self._children.pop(message["unstarted"]).on_ended(ChildNotStarted(message["why"]))
        else:
            ended = ChildExit(message["status"], message["cpu"], message["peak_memory"])
            self._children.pop(message["ended"]).on_ended(ended)
            if self._folder is not None:
                self._run_aside(_remove_folder(self._folder / _name_folder(message["ended"])))

    def close(self) -> None:
        """Kill the process and every child. Can be called again."""
        if self.is_lost:
            return
        self.is_lost = True
        self._loop.remove_reader(self._control)
        self.forget()
        self._process.kill()
        self._run_aside(self.wait_until_gone())
        for child in self._children.values():
            child.on_ended(ZygoteLost("the zygote ended while it ran"))
        self._children.clear()

    async def wait_until_gone(self) -> None:
        """Wait until the process is reaped, after `close`."""
        while self._process.poll() is None:
            await asyncio.sleep(0.002)

    def forget(self) -> None:
        """Close the descriptors without ending the zygote, as in a forked copy of the parent."""
        self._control.close()
        self._errors.close()

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_errors(self) -> str:
        """Kill a zygote that never became ready; return its exit status and what it wrote."""
        self._process.kill()
        await self.wait_until_gone()
        self._errors.seek(0)
        text = self._errors.read(4000).decode("utf-8", "replace").strip()
        return f"the zygote ended with status {self._process.returncode}" + (f": {text}" if text else "")


async def _remove_folder(folder: Path) -> None:
    """Remove a run's folder; what can't be removed is left to the removal of the zygote's."""
    with suppress(OSError):
        await run_in_thread(remove_tree, folder)


def _name_folder(number: int) -> str:
    """Return the name of a child's folder."""
    return f"run-{number}"


_OPEN: Final[weakref.WeakSet[ZygoteProcess]] = weakref.WeakSet()


def _forget_all() -> None:
    for zygote in _OPEN:
        zygote.forget()


# A copy of the socket in a fork of the program would keep zygotes from noticing that the program has ended.
os.register_at_fork(after_in_child=_forget_all)


def _spawn(descriptor: int, errors: BinaryIO) -> subprocess.Popen[bytes]:
    program = make_boot_program(f"from ferrule.sandbox.python.child.zygote import main; main({descriptor})")
    # Without `site`, which runs `.pth` files and `sitecustomize` from anywhere on the path.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", program],
        env=make_zygote_environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=[descriptor],
        start_new_session=True,
    )


def make_zygote_environment() -> dict[str, str]:
    """Return the environment of model-written Python: clean, one thread, with the program's locale and time zone."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    threads = {f"{name}_NUM_THREADS": "1" for name in _THREADS}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **_ALWAYS, **threads, **kept}


def find_package_paths(readable: Sequence[str] = ()) -> list[str]:
    """Return the entries of `sys.path` that an isolated interpreter lacks: installed packages, and those in `readable`.

    The latter may be projects that are installed for editing.
    """
    shown = [Path(path) for path in readable]
    paths = [(entry, Path(entry)) for entry in sys.path]
    return [
        entry
        for entry, path in paths
        if not set(PACKAGE_FOLDERS).isdisjoint(path.parts) or any(map(path.is_relative_to, shown))
    ]
