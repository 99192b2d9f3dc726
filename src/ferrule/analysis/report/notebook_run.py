"""`NotebookRun`: what the notebook of an analysis uses to run its tasks again as they ran.

Each task's code saw the tables as they were read, the results of earlier tasks, and no names of theirs. Here the cells
share one process, without a sandbox, so each task begins with all that made anew.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from ferrule._util.pluralize import pluralize
from ferrule.analysis.numbers.sources import read_numbers
from ferrule.analysis.result import list_versions
from ferrule.errors import DataError

SEED: Final = 0
_SHOWN: Final = 5


class NotebookError(DataError):
    """Data of a notebook that can't be read. Jupyter shows its message without the lines of code that it came from."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class NotebookRun:
    """The tables and results of a notebook, in whose namespace (`globals()`) the cells of its tasks run.

    `data` are the files of the tables by name, relative to the notebook, `digests` the digests of the tables as they
    were analysed, `versions` those of `list_versions` then. Reports on standard output what is different now.
    `memory` is in megabytes, for reading. Raises `NotebookError` for a file that isn't there or can't be read.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        *,
        data: Mapping[str, str],
        digests: Mapping[str, str],
        versions: Mapping[str, str],
        memory: int = 2048,
    ) -> None:
        self._namespace = namespace
        self._own = set(namespace)
        self._results: dict[str, Any] = {}
        self._task = ""
        self._folder = Path(tempfile.mkdtemp(prefix="ferrule-notebook-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        for line in _compare_versions(versions):
            print(line)
        self._tables = _read_tables(data, self._folder, memory) if data else []
        for table in self._tables:
            if digests.get(table.name, table.digest) != table.digest:
                print(f"{table.name}: the data are not those of the analysis, or are read in another way")

    def begin(self, task: str, extracted_values: Mapping[str, Any] | None = None) -> None:
        """Bind `tables`, `results` and `extracted_values` as the task saw them, forget other names, and fix seeds."""
        for name in set(self._namespace) - self._own:
            if not name.startswith("_") and self._namespace[name] is not self:
                del self._namespace[name]
        self._namespace["tables"] = self._bind_tables()
        self._namespace["results"] = copy.deepcopy(self._results)
        self._namespace["extracted_values"] = copy.deepcopy(dict(extracted_values or {}))
        self._task = task
        _fix_seeds()
        if plots := sys.modules.get("matplotlib.pyplot"):
            plots.close("all")

    def end(self, expected: Any = None) -> Any:
        """Keep the task's `result` for later ones and return it; `expected` is what it was, to compare its numbers."""
        value: Any = self._namespace.get("result")
        if type(value).__module__.partition(".")[0] in {"duckdb", "_duckdb"}:
            value = cast("Any", value).df()
        self._results[self._task] = _pass_on(value)
        if expected is not None:
            print(f"{self._task}: {_compare_numbers(value, expected)}")
        return value

    def recall(self, task: str, value: Any) -> Any:
        """Keep the result of a task that ran no code, as it was recorded; returns it."""
        self._results[task] = value
        return value

    def _bind_tables(self) -> Mapping[str, Any]:
        from ferrule.analysis.data.child.ferrule_tables.binding import Tables

        files = {table.name: table.parquet.name for table in self._tables}
        return Tables(str(self._folder), files, [], {})


def _read_tables(data: Mapping[str, str], folder: Path, memory: int) -> list[Any]:
    """Read files as the analysis read them. In a thread of its own: a notebook has an event loop that runs."""
    from concurrent.futures import ThreadPoolExecutor

    from ferrule._util.background import run_synchronously
    from ferrule.analysis.data.reading import read_tables
    from ferrule.analysis.data.sources import DataSource

    if missing := [path for path in data.values() if not Path(path).is_file()]:
        raise NotebookError(_explain_missing(missing))
    sources = [DataSource(Path(path), name) for name, path in data.items()]
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(lambda: run_synchronously(read_tables(sources, folder, memory=memory << 20)))
        try:
            return reading.result()
        except DataError as error:
            raise NotebookError(str(error)) from None


def _explain_missing(paths: Sequence[str]) -> str:
    """Which files aren't there, and where to put them: in full, since a notebook may have been moved."""
    places = "\n".join(f"- {Path(path).name}, to be put at {Path(path).resolve()}" for path in dict.fromkeys(paths))
    what = "a file" if len(set(paths)) == 1 else "files"
    return (
        f"This notebook reads {what} that can't be found:\n{places}\n"
        "Put it there, or change its path after data= in this cell, and run the notebook again from this cell on."
    )


def _compare_versions(versions: Mapping[str, str]) -> Iterator[str]:
    now = list_versions()
    for name, used in versions.items():
        if now.get(name) != used:
            yield f"{name} is {now.get(name, 'missing')}, and was {used} in the analysis"


def _fix_seeds() -> None:
    """The seeds that runs of tasks begin with."""
    import random

    import numpy as np

    random.seed(SEED)
    np.random.seed(SEED)


def _pass_on(value: Any) -> Any:
    """A result as later tasks see it: as `results` of the analysis had it."""
    import pickle

    from ferrule.analysis.data.child.ferrule_tables.values import dump_value, is_plain

    if is_plain(value):
        return value
    try:
        return pickle.loads(dump_value(value)[0])
    except Exception:  # noqa: BLE001 - the value's own methods may raise anything
        return json.loads(json.dumps(_simplify(value), default=str))


def _simplify(value: Any) -> Any:
    """JSON data of a value, with tables as the sandbox writes them: `rows`, `columns`, `index`, `total_rows`."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.Series):
        value = value.to_frame()
    if isinstance(value, pd.DataFrame):
        rows = [[_simplify(cell) for cell in row] for row in value.itertuples(index=False, name=None)]
        return {"columns": [], "rows": rows, "index": [], "total_rows": len(value)}
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _simplify(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_simplify(inner) for inner in value]
    return value


def _compare_numbers(value: Any, expected: Any) -> str:
    """Whether the numbers of a result are those of the analysis, in one line; of a cut table, the first ones."""
    wanted = list(read_numbers(expected))
    found = list(read_numbers(_simplify(value)))[: len(wanted)]
    if len(found) < len(wanted):
        return f"{len(found)} numbers, and {len(wanted)} in the analysis"
    pairs = [pair for pair in zip(found, wanted, strict=True) if not math.isclose(*pair, rel_tol=1e-9, abs_tol=1e-12)]
    if not pairs:
        return f"the same {pluralize(len(wanted), 'number')} as in the analysis" if wanted else "no numbers to compare"
    shown = "; ".join(f"{now!r} was {then!r}" for now, then in pairs[:_SHOWN])
    return f"{len(pairs)} of {len(wanted)} numbers differ from the analysis: {shown}"
