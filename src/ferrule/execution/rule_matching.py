"""Whether the patterns of a rule match the values of a call, and whether a path lies in the workspace.

A path can be written so that it looks like another: `/ws/../etc/passwd` begins with `/ws/` and isn't in there. So a
rule that allows matches only values that are written plainly; one that denies or asks also matches what they resolve
to. Patterns see names only; for the workspace links are followed too.
"""

from __future__ import annotations

import glob
import json
import os
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ferrule.tools.intent import Effect, EffectKind

_OF_PATHS = re.compile(r"[/\\]|^~")


def match_argument(arguments: Mapping[str, Any], name: str, pattern: str, every: bool) -> bool:
    """Whether the argument `name` (`*`: any of them) matches; of a list every element, or one, by `every`.

    With `every` a value that is a path or an address must be written plainly; without it, one that comes to a match is
    one. An argument that isn't there matches nothing. `every` asks nothing of an argument that `*` doesn't need.
    """
    values = list(arguments.values()) if name == "*" else [arguments[name]] if name in arguments else []
    checks = [_match_value(value, pattern, every) for value in values]
    return bool(checks) and (all(checks) if every else any(checks))


def match_effect(effect: Effect | None, kind: EffectKind | None, target: str | None, every: bool) -> bool:
    """Whether an effect is of `kind` and at `target`, where those are given; `every` as for an argument."""
    if effect is None or (kind is not None and effect.kind != kind):
        return False
    return target is None or _match_text(_normalize_target(effect), target, every)


def find_path_outside(target: str, workspace: Path) -> str | None:
    """The real path of `target`, or of what it may be taken for, that isn't in `workspace`; None where all are.

    A relative path is taken from the current folder, as the file functions of Python take it. What is no path (an
    empty text, an address, one with a NUL) is outside. Letter case and Unicode forms are compared as they are written:
    where a file system takes two of them for one, the path counts as outside, and somebody is asked.
    """
    if not target or "\0" in target or "://" in target:
        return target or "a path that isn't given"
    root = os.path.realpath(workspace)
    # Names alone don't tell: `notes/../../etc` climbs out, a link leads out, and whoever reads a path may decode it.
    for path in dict.fromkeys((target, os.path.expanduser(target), *expand_forms(target))):  # noqa: PTH111 - text stays text
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            return real
    return None


def escape_pattern(text: str) -> str:
    """A pattern that matches exactly this text."""
    return glob.escape(text)


def make_folder_pattern(effect: Effect) -> str:
    """A pattern for the folder of a read or written path and all below it; exactly the target for other effects."""
    target = _normalize_target(effect)
    folder = posixpath.dirname(target) if effect.kind in ("read", "write") else ""
    return f"{escape_pattern(folder)}/*" if folder not in ("", "/") else escape_pattern(target)


def _normalize_target(effect: Effect) -> str:
    # `src/../../etc/passwd` must not pass for something below `src/`.
    return normalize_path(effect.target) if effect.kind in ("read", "write") else effect.target


def _match_value(value: Any, pattern: str, every: bool) -> bool:
    if isinstance(value, str):
        return _match_text(value, pattern, every)
    if isinstance(value, list) and value:
        checks = (_match_value(element, pattern, every) for element in value)
        return all(checks) if every else any(checks)
    return _match_text(json.dumps(value, ensure_ascii=False), pattern, every)


def _match_text(value: str, pattern: str, every: bool) -> bool:
    """Whether a text matches, as the path or address that it may be: in every form of it, or in one."""
    if not every:
        return any(fnmatchcase(form, pattern) for form in expand_forms(value))
    if not fnmatchcase(value, pattern):
        return False
    if _OF_PATHS.search(pattern):
        start = "./" if pattern.startswith("./") else ""
        return is_plain(value.removeprefix(start), pattern)
    # `*` and `*.txt` are about any path, `notes*` isn't; a pattern of several words is about a command line.
    return " " in pattern or fnmatchcase(normalize_path(value), pattern)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}")
_SEPARATORS = re.compile(r"[/\\]")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_MOST_DECODINGS = 4


def is_plain(value: str, pattern: str) -> bool:
    """Whether nothing that reads `value` as a path or an address would make another of it.

    Not with `.` or `..` or nothing between two slashes, also behind backslashes and percent signs, a NUL, or a `~` or
    user name that `pattern` doesn't have. A slash at the end is plain.
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
    """The value, and each plain value that it may come to for whoever reads it as a path or an address."""
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
    """A path without `.`, `..` and doubled slashes; POSIX lets two at the start mean something, and Linux doesn't."""
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
    """The value without percent encoding, however often it was applied; None where that is very often."""
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(value, errors="surrogateescape")
        if decoded == value:
            return value
        value = decoded
    return None
