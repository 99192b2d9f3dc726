"""Code that runs inside the sandbox: it reads, converts, profiles and binds data that may be hostile.

The sandbox mounts this folder and imports it under the name `ferrule_tables`, without ferrule, which would take longer
to load than most files take to read. So it imports nothing of ferrule; what it returns is checked outside.
"""

from __future__ import annotations

import importlib
from typing import Any


def call(name: str, arguments: dict[str, Any]) -> Any:
    """Call a function of this package, named `module:function`, and return what it returns."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)(**arguments)
