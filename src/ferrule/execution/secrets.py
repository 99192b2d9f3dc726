"""Replaces secrets in what is recorded: values whose *name* marks them as secret, and passwords in addresses.

A secret without such a name (a key in the middle of a sentence) is not found. `_util/secret_words.py` has the words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ferrule._util.secret_words import ANYWHERE, COUNTED, KEYS, LAST, NO_PASS, PASSWORD_IN_ADDRESS

SCRUBBED = "[scrubbed]"
_BARE = (int, float, bool, type(None))
"""Types that contain no text."""
_LONGEST = 10_000
"""The most characters kept of one string."""
_PAIR = 2

_LABELS, _CONTENTS = (
    frozenset(form for name in names for form in (name, name.title(), name.upper()))
    for names in (
        ["name", "key", "k", "header", "field", "variable", "parameter", "property", "label", "element", "selector"],
        ["value", "values", "v", "content", "data", "text"],
    )
)
"""What the members of a pair are called that is an object: `{"Name": "Authorization", "Value": "…"}`."""

_SURE_NAME = re.compile(f"{'|'.join(ANYWHERE)}|(?:{'|'.join(KEYS)})key")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_QUOTE = r"\\*(?:\"{3}|'{3}|[\"'])"
_SEPARATOR = r"(?:=>|:=|[=:])"
_NUMBER = r"(?:[_-]?\d+)?"
_SCHEME = r"(?:(?:bearer|basic|token|digest|negotiate|apikey|hawk|ntlm|aws4[\w-]+)\s+)?"
_VALUE = r"(?!(?:bearer|basic)\b)(?(q)(?:(?!(?P=q)).)+|[^\s\"'&;,]+)"
_WORDS = f"(?:{'|'.join(ANYWHERE)}|(?:{'|'.join(KEYS)})[_-]?key)s?"
_HINTS = (
    *("pass", "pwd", "secret", "credential", "auth", "cookie", "bearer", "token", "jwt", "key", "sig", "basic"),
    *("://", "-u"),
)
"""A text without any of these has no secret that is found."""
_ASSIGNED = tuple(
    re.compile(rf"(?i)(?P<before>{before}(?P<q>{_QUOTE})?{_SCHEME}){value}")
    for before, value in (
        (rf"cookie(?:{_QUOTE})?\s*:\s*", r"[^\"'\n]+"),
        (rf"{_WORDS}(?:[\w-]{{0,40}}(?:{_QUOTE})?\s*{_SEPARATOR}|\s)\s*", _VALUE),
        (rf"token{_NUMBER}(?:{_QUOTE})?(?:\s*{_SEPARATOR}|\s)\s*", _VALUE),
        (
            rf"(?<!\w)(?!(?:{'|'.join(NO_PASS)})\b)\w*(?:{'|'.join(LAST)}){_NUMBER}(?:{_QUOTE})?\s*{_SEPARATOR}\s*",
            rf"(?!(?:(?:(?<![=>])|(?<=tokens=))[\d.]+|true|false|null|none|yes|no)\b){_VALUE}",
        ),
        (rf"(?<![\w-])--?(?:[\w-]*-)?(?:{'|'.join(LAST)}){_NUMBER}\s+", _VALUE),
        (rf"\b(?:{'|'.join(KEYS)}) key(?: provided| is)?\s*[=:]\s*", _VALUE),
        (rf"<[\w:.-]{{0,40}}{_WORDS}[\w.-]{{0,40}}>", r"[^<]+"),
        (r"(?<![\w-])(?:-u|--user|--proxy-user)[\s=]+[\"']?[^\s:\"']+:", r"(?!\d+\b)[^\s\"']+"),
        (r"\b(?<!-)basic\s+", r"(?-i:(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[\d=])[\w+/-]{8,}={0,2})"),
        (r"-----begin [\w ]*private key-----", r"[^-]+"),
        (r"[?&](?:key|sig|(?:x-amz-)?signature)=", r"[\w.%~+/=-]{16,}"),
    )
)
"""A name, what separates it from its value, and the value, which may be quoted."""
_IN_ADDRESS = re.compile(PASSWORD_IN_ADDRESS)
_KEY_AS_USER = re.compile(r"(?<=://)[\w.~%+-]{20,}(?=@)")


def scrub_secrets(value: Any, longest: int | None = _LONGEST) -> Any:
    """Replace the secrets in a JSON value, and cut its long strings, unless `longest` is None."""
    if isinstance(value, dict):
        return _scrub_object(value, longest)
    if isinstance(value, str):
        return scrub_text(value, longest)
    if isinstance(value, list | tuple):
        return list(_scrub_list(value, longest))
    return value


def scrub_text(text: str, longest: int | None = _LONGEST) -> str:
    """Replace the value after a secret's name (`api_key=…`, `Authorization: Bearer …`), and cut a long text."""
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]}… ({len(text):,} characters)"
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    if text[0] in "{[":
        text = _scrub_json(text)
    for pattern in _ASSIGNED:
        text = pattern.sub(rf"\g<before>{SCRUBBED}", text)
    text = _IN_ADDRESS.sub(lambda found: f"{found[0].partition(':')[0]}:{SCRUBBED}", text)
    return _KEY_AS_USER.sub(SCRUBBED, text)


def _scrub_json(text: str) -> str:
    """Replace secrets in a text that is JSON, such as the arguments of a call; any other text stays."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    scrubbed = scrub_secrets(value, None)
    return text if scrubbed == value else json.dumps(scrubbed, ensure_ascii=False)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a value of this name is taken for a secret."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    return _SURE_NAME.search(plain) is not None or _find_last(name).endswith(LAST)


def _find_last(name: str) -> str:
    """The last word of a name, in lower case, if it may mark a secret: `pass` of `dbPass` and of `DB_PASS_2`."""
    words = _WORD.findall(name)
    last = words[-1].lower() if words else ""
    return "" if last in NO_PASS else last


def _scrub_object(value: dict[str, Any], longest: int | None) -> dict[str, Any]:
    clean, is_pair = {}, False
    for name, inner in value.items():
        is_pair = is_pair or (name in _LABELS and isinstance(inner, str) and is_secret_name(inner))
        is_secret = is_secret_name(name) and _may_be_secret(name, inner)
        clean[name] = SCRUBBED if is_secret else inner if type(inner) in _BARE else scrub_secrets(inner, longest)
    # Headers often come as {"name": "Authorization", "value": "…"}.
    return clean | {name: SCRUBBED for name in value if name in _CONTENTS} if is_pair else clean


def _scrub_list(value: Sequence[Any], longest: int | None) -> Iterator[Any]:
    """Yield the elements, without the value in a pair of a secret's name and its value, or after an option."""
    before: Any = None
    for place, inner in enumerate(value):
        is_named = isinstance(before, str) and (
            before.startswith("-") or (len(value) == _PAIR and place == 1 and " " not in before)
        )
        is_secret = is_named and is_secret_name(before) and _may_be_secret(before, inner)
        yield SCRUBBED if is_secret else scrub_secrets(inner, longest)
        before = inner


def _may_be_secret(name: str, inner: Any) -> bool:
    if inner is None or isinstance(inner, bool):
        return False
    last = _find_last(name)
    return not last.endswith(COUNTED) or _has_text(inner, allows_digits=not last.endswith("tokens"))


def _has_text(value: Any, allows_digits: bool) -> bool:
    """Whether a value isn't a number, or several; `allows_digits`, for texts of digits alone."""
    if isinstance(value, str):
        return allows_digits or not value.strip().isdecimal()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_has_text(one, allows_digits) for one in inner)
