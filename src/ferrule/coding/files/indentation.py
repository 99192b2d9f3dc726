"""Indents new lines like the lines of the file that they replace, although these were quoted with other indentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

__all__ = ["Run", "indent_runs"]

Run: TypeAlias = tuple[int, int, Sequence[str]]
"""New lines in place of the quoted lines from the first index to the second."""
_Pairs: TypeAlias = Sequence[tuple[str, str]]
"""The indentation of lines as quoted, and as in the file."""
_Shift: TypeAlias = Callable[[str], str | None]


def indent_runs(wanted: Sequence[str], found: Sequence[str], runs: Sequence[Run]) -> list[list[str]] | None:
    """The new lines of each run, indented for the file. `wanted` are the quoted lines, `found` those of the file.

    None if that is ambiguous: quoted lines with the same indentation are indented differently in the file.
    """
    pairs = _pair_indents(wanted, found, range(len(wanted)))
    if all(quoted == real for quoted, real in pairs):
        return [list(new) for _, _, new in runs]
    indented: list[list[str]] = []
    for first, last, new in runs:
        lines = _shift(new, pairs)
        if lines is None:
            lines = _indent_run(new, _pair_indents(wanted, found, _list_related(wanted, first, last)), last > first)
        if lines is None:
            return None
        indented.append(lines)
    return indented


def _pair_indents(wanted: Sequence[str], found: Sequence[str], numbers: Iterable[int]) -> _Pairs:
    return [(_get_indent(wanted[each]), _get_indent(found[each])) for each in numbers if wanted[each].strip()]


def _list_related(wanted: Sequence[str], first: int, last: int) -> Sequence[int]:
    """The quoted lines that a run replaces; for an insertion those next to it, if there are some on both sides."""
    if last > first:
        return range(first, last)
    before = next((each for each in range(first - 1, -1, -1) if wanted[each].strip()), None)
    after = next((each for each in range(last, len(wanted)) if wanted[each].strip()), None)
    return [before, after] if before is not None and after is not None else []


def _indent_run(new: Sequence[str], pairs: _Pairs, is_replacement: bool) -> list[str] | None:
    """Indent one run by the lines that it replaces or stands between, or leave it if it is indented like the file."""
    indents = {_get_indent(line) for line in new if line.strip()}
    if not indents:
        return list(new)
    if not pairs:
        return None
    real = {each for _, each in pairs}
    is_like_file = real <= indents if is_replacement else len(real) == 1
    if is_like_file and min(indents, key=len) == min(real, key=len):
        return list(new)
    return _shift(new, pairs)


def _shift(new: Sequence[str], pairs: _Pairs) -> list[str] | None:
    known: dict[str, str] = {}
    for quoted, real in pairs:
        if known.setdefault(quoted, real) != real:
            return None
    shift = _find_offset(known) or _find_scale(known)
    shifted: list[str] = []
    for line in new:
        indent = _get_indent(line)
        target = known.get(indent) if indent in known or shift is None else shift(indent)
        if not line.strip():
            shifted.append(line)
        elif target is None:
            return None
        else:
            shifted.append(target + line[len(indent) :])
    return shifted


def _find_offset(known: dict[str, str]) -> _Shift | None:
    """How other indentations are shifted if all known ones have the same added or removed."""
    added = {real.removesuffix(quoted) if real.endswith(quoted) else None for quoted, real in known.items()}
    removed = {quoted.removesuffix(real) if quoted.endswith(real) else None for quoted, real in known.items()}
    if len(added) == 1 and (prefix := added.pop()) is not None:
        return lambda indent: prefix + indent
    if len(removed) == 1 and (lost := removed.pop()) is not None:
        return lambda indent: indent.removeprefix(lost) if indent.startswith(lost) or not indent else None
    return None


def _find_scale(known: dict[str, str]) -> _Shift | None:
    """How other indentations are shifted if the file has a unit of its own: four spaces for each tab, say."""
    levels = {quoted: real for quoted, real in known.items() if quoted or real}
    quoted, real = max(levels.items(), key=lambda each: len(each[0]), default=("", ""))
    is_scaled = all(
        one
        and other
        and len(one) * len(real) == len(other) * len(quoted)
        and {*one} == {*quoted}
        and {*other} == {*real}
        for one, other in levels.items()
    )
    if not is_scaled or len({*quoted}) != 1 or len({*real}) != 1:
        return None

    def scale(indent: str) -> str | None:
        size, rest = divmod(len(indent) * len(real), len(quoted))
        return real[0] * size if {*indent} <= {*quoted} and not rest else None

    return scale


def _get_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
