"""Code of tasks runs with the tables and earlier results bound, each run in a process of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule.analysis.data import DataSession, Table, TaskValue, make_sources, read_tables
from ferrule.analysis.data.task_value import VALUE_FILE
from ferrule.builtin_tools.python_values import to_plain_json

MB = 1 << 20
PACKAGES = ("numpy", "pandas", "matplotlib")


def read_sales(folder: Path, text: str) -> list[Table]:
    (folder / "sales.csv").write_text(text)
    return asyncio.run(read_tables(make_sources([folder / "sales.csv"]), folder / "tables", memory=256 * MB))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    text = "region,amount\n" + "".join(f"{'NS'[n % 2]},{n}\n" for n in range(1000))
    return read_sales(tmp_path_factory.mktemp("sales"), text)


@pytest.fixture(scope="module")
def session(tables: list[Table]) -> Iterator[DataSession]:
    session = asyncio.run(DataSession.open(tables, memory=512 * MB, packages=PACKAGES))
    yield session
    asyncio.run(session.aclose())


async def test_runs_share_tables_and_nothing_else(session: DataSession) -> None:
    run = await session.run("frame = tables['sales']\nframe['amount'] = 0\nint(frame.amount.sum())", timeout=20)
    assert run.value == 0
    again = await session.run("'frame' in globals(), int(tables['sales'].amount.sum())", timeout=20)
    assert again.value == (False, 499_500)
    failed = await session.run("x = 1\ntables['sales'].amuont", timeout=20)
    assert failed.error is not None
    assert failed.error.line == 2
    missing = await session.run("tables['sale']", timeout=20)
    assert missing.error is not None
    assert "there is no table 'sale'; there are: sales" in missing.error.message


async def keep(session: DataSession, code: str) -> TaskValue:
    """Run code that sets `value`, and hand it on as a Python task does."""
    run = await session.run(
        f"{code}\nfrom ferrule_tables.values import write_value\nwrite_value(value)\nvalue", timeout=20
    )
    assert run.error is None
    return TaskValue(to_plain_json(run.value), run.files[VALUE_FILE])


async def test_results_of_a_task_reach_the_next_one(session: DataSession) -> None:
    code = "by = tables['sales'].groupby('region').amount.sum()\nvalue = {'by': by, 'p': 0.03, 'names': ['N', 'S']}"
    first = await keep(session, code)
    frame = await keep(session, "value = tables['sales'].head(2000)")
    results = {"t1": first, "t2": frame, "t3": TaskValue([1, {"a": None}])}
    use = "r = results\nint(r['t1']['by'].sum()), r['t1']['p'], len(r['t2']), r['t3'], list(r)"
    used = await session.run(use, results, timeout=20)
    assert used.value == (499_500, 0.03, 1000, [1, {"a": None}], ["t1", "t2", "t3"])
    assert (await keep(session, "value = tables['sales'].head(2000)")).digest == frame.digest


async def test_open_figures_are_collected_and_runs_go_on_at_once(session: DataSession) -> None:
    code = "import matplotlib.pyplot as plt\ntables['sales'].groupby('region').amount.sum().plot.bar()\nNone"
    runs = await asyncio.gather(*(session.run(code, timeout=30) for _ in range(3)))
    assert [len(run.images) for run in runs] == [1, 1, 1]
    ended = await session.run("while True: pass", timeout=0.2)
    assert ended.error is not None
    assert ended.error.kind == "timeout"
    # What runs leave in their folders is removed: together it is more than there is room for.
    for _ in range(5):
        run = await session.run("open('left', 'wb').write(bytes(9_000_000))", timeout=20)
        assert run.error is None


@pytest.mark.slow
async def test_a_large_table_is_a_lazy_relation(tmp_path: Path) -> None:
    lines = [f"{'NS'[n % 2]}{'x' * 60},{n}\n" for n in range(500_000)]
    tables = await asyncio.to_thread(read_sales, tmp_path, "region,amount\n" + "".join(lines))
    async with await DataSession.open(tables, memory=128 * MB, packages=PACKAGES) as session:
        assert session.lazy == {"sales"}
        code = "tables['sales'].aggregate('left(region, 1) AS r, sum(amount)::BIGINT AS total', 'r').order('r').df()"
        run = await session.run(code, timeout=30)
        assert run.error is None, run.error
        assert run.value.rows == (("N", 62_499_750_000), ("S", 62_500_000_000))
        code = (
            "tables['sales']; import duckdb; duckdb.sql(\"SELECT current_setting('enable_progress_bar')\").fetchall()"
        )
        run = await session.run(code, timeout=30)
        assert run.value == [(False,)]


async def test_without_forks_each_run_reads_what_it_uses(tables: list[Table]) -> None:
    async with await DataSession.open(tables, memory=512 * MB, packages=("pandas",), tier="container") as session:
        run = await session.run("int(tables['sales'].amount.sum()), results['t1']", {"t1": TaskValue(5)}, timeout=30)
        assert run.value == (499_500, 5)
