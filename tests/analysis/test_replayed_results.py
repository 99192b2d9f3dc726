"""A replay leaves the result of the analysis that was recorded, whatever ended its tasks."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisResult, AnalysisSettings, Plan, PlanTask, run_analysis
from ferrule.analysis.recording import record_analysis, replay_analysis
from ferrule.errors import ProviderError

TASKS = [
    {"id": "t1", "tool": "logic_kernel", "query": "Which is better?"},
    {"id": "t2", "tool": "logic_kernel", "query": "By how much?", "needs": ["t1"]},
    {"id": "t3", "tool": "knowledge_retriever", "query": "What is known?"},
    {"id": "t10", "tool": "logic_kernel", "query": "And then?", "needs": ["t2", "t3"]},
]
ANSWERS: dict[str, Any] = {
    "complexity": {"level": "moderate"},
    "candidates": {"plans": [{"tasks": TASKS}]},
    "logic_kernel": {"conclusion": "Plan B.", "steps": [{"statement": "B costs 12."}], "confidence": 0.8},
    "knowledge_retriever": {"summary": "B is common.", "facts": [], "confidence": 0.5},
    "iteration_1": {"decision": "stop"},
    "synthesis": {"answer": "Plan B."},
    "focused_answer": {"answer_type": "text", "answer_value": "B", "formatted_answer": "Plan B"},
}


async def record_and_replay(
    path: Path, answers: dict[str, Any], settings: AnalysisSettings | None = None, **options: Any
) -> tuple[AnalysisResult, AnalysisResult]:
    model = StagedModel(answers)
    made = await run_analysis("Which plan?", model=model, settings=settings, recording=record_analysis(path), **options)
    recording = replay_analysis(path)
    replayed = await run_analysis("", recording=recording)
    assert recording.changes == []
    return made, replayed


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"t1/logic_kernel": ProviderError("refused", 400)},
        {"t1/logic_kernel": ProviderError("down", 503)},
        {"logic_kernel": "nonsense", "knowledge_retriever": "nonsense"},
        {"candidates": {"plans": [{"tasks": [{"id": "t1", "tool": "none", "query": "Do.", "needs": ["t9"]}]}]}},
        {"complexity": ProviderError("unauthorized", 401)},
        {"iteration_1": ProviderError("down", 503)},
        {"synthesis": "nonsense"},
        {"focused_answer": ProviderError("down", 503)},
    ],
    ids=lambda changed: ", ".join(changed) or "complete",
)
async def test_the_replay_is_equal(changed: dict[str, Any], tmp_path: Path) -> None:
    made, replayed = await record_and_replay(tmp_path / "a.jsonl", {**ANSWERS, **changed})
    assert replayed == made


async def test_a_limit_is_the_same(tmp_path: Path) -> None:
    made, replayed = await record_and_replay(tmp_path / "a.jsonl", ANSWERS, AnalysisSettings(max_calls=6))
    assert made.stopped is not None
    assert replayed == made


async def test_an_edited_plan_is_the_one_that_is_replayed(tmp_path: Path) -> None:
    async def edit(plan: Plan) -> Plan:
        return plan.model_copy(update={"tasks": (PlanTask(id="t1", tool="logic_kernel", query="Only this."),)})

    made, replayed = await record_and_replay(tmp_path / "a.jsonl", ANSWERS, approve_plan=edit)
    assert [task.task_query for task in replayed.tasks] == ["Only this."]
    assert replayed == made


async def test_a_refused_plan_is_refused_again(tmp_path: Path) -> None:
    async def refuse(_plan: Plan) -> None:
        return None

    made, replayed = await record_and_replay(tmp_path / "a.jsonl", ANSWERS, approve_plan=refuse)
    assert replayed.stopped == "the plan was not approved"
    assert replayed == made


@pytest.mark.slow
async def test_data_are_named_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("region,orders\nWest,12\nEast,30\n")
    (tmp_path / "recordings").mkdir()
    for at, given in enumerate(("sales.csv", str(tmp_path / "sales.csv"))):
        made, replayed = await record_and_replay(Path(f"recordings/{at}.jsonl"), ANSWERS, data=[given])
        assert [str(table.path) for table in made.tables] == [given]
        assert replayed == made


async def test_a_replay_has_the_versions_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    await run_analysis("Which plan?", model=StagedModel(ANSWERS), recording=record_analysis(path))
    first, second, *rest = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(second)
    assert header["value"]["packages"]["python"] == platform.python_version()
    header["value"]["packages"]["python"] = "3.10.2"
    path.write_text("\n".join([first, json.dumps(header), *rest]), encoding="utf-8")
    replayed = await run_analysis("", recording=replay_analysis(path))
    assert replayed.versions["python"] == "3.10.2"
