"""Replaces secrets in what is recorded: values whose *name* marks them as secret.

A secret without such a name (a key in the middle of a sentence) is not found.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

SCRUBBED = "[scrubbed]"
_BARE = (int, float, bool, type(None))
"""Types that contain no text."""
_LONGEST = 10_000
"""The most characters kept of one string."""

_NAMES = (
    r"api[_-]?keys?|access[_-]?keys?|private[_-]?keys?|secret[_-]?keys?|passwords?|passwd|passphrase|pwd|secrets?"
    r"|authorization|credentials?|cookies?|bearer|token"
)
_SECRET_NAME = re.compile(
    r"apikey|accesskey|privatekey|secretkey|signingkey|encryptionkey|password|passwd|passphrase|secret|authorization"
    r"|credential|cookie|bearer|token$|^(?:auth|pwd)$"
)
_ASSIGNED = re.compile(
    rf"(?i)((?:{_NAMES})[\"']?\s*(?:[=:]\s*|\s)[\"']?(?:(?:bearer|basic|token)\s+)?)((?!bearer\b|basic\b)[^\s\"'&;,]+)"
)
_FLAG_NAMES = re.compile(rf"(?i)(?:{_NAMES})")


def scrub_secrets(value: Any, longest: int | None = _LONGEST) -> Any:
    """Replace the secrets in a JSON value, and cut its long strings, unless `longest` is None."""
    if isinstance(value, str):
        return scrub_text(value, longest)
    if isinstance(value, dict):
        return _scrub_object(value, longest)
    if isinstance(value, list):
        return [scrub_secrets(element, longest) for element in value]
    return value


def scrub_text(text: str, longest: int | None = _LONGEST) -> str:
    """Replace the value after a secret's name (`api_key=…`, `Authorization: Bearer …`), and cut a long text."""
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]}… ({len(text):,} characters)"
    if _FLAG_NAMES.search(text) is None:
        return text
    return _ASSIGNED.sub(rf"\1{SCRUBBED}", text)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a value of this name is taken for a secret."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    return _SECRET_NAME.search(plain) is not None or (plain.endswith("tokens") and plain != "tokens")


def _scrub_object(value: dict[str, Any], longest: int | None) -> dict[str, Any]:
    clean = {}
    for name, inner in value.items():
        is_secret = is_secret_name(name) and _may_be_secret(name, inner)
        clean[name] = SCRUBBED if is_secret else inner if type(inner) in _BARE else scrub_secrets(inner, longest)
    # Headers often come as {"name": "Authorization", "value": "…"}.
    if "value" in value:
        label = value.get("name", value.get("key"))
        if isinstance(label, str) and is_secret_name(label):
            clean["value"] = SCRUBBED
    return clean


def _may_be_secret(name: str, inner: Any) -> bool:
    if inner is None or isinstance(inner, bool):
        return False
    # `max_tokens` and similar names are counts.
    return not (isinstance(inner, int | float) and name.casefold().endswith("tokens"))
