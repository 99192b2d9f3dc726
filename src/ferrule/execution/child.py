"""Entry point of the process that runs one tool call: it imports the function, runs it, answers, and is killed.

`subprocess.py` starts it, and passes the function's address and arguments through stdin. That stays open as long as the
parent lives; this process ends when it closes.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution.error_results import format_tool_traceback
from ferrule.execution.results import make_parts
from ferrule.execution.subprocess import read_frame, write_frame

_MAIN = "__mp_main__"
"""The name under which a script is imported again, as in `multiprocessing`: its `if __name__` part doesn't run."""


def main(answers: int) -> None:
    """Run the call read from stdin and write its answer to the file descriptor `answers`."""
    os.set_inheritable(answers, False)
    lifeline = os.fdopen(os.dup(0), "rb", buffering=0)
    # The tool's own children must not read from the parent's pipe.
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - not a path of the user's
        os.dup2(nothing.fileno(), 0)
    address, arguments = read_frame(lifeline), read_frame(lifeline)
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    if address is None or arguments is None:
        return
    answer = _run(json.loads(address), arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(answers, "wb", buffering=0) as stream:
        write_frame(stream, pickle.dumps(answer))


def _run(address: tuple[str, str | None, str], arguments: bytes) -> tuple[str, Any]:
    module_name, file, qualified_name = address
    try:
        function = _find_function(_import_module(module_name, file), qualified_name)
        value = function(**pickle.loads(arguments))
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return "value", make_parts(value)
    except ToolFailed as error:
        return "failed", error.reason
    except ToolRetry as error:
        return "retry", error.hint
    except BaseException as error:  # noqa: BLE001 - whatever ends the call is its answer
        return "raised", (type(error).__name__, str(error), format_tool_traceback(error))


def _import_module(name: str, file: str | None) -> ModuleType:
    if name != "__main__":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name or file is None:
                raise
    imported_as = _MAIN if name == "__main__" else name
    assert file is not None
    spec = importlib.util.spec_from_file_location(imported_as, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = sys.modules[imported_as] = module
    spec.loader.exec_module(module)
    return module


def _find_function(module: ModuleType, qualified_name: str) -> Callable[..., Any]:
    found: Any = module
    for name in qualified_name.split("."):
        found = getattr(found, name)
    # A decorated name is that of the Tool, which holds the function.
    function: Callable[..., Any] = getattr(found, "function", found)
    return function


def _die_with_parent(lifeline: Any) -> None:
    while lifeline.read(1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
