"""The notebook of an analysis: it validates, and its cells give the numbers of the analysis again.

`nbformat.v4.5.schema.json` is the schema of the format, from nbformat 5.11 (BSD 3-Clause, Jupyter Development Team).
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from notebook_cells import run_cells
from report_examples import make_hostile_result, make_result

from ferrule._util.background import run_synchronously
from ferrule.analysis.data.reading import read_tables
from ferrule.analysis.data.session import DataSession
from ferrule.analysis.data.sources import make_sources
from ferrule.analysis.data.table import ColumnProfile, Table
from ferrule.analysis.python_executor.runs import run_code
from ferrule.analysis.python_executor.stages import ExtractedData
from ferrule.analysis.report.notebook import render_notebook, write_notebook
from ferrule.analysis.report.notebook_run import NotebookError, NotebookRun
from ferrule.analysis.result import AnalysisResult, OutputEntry, TaskExecution, list_versions

SCHEMA = json.loads(Path(__file__).with_name("nbformat.v4.5.schema.json").read_text(encoding="utf-8"))
MEANS = """sales = tables["sales"]
sales["revenue"] = sales["revenue"] * extracted_values["factor"]
sum = 5
sales.groupby("region")["revenue"].mean().to_frame()"""
SPREAD = """import numpy as np
means = results["t1"]["revenue"]
raw = tables["sales"]["revenue"]
noise = np.random.normal(size=3)
spread = float(means.max() - means.min())
result = {"spread": spread, "total": float(sum(raw)), "noise": noise, "note": results["t2"]}"""


def make_sales() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"region": ["North", "South", "West"] * 40, "revenue": rng.normal(100, 20, 120).round(3)})
    return frame.assign(day=pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d"))


def make_tasks(sales: pd.DataFrame) -> list[TaskExecution]:
    """The tasks with results that were computed here, by other code than theirs."""
    means = {name: sales["revenue"].to_numpy()[at::3].mean() * 2 for at, name in enumerate(("North", "South", "West"))}
    noise = np.random.RandomState(0).normal(size=3).tolist()
    table = {"columns": ["revenue"], "rows": [[mean] for mean in means.values()], "index": [*means], "total_rows": 3}
    spread = max(means.values()) - min(means.values())
    values = {"spread": spread, "total": sales["revenue"].sum(), "noise": noise, "note": {"trend": "up"}}
    factor = ExtractedData(extracted_values={"factor": 2}, data_format="number", transformations_applied=[])
    return [
        TaskExecution("t1", "py_executor", "Means", value=table, code=MEANS, extracted_data=factor, result="means"),
        TaskExecution("t2", "knowledge_retriever", "Trend?", value={"trend": "up"}, result="It goes up."),
        TaskExecution("t3", "py_executor", "Spread", ("t1", "t2"), value=values, code=SPREAD, output="ok\n"),
        TaskExecution("t4", "py_executor", "Fails", status="failed", error="no result", code="1 / 0"),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and a notebook beside it of an analysis of them."""
    folder = tmp_path_factory.mktemp("analysis")
    (folder / "data").mkdir()
    (folder / "notebooks").mkdir()
    sales = make_sales()
    sales.to_csv(folder / "data" / "sales.csv", index=False)
    sources = make_sources([folder / "data" / "sales.csv"])
    tables = run_synchronously(read_tables(sources, folder / "tables", memory=1 << 30))
    entries = [OutputEntry("task_execution", task) for task in make_tasks(sales)]
    result = AnalysisResult("How do the regions differ?", tuple(tables), entries, answer="They differ.")
    write_notebook(result, folder / "notebooks" / "out.ipynb")
    return folder


def test_its_cells_give_the_same_numbers(folder: Path) -> None:
    printed = run_cells(folder / "notebooks" / "out.ipynb")
    assert printed == "t1: the same 3 numbers as in the analysis\nt3: the same 5 numbers as in the analysis\n"


def test_its_data_are_named_from_where_it_is(folder: Path) -> None:
    source = (folder / "notebooks" / "out.ipynb").read_text(encoding="utf-8")
    assert "{'sales': '../data/sales.csv'}" in source
    assert str(folder) not in source


def test_a_workbook_is_named_as_it_was_given(tmp_path: Path) -> None:
    parts = [("plan_2023", "plan", "2023"), ("plan_2024_final", "plan", "2024 (final)"), ("sales_q3", "sales_q3", "q3")]
    tables = tuple(
        Table(
            name=name,
            path=tmp_path / f"{file}.xlsx",
            kind="excel",
            part=part,
            rows=1,
            columns=(ColumnProfile(name="revenue", type="integer", missing=0),),
            memory=8,
            parquet=tmp_path / f"{name}.parquet",
            digest=name,
        )
        for name, file, part in parts
    )
    notebook = json.loads(render_notebook(AnalysisResult("Why?", tables), tmp_path))
    (setup,) = [cell for cell in notebook["cells"] if cell["id"] == "setup"]
    assert "    data={'plan': 'plan.xlsx', 'sales_q3': 'sales_q3.xlsx'},\n" in setup["source"]


