"""`TaskValue`: what a task left for later tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ferrule.sandbox.python.wire.encoding import MAX_BLOB_BYTES

VALUE_FILE: Final = "result.pickle"
"""Where a run leaves its value for later tasks, as `child/values.py` names it."""

_OTHER_BYTES: Final = 1 << 20
"""What is left of the sandbox's limit for the task's code and the names of the results."""


@dataclass(frozen=True)
class TaskValue:
    """A value as JSON data; and pickled, with its own types, where JSON hasn't all of it.

    The pickle is compressed bytes that only the sandbox reads: it was written by code of a model.
    """

    data: Any = None
    pickled: bytes | None = None

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of it."""
        whole = (
            self.pickled if self.pickled is not None else json.dumps(self.data, sort_keys=True, default=str).encode()
        )
        return hashlib.sha256(whole).hexdigest()

    @cached_property
    def size(self) -> int:
        """The bytes that it takes to hand it to a later task."""
        return len(self.pickled) if self.pickled is not None else len(json.dumps(self.data, default=str))


def describe_excess(results: Mapping[str, TaskValue]) -> str | None:
    """Say that results of earlier tasks are more than a task can be handed, and what to do; None if they aren't."""
    limit = MAX_BLOB_BYTES - _OTHER_BYTES
    if sum(value.size for value in results.values()) <= limit:
        return None
    sizes = ", ".join(f"{name} left {value.size / 1e6:,.0f} MB" for name, value in results.items())
    return (
        f"the results that it needs are more than the {limit / 1e6:,.0f} MB that a task can be handed: {sizes}. "
        "Aggregate or filter in the earlier task, or compute both in one task from the tables"
    )
