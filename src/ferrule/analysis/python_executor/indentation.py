"""Repairs the indentation of code that can't be parsed, where there is only one program that it can mean.

The strategies are those of the fourth seed: each rounds every line's indentation to a multiple of the unit, down, to
the nearest, or up. The seed takes the first that parses, which changed the meaning of 18 of 94 programs with one wrong
line. Here a repair counts only if all strategies that parse give the same syntax tree, and so does every other level
near the wrong lines at which the code can be parsed.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

LONGEST: Final = 10_000
"""Characters of code that is repaired."""
_MOST_PARSED: Final = 500_000
"""Characters that are parsed, of all variants of the code together: some sources take 3 µs each."""
_UNITS: Final = (4, 3, 2)
_SHARE: Final = 0.8
"""The share of indented lines that must be multiples of a unit for it to be taken as the code's."""
_NEAR_LEVELS: Final = (-1, 0, 1, 2)
"""The levels that a line is tried at, counted from the one below its indentation."""
_MOST_GROUPS: Final = 3
"""Groups of lines for which every choice is tried: 64 programs."""
_BLANKS: Final = " \t\f"
_WHOLE_BLOCK: Final = "remove the indentation that all lines share"
_BELOW_FIRST: Final = "remove the indentation that all lines below the first share"


def _round_down(width: int, unit: int) -> int:
    return width // unit * unit


def _split_difference(width: int, unit: int) -> int:
    return math.floor(width / unit + 0.5) * unit


def _round_up(width: int, unit: int) -> int:
    return math.ceil(width / unit) * unit


STRATEGIES: Final[Mapping[str, Callable[[int, int], int]]] = {
    "round down": _round_down,
    "split the difference": _split_difference,
    "round up": _round_up,
}
"""In the seed's order: a new width from a line's width and the unit."""


@dataclass(frozen=True, slots=True)
class IndentationRepair:
    """Code with other indentation. `strategies` all give this program, `lines` are those that changed, from 1."""

    code: str
    strategies: tuple[str, ...]
    lines: tuple[int, ...]

    def __str__(self) -> str:
        """Say what was changed, and why there was no choice."""
        shown = ", ".join(map(str, self.lines[:5])) + (", …" if len(self.lines) > 5 else "")
        which = f"lines {shown} were" if len(self.lines) > 1 else f"line {shown} was"
        how = " and ".join(self.strategies)
        agreed = "; they give the same program" if len(self.strategies) > 1 else ""
        return f"the indentation of {which} repaired ({how}{agreed})"


def repair_indentation(code: str) -> IndentationRepair | None:
    """Repair code that can't be parsed; None if it can be, if no strategy helps, or if strategies disagree."""
    if len(code) > LONGEST or parse_program(code) is not None:
        return None
    for name, dedented in _dedent_blocks(code):
        if parse_program(dedented) is not None:
            return _make_repair(code, dedented, (name,))
    parsed: dict[str, str] = {}
    trees: dict[str, str | None] = {}
    for name, rounded in _round_lines(code):
        if rounded not in trees:
            if len(trees) * len(code) > _MOST_PARSED:
                return None
            tree = parse_program(rounded)
            trees[rounded] = None if tree is None else ast.dump(tree)
        if trees[rounded] is not None:
            parsed.setdefault(name, rounded)
    names = tuple(name for name in STRATEGIES if name in parsed)
    if len(set(trees.values()) - {None}) != 1 or not names:
        return None
    return _make_repair(code, parsed[names[0]], names)


def parse_program(code: str) -> ast.Module | None:
    """The syntax tree of code that Python can compile, else None: a `return` outside of a function counts too."""
    from ferrule.sandbox.checks.syntax import parse_code

    tree = parse_code(code)
    return tree if isinstance(tree, ast.Module) else None


def _make_repair(before: str, after: str, strategies: tuple[str, ...]) -> IndentationRepair:
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    changed = tuple(number for number, (old, new) in enumerate(pairs, 1) if old != new and old.strip())
    return IndentationRepair(after, strategies, changed)


