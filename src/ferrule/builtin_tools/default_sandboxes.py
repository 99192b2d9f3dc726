"""Sandboxes that tools start at their first call, and that are closed when the program ends."""

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
        """Let go of what it holds. Can be called again."""


Sandbox = TypeVar("Sandbox", bound=Closing)


def make_once(make: Callable[[], Sandbox]) -> Callable[[], Sandbox]:
    """What gives the same sandbox each time, made when it is first asked for."""
    lock = threading.Lock()
    made: list[Sandbox] = []

    def found() -> Sandbox:
        with lock:
            if not made:
                made.append(close_at_exit(make()))
            return made[0]

    return found


def close_at_exit(sandbox: Sandbox) -> Sandbox:
    """The same sandbox, which is closed when the program ends."""
    atexit.register(_close, sandbox)
    return sandbox


def _close(sandbox: Closing) -> None:
    run_synchronously(sandbox.aclose())


def _python() -> PythonSandbox:
    from ferrule.sandbox.python import PythonSandbox

    return PythonSandbox()


default_python = make_once(_python)
"""The one `PythonSandbox` of the process, as its defaults have it."""
