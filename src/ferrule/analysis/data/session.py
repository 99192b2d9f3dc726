"""`DataSession`: tables are bound once, and each run of a task's code is forked from that state."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from ferrule._util.async_closing import AsyncClosing
from ferrule.analysis.data.reading import CHILD, CHILD_IMPORT
from ferrule.analysis.data.table import Table
from ferrule.analysis.data.task_value import TaskValue
from ferrule.errors import DataError, SandboxInputError
from ferrule.sandbox.python.mounts import Mount
from ferrule.sandbox.python.result import PythonResult
from ferrule.sandbox.python.sandbox import PythonSandbox
from ferrule.sandbox.python.session import SandboxSession
from ferrule.sandbox.tiers import Tier

PACKAGES: Final = ("numpy", "pandas", "pyarrow.compute", "pyarrow.parquet", "matplotlib", "friendly_traceback.core")
"""What is loaded before any run; friendly-traceback, which explains errors, takes as long as a run to load."""
_LOAD_SECONDS: Final = 300.0
_FOLDER: Final = "results"


class DataSession(AsyncClosing):
    """Runs the code of tasks with `tables` and `results` bound. Made by `open`, and an async context manager.

    Each run is a process of its own, forked from one in which the tables are loaded: it sees nothing of other runs. In
    tiers that can't fork, each run reads the tables that it uses.
    """

    def __init__(self, sandbox: PythonSandbox, tables: Sequence[Table], memory: int) -> None:
        self._sandbox = sandbox
        self._tables = tuple(tables)
        self._memory = memory
        self._lazy = find_lazy(tables, memory)
        self._base: SandboxSession | None = None
        self._imported: set[str] = set()

    @classmethod
    async def open(
        cls,
        tables: Sequence[Table],
        *,
        memory: int,
        packages: Iterable[str] = PACKAGES,
        tier: Tier | str | None = None,
    ) -> Self:
        """Bind tables for runs with `memory` bytes each, the tables included.

        `packages` are loaded before any run. Raises `DataError` if a table can't be bound, and `SandboxUnavailable`.
        """
        lazy_needs = ("duckdb",) if find_lazy(tables, memory) else ()
        sandbox = PythonSandbox(
            packages=(*packages, *lazy_needs), checks="off", memory=memory, tier=tier, readable=[CHILD]
        )
        session = cls(sandbox, tables, memory)
        try:
            base = await session._start()
            if base.can_fork:
                session._base = base
                await session._load(base)
            else:
                await base.aclose()
        except BaseException:
            await sandbox.aclose()
            raise
        return session

    async def run(self, code: str, results: Mapping[str, TaskValue] | None = None, *, timeout: float) -> PythonResult:
        """Run code with `tables` and `results`; `timeout` is in seconds. It isn't checked: check it before.

        Figures left open are in `images`. An error in the code is the result's `error`.
        """
        await self._import_for(code)
        async with self._fork() as session:
            return await session.run(code, make_inputs(results or {}), timeout=timeout)

    async def aclose(self) -> None:
        """End all processes. Can be called again."""
        if self._base is not None:
            await self._base.aclose()
        await self._sandbox.aclose()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that are bound."""
        return self._tables

    @property
    def lazy(self) -> frozenset[str]:
        """The tables that are lazy relations of duckdb."""
        return self._lazy

    @asynccontextmanager
    async def _fork(self) -> AsyncIterator[SandboxSession]:
        session = await (self._start() if self._base is None else self._base.fork())
        try:
            yield session
        finally:
            await session.aclose()

    async def _start(self) -> SandboxSession:
        """Start a session in which the names are bound, without reading a table yet."""
        mounts = [Mount(table.parquet, f"tables/{table.name}.parquet") for table in self._tables]
        try:
            session = await self._sandbox.session(mounts=mounts, checkpoints=False)
        except SandboxInputError as error:
            raise DataError(f"a table's Parquet file can't be used: {error}; read the data again") from None
        files = {table.name: f"tables/{table.name}.parquet" for table in self._tables}
        settings = {"threads": 2, "memory_limit": f"{self._memory // 2 >> 20}MiB"}
        inputs = {"files": files, "lazy": sorted(self._lazy), "settings": settings}
        run = await session.run(_BIND, inputs, timeout=_LOAD_SECONDS)
        if run.error is not None:
            raise DataError(f"the tables can't be bound: {run.error.message}")
        return session

    async def _load(self, session: SandboxSession) -> None:
        run = await session.run("tables.load()\nimport gc\ngc.collect()\ngc.freeze()\ndel gc", timeout=_LOAD_SECONDS)
        if run.error is not None:
            if run.error.kind not in {"memory", "killed"}:
                raise DataError(f"the tables can't be loaded: {run.error.message}")
            raise DataError(
                f"the tables don't fit into memory: {run.error.message}; raise python_memory in the settings"
            )

    async def _import_for(self, code: str) -> None:
        """Import the large packages that code uses once, where it is forked from: each takes up to seconds."""
        if self._base is None:
            return
        wanted = {found[1]: found[2] or "" for found in _LARGE_IMPORTS.finditer(code)}
        names = {name for module, parts in wanted.items() for name in (module, *_join_names(module, parts))}
        if missing := sorted(names - self._imported)[:_MAX_IMPORTS]:
            self._imported.update(missing)
            # A name that isn't a module is imported by the code itself, which then has the error.
            await self._base.run(_IMPORT.format(names=missing), timeout=_LOAD_SECONDS)


_LARGE_IMPORTS: Final = re.compile(
    r"(?:from|import)\s+((?:scipy|sklearn|statsmodels)(?:\.\w+)*)(?:\s+import\s+\(?((?:\w+\s*,\s*)*\w+))?"
)
_MAX_IMPORTS: Final = 20
_IMPORT: Final = """
def load(names):
    import importlib
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:
            pass
load({names})
del load
"""


def _join_names(module: str, parts: str) -> list[str]:
    return [f"{module}.{part}" for part in re.findall(r"\w+", parts)]


_BIND: Final = f"""
{CHILD_IMPORT}
from ferrule_tables.binding import bind
tables, results = bind(files, lazy, settings)
del bind, files, lazy, settings
"""


def find_lazy(tables: Sequence[Table], memory: int) -> frozenset[str]:
    """The tables to leave to duckdb: over a quarter of the memory, or not among those that fill half of it."""
    lazy, filled = set(), 0
    for table in sorted(tables, key=lambda table: table.memory):
        if table.memory > memory // 4 or filled + table.memory > memory // 2:
            lazy.add(table.name)
        else:
            filled += table.memory
    return frozenset(lazy)


def make_inputs(results: Mapping[str, TaskValue]) -> dict[str, Any]:
    """Make the files from which a run reads the results of earlier tasks."""
    if not results:
        return {}
    index: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for number, (task, value) in enumerate(results.items()):
        if value.pickled is None:
            index[task] = {"data": value.data, "file": None}
        else:
            index[task] = {"data": None, "file": f"{number}.pickle"}
            files[f"{_FOLDER}/{number}.pickle"] = value.pickled
    files[f"{_FOLDER}/index.json"] = json.dumps(index, default=str)
    return files
