"""Whether a function can be called as a callback."""

from __future__ import annotations

import inspect
from typing import Any


def find_callback_problem(callback: Any) -> str:
    """Say why an object can't be called with one argument; empty if it can, or if that isn't known."""
    name = getattr(callback, "__qualname__", repr(callback))
    if not callable(callback):
        return f"not {name}"
    try:
        signature = inspect.signature(callback)
    except ValueError:  # some built-in functions have none
        return ""
    try:
        signature.bind(None)
    except TypeError as error:
        return f"and {name} can't be called with one argument: {error}"
    return ""
