"""Matches the patterns of a rule against the values of a call, and finds paths outside the workspace.

A path can be written so that it looks like another: `/ws/../etc/passwd` begins with `/ws/` but isn't in it. So a rule
that allows matches only values in plain form; one that denies or asks also matches what a value resolves to. Patterns
see only names; for the workspace, links are followed too.
"""

from __future__ import annotations

import glob
import json
import os
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ferrule.tools.intent import Effect, EffectKind

_OF_PATHS = re.compile(r"[/\\]|^~")
_WILDCARD = re.compile(r"[*?\[]")


def match_argument(arguments: Mapping[str, Any], name: str, pattern: str, every: bool) -> bool:
    """Whether the argument `name` (`*` for any) matches `pattern`.

    With `every`, each element of a list must match, and a path or address must be in plain form; without it, one
    element is enough, and so is a value that resolves to a match. A missing argument doesn't match.
    """
    values = list(arguments.values()) if name == "*" else [arguments[name]] if name in arguments else []
    checks = [_match_value(value, pattern, every) for value in values]
    return bool(checks) and (all(checks) if every else any(checks))


def match_effect(effect: Effect | None, kind: EffectKind | None, target: str | None, every: bool) -> bool:
    """Whether an effect matches `kind` and `target`, where given; `every` as in `match_argument`."""
    if effect is None or (kind is not None and effect.kind != kind):
        return False
    if target is None or _match_text(_normalize_target(effect), target, every):
        return True
    return not every and _covers_only_matches(effect, target)


def _covers_only_matches(effect: Effect, pattern: str) -> bool:
    """Whether `pattern` is for all that is below the path of `effect`: `*/secrets/*` is for `secrets`, too."""
    return pattern.endswith("*") and any(fnmatchcase(folder, pattern) for folder in _list_covered_folders(effect))


def may_cover_match(effect: Effect | None, kind: EffectKind | None, pattern: str) -> bool:
    """Whether an effect may read or write a path that `pattern` matches, below its own or where that isn't known."""
    if effect is None or (kind is not None and effect.kind != kind):
        return False
    if not effect.is_recursive and effect.target != "/":
        return False
    found = _WILDCARD.search(pattern)
    literal = pattern[: found.start()] if found else pattern
    is_below = any(
        literal.startswith(folder) or (found is not None and folder.startswith(literal))
        for folder in _list_covered_folders(effect)
    )
    return is_below and _may_have_contents(effect)


def _list_covered_folders(effect: Effect) -> list[str]:
    if effect.kind not in ("read", "write") or not effect.target or _ADDRESS.match(effect.target):
        return []
    return [f"{form.rstrip('/')}/" for form in expand_forms(_normalize_target(effect)) if form]


def _may_have_contents(effect: Effect) -> bool:
    """Whether something may be below a path: not below a file, nor below a new path that is only written."""
    if "\0" in effect.target:
        return True
    path = os.path.expanduser(effect.target)  # noqa: PTH111 - text stays text
    return os.path.isdir(path) or (effect.kind == "read" and not os.path.lexists(path))  # noqa: PTH112


def find_path_outside(target: str, *folders: Path) -> str | None:
    """Return a real path that `target` may stand for outside of `folders`; None if all are inside of one.

    A relative path starts at the current folder, as in Python's file functions. What isn't a path (an empty text, an
    address, a text with a NUL) is outside. Letter case and Unicode forms are compared literally: if a file system
    equates two of them, the path counts as outside, and the policy asks.
    """
    if not target or "\0" in target or "://" in target:
        return target or "an empty path"
    roots = [os.path.realpath(folder) for folder in folders]
    # The name isn't enough: `notes/../../etc` leads outside, as a link may, and a program may decode a path first.
    for path in dict.fromkeys((target, os.path.expanduser(target), *expand_forms(target))):  # noqa: PTH111 - text stays text
        real = os.path.realpath(path)
        if not any(os.path.commonpath((root, real)) == root for root in roots):
            return real
    return None


def find_effect_outside(effect: Effect | None, folders: Sequence[Path]) -> str | None:
    """The real path outside of `folders` that an effect reads or writes; None if there is none, or are no folders."""
    if not folders or effect is None or effect.kind not in ("read", "write"):
        return None
    return find_path_outside(effect.target, *folders)


