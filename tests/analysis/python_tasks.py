"""What tests of Python tasks share: a real sandbox with tables bound, functions, and an executor on a staged model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from staged_model import StagedModel

from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.python_executor.executor import PythonExecutor
from ferrule.analysis.settings import AnalysisSettings
from ferrule.sandbox.python import PythonResult, PythonSandbox

SALES = pd.DataFrame({"region": ["north", "south", "north", "east"], "amount": [10.0, 20.0, 5.0, None]})


@dataclass(frozen=True)
class BoundTable:
    name: str
    frame: pd.DataFrame


@dataclass(frozen=True)
class BoundSession:
    """Runs code in a sandbox with tables and results as inputs."""

    sandbox: PythonSandbox
    tables: Sequence[BoundTable] = (BoundTable("sales", SALES),)

    async def run(self, code: str, results: Mapping[str, Any], *, timeout: float) -> PythonResult:
        inputs = {f"table_{table.name}": table.frame for table in self.tables}
        bound = ", ".join(f"{table.name!r}: table_{table.name}" for table in self.tables)
        start = f"tables = {{{bound}}}; "
        return await self.sandbox.run(start + code, {**inputs, "results": dict(results)}, timeout=timeout)


@dataclass(frozen=True)
class KnownFunction:
    path: str
    signature: str = "(x)"
    purpose: str = "A function of a test."

    def render(self) -> str:
        return f"{self.path}{self.signature}: {self.purpose}"


class KnownFunctions:
    """A repository of two functions."""

    functions = (KnownFunction("scipy.stats.ttest_ind"), KnownFunction("pandas.DataFrame.groupby"))

    def search(self, query: str, limit: int = 5) -> list[KnownFunction]:
        words = query.lower().split()
        return [each for each in self.functions if any(word in each.path.lower() for word in words)][:limit]

    async def look_up(self, path: str) -> KnownFunction | None:
        return next((each for each in self.functions if each.path == path), None)


PREPARATION = {
    "methodology": {
        "primary_approach": "Add the amounts.",
        "recommended_function_paths": ["pandas.DataFrame.groupby()"],
    },
    "extraction": {"extracted_values": {}},
    "tool_query": {"query": "Compute the sum of amount in sales.", "result_format": "a number"},
}


def write_code(code: str, *checks: str) -> dict[str, Any]:
    """An answer with code and checks."""
    return {"code": code, "result_checks": [{"states": f"it holds: {check}", "code": check} for check in checks]}


def make_executor(
    session: Any, answers: Mapping[str, Any], events: list[Any] | None = None, **settings: Any
) -> tuple[PythonExecutor, StagedModel]:
    """An executor whose model answers by stage."""
    model = StagedModel({**PREPARATION, **answers})
    asker = Asker(ModelChoice(model), AnalysisLimits(), (events if events is not None else []).append)
    return PythonExecutor(asker, AnalysisSettings(**settings), session, KnownFunctions()), model
