"""A process that has every module at hand that a command imports, and becomes each command that it is sent by a fork.

It is run as a program whose one argument is the number of a socket. Nothing is called here, only imported: each fork
runs `python -m ferrule` from its first line, with streams, environment and folder of its own, and ends as any Python
ends. That commands import all that they need themselves is seen where they are started anew: `test_start.py`, each
`Terminal`, and every console example of the documents.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys

import ferrule.cli

OURS = (
    "ferrule.embedded.guide",
    "ferrule.engines.decoder",
    "ferrule.engines.scheduler",
    "ferrule.models.gateway.gateway",
    "ferrule.models.checkpoints.loading",
    "ferrule.tokens.template_loading",
    "ferrule.builtin_tools",
)
OTHERS = ("jinja2.sandbox", "jsonschema", "numpy", "rich.console")
"""What commands import late, and what takes longest to import."""
_OPENAI = ("ferrule.models.openai.chat", "httpcore2", "httpx2")
WHERE_ASKED_FOR = {
    "--mcp": ("mcp.client",),
    "analyze": ("ferrule.analysis.data.sources", "ferrule.analysis.recording", "ferrule.models.recording"),
    "anthropic:": ("ferrule.models.anthropic.model", "httpcore2", "httpx2"),
    "compatible:": _OPENAI,
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
    """Serve commands one after the other; in each fork, the arguments of its command. Exits at the end of requests.

    A request has the arguments, the environment and the folder, and three descriptors with it. It is answered with
    the process's id, and with its exit status as `subprocess` tells it once it has ended.
    """
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            raise SystemExit
        asked = json.loads(message)
        prepare(asked["arguments"])
        process = os.fork()
        if process == 0:
            requests.close()
            become(asked["environment"], asked["folder"], descriptors)
            return asked["arguments"]
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(str(process).encode())
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def become(environment: dict[str, str], folder: str, descriptors: list[int]) -> None:
    """Take on what a process is started with."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder  # as `python -m` has it


if __name__ == "__main__":
    sys.argv[1:] = arguments_of_a_fork(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("ferrule", run_name="__main__", alter_sys=True)
