"""Removes keys from what is recorded: those of the environment, those that are saved, and what has the form of one.

What follows a name such as `password` in a sentence is kept (`ferrule.execution.secrets` removes that from journals):
a recording must replay the text that the model wrote.
"""

from __future__ import annotations

import os
import re
from typing import Any

from ferrule.execution.secrets import SCRUBBED, is_secret_name
from ferrule.models.keys import read_keys

_SHORTEST = 8
"""Characters of a value in the environment that is taken for a key: a shorter one occurs in ordinary text."""

_KEYS = re.compile(
    r"""\b(?:
        sk-[\w-]{16,} | (?:gsk|xai|csk|fw|hf|r8|pplx|tgp_v1)[_-][\w-]{16,} | AIza[\w-]{30,} | ya29\.[\w.-]{20,}
        | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | (?:AKIA|ASIA)[A-Z0-9]{16} | xox[abprs]-[\w-]{10,}
        | eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+
    )""",
    re.VERBOSE,
)
_HEADERS = re.compile(
    r"""(?i)((?:authorization|x-api-key|x-goog-api-key|api-key)["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?|\bbearer\s+(?=\S{16}))"""
    r"""((?!bearer\b|basic\b|\[scrubbed)[^\s"',;}]+)"""
)


class Scrubber:
    """Replaces secrets in JSON values. `keys` are further values to remove, such as a key that was given as an option.

    The environment and the saved keys are read once, when this is made.
    """

    def __init__(self, *keys: str) -> None:
        held = {value.strip() for name, value in os.environ.items() if is_secret_name(name) or name.endswith("_TOKEN")}
        known = (*held, *read_keys().values(), *keys)
        # Names such as GOOGLE_APPLICATION_CREDENTIALS may hold the path of a file, which is no secret.
        found = {key for key in known if len(key) >= _SHORTEST and not os.path.exists(key)}  # noqa: PTH110
        # The longest first: one key may begin with another.
        self._values = sorted(found, key=len, reverse=True)

    def scrub(self, value: Any) -> Any:
        """The value with every secret in its strings replaced, also in the names of an object."""
        if isinstance(value, str):
            return self._scrub_text(value)
        if isinstance(value, dict):
            return {self._scrub_text(name): self.scrub(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.scrub(inner) for inner in value]
        return value

    def _scrub_text(self, text: str) -> str:
        for key in self._values:
            text = text.replace(key, SCRUBBED)
        return _HEADERS.sub(rf"\1{SCRUBBED}", _KEYS.sub(SCRUBBED, text))
