"""What a task leaves reaches the next one as it was, or a note says what didn't."""

import asyncio
from collections.abc import Iterator

import pytest

from ferrule.analysis.data import DataSession, TaskValue
from ferrule.analysis.python_executor.outcome import render_result
from ferrule.analysis.python_executor.runs import CodeRun, run_code
from ferrule.builtin_tools.python_values import to_plain_json

MB = 1024 * 1024
SAME = """
import dataclasses, datetime, decimal, fractions, math, re, zoneinfo
import numpy as np, pandas as pd

def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
        return True
    if isinstance(a, pd.Series):
        pd.testing.assert_series_equal(a, b)
        return True
    if isinstance(a, pd.Index):
        pd.testing.assert_index_equal(a, b)
        return True
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and all(map(same, a.ravel().tolist(), b.ravel().tolist()))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return a == b or (a is pd.NaT and b is pd.NaT) or repr(a) == repr(b)
"""
WHOLE = [
    "{'v': float('nan')}",
    "[float('inf'), -float('inf'), -0.0, 1e308, 5e-324]",
    "{'a': decimal.Decimal('1.10'), 'b': fractions.Fraction(1, 3), 'c': 1 + 2j}",
    "pd.Timestamp('2024-03-01 12:00', tz='Europe/Berlin')",
    "[datetime.date(2024, 1, 31), datetime.time(1, 2), pd.Timedelta('1d'), pd.NaT, pd.Period('2024-01')]",
    "datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))",
    "{1: 'a', (2, 3): 'b', None: 'c', 1.5: 'd', True and 'x': 'e'}",
    "({1, 2}, frozenset('ab'), (1, (2,)), b'\\x00\\xff', range(3), slice(1, 2))",
    "np.zeros(200_000)",
    "[np.array([[1, 2], [3, 4]], dtype='int8'), np.float32(0.1), np.int64(2**60), np.array(['a', None], dtype=object)]",
    "np.ma.masked_array([1, 2], [True, False]).filled(0)",
    "pd.Series([1, 2, None], index=['a', 'b', 'c'], name='n')",
    "pd.Series([1, 'a', None], dtype=object)",
    "pd.Series(['x', 'y'], dtype='category')",
    "pd.DataFrame({'a': range(5000), 'b': np.linspace(0, 1, 5000)})",
    "[pd.DataFrame({'a': range(5000)}), {'deep': {'er': (pd.DataFrame({'b': range(3000)}),)}}]",
    "pd.DataFrame([[1, 2j]], columns=['x', 'x'])",
    "pd.DataFrame({'a': [1, 'b', None, [1]], 'p': pd.period_range('2024-01', periods=4, freq='M')})",
    "pd.DataFrame(np.arange(4).reshape(2, 2), columns=pd.MultiIndex.from_tuples([('a', 1), ('b', 2)]))",
    "pd.DataFrame({'d': pd.to_datetime(['2024-01-01', None])}, index=pd.Index([3, 5], name='k'))",
    "list(range(60_000))",
    "'x' * 3_000_000",
    "10 ** 400",
    "{'$tuple': [1], 'file': None, 'data': {'': True}}",
    "[[[[[[[[1]]]]]]]]",
    "re.compile('a+')",
    "'\\ud800'",
    "None",
    "pd.DataFrame()",
    "(lambda one: (one, one))([1])",
    "__import__('collections').defaultdict(list, a=[1])",
    "[np.add, math.sqrt, np.float64]",
]
CHANGED = [
    ("lambda: 1", "its text"),
    ("{'ok': 1, 'bad': (i for i in range(3))}", "its text"),
    ("__import__('collections').defaultdict(lambda: 0, a=1)", "a dict"),
    ("{'a': 1}.keys()", "a list"),
    ("dataclasses.make_dataclass('Point', ['x'])(1)", "a dict of its fields"),
    ("__import__('collections').namedtuple('Pair', 'a b')(1, 2)", "a tuple"),
    ("type('Thing', (), {})()", "its text"),
    ("np", "its text"),
    ("__import__('threading').Lock()", "its text"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[DataSession]:
    session = asyncio.run(DataSession.open([], memory=768 * MB))
    yield session
    asyncio.run(session.aclose())


async def leave(session: DataSession, code: str) -> CodeRun:
    run = await run_code(session, f"{SAME}\nresult = {code}\nprint('made')", [], extracted={}, results={}, timeout=60)
    assert run.error is None, run.error
    return run


async def use(session: DataSession, run: CodeRun, value: str) -> object:
    results = {"t1": TaskValue(to_plain_json(run.value), run.pickled)}
    used = await session.run(f"{SAME}\n{value}", results, timeout=60)
    assert used.error is None, (used.error, run.notes)
    return used.value


async def test_a_value_reaches_the_next_task_as_it_was(session: DataSession) -> None:
    limit = asyncio.Semaphore(2)

    async def check(code: str) -> None:
        async with limit:
            run = await leave(session, code)
            assert run.notes == (), code
            assert await use(session, run, f"same({code}, results['t1'])") is True, code

    await asyncio.gather(*map(check, WHOLE))


@pytest.mark.parametrize(("code", "change"), CHANGED)
async def test_what_cannot_be_kept_is_noted(session: DataSession, code: str, change: str) -> None:
    run = await leave(session, code)
    assert len(run.notes) == 1
    assert run.notes[0].startswith("later tasks have ")
    assert run.notes[0].endswith(f"of the result as {change}")
    assert await use(session, run, "results['t1'] is not None") is True
    assert f"Note: {run.notes[0]}" in render_result(run, run.notes)


async def test_a_value_that_is_too_large_is_noted(session: DataSession) -> None:
    run = await leave(session, "np.random.default_rng(0).random(8_000_000)")
    assert run.pickled is None
    assert len(run.notes) == 1
    assert run.notes[0].startswith("later tasks have the result as it is shown here: ")


async def test_the_type_is_said_where_json_has_none(session: DataSession) -> None:
    run = await leave(session, "{'by': pd.Series([1.5]), 'n': 1}")
    assert "Later tasks have it whole, as dict with 'by': Series, 'n': int" in render_result(run, ())
    assert "Later tasks" not in render_result(await leave(session, "{'n': [1, None, 'a']}"), ())
