"""What tests of Python tasks share: a real sandbox with tables bound, functions, and an executor on a staged model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from staged_model import StagedModel

from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.data import DataSession, make_sources, read_tables
from ferrule.analysis.functions.document import FunctionDoc
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.python_executor.executor import PythonExecutor
from ferrule.analysis.settings import AnalysisSettings

SALES = "region,amount\nnorth,10\nsouth,20\nnorth,5\neast,\n"
MB = 1 << 20


async def open_data_session(folder: Path, tier: str | None = None) -> DataSession:
    """A session with the table `sales`, read from a file in `folder`; of this machine's best tier by default."""
    path = folder / "sales.csv"
    path.write_text(SALES)
    tables = await read_tables(make_sources([path]), folder / "tables", memory=256 * MB)
    return await DataSession.open(tables, memory=512 * MB, packages=("numpy", "pandas"), tier=tier)


class KnownFunctions:
    """A repository of two functions."""

    functions = (
        FunctionDoc("scipy.stats.ttest_ind", "(a, b)", "Compare two means."),
        FunctionDoc("pandas.DataFrame.groupby", "(by)", "Group rows."),
    )

    def search(self, query: str, limit: int = 5) -> list[FunctionDoc]:
        words = query.lower().split()
        return [each for each in self.functions if any(word in each.path.lower() for word in words)][:limit]

    async def look_up(self, path: str) -> FunctionDoc | None:
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
    session: Any, answers: Mapping[str, Any], events: list[Any] | None = None, functions: Any = None, **settings: Any
) -> tuple[PythonExecutor, StagedModel]:
    """An executor whose model answers by stage."""
    model = StagedModel({**PREPARATION, **answers})
    asker = Asker(ModelChoice(model), AnalysisLimits(), (events if events is not None else []).append)
    return PythonExecutor(asker, AnalysisSettings(**settings), session, functions or KnownFunctions()), model
