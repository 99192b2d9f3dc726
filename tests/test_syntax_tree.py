"""Python is parsed rightly in several threads at once."""

import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferrule._util.syntax_tree import parse_python

SOURCE = "\n".join(
    f"def f{n}(a, b=[{n}, {{'x': (a, {n})}}]):\n    return [a + b[{n}] for a in b if a]" for n in range(60)
)


class Garbage:
    """Collected while a tree is made, runs Python there: only then does another thread get its turn."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


def parse_beside_garbage(_: int) -> str:
    Garbage()
    return ast.dump(parse_python(SOURCE))


def test_threads_that_parse_at_once_all_get_their_tree() -> None:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(parse_beside_garbage, range(40)))
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
    assert set(trees) == {ast.dump(ast.parse(SOURCE))}


def test_an_expression_and_flags() -> None:
    assert isinstance(parse_python("1 + 2", mode="eval").body, ast.BinOp)
    assert isinstance(parse_python("await f()", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).body[0], ast.Expr)


@pytest.mark.parametrize("source", ["a b", "1 +"])
def test_an_error_in_the_source_is_raised(source) -> None:
    with pytest.raises(SyntaxError):
        parse_python(source)
