"""A process that has every module at hand that a command imports, and becomes each command that it is sent by a fork.

It is run as a program whose one argument is the number of a socket. Nothing is called here, only imported: each fork
runs `python -m ferrule` from its first line, with streams, environment and folder of its own, and ends as any Python
ends. That commands import all that they need themselves is seen where they are started anew: `test_start.py`, each
`Terminal`, and every console example of the documents.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import termios

import ferrule.cli

OURS = (
    "ferrule.agent.runner",
    "ferrule.embedded.guide",
    "ferrule.engines.decoder",
    "ferrule.engines.scheduler",
    "ferrule.models.gateway.gateway",
    "ferrule.models.local_checkpoints",
    "ferrule.session.session",
    "ferrule.store",
    "ferrule.tokens.template_loading",
    "ferrule.builtin_tools",
)
OTHERS = ("jinja2.sandbox", "jsonschema", "numpy", "rich.console")
"""What commands import late, and what takes longest to import."""
_OPENAI = ("ferrule.models.openai.chat", "httpcore2", "httpx2")
WHERE_ASKED_FOR = {
    "--mcp": ("mcp.client",),
    "analyze": ("ferrule.analysis",),
    "anthropic:": ("ferrule.models.anthropic.model", "httpcore2", "httpx2"),
    "compatible:": _OPENAI,
    "code": (
        "anyio._backends._asyncio",
        "ferrule.coding.commands",
        "ferrule.coding.opening",
        "ferrule.coding.program",
        "ferrule.coding.terminal.program",
        "ferrule.session.terminal.markdown_blocks",
        "rich.markdown",
    ),
    "google:": ("ferrule.models.google.model", "httpcore2", "httpx2"),
    "mcp": ("mcp.client",),
    "openai": _OPENAI,
    "vllm:": _OPENAI,
}
"""By how an argument starts: what takes so long that only a command that will import it is worth it."""


def prepare(arguments: list[str]) -> None:
    """Import what a command with these arguments will import."""
    asked = [WHERE_ASKED_FOR[start] for start in WHERE_ASKED_FOR if any(one.startswith(start) for one in arguments)]
    ours = [f"ferrule.cli.{module.name}" for module in pkgutil.iter_modules(ferrule.cli.__path__)]
    for name in (*ours, *OURS, *OTHERS, *(name for names in asked for name in names)):
        with contextlib.suppress(ImportError):  # the command will say what is not installed
            importlib.import_module(name)
    gc.freeze()


def arguments_of_a_fork(requests: socket.socket) -> list[str]:
    """Serve commands; in each fork, the arguments of its command. Exits at the end of requests.

    A request has the arguments, the environment and the folder, and three descriptors with it. It is answered with
    the process's id, and with that and its exit status as `subprocess` gives it once it has ended.
    """
    signal.signal(signal.SIGCHLD, lambda *_: tell_of_the_ended(requests))
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            raise SystemExit
        asked = json.loads(message)
        prepare(asked["arguments"])
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # no end is told of before its beginning
        process = os.fork()
        if process == 0:
            requests.close()
            become(asked["environment"], asked["folder"], descriptors)
            return asked["arguments"]
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(f"started {process}".encode())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def tell_of_the_ended(requests: socket.socket) -> None:
    """Send the exit status of each command that has ended."""
    with contextlib.suppress(ChildProcessError):  # there is no command any more
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            requests.send(f"ended {ended[0]} {os.waitstatus_to_exitcode(ended[1])}".encode())


def become(environment: dict[str, str], folder: str, descriptors: list[int]) -> None:
    """Take on what a process is started with; on a terminal, lead a session that has it, so that Ctrl-C is a signal."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    is_on_a_terminal = os.isatty(1)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if is_on_a_terminal:
        os.setsid()
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder  # as `python -m` has it


if __name__ == "__main__":
    sys.argv[1:] = arguments_of_a_fork(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("ferrule", run_name="__main__", alter_sys=True)
