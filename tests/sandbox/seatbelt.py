"""For tests of the seatbelt tier: a reader of its profiles, and a stand-in for the program that Linux lacks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from ferrule.sandbox.macos.sbpl import Profile

Expression = str | list["Expression"]

_TOKEN = re.compile(r'\s*(?:(?P<mark>[()])|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s()"]+))', re.DOTALL)

_STAND_IN = """
import os, sys
arguments, names = sys.argv[1:], []
while arguments[0] == "-D":
    name, equals, value = arguments[1].partition("=")
    assert equals and value.startswith("/"), arguments[1]
    names.append(name)
    del arguments[:2]
assert arguments[0] == "-p" and arguments[1].startswith("(version 1)\\n(deny default)\\n"), arguments
assert all(f'(param "{name}")' in arguments[1] for name in names), names
assert arguments[2] == "--", arguments
os.execv(arguments[3], arguments[3:])
"""


def stand_in(folder: Path) -> Path:
    """A `sandbox-exec` that checks its arguments and becomes the rest of them. It contains nothing."""
    program, tool = folder / "sandbox_exec.py", folder / "sandbox-exec"
    program.write_text(_STAND_IN, encoding="utf-8")
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{program}" "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    return tool


def expressions(text: str) -> list[Expression]:
    """The expressions of a profile. Raises AssertionError where its parentheses or strings aren't well-formed."""
    found: list[Expression] = []
    lists, place = [found], 0
    while text[place:].strip():
        token = _TOKEN.match(text, place)
        assert token is not None, text[place : place + 40]
        place = token.end()
        if token["mark"] == "(":
            inner: list[Expression] = []
            lists[-1].append(inner)
            lists.append(inner)
        elif token["mark"] == ")":
            lists.pop()
            assert lists, "a parenthesis too many"
        else:
            lists[-1].append(token["word"] or f"'{token['text']}")
    assert len(lists) == 1, "a parenthesis is missing"
    return found


def allows(profile: Profile, operation: str, path: str) -> bool:
    """Whether a profile lets an operation be done to a real path: the last rule that matches decides."""
    answer = False
    for verb, *rest in expressions(profile.text):
        operations = [one for one in rest if isinstance(one, str)]
        filters = [one for one in rest if isinstance(one, list)]
        if verb not in {"allow", "deny"} or not any(fnmatchcase(operation, one) for one in operations):
            continue
        if not filters or any(_matches(one, path, profile.paths) for one in filters):
            answer = verb == "allow"
    return answer


def unconditional(profile: Profile) -> Iterator[str]:
    """The operations of rules without any filter."""
    for verb, *rest in expressions(profile.text):
        if verb == "allow" and all(isinstance(one, str) for one in rest):
            yield from (one for one in rest if isinstance(one, str))


def _matches(one: list[Expression], path: str, paths: tuple[str, ...]) -> bool:
    kind, given = one[0], one[1]
    named = paths[int(given[1].removeprefix("'P"))] if isinstance(given, list) else str(given)[1:]
    if kind == "literal":
        return path == named
    return kind == "subpath" and (path == named or path.startswith(named.rstrip("/") + "/"))
