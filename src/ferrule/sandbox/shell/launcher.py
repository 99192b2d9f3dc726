"""The program of the container tier, started once by exec: starts commands for a process that must not fork itself.

    python -I -S launcher.py FOLDER_OF_FERRULE DESCRIPTOR

Each message on its socket brings descriptors: a request (JSON in a file), standard input, output and errors, and a
socket on which that command is told of and ended. For each, a keeper is forked, which restricts and starts the command,
adopts whatever it leaves behind, and ends all of it.
"""

# A program that should start fast, and opens descriptors more than paths.
# ruff: noqa: PTH115, PTH123

import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

sys.path.insert(0, sys.argv[1])

from ferrule.sandbox.linux import landlock, seccomp
from ferrule.sandbox.linux.identity import dropping_capabilities
from ferrule.sandbox.linux.limits import lower
from ferrule.sandbox.linux.syscalls import PR_SET_CHILD_SUBREAPER, make, prctl

_MAKE_PIPE = 1 << 10
_RIGHTS = {
    "read": landlock.READ | landlock.EXECUTE,
    "write": landlock.READ | landlock.EXECUTE | landlock.WRITE | landlock.MAKE_SYMLINK | _MAKE_PIPE,
    "list": landlock.LIST,
}
_UNKILLABLE_AFTER = 10.0


def main() -> None:
    """Take requests until the other end of the socket is closed."""
    requests = socket.socket(fileno=int(sys.argv[2]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 5)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            _keep(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(request: int, stdin: int, stdout: int, stderr: int, line: int) -> NoReturn:
    """Start one command and stay until nothing is left of it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    with open(request, "rb") as file:
        asked = json.load(file)
    channel = socket.socket(fileno=line)
    failed, failing = os.pipe()
    command = os.fork()
    if command == 0:
        _become(asked, (stdin, stdout, stderr), failing)
    for descriptor in (stdin, stdout, stderr, failing):
        os.close(descriptor)
    with open(failed, encoding="utf-8") as pipe:
        error = pipe.read()
    told: dict[str, Any] = {"error": error} if error else _watched(command, channel)
    _end_all(command)
    with suppress(OSError):
        channel.send(json.dumps(told).encode())
    os._exit(0)


def _watched(command: int, channel: socket.socket) -> dict[str, Any]:
    """Wait for the command's end, passing on what is to be done to it; its end in the words of the other side."""
    ended = os.pidfd_open(command)
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(channel, select.POLLIN)
    while True:
        for descriptor, _ in waiting.poll():
            if descriptor == ended:
                code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
                return {"exit": code} if code >= 0 else {"signal": -code}
            asked = channel.recv(1)
            if asked == b"T":
                os.killpg(command, signal.SIGTERM)
            else:  # asked to, or nobody is there any more
                os.kill(command, signal.SIGKILL)
                waiting.unregister(channel)


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
