"""The analyses that ship: replayed without a model or code, and their numbers computed here by other means."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from record_analyses import find_shipped
from written_answers import PUBLISHED, WrittenAnalysis
from written_sales import SALES

from ferrule.analysis import AnalysisResult, run_analysis
from ferrule.analysis.recording import record_analysis, replay_analysis
from ferrule.analysis.report import render_notebook, render_report

np = pytest.importorskip("numpy")

ALL = (SALES, *PUBLISHED)


def import_datasets(name: str) -> Any:
    """Import a library's published data where a test needs it: at the top, each process of a run would take seconds."""
    pytest.importorskip("pandas")
    return pytest.importorskip(name)


async def replay(analysis: WrittenAnalysis) -> AnalysisResult:
    return await run_analysis("", recording=replay_analysis(find_shipped(analysis)))


def values(result: AnalysisResult) -> dict[str, Any]:
    return {task.id: task.value for task in result.tasks}


@pytest.mark.parametrize("analysis", ALL, ids=lambda one: one.name)
async def test_it_is_complete_and_every_number_has_a_source(analysis: WrittenAnalysis) -> None:
    recording = replay_analysis(find_shipped(analysis))
    result = await run_analysis("", recording=recording)
    # Otherwise a prompt has changed: `python tests/analysis/record_analyses.py` records them anew.
    assert [str(change) for change in recording.changes] == []
    assert result.question == analysis.question
    assert result.stopped is None
    assert all(task.status == "done" for task in result.tasks)
    assert all(check.passed for task in result.tasks for check in task.checks)
    assert [link.text for link in result.numbers if link.kind == "not computed"] == []


async def test_iris_by_sums_of_squares_and_by_nearest_means() -> None:
    found = values(await replay(PUBLISHED[0]))
    rows, species = import_datasets("sklearn.datasets").load_iris(return_X_y=True)
    means = np.array([rows[species == one].mean(axis=0) for one in range(3)])
    between = 50 * ((means - rows.mean(axis=0)) ** 2).sum(axis=0) / 2
    within = ((rows - means[species]) ** 2).sum(axis=0) / 147
    assert [one["F"] for one in found["t1"].values()] == pytest.approx(list(between / within))
    # The same folds, each classified by the nearest mean in the metric of the pooled covariance.
    right = []
    for fold in range(5):
        tested = np.array([50 * one + 10 * fold + at for one in range(3) for at in range(10)])
        kept = np.setdiff1d(np.arange(150), tested)
        centres = np.array([rows[kept][species[kept] == one].mean(axis=0) for one in range(3)])
        spread = rows[kept] - centres[species[kept]]
        inverse = np.linalg.inv(spread.T @ spread)
        away = rows[tested][:, None] - centres
        chosen = np.einsum("nki,ij,nkj->nk", away, inverse, away).argmin(axis=1)
        right.append((chosen == species[tested]).mean())
    assert found["t2"]["folds"] == pytest.approx(right)


async def test_diabetes_by_the_normal_equations() -> None:
    found = values(await replay(PUBLISHED[1]))["t1"]
    rows, target = import_datasets("sklearn.datasets").load_diabetes(return_X_y=True, scaled=False)
    design = np.column_stack([np.ones(len(rows)), rows])
    solved = np.linalg.solve(design.T @ design, design.T @ target)
    assert list(found["coefficients"].values()) == pytest.approx(list(solved), rel=1e-6)
    residual = target - design @ solved
    assert found["r_squared"] == pytest.approx(1 - residual.var() / target.var())
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * (residual @ residual) / (len(rows) - 11))
    significant = [name for name, p in found["p_values"].items() if p < 0.05]
    names = list(found["p_values"])
    assert significant == [name for name, one in zip(names, np.abs(solved / errors), strict=True) if one > 1.9655]


