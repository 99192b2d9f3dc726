"""The calculator as a tool."""

from __future__ import annotations

from typing import Annotated

from ferrule.errors import ToolFailed
from ferrule.tools.decorator import tool


@tool(read_only=True, idempotent=True, open_world=False)
def calculator(
    expression: Annotated[str, 'What to compute, such as `12 * (3 + 4)` or `"banana".count("a")`'],
) -> str:
    """Compute an arithmetic expression exactly, or count, measure and slice strings."""
    from ferrule.arithmetic.evaluate import CalculatorError, evaluate

    try:
        return evaluate(expression)
    except CalculatorError as error:
        raise ToolFailed(str(error)) from error
