"""Names that users of other libraries try: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn


def make_getattr(advice: Mapping[str, str]) -> Callable[[Any, str], NoReturn]:
    """Make the `__getattr__` of a class, which Python calls for missing attributes only.

    `advice` has what to write for each name. Define it under `if not TYPE_CHECKING`: a type checker takes a class with
    `__getattr__` to have every attribute.
    """

    def explain_missing(self: object, name: str) -> NoReturn:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(f"{text}; write {advice[name]}" if name in advice else text, name=name, obj=self)

    return explain_missing
