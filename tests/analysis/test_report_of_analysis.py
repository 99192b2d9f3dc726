"""A whole analysis of a file, run in the sandbox: its report and its notebook, against computation of our own."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from browser import measure
from notebook_cells import run_cells
from staged_model import StagedModel

from ferrule._util.background import run_synchronously
from ferrule.analysis import run_analysis
from ferrule.analysis.report import write_notebook, write_report
from ferrule.analysis.result import AnalysisResult

DATA = Path(__file__).parents[2] / "examples" / "analysis" / "sales.csv"
CHANGE = """import matplotlib.pyplot as plt

sales = tables["sales"].copy()
sales["quarter"] = sales["week"].dt.quarter
sums = sales.pivot_table(index="region", columns="quarter", values="revenue", aggfunc="sum")
change = sums[3] / sums[2] - 1
fig, ax = plt.subplots()
ax.bar(change.index, change)
result = change.to_dict()"""
TOTAL = """change = results["t1"]
sales = tables["sales"]
result = {"worst": min(change, key=change.get), "rows": len(sales), "largest": float(sales["revenue"].max())}"""


def answer_stages(change: float, largest: float) -> dict[str, object]:
    tasks = [
        {"id": "t1", "tool": "py_executor", "query": "Change of revenue by region from Q2 to Q3", "needs": []},
        {"id": "t2", "tool": "py_executor", "query": "The region with the largest drop", "needs": ["t1"]},
    ]
    method = {"primary_approach": "Compare sums by group", "recommended_function_paths": []}
    answer = (
        f"The largest drop of a region is {abs(change):.1%}, and the largest revenue {largest:,.2f}. "
        "It is usual to see 77.7% elsewhere."
    )
    return {
        "complexity": {"level": "straightforward", "reason": "two sums"},
        "candidates": {"plans": [{"approach": "Compare quarters.", "tasks": tasks}]},
        "methodology": method,
        "extraction": {"extracted_values": {}, "data_format": "none"},
        "tool_query": {"query": "As asked.", "result_format": "a dict"},
        "t1/code": {"code": CHANGE, "result_checks": []},
        "t2/code": {"code": TOTAL, "result_checks": []},
        "iteration_1": {"decision": "stop", "reason": "answered"},
        "synthesis": {"answer": answer, "key_findings": []},
        "focused_answer": {"answer_type": "number", "answer_value": change, "formatted_answer": f"{change:.1%}"},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
def result(folder: Path) -> AnalysisResult:
    """The analysis, whose answer is written from what pandas says here."""
    shutil.copy(DATA, folder)
    sales = pd.read_csv(DATA, parse_dates=["week"])
    sums = sales.groupby(["region", sales["week"].dt.quarter])["revenue"].sum().unstack()
    change = (sums[3] / sums[2] - 1).min()
    model = StagedModel(answer_stages(change, sales["revenue"].max()))
    analysis = run_analysis("Which region drops most?", data=[folder / "sales.csv"], model=model)
    return run_synchronously(analysis)


@pytest.mark.slow
def test_the_report_links_the_numbers_that_were_computed(result: AnalysisResult, folder: Path) -> None:
    assert [task.error for task in result.tasks] == [None, None]
    write_report(result, folder / "out.html")
    page = (folder / "out.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="#(task-t\d)" class="number computed"', page)
    assert links == ["task-t1", "task-t1", "task-t2"]
    assert re.findall(r'class="uncomputed"[^>]*>([^<]*)<', page) == ["77.7%"]
    assert '<img src="data:image/png;base64,' in page
    assert 'id="table-sales"' in page
    counts = "[page.images.length, [...page.images].every(one => one.naturalWidth > 100)]"
    assert measure(folder, {"images": (folder / "out.html", 800, counts)})["images"] == [1, True]


@pytest.mark.slow
def test_the_notebook_gives_the_same_numbers(result: AnalysisResult, folder: Path) -> None:
    write_notebook(result, folder / "out.ipynb")
    cells = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    assert "'sales': 'sales.csv'" in "".join(cells[2]["source"])
    said = run_cells(folder / "out.ipynb").splitlines()
    assert len(said) == 2
    assert all(re.fullmatch(r"t\d: the same \d numbers as in the analysis", line) for line in said)