async def test_wine_by_eigenvalues_and_by_counted_pairs() -> None:
    found = values(await replay(PUBLISHED[2]))
    rows, cultivar = import_datasets("sklearn.datasets").load_wine(return_X_y=True)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    shares = np.linalg.eigvalsh(np.cov(scaled.T))[::-1].cumsum() / np.trace(np.cov(scaled.T))
    assert found["t1"]["cumulative"] == pytest.approx(list(shares))
    # Lloyd's algorithm from many starts, the tightest clusters of them; the index is counted pair by pair.
    label = min((cluster(scaled, seed) for seed in range(20)), key=lambda one: one[0])[1]
    one, two = (np.triu(given[:, None] == given, 1) for given in (cultivar, label))
    pairs = len(rows) * (len(rows) - 1) / 2
    expected = one.sum() * two.sum() / pairs
    index = ((one & two).sum() - expected) / ((one.sum() + two.sum()) / 2 - expected)
    assert found["t2"]["adjusted_rand_index"] == pytest.approx(index)
    assert found["t2"]["sizes"] == sorted(np.bincount(label).tolist())


def cluster(rows: Any, seed: int) -> tuple[float, Any]:
    """Three clusters around rows that are chosen at random: how far the rows are from their centres, and the labels."""
    centres = rows[np.random.default_rng(seed).choice(len(rows), 3, replace=False)]
    for _ in range(50):
        away = ((rows[:, None] - centres) ** 2).sum(axis=2)
        label = away.argmin(axis=1)
        centres = np.array([rows[label == one].mean(axis=0) for one in range(3)])
    return float(away.min(axis=1).sum()), label


async def test_macrodata_by_covariances() -> None:
    found = values(await replay(PUBLISHED[3]))["t2"]
    table = import_datasets("statsmodels.api").datasets.macrodata.load_pandas().data
    growth, change = 100 * np.diff(np.log(table["realgdp"])), np.diff(table["unemp"])
    slope = np.cov(growth, change)[0, 1] / growth.var(ddof=1)
    assert found["slope"] == pytest.approx(slope)
    assert found["r_squared"] == pytest.approx(np.corrcoef(growth, change)[0, 1] ** 2)
    assert found["growth_for_stable_unemployment"] == pytest.approx(growth.mean() - change.mean() / slope)
    residual = change - change.mean() - slope * (growth - growth.mean())
    error = np.sqrt(residual @ residual / (len(growth) - 2) / ((growth - growth.mean()) ** 2).sum())
    assert found["standard_error"] == pytest.approx(error)


async def test_spector_by_newtons_method() -> None:
    found = values(await replay(PUBLISHED[4]))
    table = import_datasets("statsmodels.api").datasets.spector.load_pandas().data
    graded = {flag: table[flag == table["PSI"]]["GRADE"].tolist() for flag in (0, 1)}
    shares = [sum(grades) / len(grades) for grades in graded.values()]
    assert [found["t1"]["without"], found["t1"]["with"]] == pytest.approx(shares)
    design = np.column_stack([np.ones(len(table)), table[["GPA", "TUCE", "PSI"]]])
    weights = np.zeros(4)
    for _ in range(30):
        chance = 1 / (1 + np.exp(-design @ weights))
        hessian = (design * (chance * (1 - chance))[:, None]).T @ design
        weights += np.linalg.solve(hessian, design.T @ (table["GRADE"] - chance))
    assert list(found["t2"]["coefficients"].values()) == pytest.approx(list(weights), rel=1e-5)
    assert found["t2"]["odds_ratio_psi"] == pytest.approx(np.exp(weights[3]), rel=1e-5)


async def test_sales_by_hand() -> None:
    found = values(await replay(SALES))
    lines = SALES.write_data(Path()).read_text().splitlines()[1:]
    sums: dict[tuple[str, bool], float] = {}
    for line in lines:
        week, region, _, revenue = line.split(",")
        place = region, week >= "2025-07-01"
        sums[place] = sums.get(place, 0) + float(revenue)
    change = sums["West", True] - sums["West", False]
    assert found["t1"]["West"]["change"] == pytest.approx(change, abs=0.01)
    assert found["t1"]["West"]["change_percent"] == pytest.approx(100 * change / sums["West", False], abs=0.01)
    assert found["t2"]["West"]["p_holm"] == pytest.approx(4 * found["t2"]["West"]["p"])


