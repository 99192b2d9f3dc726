"""The program that starts shell commands for a process that must not fork itself; started once, by exec.

    python -I -S launcher.py FOLDER_OF_FERRULE DESCRIPTOR restricted | spaced | alone

Each message on its socket brings descriptors: a request (JSON in a file), standard input, output and errors, and a
socket on which that command is told of and ended. It is taken by a keeper that was forked beforehand, which contains
and starts the command, adopts whatever it leaves behind, and ends all of it.

`restricted` is the container tier: Landlock restricts the command. With `spaced`, bubblewrap started the launcher
among the mounts that commands see, and a keeper is the first process of a command's own namespaces; `alone`:
also of its own network.
"""

# A program that should start fast, and opens descriptors more than paths.
# ruff: noqa: PTH115, PTH123

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, NoReturn

sys.path.insert(0, sys.argv[1])

from ferrule.sandbox.linux import command_space, landlock, seccomp
from ferrule.sandbox.linux.identity import dropping_capabilities
from ferrule.sandbox.linux.limits import lower
from ferrule.sandbox.linux.syscalls import PR_SET_CHILD_SUBREAPER, call, make, prctl

_MAKE_PIPE = 1 << 10
_RIGHTS = {
    "read": landlock.READ | landlock.EXECUTE,
    "write": landlock.READ | landlock.EXECUTE | landlock.WRITE | landlock.MAKE_SYMLINK | _MAKE_PIPE,
    "list": landlock.LIST,
}
_UNKILLABLE_AFTER = 10.0
_PAUSE = 100  # milliseconds
_CLOSE_RANGE_CLOEXEC = 4
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by Python, and so by what it becomes


def main() -> None:
    """Have a keeper wait for the next request, until the other end of the socket is closed."""
    requests, kind = socket.socket(fileno=int(sys.argv[2])), sys.argv[3]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    first = command_space.mounts()
    gc.disable()  # a collection in a child would copy every page that objects are on
    for number in count():
        taken, taking = os.pipe()
        if os.fork() == 0:
            _keep(requests, kind, first, taking, is_first=number == 0)
        os.close(taking)
        was_taken = os.read(taken, 1)
        os.close(taken)
        if not was_taken and (number == 0 or _is_over(requests)):
            return


def _is_over(requests: socket.socket) -> bool:
    """Whether there will be no more requests; else the keeper failed, and the next one is made after a while."""
    waiting = select.poll()
    waiting.register(requests, select.POLLHUP)
    return bool(waiting.poll(_PAUSE))


def _keep(requests: socket.socket, kind: str, first: command_space.Mounts, taking: int, *, is_first: bool) -> NoReturn:
    """Wait for a request, start its command and stay until nothing is left of it."""
    try:
        os.setsid()
        if kind == "restricted":
            prctl(PR_SET_CHILD_SUBREAPER, 1)
        else:
            command_space.enter_own_space(network=kind == "alone")
        if is_first:
            requests.send(b"ready")
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 5)
        if message:
            os.write(taking, b"t")
            os.close(taking)
            requests.close()
            _keep_command(first, *descriptors)
    except OSError as error:
        os.write(2, str(error).encode())
    finally:
        os._exit(0)


def _keep_command(first: command_space.Mounts, request: int, stdin: int, stdout: int, stderr: int, line: int) -> None:
    with open(request, "rb") as file:
        asked = json.load(file)
    channel = socket.socket(fileno=line)
    try:
        told = _begun(asked["space"], first, channel) or _run(asked, (stdin, stdout, stderr), channel)
    except OSError as error:
        told = {"error": str(error)}
    with suppress(OSError):
        channel.send(json.dumps(told).encode())


def _begun(space: dict[str, Any] | None, first: command_space.Mounts, channel: socket.socket) -> dict[str, Any] | None:
    """Make ready what the command has for itself, and say so; or that the mounts here don't serve any more."""
    if space is not None:
        if not command_space.is_as_it_was(first, space["mounted"]):
            return {"stale": True}
        command_space.cover(space["covers"])
        command_space.renounce()
    with ExitStack() as closing:
        port = space and space["port"]
        servers = [closing.enter_context(socket.create_server(("127.0.0.1", port), backlog=64))] if port else []
        socket.send_fds(channel, [b'{"began": true}'], [server.fileno() for server in servers])
    return None


