"""`TaskValue`: what a task left for later tasks, as JSON data and data frames as Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class TaskValue:
    """JSON-able data; and data frames as the bytes of Parquet, each by its key in the data, or by "" if it is all."""

    data: Any = None
    frames: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def is_frame(self) -> bool:
        """Is it a data frame as a whole?"""
        return "" in self.frames

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of each frame."""
        return {key: hashlib.sha256(content).hexdigest() for key, content in self.frames.items()}

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of all of it."""
        whole = json.dumps([self.data, dict(self.digests)], sort_keys=True, default=str)
        return hashlib.sha256(whole.encode()).hexdigest()