def _dedent_blocks(code: str) -> Iterator[tuple[str, str]]:
    """The code without indentation that a whole block has too much.

    Only where the other levels are as regular afterwards: a first line that is indented by mistake is no block.
    """
    blocks = [(_WHOLE_BLOCK, textwrap.dedent(code))]
    first, _, rest = code.partition("\n")
    # A model's first line is often stripped while the others aren't.
    if parse_program(first) is not None:
        blocks.append((_BELOW_FIRST, f"{first}\n{textwrap.dedent(rest)}"))
    for name, dedented in blocks:
        units = _find_units(dedented)
        if dedented != code and len(units) == 1 and units[0] >= max(_find_units(code)):
            yield name, dedented


def _round_lines(code: str) -> Iterator[tuple[str, str]]:
    """The code by each strategy, then with each group of lines at each level near it.

    Neighbours that are off by the same number of spaces are a group: they move together. These programs have no name:
    they only show whether a strategy's program is the only one.
    """
    lines = code.split("\n")
    for tab in _find_tab_widths(code):
        widths = _measure(code, tab)
        for unit in _find_units(code, tab):
            for name, strategy in STRATEGIES.items():
                yield name, _indent(lines, {at: strategy(width, unit) for at, width in widths.items()})
            groups = _group_lines(widths, unit)
            for levels in product(_NEAR_LEVELS, repeat=len(groups) if len(groups) <= _MOST_GROUPS else 0):
                moved = {at: level for group, level in zip(groups, levels, strict=False) for at in group}
                near = {at: _round_down(width, unit) + moved.get(at, 0) * unit for at, width in widths.items()}
                yield "", _indent(lines, near)


def _group_lines(widths: Mapping[int, int], unit: int) -> list[list[int]]:
    """The lines that aren't at a multiple of the unit, in groups of neighbours that are off by the same."""
    groups: list[list[int]] = []
    previous = 0
    for at, width in widths.items():
        off = width % unit
        if off and off == previous:
            groups[-1].append(at)
        elif off:
            groups.append([at])
        previous = off
    return groups


def _indent(lines: list[str], widths: Mapping[int, int]) -> str:
    indented = list(lines)
    for at, width in widths.items():
        indented[at] = " " * width + lines[at].lstrip(_BLANKS)
    return "\n".join(indented)


def _measure(code: str, tab: int) -> dict[int, int]:
    """The width of the indentation of each line that begins a statement or a comment."""
    lines = code.split("\n")
    return {at: len(_get_margin(lines[at]).expandtabs(tab)) for at in _find_statement_lines(code)}


def _get_margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _find_tab_widths(code: str) -> tuple[int, ...]:
    """The widths that a tab may stand for; one without tabs."""
    has_tabs = any("\t" in _get_margin(line) for line in code.split("\n"))
    return (4, 8) if has_tabs else (8,)


def _find_units(code: str, tab: int = 8) -> tuple[int, ...]:
    """The spaces of a level: the largest number that most lines are multiples of, or those that it may be."""
    widths = [width for width in _measure(code, tab).values() if width]
    for unit in _UNITS:
        if sum(width % unit == 0 for width in widths) >= _SHARE * len(widths):
            return (unit,)
    return _UNITS


_TOKEN: Final = re.compile(
    r"""[#][^\n]* | (?P<quotes>'''|\"{3}).*?(?<!\\)(?:\\\\)*(?P=quotes) | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | (?P<open>[(\[{]) | (?P<close>[)\]}]) | (?P<joined>\\\n) | (?P<end>\n)""",
    re.VERBOSE | re.DOTALL,
)


def _find_statement_lines(code: str) -> list[int]:
    """The lines, from 0, that begin a statement or a comment: not within brackets, a string, or after a backslash."""
    starts, depth = [0], 0
    for found in _TOKEN.finditer(code):
        if found["open"]:
            depth += 1
        elif found["close"]:
            depth = max(0, depth - 1)
        elif found["end"] and depth == 0:
            starts.append(code.count("\n", 0, found.end()))
    lines = code.split("\n")
    return [at for at in starts if lines[at].strip()]