def _run(asked: dict[str, Any], streams: tuple[int, int, int], channel: socket.socket) -> dict[str, Any]:
    """The command from start to end, in the words of the other side; nothing of it is left then."""
    ended, ending = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending)
    is_first = os.getpid() == 1
    command = _spawned(asked, streams) if is_first else _forked(asked, streams)
    for descriptor in streams:
        os.close(descriptor)
    told = _watched(command, ended, channel)
    if is_first:
        _end_the_namespace()
    else:
        _end_all(command)
    return told


def _spawned(asked: dict[str, Any], streams: tuple[int, int, int]) -> int:
    """The command's process, for a keeper that nothing in its namespace can harm, and that so is restricted as well.

    It takes no copy of this process, which would cost as much as all the rest. Raises OSError.
    """
    os.chdir(asked["folder"])
    _restrict(asked)
    call("close_range", 3, 0x7FFF_FFFF, _CLOSE_RANGE_CLOEXEC)
    return os.posix_spawn(
        asked["argv"][0],
        asked["argv"],
        asked["environment"],
        file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)],
        setsid=True,
        setsigdef=_IGNORED,
    )


def _forked(asked: dict[str, Any], streams: tuple[int, int, int]) -> int:
    """The command's process, which alone is restricted: what it may signal can't be its keeper. Raises OSError."""
    failed, failing = os.pipe()
    command = os.fork()
    if command == 0:
        _become(asked, streams, failing)
    os.close(failing)
    with open(failed, encoding="utf-8") as pipe:
        if error := pipe.read():
            raise OSError(error)
    return command


def _watched(command: int, ended: int, channel: socket.socket) -> dict[str, Any]:
    """Wait for the command's end, passing on what is to be done to it; its end in the words of the other side.

    `ended` can be read when a child has ended: the command, or one that it left to us.
    """
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(channel, select.POLLIN)
    while True:
        for descriptor, _ in waiting.poll():
            if descriptor == ended:
                os.read(ended, 4096)
                status = _reaped().get(command)
                if status is not None:
                    code = os.waitstatus_to_exitcode(status)
                    return {"exit": code} if code >= 0 else {"signal": -code}
            elif channel.recv(1) == b"T":
                os.killpg(command, signal.SIGTERM)
            else:  # asked to, or nobody is there any more
                os.kill(command, signal.SIGKILL)
                waiting.unregister(channel)


def _reaped() -> dict[int, int]:
    """The children that have ended since the last time, with their statuses."""
    found: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
            found[reaped[0]] = reaped[1]
    return found


def _end_the_namespace() -> None:
    """Kill all that is left in this pid namespace, whose first process this is, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _end_all(command: int) -> None:
    """Kill the group, and then whatever was adopted, until nothing is left that could start more."""
    with suppress(ProcessLookupError):
        os.killpg(command, signal.SIGKILL)
    me = os.getpid()
    over = time.monotonic() + _UNKILLABLE_AFTER
    while time.monotonic() < over:
        with open(f"/proc/self/task/{me}/children", encoding="ascii") as file:
            for child in file.read().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.0005)
        except ChildProcessError:
            return


def _become(asked: dict[str, Any], streams: tuple[int, int, int], failing: int) -> NoReturn:
    """Restrict this process and become the command; what goes wrong is written to `failing`."""
    try:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number, inheritable=True)
        os.dup2(failing, 3, inheritable=False)
        os.closerange(4, 65536)
        os.chdir(asked["folder"])
        for ignored in _IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        _restrict(asked)
        os.execve(asked["argv"][0], asked["argv"], asked["environment"])
    except BaseException as error:  # noqa: BLE001 - a child that was forked must not go on as its parent
        os.write(3, f"{type(error).__name__}: {error}".encode())
    os._exit(127)


def _restrict(asked: dict[str, Any]) -> None:
    lower({int(kind): wanted for kind, wanted in asked["limits"].items()})
    if asked["filter"] is None:
        return
    seccomp.no_new_privileges()
    if asked["space"] is None:
        rules = landlock.Ruleset(asked["landlock"], tcp=asked["network"])
        for path, access in asked["grants"]:
            _grant(rules, path, _RIGHTS[access])
        make(dropping_capabilities())
        rules.restrict()
    seccomp.attach(bytes.fromhex(asked["filter"]))


def _grant(rules: landlock.Ruleset, path: str, rights: int) -> None:
    """Grant what the path is now, unless it is gone or was replaced by a link to something else since it was listed."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.readlink(f"/proc/self/fd/{opened}") == path:
            rules.grant(opened, rights)
    finally:
        os.close(opened)


if __name__ == "__main__":
    main()
