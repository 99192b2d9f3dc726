"""The program that `contained.py` starts: it runs a function's body in a child, contained or not, and prints its value.

Its one argument is a JSON object. What is imported here is there for the body, which may import nothing from outside
the view once it is contained.
"""

# ruff: noqa: E402, F401 - what a body uses
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from pathlib import Path

given = json.loads(sys.argv[1])
sys.path += given["paths"]

from escaping.container_filter import install as refuse_namespaces

from ferrule.sandbox.containment import RunLimits, confine, enter, prepare
from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.syscalls import call
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import find_python_paths

sys.path.remove(given["paths"][-1])  # nothing else of it belongs to the view

VIEWED, CANARY = given["viewed"], given["canary"]
VIEW = find_python_paths([Path(path) for path in given["readable"]])
OTHER = os.getpid()


class Outcome(str):
    """An errno's name, which stays one where a number would be compared or written."""

    def __ge__(self, other):
        return str(self)

    def __gt__(self, other):
        return str(self)

    def hex(self):
        return str(self)


def attempt(action, *arguments):
    try:
        return action(*arguments)
    except OSError as error:
        return Outcome(errno.errorcode.get(error.errno, str(error)))


def forked():
    pid = attempt(os.fork)
    if pid == 0:
        os._exit(0)
    return pid if isinstance(pid, str) else "forked"


def shared_memory():
    """A System V block, taken away again: it would outlive every process."""
    block = call("shmget", 0, 4096, 0o600)
    attempt(call, "shmctl", block, 0, 0)
    return "made"


def each(attempts):
    outcomes = {}
    for name, source in attempts.items():
        *before, last = source.split("; ")
        for line in before:
            exec(line)
        outcomes[name] = eval(last)
    return outcomes


def main():
    namespace = globals()
    exec("def body():\n" + textwrap.indent(textwrap.dedent(given["body"]), "    "), namespace)
    if given["refused"]:
        refuse_namespaces()
    prepared, forker = None, os.getpid()
    if given["tier"] is not None:
        tier = Tier(given["tier"])
        entered = enter(VIEW, tier, folder=None if tier is Tier.FULL else Path(given["folder"]))
        prepared, forker = prepare(entered, RunLimits(**given["limits"])), os.getpid()
    child = os.fork()
    if child == 0:
        try:
            if prepared is not None:
                confine(prepared, parent=forker)
            os.write(1, json.dumps(namespace["body"]()).encode())
        except BaseException:  # noqa: BLE001 - it is printed, and the process ends
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(0)
    if prepared is not None:
        prepared.release()
    os._exit(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


main()
