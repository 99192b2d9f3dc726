"""The `where` of a section: comparisons of its numbers, parsed by Python and evaluated without `eval`."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Value = Fraction | int
_Term = Callable[[Mapping[str, Value]], Value]
_OPERATORS: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: Fraction(left) / right,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_DIVISIBLE = re.compile(r"\b([a-z]\w*) % ([a-z]\w*) == 0")


class ConditionError(ValueError):
    """A condition that the small language of `where` doesn't allow."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over a section's numbers.

    `multiples` are pairs (a, b) where a must be a multiple of b: drawing such an `a` at random rarely works.
    """

    text: str
    names: frozenset[str]
    multiples: tuple[tuple[str, str], ...]
    test: Callable[[Mapping[str, Value]], bool]

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether these numbers meet it; a division by zero in it counts as no."""
        try:
            return self.test(values)
        except ZeroDivisionError:
            return False


def parse_condition(text: str) -> Condition:
    """Parse a condition: Python comparisons with `+ - * / %`, parentheses, `and`, `or`, `not`.

    Raises ConditionError.
    """
    plain = re.sub(r"[{}]", "", text)
    try:
        tree = ast.parse(plain, mode="eval").body
    except SyntaxError as error:
        raise ConditionError(f"where: {error.msg}") from error
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    multiples = tuple((match[1], match[2]) for match in _DIVISIBLE.finditer(plain))
    return Condition(text, names, multiples, _compile_comparison(tree))


def _compile_comparison(node: ast.expr) -> Callable[[Mapping[str, Value]], bool]:
    if isinstance(node, ast.BoolOp):
        parts = [_compile_comparison(value) for value in node.values]
        decide = all if isinstance(node.op, ast.And) else any
        return lambda values: decide(part(values) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _compile_comparison(node.operand)
        return lambda values: not inner(values)
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        terms = [_compile_term(term) for term in (node.left, *node.comparators)]
        comparisons = [_COMPARISONS[type(op)] for op in node.ops]

        def compare(values: Mapping[str, Value]) -> bool:
            numbers = [term(values) for term in terms]
            pairs = zip(comparisons, numbers, numbers[1:], strict=False)
            return all(comparison(left, right) for comparison, left, right in pairs)

        return compare
    raise ConditionError("where: expected a comparison such as a > b")


def _compile_term(node: ast.expr) -> _Term:
    if isinstance(node, ast.Name):
        name = node.id
        return lambda values: values[name]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        number = node.value if isinstance(node.value, int) else Fraction(str(node.value))
        return lambda _: number
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _compile_term(node.operand)
        return lambda values: -inner(values)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right, combine = _compile_term(node.left), _compile_term(node.right), _OPERATORS[type(node.op)]
        return lambda values: combine(left(values), right(values))
    raise ConditionError("where: only numbers, slots, + - * / % and parentheses can be compared")
