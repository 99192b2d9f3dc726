"""An analysis over files, with code that runs in the sandbox: tables, results, a chart, a task that fails."""

from pathlib import Path
from typing import Any

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisResult, AnalysisSettings, run_analysis, stream_analysis
from ferrule.analysis.events import DataShared, StageStarted, TaskRetried
from ferrule.errors import DataError

CSV = "region,quarter,sales\nNorth,Q2,10\nNorth,Q3,12\nSouth,Q2,30\nSouth,Q3,11\n"
CHANGE = (
    'wide = tables["sales"].pivot(index="region", columns="quarter", values="sales")\n'
    'result = (wide["Q3"] - wide["Q2"]).rename("change").reset_index()'
)
LOWEST = (
    'row = results["t1"].sort_values("change").iloc[0]\n'
    'result = {"region": row["region"], "change": int(row["change"])}'
)
CHART = (
    "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\n"
    'axes.bar(tables["sales"]["region"], tables["sales"]["sales"])\nresult = "drawn"'
)


def compute(name: str, query: str, *needs: str) -> dict[str, Any]:
    return {"id": name, "tool": "py_executor", "query": query, "needs": list(needs)}


ANSWERS = {
    "complexity": {"level": "complex"},
    "candidates": {
        "plans": [
            {
                "tasks": [
                    compute("t1", "The change by region."),
                    compute("t2", "The lowest change.", "t1"),
                    compute("t3", "A bar chart of the sales."),
                    compute("t4", "Something that fails."),
                    compute("t5", "What needs it.", "t4"),
                ]
            }
        ]
    },
    "methodology": {"primary_approach": "Pivot and subtract."},
    "extraction": {},
    "tool_query": {"query": "The change."},
    "t1/code": [{"code": CHANGE.replace("sales\"]", "salez\"]", 1)}, {"cause": "a wrong name", "code": CHANGE}],
    "t2/code": {"code": LOWEST},
    "t3/code": {"code": CHART},
    "t4/code": {"code": "result = 1 / 0", "cause": "again"},
    "synthesis": {"answer": "South drives the drop: its sales fell by 19.", "key_findings": ["South fell by 19."]},
    "focused_answer": {"answer_type": "text", "answer_value": "South", "formatted_answer": "South"},
}  # fmt: skip
SETTINGS = AnalysisSettings(mode="quick", python_max_runtime_retries=1, python_max_tool_query_retries=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    (made / "sales.csv").write_text(CSV, encoding="utf-8")
    return made


async def test_tables_results_and_figures_pass_through_the_tasks(folder: Path) -> None:
    events = []
    model = StagedModel(ANSWERS)
    async with stream_analysis(
        "Which region?", data=[folder / "sales.csv"], model=model, settings=SETTINGS
    ) as analysis:
        events = [event async for event in analysis]
    result = analysis.result
    tasks = {task.id: task for task in result.tasks}
    assert {name: task.status for name, task in sorted(tasks.items())} == {
        "t1": "done", "t2": "done", "t3": "done", "t4": "failed", "t5": "skipped",
    }  # fmt: skip
    assert tasks["t2"].value == {"region": "South", "change": -19}
    assert [attempt.failure for attempt in tasks["t1"].attempts] == ["runtime", None]
    assert tasks["t1"].code == CHANGE
    assert tasks["t3"].figures[0].media_type == "image/png"
    assert "ZeroDivisionError" in str(tasks["t4"].error)
    # The same code again: the executor doesn't run the task a second time either.
    assert [attempt.failure for attempt in tasks["t4"].attempts] == ["runtime", "runtime"]
    assert {event.task for event in events if isinstance(event, TaskRetried)} == {"t1", "t4"}
    assert [(link.text, link.kind) for link in result.numbers] == [("19", "computed")]
    check_sharing(result, events, model)


def check_sharing(result: AnalysisResult, events: list[object], model: StagedModel) -> None:
    """What models were shown is said first, and holds no cell of the data."""
    kinds = [type(event) for event in events]
    assert kinds.index(DataShared) < kinds.index(StageStarted)
    assert '"region": text' in result.shared
    assert "South" not in result.shared
    assert result.shared in model.find("candidates").question
    assert result.output_entries[0].data[0].rows == 4


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"PK\x03\x04 no workbook", "sales.xlsx"), (None, "doesn't exist")]
)
async def test_data_that_cannot_be_read_are_an_error_before_anything_is_asked(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "sales.xlsx"
    if content is not None:
        path.write_bytes(content)
    model = StagedModel(ANSWERS)
    with pytest.raises(DataError, match=message) as caught:
        await run_analysis("Which region?", data=[path], model=model)
    assert "\n" not in str(caught.value)
    assert model.seen == []
