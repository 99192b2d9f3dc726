"""The calculator: an allow-list walk over an expression's syntax tree, never `eval`.

`scan.py` decides what an expression may contain, `exact.py`, which has the limits, and `python.py` do the arithmetic.
Pure, so any thread may call it: no signals, no alarm, no state.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ferrule._util.syntax_tree import parse_python
from ferrule.arithmetic import exact, python
from ferrule.arithmetic.exact import CalculatorError
from ferrule.arithmetic.scan import UNREADABLE, explain_refusal, scan_expression

__all__ = ["CalculatorError", "StyleName", "calculate", "evaluate"]

StyleName = Literal["exact", "python"]
Value = Any  # an int, a str, or the style's own number: a pair (exact) or a float (python)


@dataclass(frozen=True, slots=True)
class _Style:
    operations: Mapping[type[ast.operator], Callable[[Value, Value], Value]]
    read_decimal: Callable[[str], Value]
    negate: Callable[[Value], Value]
    to_whole: Callable[[Value], int | None]
    write: Callable[[Value], str]
    empty: str


def evaluate(expression: str, *, style: StyleName = "exact") -> str:
    """The result of an expression, as text.

    `style="exact"` computes with fractions and writes `24` for `48 / 2` and `0.3` for `0.1 + 0.2`; `style="python"`
    gives CPython's own text, `24.0` and `0.30000000000000004`. Raises CalculatorError, whose text says why, for an
    invalid expression, and ValueError for an unknown style. Takes at most 50 ms and 32 MB for any expression.
    """
    chosen = _STYLES.get(style)
    if chosen is None:
        raise ValueError(f'style is "exact" or "python", not {style!r}')
    try:
        text = scan_expression(expression)
        tree = parse_python(text, "<calculator>", mode="eval")
        result = _evaluate_node(tree.body, text, chosen)
    except SyntaxError:
        raise CalculatorError(explain_refusal(text)) from None
    except RecursionError:
        raise CalculatorError("the expression is nested too deeply for the room that is left") from None
    except MemoryError:
        raise CalculatorError("the expression takes more memory than there is") from None
    if type(result) is int:
        return exact.write_whole(result)
    if type(result) is str:
        return result or chosen.empty
    return chosen.write(result)


def calculate(expression: str, *, style: StyleName = "exact") -> str:
    """The result of an expression as text, or `error: ` and the reason, for a model to read.

    Like `evaluate`, but never raises for an invalid expression.
    """
    try:
        return evaluate(expression, style=style)
    except CalculatorError as error:
        return f"error: {error}"


def _evaluate_node(node: ast.expr, source: str, style: _Style) -> Value:
    if isinstance(node, ast.Constant):
        return _read_constant(node, source, style)
    if isinstance(node, ast.BinOp):
        operation = style.operations.get(type(node.op))
        if operation is None:
            raise CalculatorError("that operator is not offered")
        left = _evaluate_node(node.left, source, style)
        right = _evaluate_node(node.right, source, style)
        if type(left) is str or type(right) is str:
            raise CalculatorError("a string can't be reckoned with: use its len() or .count()")
        return operation(left, right)
    reader = _READERS.get(type(node))
    if reader is None:
        raise CalculatorError(_REASONS.get(type(node), UNREADABLE))
    return reader(node, source, style)


def _read_constant(node: ast.Constant, source: str, style: _Style) -> Value:
    value = node.value
    kind = type(value)
    if kind is int or kind is str:
        return value
    if kind is not float:
        raise CalculatorError("only decimal numbers and strings are offered")
    # The parser has already rounded the number to a float: use its text.
    if source.isascii():
        return style.read_decimal(source[node.col_offset : node.end_col_offset])
    return style.read_decimal(source.encode()[node.col_offset : node.end_col_offset].decode())


def _evaluate_unary(node: ast.UnaryOp, source: str, style: _Style) -> Value:
    value = _evaluate_node(node.operand, source, style)
    if type(value) is str:
        raise CalculatorError("a string has no sign")
    if type(node.op) is ast.USub:
        return style.negate(value)
    if type(node.op) is ast.UAdd:
        return value
    raise CalculatorError("that operator is not offered")


def _evaluate_call(node: ast.Call, source: str, style: _Style) -> int:
    function = node.func
    if not isinstance(function, ast.Name | ast.Attribute):
        raise CalculatorError("two values side by side: write an operator such as * between them")
    if len(node.args) != 1 or node.keywords:
        raise CalculatorError(_CALL_REASON)
    if isinstance(function, ast.Name) and function.id == "len":
        text = _evaluate_node(node.args[0], source, style)
        if type(text) is not str:
            raise CalculatorError('len() takes a string in quotes, as in len("hello")')
        return len(text)
    if isinstance(function, ast.Attribute) and function.attr == "count":
        text = _evaluate_node(function.value, source, style)
        part = _evaluate_node(node.args[0], source, style)
        if type(text) is not str or type(part) is not str:
            raise CalculatorError('.count() goes from string to string, as in "banana".count("a")')
        return text.count(part)
    raise CalculatorError(_CALL_REASON)


def _evaluate_subscript(node: ast.Subscript, source: str, style: _Style) -> str:
    text = _evaluate_node(node.value, source, style)
    if type(text) is not str:
        raise CalculatorError('only a string has positions, as in "hello"[0]')
    if not isinstance(node.slice, ast.Slice):
        position = _evaluate_position(node.slice, source, style)
        if position is None or not -len(text) <= position < len(text):
            raise CalculatorError(f"there is no such position in a string of length {len(text)}")
        return text[position]
    step = _evaluate_position(node.slice.step, source, style)
    if step == 0:
        raise CalculatorError("the step of a slice can't be 0")
    return text[
        _evaluate_position(node.slice.lower, source, style) : _evaluate_position(node.slice.upper, source, style) : step
    ]


def _evaluate_position(node: ast.expr | None, source: str, style: _Style) -> int | None:
    if node is None:
        return None
    value = _evaluate_node(node, source, style)
    position = None if type(value) is str else style.to_whole(value)
    if position is None:
        raise CalculatorError("a position in a string is a whole number")
    return position


_CALL_REASON: Final = 'write len("hello") or "banana".count("a"), with one string in the brackets'
_REASONS: Final[dict[type[ast.expr], str]] = {
    ast.List: 'square brackets only cut a string, as in "hello"[1:3]',
    ast.Tuple: "a pair of brackets is empty",
    ast.Name: _CALL_REASON,
    ast.Attribute: _CALL_REASON,
}
_READERS: Final[dict[type[ast.expr], Callable[[Any, str, _Style], Value]]] = {
    ast.UnaryOp: _evaluate_unary,
    ast.Call: _evaluate_call,
    ast.Subscript: _evaluate_subscript,
}


def _make_style(arithmetic: Any, empty: str) -> _Style:
    operations = {getattr(ast, name): operation for name, operation in arithmetic.OPERATIONS.items()}
    return _Style(operations, arithmetic.read_decimal, arithmetic.negate, arithmetic.to_whole, arithmetic.write, empty)


# A model fails to continue after an empty result: an empty string is shown as one.
_STYLES: Final = {
    "exact": _make_style(exact, empty='""'),
    "python": _make_style(python, empty=""),
}
