"""The program that starts shell commands for a process that must not fork itself; started once, by exec.

    python -I -S launcher.py FOLDER_OF_FERRULE DESCRIPTOR landlock | namespaces | own-network SETTINGS

Each message on its socket carries descriptors: a request (JSON in a file), standard input, output and errors, and a
socket for reporting on and stopping that command. A supervisor process, forked in advance, takes it, contains and
starts the command, adopts whatever the command leaves behind, and ends all of it.

`landlock` is the container tier: Landlock restricts the command. With `namespaces`, the launcher enters namespaces and
makes the `mounts` listed in the file SETTINGS (a descriptor, JSON), and a supervisor is pid 1 of the command's own
nested namespaces; with `own-network` these include a network namespace. `sockets` in SETTINGS is whether the seccomp
filter of the commands allows those of IP; without it there is no filter.
"""

# A program that should start fast and mostly opens descriptors; it sets up its own imports.
# ruff: noqa: E402, PTH115, PTH123

import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, NoReturn

# Load only the package's own folder: modules next to it could be written by others.
package = type(sys)("ferrule")
package.__path__ = [sys.argv[1]]
sys.modules["ferrule"] = package

from ferrule.sandbox.linux import command_namespaces, command_root, landlock, seccomp
from ferrule.sandbox.linux.command_namespaces import MountTable
from ferrule.sandbox.linux.identity import prepare_drop_capabilities
from ferrule.sandbox.linux.limits import count_tasks, lower
from ferrule.sandbox.linux.shell_filter import make_shell_filter
from ferrule.sandbox.linux.syscalls import PR_SET_CHILD_SUBREAPER, call, invoke, prctl

_MAKE_PIPE = 1 << 10
_RIGHTS = {
    "read": landlock.READ | landlock.EXECUTE,
    "write": landlock.READ | landlock.EXECUTE | landlock.WRITE | landlock.MAKE_SYMLINK | _MAKE_PIPE,
    "list": landlock.LIST,
}
_UNKILLABLE_AFTER = 10.0
_PAUSE = 100  # milliseconds
_CLOSE_RANGE_CLOEXEC = 4
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)  # by Python, and so by programs it execs


def main() -> None:
    """Keep one supervisor waiting for the next request, until the other end of the socket is closed."""
    requests, kind = socket.socket(fileno=int(sys.argv[2])), sys.argv[3]
    with open(int(sys.argv[4]), "rb") as file:
        settings = json.load(file)
    program, sockets = b"", settings["sockets"]
    if sockets is not None:
        program = make_shell_filter(sockets, namespaced=kind != "landlock")
    if kind != "landlock":
        command_root.enter_command_root(settings["mounts"], network=settings["network"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    first = command_namespaces.list_mounts()
    gc.disable()  # a collection in a child would copy every page with objects
    for number in count():
        taken, taking = os.pipe()
        if os.fork() == 0:
            _supervise(requests, kind, first, program, taking, is_first=number == 0)
        os.close(taking)
        was_taken = os.read(taken, 1)
        os.close(taken)
        if not was_taken and (number == 0 or _has_no_more_requests(requests)):
            return


def _has_no_more_requests(requests: socket.socket) -> bool:
    """Whether the socket is closed; otherwise the supervisor failed, and the next one starts after a pause."""
    waiting = select.poll()
    waiting.register(requests, select.POLLHUP)
    return bool(waiting.poll(_PAUSE))


def _supervise(
    requests: socket.socket, kind: str, first: MountTable, program: bytes, taking: int, *, is_first: bool
) -> NoReturn:
    """Wait for a request, start its command and supervise it until nothing is left of it."""
    try:
        os.setsid()
        others = 0
        if kind == "landlock":
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            # Without a user namespace the limit includes the user's other tasks. Counted in advance, since it is slow.
            others = count_tasks(os.getuid()) if os.getuid() else 0
        else:
            command_namespaces.enter_command_namespaces(network=kind == "own-network")
        if is_first:
            requests.send(b"ready")
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 5)
        if message:
            os.write(taking, b"t")
            os.close(taking)
            requests.close()
            _supervise_command(first, others, program, *descriptors)
    except OSError as error:
        os.write(2, str(error).encode())
    finally:
        os._exit(0)


def _supervise_command(
    first: MountTable, others: int, program: bytes, request_file: int, stdin: int, stdout: int, stderr: int, line: int
) -> None:
    with open(request_file, "rb") as file:
        request = json.load(file)
    request["limits"][str(int(resource.RLIMIT_NPROC))] += others
    request["filter"] = program
    channel = socket.socket(fileno=line)
    try:
        reply = _prepare_namespaces(request, first, channel) or _run(request, (stdin, stdout, stderr), channel)
    except OSError as error:
        reply = {"error": str(error)}
    with suppress(OSError):
        channel.send(json.dumps(reply).encode())


def _prepare_namespaces(request: dict[str, Any], first: MountTable, channel: socket.socket) -> dict[str, Any] | None:
    """Prepare the command's own mounts and proxy and report that; or reply that the launcher's mounts are stale."""
    namespaces = request["namespaces"]
    if namespaces is not None:
        if not command_namespaces.are_unchanged(first, namespaces["mounted"]):
            return {"stale": True}
        command_namespaces.cover_paths(namespaces["covers"])
        command_namespaces.drop_all_privileges()
    with ExitStack() as closing:
        servers = []
        if namespaces is not None and namespaces["port"] is not None:
            servers = [closing.enter_context(socket.create_server(("127.0.0.1", namespaces["port"]), backlog=64))]
            port = str(servers[0].getsockname()[1])
            for name, value in namespaces["proxy_variables"].items():
                request["environment"][name] = value.replace("{port}", port)
        socket.send_fds(channel, [b'{"began": true}'], [server.fileno() for server in servers])
    return None


def _run(request: dict[str, Any], streams: tuple[int, int, int], channel: socket.socket) -> dict[str, Any]:
    """Run the command to its end, until nothing is left of it; returns the reply to send."""
    ended, ending = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending)
    is_first = os.getpid() == 1
    command = _spawn(request, streams) if is_first else _fork(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    reply = _watch(command, ended, channel)
    if is_first:
        _end_namespace()
    else:
        _end_all(command)
    return reply


def _spawn(request: dict[str, Any], streams: tuple[int, int, int]) -> int:
    """Start the command as pid 1 of its namespace, which nothing there can harm, and so can be restricted as well.

    Uses posix_spawn: copying this process would cost as much as everything else. Raises OSError.
    """
    os.chdir(request["folder"])
    _restrict(request)
    call("close_range", 3, 0x7FFF_FFFF, _CLOSE_RANGE_CLOEXEC)
    return os.posix_spawn(
        request["argv"][0],
        request["argv"],
        request["environment"],
        file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)],
        setsid=True,
        setsigdef=_IGNORED,
    )


