"""Finds keys in what is recorded: those of the environment, those that are saved, and what has the form of one.

A recording must replay exactly what was answered, in an environment with other secrets or none. So the form of a key
alone decides what is left out of a request, which is only compared; and an exchange that contains a value of the
environment, or an answer with a key, is not recorded. What follows a name such as `password` in a sentence is kept
(`ferrule.execution.secrets` removes that from journals).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule._util.secret_words import PASSWORD_IN_ADDRESS
from ferrule.execution.secrets import SCRUBBED, is_secret_name
from ferrule.models.keys import read_keys

_PASSWORD_IN_ADDRESS = re.compile(PASSWORD_IN_ADDRESS)
_FOLDERS = ("PWD", "OLDPWD")
"""Variables that are no passwords, although `db_pwd` is one."""
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
_TOKEN = re.compile(r"(?=.*(?:\d|[a-z].*[A-Z]|[A-Z].*[a-z]))[\w.~+/-]{12,}=*\Z")
"""What the value of a header is if it is none of an example (`$TOKEN`, `YOUR_API_KEY`, `<token>`)."""


def scrub_forms(value: Any) -> Any:
    """A JSON value with whatever has the form of a key replaced, also in the names of an object: anywhere the same."""
    if isinstance(value, str):
        return _HEADERS.sub(rf"\1{SCRUBBED}", _KEYS.sub(SCRUBBED, value))
    if isinstance(value, dict):
        return {scrub_forms(name): scrub_forms(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [scrub_forms(inner) for inner in value]
    return value


class SecretFinder:
    """Finds known secrets in JSON values. `keys` are further ones by name, such as a key that was given as an option.

    The environment and the saved keys are read once, when this is made.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        held = {
            f"the environment variable {name}": value
            for name, value in os.environ.items()
            if (is_secret_name(name) and name not in _FOLDERS) or _PASSWORD_IN_ADDRESS.search(value)
        }
        saved = {f"the saved key {name}": value for name, value in read_keys().items()}
        given = {f"the option {name}": value for name, value in keys.items()}
        known = {name: value.strip() for name, value in (held | saved | given).items()}
        # Names such as GOOGLE_APPLICATION_CREDENTIALS may hold the path of a file, which is no secret.
        self._names = {
            form: name
            for name, value in known.items()
            if len(value) >= _SHORTEST and not os.path.exists(value)  # noqa: PTH110
            # The arguments of a call are JSON in a string.
            for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
        }

    def find_value(self, value: Any) -> str | None:
        """The name of the first secret whose value is in the strings of a JSON value; never the value."""
        texts = list(_iterate_texts(value))
        return next((name for secret, name in self._names.items() if any(secret in text for text in texts)), None)

    def scrub(self, value: Any) -> Any:
        """A JSON value with each known secret, and whatever has the form of a key, replaced."""
        if isinstance(value, str):
            for secret in self._names:
                value = value.replace(secret, SCRUBBED)
            return scrub_forms(value)
        if isinstance(value, dict):
            return {self.scrub(name): self.scrub(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.scrub(inner) for inner in value]
        return value

    def find(self, value: Any) -> str | None:
        """As `find_value`; also what has the form of a key."""
        if (name := self.find_value(value)) is not None:
            return f"the value of {name}"
        for text in _iterate_texts(value):
            if _KEYS.search(text):
                return "what has the form of a provider's key"
            if any(_TOKEN.match(found[2]) for found in _HEADERS.finditer(text)):
                return "what has the form of a header with a key"
        return None


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _iterate_texts(inner)
    elif isinstance(value, list | tuple):
        # A text that streamed is a list of its pieces.
        if value and all(isinstance(inner, str) for inner in value):
            yield "".join(value)
        for inner in value:
            yield from _iterate_texts(inner)