def escape_pattern(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return glob.escape(text)


def make_folder_pattern(effect: Effect) -> str:
    """Return a pattern for all below the folder of a read or written path or address, else for just the target."""
    target = _normalize_target(effect)
    folder = posixpath.dirname(target) if effect.kind in ("read", "write") else ""
    is_whole = folder in ("", "/") or (_ADDRESS.match(target) is not None and target.count("/") < 3)
    return escape_pattern(target) if is_whole else f"{escape_pattern(folder)}/*"


def _normalize_target(effect: Effect) -> str:
    # `src/../../etc/passwd` must not look like something below `src/`. Of an address, the form is checked when it is
    # matched: its two slashes must stay.
    is_path = effect.kind in ("read", "write") and not _ADDRESS.match(effect.target)
    return normalize_path(effect.target) if is_path else effect.target


def _match_value(value: Any, pattern: str, every: bool) -> bool:
    if isinstance(value, str):
        return _match_text(value, pattern, every)
    if isinstance(value, list) and value:
        checks = (_match_value(element, pattern, every) for element in value)
        return all(checks) if every else any(checks)
    return _match_text(json.dumps(value, ensure_ascii=False), pattern, every)


def _match_text(value: str, pattern: str, every: bool) -> bool:
    """Whether a text, which may be a path or an address, matches: in every form of it, or in one."""
    if not every:
        return any(fnmatchcase(form, pattern) for form in expand_forms(value))
    if not fnmatchcase(value, pattern):
        return False
    if _OF_PATHS.search(pattern):
        start = "./" if pattern.startswith("./") else ""
        return is_plain(value.removeprefix(start), pattern)
    # `*` and `*.txt` are for any path, `notes*` isn't; a pattern of several words is for a command line.
    return " " in pattern or fnmatchcase(normalize_path(value), pattern)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}")
_SEPARATORS = re.compile(r"[/\\]")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_MOST_DECODINGS = 4


def is_plain(value: str, pattern: str) -> bool:
    """Whether `value` is in plain form: nothing that reads it as a path or address would resolve it to another.

    `.`, `..` and an empty part between two slashes are not plain, also if encoded by backslashes or percent signs; nor
    is a NUL, nor a `~` or user name that `pattern` doesn't have. A slash at the end is plain.
    """
    decoded = _decode_percent(value)
    if decoded is None or "\0" in decoded or (value.startswith("~") and not pattern.startswith("~")):
        return False
    if not _ADDRESS.match(value):
        return _has_plain_segments(value) and (decoded == value or _has_plain_segments(decoded))
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
    except ValueError:
        return False
    if "\\" in decoded or any(character <= " " for character in value) or ("@" in parts.netloc and "@" not in pattern):
        return False
    path = _decode_percent(parts.path)
    is_same = unicodedata.normalize("NFKC", host) == host
    return is_same and path is not None and {".", ".."}.isdisjoint(_SEPARATORS.split(path))


def expand_forms(value: str) -> Iterator[str]:
    """Yield the value, and each plain form that it may resolve to as a path or an address."""
    yield value
    decoded = _decode_percent(value)
    for text in dict.fromkeys((value, value if decoded is None else decoded)):
        if _ADDRESS.match(text):
            yield from _expand_address(text)
            continue
        for path in dict.fromkeys((text, text.replace("\\", "/"), text.partition("\0")[0])):
            whole = os.path.expanduser(path) if path.startswith("~") else path  # noqa: PTH111 - no Path: "" stays ""
            yield normalize_path(whole)
            if not whole.startswith("/"):
                yield normalize_path(posixpath.join(os.getcwd(), whole))  # noqa: PTH109 - likewise


def normalize_path(path: str) -> str:
    """Remove `.`, `..` and repeated slashes. Two leading slashes may be special in POSIX, but aren't on Linux."""
    if not path:
        return path
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal


def _expand_address(address: str) -> Iterator[str]:
    address = "".join(character for character in address.replace("\\", "/") if character > " ")
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return
    host = unicodedata.normalize("NFKC", host).lower()
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        shown = f"{shown}:{port}"
    path = normalize_path(parts.path) if parts.path else "/"
    if parts.path.endswith("/") and not path.endswith("/"):
        path += "/"
    rest = f"?{parts.query}" if parts.query else ""
    yield f"{parts.scheme}://{shown}{path}{rest}"
    if path == "/" and not rest:
        yield f"{parts.scheme}://{shown}"


def _has_plain_segments(path: str) -> bool:
    first, *others = _SEPARATORS.split(path)
    if others and others[-1] == "":
        others.pop()
    return first not in (".", "..") and {"", ".", ".."}.isdisjoint(others)


def _decode_percent(value: str) -> str | None:
    """Undo percent encoding, applied any number of times; None if it was applied too often."""
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(value, errors="surrogateescape")
        if decoded == value:
            return value
        value = decoded
    return None
