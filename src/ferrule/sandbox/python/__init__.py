"""Model-written Python: a warm interpreter forks a contained child for each run (`PythonSandbox`).

`sandbox` is the front and `run` what it answers; `zygote`, `child` and `keeper` are what runs on the other side.
Every name is loaded when it is first asked for: the zygote imports this package too, and needs none of the front.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.sandbox.python.run import Opaque, Run, RunError, Table, Usage
    from ferrule.sandbox.python.sandbox import PythonSandbox
    from ferrule.sandbox.python.session import Checkpoint, Session

_HOMES = {
    "Checkpoint": "session",
    "Opaque": "run",
    "PythonSandbox": "sandbox",
    "Run": "run",
    "RunError": "run",
    "Session": "session",
    "Table": "run",
    "Usage": "run",
}

__all__ = [
    "Checkpoint",
    "Opaque",
    "PythonSandbox",
    "Run",
    "RunError",
    "Session",
    "Table",
    "Usage",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