async def test_a_replay_gives_the_same_result_and_the_same_recording_again(tmp_path: Path) -> None:
    shipped = find_shipped(SALES)
    copied = Path(shutil.copy(shipped, tmp_path / "sales.jsonl"))
    shutil.copytree(shipped.with_suffix(".blobs"), tmp_path / "sales.blobs")
    again = tmp_path / "again.jsonl"
    first = await run_analysis("", recording=replay_analysis(copied, record=again))
    second = await run_analysis("", recording=replay_analysis(again))
    assert first == second
    assert [task.figures for task in first.tasks] == [task.figures for task in second.tasks]
    old, new = ([json.loads(line) for line in path.read_text().splitlines()] for path in (copied, again))
    assert new == old


@pytest.mark.slow
@pytest.mark.parametrize("analysis", ALL, ids=lambda one: one.name)
async def test_what_is_computed_again_is_what_was_recorded(analysis: WrittenAnalysis, tmp_path: Path) -> None:
    shipped = find_shipped(analysis)
    copied = Path(shutil.copy(shipped, tmp_path / shipped.name))
    if shipped.with_suffix(".blobs").exists():
        shutil.copytree(shipped.with_suffix(".blobs"), copied.with_suffix(".blobs"))
    data = [analysis.write_data(tmp_path)]
    recording = replay_analysis(copied, computes=True)
    result = await run_analysis("", data=data, recording=recording)
    assert result.stopped is None
    assert recording.compared >= 1
    # A figure is drawn with other fonts elsewhere.
    assert [str(one) for one in recording.differences if ".images" not in one.place] == []


@pytest.mark.slow
async def test_data_that_changed_since_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text(SALES.write_data(tmp_path).read_text().replace("West", "Far West"))
    shipped = find_shipped(SALES)
    copied = Path(shutil.copy(shipped, tmp_path / shipped.name))
    shutil.copytree(shipped.with_suffix(".blobs"), copied.with_suffix(".blobs"))
    recording = replay_analysis(copied, computes=True)
    result = await run_analysis("", recording=recording)
    assert "sales.csv has changed since it was recorded" in result.notices
    assert any("t1" in str(one) for one in recording.differences)


async def test_a_follow_up_has_the_results_that_are_there(tmp_path: Path) -> None:
    from staged_model import StagedModel

    from ferrule.analysis import AnalysisSettings

    model = StagedModel(
        {
            "complexity": {"level": "straightforward"},
            "candidates": {
                "plans": [{"tasks": [{"id": "t5", "tool": "logic_kernel", "query": "Is it lasting?", "needs": ["t1"]}]}]
            },
            "logic_kernel": {"conclusion": "It can't be said.", "steps": [{"statement": "t1"}], "confidence": 0.5},
            "synthesis": {"answer": "It can't be said from half a year."},
            "focused_answer": {"answer_type": "none", "answer_value": None, "formatted_answer": "unknown"},
        }
    )
    path = tmp_path / "more.jsonl"
    result = await run_analysis(
        "Is the drop lasting?",
        model=model,
        settings=AnalysisSettings(mode="quick"),
        recording=record_analysis(path, continues=find_shipped(SALES)),
    )
    assert result.stopped is None
    assert "132984.63" in model.find("t5/logic_kernel").text
    assert [table.name for table in result.tables] == ["sales"]
    again = await run_analysis("", recording=replay_analysis(path))
    assert again.answer == result.answer
    assert again.tasks == result.tasks
    assert [task.id for task in again.earlier] == ["t1", "t2", "t3", "t4"]
    notebook = json.loads(render_notebook(again, tmp_path))
    ids = [cell["id"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert ids == ["setup", *(f"task-t{number}-code" for number in range(1, 6))]
    assert 'id="task-t1"' in render_report(again)