def _fork(request: dict[str, Any], streams: tuple[int, int, int]) -> int:
    """Start the command in a child and restrict only that, so it can't signal its supervisor. Raises OSError."""
    failed, failing = os.pipe()
    command = os.fork()
    if command == 0:
        _exec_command(request, streams, failing)
    os.close(failing)
    with open(failed, encoding="utf-8") as pipe:
        if error := pipe.read():
            raise OSError(error)
    return command


def _watch(command: int, ended: int, channel: socket.socket) -> dict[str, Any]:
    """Wait for the command's end, forwarding stop requests; returns the reply to send.

    `ended` becomes readable when a child ends: the command, or an adopted one.
    """
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(channel, select.POLLIN)
    while True:
        for descriptor, _ in waiting.poll():
            if descriptor == ended:
                os.read(ended, 4096)
                status = _reap().get(command)
                if status is not None:
                    code = os.waitstatus_to_exitcode(status)
                    return {"exit": code} if code >= 0 else {"signal": -code}
            elif channel.recv(1) == b"T":
                os.killpg(command, signal.SIGTERM)
            else:  # a kill request, or the other end is closed
                os.kill(command, signal.SIGKILL)
                waiting.unregister(channel)


def _reap() -> dict[int, int]:
    """Reap the children that have ended since the last call; returns their statuses by pid."""
    found: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
            found[reaped[0]] = reaped[1]
    return found


def _end_namespace() -> None:
    """Kill everything else in this pid namespace, as its pid 1, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _end_all(command: int) -> None:
    """Kill the group, then adopted processes, until none is left that could start more."""
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


def _exec_command(request: dict[str, Any], streams: tuple[int, int, int], failing: int) -> NoReturn:
    """Restrict this process and exec the command; an error is written to `failing`."""
    try:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number, inheritable=True)
        os.dup2(failing, 3, inheritable=False)
        os.closerange(4, 65536)
        os.chdir(request["folder"])
        for ignored in _IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        _restrict(request)
        os.execve(request["argv"][0], request["argv"], request["environment"])
    except BaseException as error:  # noqa: BLE001 - a forked child must not continue as its parent
        os.write(3, f"{type(error).__name__}: {error}".encode())
    os._exit(127)


def _restrict(request: dict[str, Any]) -> None:
    lower({int(kind): wanted for kind, wanted in request["limits"].items()})
    if not request["filter"]:
        return
    seccomp.set_no_new_privileges()
    if request["namespaces"] is None:
        rules = landlock.Ruleset(request["landlock"], tcp=request["network"])
        for path, access in request["grants"]:
            _grant(rules, path, _RIGHTS[access])
        invoke(prepare_drop_capabilities())
        rules.restrict()
    seccomp.attach(request["filter"])


def _grant(rules: landlock.Ruleset, path: str, rights: int) -> None:
    """Grant rights on a path, unless it is gone or was replaced by a link since it was listed."""
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
