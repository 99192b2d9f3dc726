"""File patterns such as `*.py` and `src/**/*.{ts,tsx}`, as .gitignore and ripgrep read them, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

__all__ = ["GlobInvalid", "compile_glob", "expand_braces"]

_LONGEST: Final = 1000
_MOST_ALTERNATIVES: Final = 64
_BRACES: Final = re.compile(r"\{([^{}]*)\}")

Segments = Sequence[re.Pattern[str] | None]
"""A pattern between slashes each; None for `**`, any number of folders."""


class GlobInvalid(ValueError):  # noqa: N818 - what happened
    """A file pattern that can't be read; the text says why."""


@lru_cache(maxsize=64)
def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a function that matches paths relative to a folder, written with `/`.

    One without a slash matches names in any folder. `*` and `?` match no slash, `**` between slashes any folders;
    `{a,b}` and `[a-z]` work. A folder that matches includes what is below it. Raises `GlobInvalid`.
    """
    text = pattern.strip().removeprefix("./").rstrip("/")
    if not text or len(text) > _LONGEST:
        raise GlobInvalid(f"it has more than {_LONGEST:,} characters" if text else "it is empty")
    if text.startswith("!") or "\\" in text:
        problem = "it names the files to include" if text.startswith("!") else "folders are separated by /"
        raise GlobInvalid(f"{problem}; write for example src/**/*.py")
    choices = [_compile_segments(each) for each in expand_braces(text)]
    return lambda path: any(_match(choice, path.split("/")) for choice in choices)


def expand_braces(text: str) -> list[str]:
    """The patterns that one with braces stands for. Raises `GlobInvalid` if they are too many or not closed."""
    waiting, expanded = [text], []
    while waiting:
        one = waiting.pop()
        found = _BRACES.search(one)
        if found is None:
            expanded.append(one)
        else:
            waiting += [one[: found.start()] + each + one[found.end() :] for each in found[1].split(",")]
        if len(waiting) + len(expanded) > _MOST_ALTERNATIVES:
            raise GlobInvalid(f"its braces stand for more than {_MOST_ALTERNATIVES} patterns")
    if any("{" in each or "}" in each for each in expanded):
        raise GlobInvalid("a brace isn't closed")
    return expanded


def _compile_segments(text: str) -> Segments:
    names = text.removeprefix("/").split("/")
    if "/" not in text:
        names = ["**", *names]
    if names[-1] == "**":
        names[-1] = "*"  # whatever is below a folder that matches is included anyway
    # `translate` writes atomic groups, so matching a name takes no more than quadratic time.
    return [None if name == "**" else re.compile(translate(name.replace("[^", "[!"))) for name in names if name]


def _match(segments: Segments, names: Sequence[str]) -> bool:
    """Whether a path, or a folder above it, matches."""
    states = _close({0}, segments)
    for name in names:
        following = set()
        for state in states:
            segment = segments[state] if state < len(segments) else None
            if state < len(segments) and segment is None:
                following.add(state)
            elif segment is not None and segment.match(name):
                following.add(state + 1)
        states = _close(following, segments)
        if len(segments) in states:
            return True
    return False


def _close(states: set[int], segments: Segments) -> set[int]:
    """Add the states that are reached because `**` also matches no folder."""
    for state in sorted(states):
        at = state
        while at < len(segments) - 1 and segments[at] is None:
            at += 1
            states.add(at)
    return states
