"""Seeded corruptions of the indentation of real code: functions and classes of the standard library.

Only programs that can no longer be parsed count. `benchmarks/indentation.py` prints how many are repaired, by kind.
"""

import ast
import importlib
import inspect
import random
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ferrule.analysis.python_executor.indentation import STRATEGIES, parse_program, repair_indentation

MODULES = (
    "argparse bisect calendar collections colorsys configparser contextlib copy csv datetime decimal difflib "
    "fractions functools heapq json.decoder json.encoder numbers random shlex statistics string textwrap"
)
SHORTEST, LONGEST = 6, 60


@dataclass(frozen=True)
class Corruption:
    """A program, and the same with other indentation."""

    kind: str
    program: str
    corrupted: str


def read_programs() -> list[str]:
    """The functions and classes of some modules, some of them below an import or above an assignment."""
    programs = []
    for name in MODULES.split():
        source = inspect.getsource(importlib.import_module(name))
        lines = source.split("\n")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                part = lines[node.lineno - 1 : node.end_lineno]
                if SHORTEST <= len(part) <= LONGEST:
                    programs.append(textwrap.dedent("\n".join(part)))
    return sorted(programs)


def shift(line: str, by: int) -> str:
    """The line with `by` more spaces, or as many fewer as it has."""
    return " " * by + line if by >= 0 else line[min(-by, len(line) - len(line.lstrip(" "))) :]


def find_statements(program: str) -> list[int]:
    """The lines, from 0, that begin a statement."""
    nodes = ast.walk(ast.parse(program))
    return sorted({node.lineno - 1 for node in nodes if isinstance(node, ast.stmt)})


def move_one(chance: random.Random, lines: list[str], at: list[int], by: tuple[int, ...]) -> None:
    line = chance.choice(at)
    lines[line] = shift(lines[line], chance.choice(by))


def move_some(chance: random.Random, lines: list[str], at: list[int]) -> None:
    for line in chance.sample(at, min(3, len(at))):
        lines[line] = shift(lines[line], chance.choice((-2, -1, 1, 2)))


def move_run(chance: random.Random, lines: list[str], at: list[int]) -> None:
    first, by = chance.randrange(len(at)), chance.choice((-3, -2, -1, 1, 2, 3))
    for line in at[first : first + chance.randint(2, 5)]:
        lines[line] = shift(lines[line], by)


def move_all(chance: random.Random, lines: list[str], first: int) -> None:
    by = chance.choice((2, 4, 8))
    lines[first:] = [shift(line, by) if line.strip() else line for line in lines[first:]]


def write_tabs(chance: random.Random, lines: list[str], at: list[int]) -> None:
    for line in chance.sample(at, max(1, len(at) // 3)):
        text = lines[line].lstrip(" ")
        levels, rest = divmod(len(lines[line]) - len(text), 4)
        lines[line] = "\t" * levels + " " * rest + text


NEAR, LEVEL, FAR = (-3, -2, -1, 1, 2, 3), (-4, 4), (-7, -6, -5, 5, 6, 7)
KINDS: dict[str, Callable[[random.Random, list[str], list[int]], None]] = {
    "one line by 1 to 3": lambda chance, lines, at: move_one(chance, lines, at, NEAR),
    "one line by a level": lambda chance, lines, at: move_one(chance, lines, at, LEVEL),
    "one line by 5 to 7": lambda chance, lines, at: move_one(chance, lines, at, FAR),
    "three lines by 1 or 2": move_some,
    "2 to 5 lines in a row": move_run,
    "the whole block": lambda chance, lines, _: move_all(chance, lines, 0),
    "all but the first line": lambda chance, lines, _: move_all(chance, lines, 1),
    "a third of the lines with tabs": write_tabs,
}
# Most of what models get wrong is one line.
WEIGHTS = (3, 1, 1, 1, 1, 1, 1, 1)


def make_corruptions(seed: int, count: int) -> Iterator[Corruption]:
    """Make `count` programs that can't be parsed."""
    chance = random.Random(seed)
    programs = read_programs()
    made = 0
    while made < count:
        [kind] = chance.choices(list(KINDS), WEIGHTS)
        program = chance.choice(programs)
        if kind == "all but the first line" or chance.random() < 0.3:
            program = f"import math\n{program}"
        if chance.random() < 0.5:
            program = f"{program}\n\nresult = 1\n"
        lines = program.split("\n")
        KINDS[kind](chance, lines, find_statements(program))
        corrupted = "\n".join(lines)
        if parse_program(corrupted) is None:
            made += 1
            yield Corruption(kind, program, corrupted)


def repair(code: str) -> str | None:
    """The code as ferrule repairs it."""
    repaired = repair_indentation(code)
    return repaired.code if repaired else None


def take_first_that_parses(code: str) -> str | None:
    """The code as the fourth seed repairs it: by the first strategy whose code can be parsed."""
    lines = code.expandtabs(8).split("\n")
    for strategy in STRATEGIES.values():
        widths = [strategy(len(line) - len(line.lstrip(" ")), 4) for line in lines]
        rounded = "\n".join(" " * width + line.lstrip(" ") for width, line in zip(widths, lines, strict=True))
        if parse_program(rounded) is not None:
            return rounded
    return None


def judge(corruption: Corruption, repaired: str | None) -> str:
    """`repaired`, `left` or `wrong`: with another syntax tree."""
    if repaired is None:
        return "left"
    same = ast.dump(ast.parse(repaired)) == ast.dump(ast.parse(corruption.program))
    return "repaired" if same else "wrong"


def count_outcomes(
    seed: int = 14, count: int = 500, by: Callable[[str], str | None] = repair
) -> dict[str, Counter[str]]:
    """The outcomes by kind of corruption, and of all."""
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in (*KINDS, "all")}
    for corruption in make_corruptions(seed, count):
        outcome = judge(corruption, by(corruption.corrupted))
        outcomes[corruption.kind][outcome] += 1
        outcomes["all"][outcome] += 1
    return outcomes
