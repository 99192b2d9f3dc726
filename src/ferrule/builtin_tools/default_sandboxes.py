"""Sandboxes that tools create at their first call, and that are closed when the program ends."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ferrule._util.background import run_synchronously

if TYPE_CHECKING:
    from ferrule.sandbox.python import PythonSandbox


class Closing(Protocol):
    """A sandbox that can be closed."""

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Release its resources. May be called again."""


Sandbox = TypeVar("Sandbox", bound=Closing)


def make_once(make: Callable[[], Sandbox]) -> Callable[[], Sandbox]:
    """Return a function that creates a sandbox at its first call and returns the same one from then on."""
    lock = threading.Lock()
    made: list[Sandbox] = []

    def get() -> Sandbox:
        with lock:
            if not made:
                made.append(close_at_exit(make()))
            return made[0]

    return get


def close_at_exit(sandbox: Sandbox) -> Sandbox:
    """Close a sandbox when the program ends; returns it."""
    atexit.register(_close, sandbox)
    return sandbox


def _close(sandbox: Closing) -> None:
    run_synchronously(sandbox.aclose())


def _make_python_sandbox() -> PythonSandbox:
    from ferrule.sandbox.python import PythonSandbox

    return PythonSandbox()


default_python = make_once(_make_python_sandbox)
"""Returns the process's own `PythonSandbox`, with default options."""
