"""`TaskValue`: what a task left for later tasks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

VALUE_FILE: Final = "result.pickle"
"""Where a run leaves its value for later tasks, as `child/values.py` names it."""


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