@pytest.mark.slow
def test_other_data_and_versions_are_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "notebooks").mkdir()
    sales = make_sales()
    sales.loc[0, "revenue"] += 3
    sales.to_csv(tmp_path / "data" / "sales.csv", index=False)
    text = (folder / "notebooks" / "out.ipynb").read_text(encoding="utf-8")
    notebook = tmp_path / "notebooks" / "out.ipynb"
    notebook.write_text(text.replace(f"'{np.__version__}'", "'1.0'"), encoding="utf-8")
    printed = run_cells(notebook)
    assert f"numpy is {np.__version__}, and was 1.0 in the analysis\n" in printed
    assert "sales: the data are not those of the analysis, or are read in another way\n" in printed
    assert "t1: 1 of 3 numbers differ from the analysis: " in printed


@pytest.mark.parametrize("make", [make_result, make_hostile_result, lambda: AnalysisResult("Why?", stopped="No.")])
def test_it_validates(make: Any, tmp_path: Path) -> None:
    notebook = json.loads(render_notebook(make(), tmp_path))
    jsonschema.validate(notebook, SCHEMA)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), cell["id"], "exec")


def test_figures_and_output_are_those_of_the_analysis(tmp_path: Path) -> None:
    notebook = json.loads(render_notebook(make_result(), tmp_path))
    (first,) = [cell for cell in notebook["cells"] if cell["id"] == "task-t1-code"]
    assert [output["output_type"] for output in first["outputs"]] == ["display_data", "execute_result"]
    assert "1250340.50" in "".join(first["outputs"][1]["data"]["text/plain"])


def test_its_text_holds_no_html_and_fetches_nothing(tmp_path: Path) -> None:
    notebook = json.loads(render_notebook(make_hostile_result(), tmp_path))
    text = "".join(line for cell in notebook["cells"] if cell["cell_type"] == "markdown" for line in cell["source"])
    assert not any(sign in text.replace("\\<", "").replace("\\>", "") for sign in ("<", "](", "\u202e", "\x00"))


def test_a_task_begins_with_no_names_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "x"}
    names["run"] = run = NotebookRun(names, data={}, digests={}, versions=list_versions())
    run.begin("t1")
    exec("import random\nresult = {'values': [1, 2.5], 'table': __import__('pandas').DataFrame({'a': [1]})}", names)
    assert run.end({"values": [1, 2.5], "table": {"columns": [], "rows": [[1]], "index": [0], "total_rows": 1}})
    run.begin("t2")
    assert "random" not in names
    assert "result" not in names
    assert names["results"]["t1"]["table"]["a"].tolist() == [1]
    names["results"]["t1"]["values"].append(3)
    run.begin("t3")
    assert names["results"]["t1"]["values"] == [1, 2.5]
    names["result"] = 2
    run.end(3)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "t1: the same 3 numbers as in the analysis",
        "t3: 1 of 1 numbers differ from the analysis: 2.0 was 3.0",
    ]


def test_it_has_the_versions_of_the_analysis(tmp_path: Path) -> None:
    result = AnalysisResult("Why?", versions={"python": "3.10.2", "ferrule": "0.0.9", "numpy": "1.26.0"})
    notebook = json.loads(render_notebook(result, tmp_path))
    assert notebook["metadata"]["language_info"]["version"] == "3.10.2"
    notes, setup = ("".join(cell["source"]) for cell in notebook["cells"][1:3])
    assert "pip install 'ferrule[analysis]==0.0.9' numpy==1.26.0\n" in notes
    assert "'numpy': '1.26.0'}" in setup
    unknown = json.loads(render_notebook(AnalysisResult("Why?", versions={}), tmp_path))
    assert "pip install 'ferrule[analysis]'\n" in "".join(unknown["cells"][1]["source"])


def test_data_that_are_missing_are_named_with_their_places(tmp_path: Path) -> None:
    data = {"sales": str(tmp_path / "data" / "sales.csv"), "costs": str(tmp_path / "costs.csv")}
    with pytest.raises(NotebookError) as caught:
        NotebookRun({}, data=data, digests={}, versions={})
    shown = caught.value._render_traceback_()
    assert shown[0] == "This notebook reads files that can't be found:"
    assert shown[1:3] == [
        f"- sales.csv, to be put at {tmp_path / 'data' / 'sales.csv'}",
        f"- costs.csv, to be put at {tmp_path / 'costs.csv'}",
    ]


def test_a_frame_with_mixed_columns_is_passed_on() -> None:
    names: dict[str, Any] = {}
    run = NotebookRun(names, data={}, digests={}, versions={})
    run.begin("t1")
    names["result"] = pd.DataFrame({"mixed": ["x", 2.5, None, {"a": 1}, (1, 2)]})
    run.end()
    run.begin("t2")
    assert names["results"]["t1"]["mixed"].tolist() == ["x", 2.5, None, {"a": 1}, (1, 2)]


async def test_a_task_draws_the_numbers_that_its_notebook_draws() -> None:
    code = "import random\nimport numpy as np\nresult = [random.random(), float(np.random.normal())]"
    async with await DataSession.open([], memory=1 << 30) as session:
        run = await run_code(session, code, [], extracted={}, results={}, timeout=60)
    names: dict[str, Any] = {}
    notebook = NotebookRun(names, data={}, digests={}, versions={})
    notebook.begin("t1")
    exec(code, names)
    assert notebook.end() == run.value
