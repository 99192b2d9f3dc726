"""Model-written Python: a warm interpreter forks a contained child for each run (`PythonSandbox`).

`sandbox` is the public interface, `result` its results; `parent` controls the processes, `child` runs inside them.
Names are loaded on first use, since the zygote imports this package too and needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.sandbox.python.mounts import Mount
    from ferrule.sandbox.python.result import (
        DataTable,
        KeptFile,
        Opaque,
        PythonResult,
        ResourceUsage,
        RunError,
        UnhashedDict,
        UnhashedSet,
    )
    from ferrule.sandbox.python.sandbox import PythonSandbox
    from ferrule.sandbox.python.session import Checkpoint, SandboxSession

_HOMES = {
    "Checkpoint": "session",
    "DataTable": "result",
    "KeptFile": "result",
    "Mount": "mounts",
    "Opaque": "result",
    "PythonResult": "result",
    "PythonSandbox": "sandbox",
    "ResourceUsage": "result",
    "RunError": "result",
    "SandboxSession": "session",
    "UnhashedDict": "result",
    "UnhashedSet": "result",
}

__all__ = [
    "Checkpoint",
    "DataTable",
    "KeptFile",
    "Mount",
    "Opaque",
    "PythonResult",
    "PythonSandbox",
    "ResourceUsage",
    "RunError",
    "SandboxSession",
    "UnhashedDict",
    "UnhashedSet",
]


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
