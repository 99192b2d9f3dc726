"""A small assembler for seccomp's classic BPF: decisions by system call number, with checks of arguments.

The numbers are grouped into intervals with one decision each and found by bisection: about eight comparisons for any
call, where a linear chain takes hundreds. Each comparison jumps straight to the next one or to a decision, and equal
decisions are merged, which keeps the program short; the kernel recompiles it for each process, which is much of the
cost of containing one.

    load the architecture, the number | the comparisons | returns, and jumps to | the blocks that check arguments
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

__all__ = [
    "ALLOW",
    "KILL",
    "NOTIFY",
    "ArgumentCheck",
    "ArgumentRule",
    "Decision",
    "assemble",
    "get_high_offset",
    "get_low_offset",
    "refuse",
]

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000  # the whole process
NOTIFY: Final = 0x7FC00000
_ERRNO: Final = 0x00050000

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP, _EQUAL, _AT_LEAST = 0x05, 0x15, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32: Final = 0x40000000
_NEAR: Final = 255  # a conditional jump's reach


class _Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    operand: int


class ArgumentCheck(NamedTuple):
    """A condition on a 32-bit argument word: masked, it is one of `values` (or none of them, if not `wanted`)."""

    word: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    wanted: bool = True


class ArgumentRule(NamedTuple):
    """Allow the call (or apply `then`, which can be another rule) if all checks hold, else apply `otherwise`."""

    checks: tuple[ArgumentCheck, ...]
    otherwise: int
    then: "int | ArgumentRule" = ALLOW


Decision = int | ArgumentRule


def refuse(errno: int) -> int:
    """The decision to fail a call with an errno."""
    return _ERRNO | errno


def get_low_offset(argument: int) -> int:
    """The offset of an argument's lower half, all that the kernel reads of an `int` (on little-endian machines)."""
    return _ARGUMENTS + 8 * argument


def get_high_offset(argument: int) -> int:
    """The offset of an argument's upper half."""
    return get_low_offset(argument) + 4


def assemble(decisions: Mapping[int, Decision], otherwise: Decision, *, architecture: int) -> bytes:
    """Assemble a seccomp program from decisions by system call number, with `otherwise` for the rest.

    A call of another architecture (`int 0x80` on x86_64) or of the x32 table kills the process. Raises ValueError if
    there are too many intervals.
    """
    bounds = [(0, otherwise)]
    for number in sorted(decisions):
        _set_bound(bounds, number, decisions[number])
        if number + 1 not in decisions:
            _set_bound(bounds, number + 1, otherwise)
    _set_bound(bounds, _X32, KILL)
    program = [
        _Instruction(_LOAD, 0, 0, _ARCHITECTURE),
        _Instruction(_EQUAL, 1, 0, architecture),
        _Instruction(_RETURN, 0, 0, KILL),
        _Instruction(_LOAD, 0, 0, _NUMBER),
        *_compile_search([bound for bound, _ in bounds], [decision for _, decision in bounds]),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _set_bound(bounds: list[tuple[int, Decision]], number: int, decision: Decision) -> None:
    if bounds[-1][0] == number:
        bounds.pop()
    if not bounds or bounds[-1][1] != decision:
        bounds.append((number, decision))


def _compile_search(bounds: Sequence[int], decisions: Sequence[Decision]) -> list[_Instruction]:
    """Compile the comparisons, followed by the decisions."""
    nodes: list[tuple[int, int, int]] = []  # a bound and its two targets: a node, or ~ the index of a decision
    kinds = list(dict.fromkeys(decisions))
    _bisect(bounds, [~kinds.index(decision) for decision in decisions], nodes)

    def resolve_target(target: int) -> int:
        return target if target >= 0 else len(nodes) + ~target

    code = []
    for index, (bound, above, below) in enumerate(nodes):
        distances = resolve_target(above) - index - 1, resolve_target(below) - index - 1
        if max(distances) > _NEAR:
            raise ValueError(f"{len(bounds)} intervals of system calls are too many for one program")
        code.append(_Instruction(_AT_LEAST, *distances, bound))
    blocks: list[_Instruction] = []
    for index, kind in enumerate(kinds):
        block = _compile_decision(kind)
        if len(block) == 1:
            code += block
        else:
            code.append(_Instruction(_JUMP, 0, 0, len(kinds) - index - 1 + len(blocks)))
            blocks += block
    return code + blocks


def _bisect(bounds: Sequence[int], leaves: Sequence[int], nodes: list[tuple[int, int, int]]) -> int:
    """Add the comparisons that separate the leaves; return the first one's index, or the only leaf."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    index = len(nodes)
    nodes.append((bounds[middle], 0, 0))
    below = _bisect(bounds[:middle], leaves[:middle], nodes)
    above = _bisect(bounds[middle:], leaves[middle:], nodes)
    nodes[index] = bounds[middle], above, below
    return index


def _compile_decision(decision: Decision) -> list[_Instruction]:
    if isinstance(decision, int):
        return [_Instruction(_RETURN, 0, 0, decision)]
    block: list[_Instruction] = []
    for check in decision.checks:
        block += _compile_check(check, decision.otherwise)
    return [*block, *_compile_decision(decision.then)]


def _compile_check(check: ArgumentCheck, otherwise: int) -> list[_Instruction]:
    block = [_Instruction(_LOAD, 0, 0, check.word)]
    if check.mask != 0xFFFFFFFF:
        block.append(_Instruction(_AND, 0, 0, check.mask))
    count = len(check.values)
    for index, value in enumerate(check.values):
        left = count - 1 - index
        if check.wanted:  # a hit skips the other comparisons and the refusal
            block.append(_Instruction(_EQUAL, left + 1, 0, value))
        else:  # a hit goes to the refusal; after the last miss, past it
            block.append(_Instruction(_EQUAL, left, 0 if left else 1, value))
    block.append(_Instruction(_RETURN, 0, 0, otherwise))
    return block
