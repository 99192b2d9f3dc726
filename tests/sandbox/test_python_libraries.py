"""Libraries of analysts inside the sandbox: matplotlib, which is loaded before the runs, and what they import."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ferrule.sandbox.checks import check
from ferrule.sandbox.python import PythonSandbox

TIERS = ["full", "container"]
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('a')\nNone"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TIERS)
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[PythonSandbox]:
    async with PythonSandbox(packages=("numpy", "pandas", "matplotlib"), tier=request.param) as sandbox:
        yield sandbox


async def test_matplotlib_is_loaded_before_the_runs_and_draws_in_them(sandbox: PythonSandbox) -> None:
    pytest.importorskip("matplotlib")
    assert "matplotlib" in sandbox.packages
    run = await sandbox.run(FIGURE, timeout=60)
    assert run.error is None, run.error
    assert (run.stderr, len(run.images), run.files) == ("", 1, {})
    loaded = await sandbox.run("import sys\n[n in sys.modules for n in ('matplotlib.pyplot', 'PIL.PngImagePlugin')]")
    assert loaded.value == [True, True]
    none = await sandbox.run("import matplotlib.pyplot as plt\nplt.get_fignums()", timeout=60)
    assert none.value == []


async def test_nothing_of_the_loading_is_left_to_runs(sandbox: PythonSandbox) -> None:
    code = "import os\nos.listdir('.'), os.environ['HOME'] == os.getcwd() + '/.private', os.listdir('.private')"
    run = await sandbox.run(code)
    assert run.value == ([".private"], True, [])
    around = await sandbox.run("import os\nos.listdir('..')")
    assert around.value == ["run"] or "PermissionError" in str(around.error)


REGRESSION = """
from sklearn.linear_model import LinearRegression
round(float(LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]).coef_[0]), 6)
"""
ROOT = """
import scipy.optimize, scipy.stats
round(scipy.optimize.brentq(lambda x: x - 1, 0, 3), 6)
"""
FORMULA = """
import statsmodels.formula.api as smf, pandas as pd
round(float(smf.ols('y ~ x', pd.DataFrame({'x': [1, 2, 3], 'y': [2, 4, 6]})).fit().params['x']), 6)
"""
COLUMNS = """
import pandas as pd
pd.DataFrame({'a': ['x', 'y']}).to_parquet('a.parquet')
pd.read_parquet('a.parquet').a.tolist()
"""
SHEET = """
import pandas as pd
pd.DataFrame({'a': [1, 2]}).to_excel('a.xlsx', index=False)
int(pd.read_excel('a.xlsx').a.sum())
"""
LIBRARIES = {
    "sklearn": (REGRESSION, 1.0),
    "scipy": (ROOT, 1.0),
    "statsmodels": (FORMULA, 2.0),
    "pyarrow": (COLUMNS, ["x", "y"]),
    "openpyxl": (SHEET, 3),
}


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_library_works_inside(sandbox: PythonSandbox, library: str) -> None:
    pytest.importorskip(library)
    code, value = LIBRARIES[library]
    run = await sandbox.run(code, timeout=120)
    assert run.error is None, run.error
    assert run.value == value


async def test_what_asks_for_workers_computes_in_this_process(sandbox: PythonSandbox) -> None:
    pytest.importorskip("sklearn")
    code = "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
    code += "from sklearn.model_selection import cross_val_score\n"
    code += "len(cross_val_score(LogisticRegression(), np.arange(40).reshape(-1, 1), [0] * 20 + [1] * 20, n_jobs=2))"
    run = await sandbox.run(code, timeout=120)
    assert run.error is None, run.error
    assert run.value == 5


WORKERS = {
    "pool": "import multiprocessing\nmultiprocessing.Pool(2).map(abs, [1])",
    "process": "import multiprocessing\nmultiprocessing.Process(target=print).start()",
    "spawned": "import multiprocessing\nmultiprocessing.get_context('spawn').Process(target=print).start()",
    "queue": "import multiprocessing\nmultiprocessing.Queue()",
    "pool of threads": "from multiprocessing.pool import ThreadPool\nThreadPool(2)",
    "executor": "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor(2).submit(abs, 1).result()",
    "executor by name": "from concurrent.futures import ProcessPoolExecutor as P\nlist(P(2).map(abs, [1]))",
    "program": "import subprocess\nsubprocess.run(['true'])",
}


@pytest.mark.parametrize("what", WORKERS)
async def test_other_processes_are_refused_in_words(sandbox: PythonSandbox, what: str) -> None:
    run = await sandbox.run(WORKERS[what])
    assert run.error is not None
    assert run.error.kind == "exception"
    for text in (run.error.message, run.error.traceback):
        assert "The sandbox can't start other processes" in text
    [finding] = run.findings
    assert finding.rule == "process"
    assert "in this one process" in finding.instead


async def test_threads_are_what_works_instead(sandbox: PythonSandbox) -> None:
    code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n"
    code += "    found = list(pool.map(abs, [1, -2]))\nfound"
    assert check(code) == ()
    assert (await sandbox.run(code)).value == [1, 2]


async def test_another_error_gets_no_such_words(sandbox: PythonSandbox) -> None:
    run = await sandbox.run("open('/etc/passwd')")
    assert run.error is not None
    assert "one process" not in run.error.message
